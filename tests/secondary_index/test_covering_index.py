"""An index that covers every segment: the rows are those of a scan without it, and what it can answer is not read."""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc
import pytest

import tamis
from tamis.errors import InvalidInput
from tests.secondary_index.tables import empty_table, ids, key_in, rows_of, same, table_a, used


def test_a_point_reads_the_part_that_holds_it(just_ik: tamis.Table) -> None:
    report = same(just_ik, f"k = {key_in(2)}")
    assert used(report) == {"ik": (5, 0)}
    assert (report.parts.skipped_index, report.parts.kept) == (4, 1)
    assert report.bytes.index > 0


def test_a_value_that_is_nowhere_reads_no_part(tmp_path: Path) -> None:
    table = empty_table(tmp_path / "t")
    for segment in range(3):
        rows = rows_of(segment)
        table.append(rows.filter(pc.not_equal(rows["k"], 4_321)))
    table.create_index("ik", ["k"])
    report = same(table, "k = 4321")
    assert (report.parts.kept, report.segments.by_index, report.bytes.leader + report.bytes.follower) == (0, 3, 0)
    assert report.bytes.index > 0


def test_a_list_of_a_thousand_keys_reads_their_segment_alone(just_ik: tamis.Table) -> None:
    keys = ", ".join(str(k) for k in rows_of(3)["k"].to_pylist()[:1_000])
    report = same(just_ik, f"k IN ({keys})")
    assert (report.parts.kept, used(report)) == (1, {"ik": (5, 0)})


def test_a_point_reads_less_than_a_tenth_of_a_scan(tmp_path: Path) -> None:
    """Less than a tenth of what is read without index, index included."""
    table = empty_table(tmp_path / "t")
    for segment in range(3):
        table.append(rows_of(segment, 120_000, 3))
    table.create_index("ik", "k")
    row_filter = f"k = {rows_of(1, 120_000, 3)['k'][9].as_py()}"
    same(table, row_filter)  # footers are known from now on
    report, plain = (
        same(table, row_filter),
        table.scan(row_filter, options={"tamis.index.use": "off", "tamis.read.lazy": "off"}),
    )
    plain.to_arrow()
    assert plain.report is not None
    asked, base = (r.bytes.index + r.bytes.leader + r.bytes.follower for r in (report, plain.report))
    assert (used(report), 0 < asked < base / 10) == ({"ik": (3, 0)}, True)


@pytest.mark.parametrize(("low", "high"), [(100, 130), (100, 100), (130, 100), (-5, 3), (9_990, 99_999)])
def test_a_range_is_looked_up_and_an_empty_one_reads_nothing(just_ik: tamis.Table, low: int, high: int) -> None:
    report = same(just_ik, f"k BETWEEN {low} AND {high}")
    read = report.parts.kept, report.bytes.index, report.bytes.leader + report.bytes.follower
    if low > high:
        assert (used(report), read) == ({}, (0, 0, 0)), "nothing is read to find nothing"
    else:
        assert (list(used(report)), used(report)["ik"][1], read[0] > 0) == (["ik"], 0, True), (
            "all segments that statistics leave"
        )


def test_a_prefix_is_looked_up(a: tamis.Table) -> None:
    assert "is" in used(same(a, "s LIKE 'ab00001%'"))
    same(a, "s LIKE '%0001'")


def test_an_or_of_two_indexes_reads_what_either_finds(a: tamis.Table) -> None:
    report = same(a, f"k = {key_in(1)} OR s = '{rows_of(4)['s'][9].as_py()}'")
    assert set(used(report)) >= {"is"}
    assert len(used(report)) == 2
    assert report.parts.kept == 2
    both = same(a, f"k = {key_in(1)} OR s = '{rows_of(1)['s'][9].as_py()}'")
    assert (both.rows.matched, both.parts.kept) == (2, 1), "two rows of one part"


def test_an_or_with_a_leg_without_index_uses_none(just_ik: tamis.Table) -> None:
    report = same(just_ik, f"k = {key_in(1)} OR n = 3")
    assert used(report) == {}
    assert "OR" in report.index_reason


def test_an_or_with_a_leg_that_statistics_exclude_uses_the_other(just_ik: tamis.Table) -> None:
    """w is below 1 everywhere: the other leg alone decides, and the index answers for it."""
    report = same(just_ik, f"k = {key_in(1)} OR w > 2")
    assert (used(report), report.parts.kept, report.rows.matched) == ({"ik": (5, 0)}, 1, 1)
    assert used(same(just_ik, f"k = {key_in(1)} OR w > 0.5")) == {}


def test_conjuncts_beside_the_indexed_one_are_checked_again(just_ik: tamis.Table) -> None:
    for n in range(7):
        assert used(same(just_ik, f"k = {key_in(0)} AND n = {n}")) == {"ik": (5, 0)}


@pytest.mark.parametrize("row_filter", ["k <> 5", "k NOT IN (1, 2, 3)", "s NOT LIKE 'ab%'"])
def test_a_negation_does_not_pay(a: tamis.Table, row_filter: str) -> None:
    report = same(a, row_filter)
    assert used(report) == {}
    assert "would not pay" in report.index_reason


@pytest.mark.parametrize(("row_filter", "rows"), [("n IS NULL", 200), ("n <=> NULL", 200), ("n = NULL", 0)])
def test_nulls_are_found_by_the_index(a: tamis.Table, row_filter: str, rows: int) -> None:
    report = same(a, row_filter, options={"tamis.index.use": "in"})
    assert (report.rows.matched, report.parts.kept > 0) == (rows, rows > 0)
    assert used(report) == ({"in": (5, 0)} if rows else {}), "what is never true needs no look-up"


def test_a_query_can_leave_the_index(a: tamis.Table) -> None:
    report = same(a, f"k = {key_in(0)}", options={"tamis.index.use": "off"})
    assert (used(report), report.index_reason) == ({}, "tamis.index.use is off")
    assert used(same(a, f"k = {key_in(0)}", options={"tamis.index.use": "IKG"})) == {"ikg": (5, 0)}


def test_a_name_that_no_index_has_is_refused_where_a_query_gives_it(just_ik: tamis.Table, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="bogus") as caught:
        just_ik.scan(f"k = {key_in(0)}", options={"Tamis.Index.Use": "bogus"})
    assert (caught.value.code, "auto, off, lookup, plan, ik" in str(caught.value.remedy)) == ("BAD_OPTION", True)
    by_property = table_a(tmp_path / "t", ("ik", "k"), segments=1, properties={"tamis.index.use": "bogus"})
    assert same(by_property, f"k = {key_in(0)}").index_reason == "there is no index 'bogus'"


def test_the_index_that_fits_best_is_used(a: tamis.Table) -> None:
    key = key_in(0)
    assert used(same(a, f"k = {key} AND g = {key % 10}")) == {"ikg": (5, 0)}
    assert used(same(a, f"k = {key}")) == {"ik": (5, 0)}


def test_the_cheapest_index_by_estimate_is_used_whatever_its_columns(tmp_path: Path) -> None:
    """An index of fewer columns, or about more of the filter, that would have to be read whole: statistics of its pages say so."""
    table = empty_table(tmp_path / "t")
    table.append(rows_of(0, 40_000, 1))
    table.create_index("sorted", ["k", "s", "n"])
    for row_filter in ("k BETWEEN 30000 AND 30010", "k = 30005 AND w >= 0"):
        same(table, row_filter)  # its footer is known from now on
        alone = same(table, row_filter).bytes.index
        table.create_index("a_apart", ["w", "k"])
        assert same(table, row_filter, options={"tamis.index.use": "a_apart"}).bytes.index > 10 * alone, (
            "else nothing is shown"
        )
        report = same(table, row_filter)
        assert (used(report), report.bytes.index <= 2 * alone) == ({"sorted": (1, 0)}, True)
        table.drop_index("a_apart")
    table.create_index("a_apart", ["w", "k"])
    table.drop_index_segments("sorted", ids(table))
    assert used(same(table, "k = 30005", options={"tamis.index.use": "lookup"})) == {"a_apart": (1, 0)}, (
        "what covers nothing is no candidate"
    )


@pytest.mark.parametrize(
    "row_filter", ["CAST(k AS STRING) = '77'", "k + 1 = 78", "abs(k) = 77", "CAST(k AS DOUBLE) = 77.0", "k % 5000 = 77"]
)
@pytest.mark.parametrize("use", ["auto", "lookup"])
def test_functions_of_the_column_are_looked_up(just_ik: tamis.Table, row_filter: str, use: str) -> None:
    report = same(just_ik, row_filter, options={"tamis.index.use": use})
    assert used(report) == {"ik": (5, 0)} or use == "auto"


def test_functions_read_a_few_pages_of_the_index(tmp_path: Path) -> None:
    """Their bounds are known where those of the column are, page by page."""
    table = empty_table(tmp_path / "t")
    table.append(rows_of(0, 40_000, 1))
    table.create_index("ik", "k")
    same(table, "k = 30005")
    point = same(table, "k = 30005").bytes.index
    for row_filter in (
        "k + 1 = 30006",
        "abs(k) = 30005",
        "CAST(k AS DOUBLE) = 30005.0",
        "-k = -30005",
        "k DIV 10 = 3000",
    ):
        report = same(table, row_filter)
        assert (used(report), report.bytes.index <= 2 * point) == ({"ik": (1, 0)}, True), row_filter
    assert same(table, "k % 40000 = 30005", options={"tamis.index.use": "ik"}).bytes.index > 10 * point, (
        "else nothing is shown"
    )


def test_names_match_an_index_without_case(just_ik: tamis.Table) -> None:
    assert used(same(just_ik, f"K = {key_in(0)}")) == {"ik": (5, 0)}


def test_an_index_answers_for_its_own_column_only(just_ik: tamis.Table) -> None:
    assert used(same(just_ik, "w IN (1, 2, 3)")) == {}
    assert used(same(just_ik, "n IN (1, 2, 3)")) == {}


@pytest.mark.parametrize(
    "row_filter", ["f = double('NaN')", "f = 0.0", "f = -0.0", "f > 9990", "f <=> NULL", "f >= double('NaN')", "f < 5"]
)
def test_an_index_orders_nan_and_zeros_as_spark_does(a: tamis.Table, row_filter: str) -> None:
    assert "if" in used(same(a, row_filter, options={"tamis.index.use": "if"})) or row_filter == "f <=> NULL"


def test_a_filter_that_keeps_most_rows_uses_no_index(tmp_path: Path) -> None:
    table = empty_table(tmp_path / "t")
    for segment in range(2):
        table.append(rows_of(segment, 50_000, 2))
    table.create_index("ik", "k")
    report = same(table, "k > 40000")
    plain = table.scan("k > 40000", options={"tamis.index.use": "off"})
    plain.to_arrow()
    assert plain.report is not None
    assert report.bytes.read - report.bytes.metadata <= 1.05 * (plain.report.bytes.read - plain.report.bytes.metadata)
    assert used(report) == {}
    assert "would not pay" in report.index_reason


def test_scans_do_not_share_their_use_of_an_index(just_ik: tamis.Table) -> None:
    left, right = just_ik.scan(f"k = {key_in(0)}"), just_ik.scan("k > 10")
    third = just_ik.scan(f"k = {key_in(3)}")
    left.to_arrow(), right.to_arrow(), third.to_arrow()
    assert third.report is not None
    assert left.report is not None
    assert third.report.bytes.index > 0
    assert (left.report.rows.matched, third.report.rows.matched) == (1, 1)
    assert left.report.filter != third.report.filter
    assert left.report is not None
    assert right.report is not None
    assert (used(left.report), used(right.report)) == ({"ik": (5, 0)}, {})
