"""The scenarios of an index, in sync and out of it, one test each, by number: rows are those of a scan without index, and segments are answered as listed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import tamis
from tamis.errors import AlreadyExists, InvalidInput, NotFound, StoreUnavailable
from tests.index.tables import SEGMENTS, delete, empty_table, failing, ids, info, key_in, rows_of, same, table_a, used


@pytest.fixture(scope="module")
def a(tmp_path_factory: pytest.TempPathFactory) -> tamis.Table:
    """In sync; only read."""
    return table_a(tmp_path_factory.mktemp("a") / "t", ("ik", "k"), ("ig", "g"), ("ikg", ["k", "g"]), ("is", "s"), ("if", "f"), ("in", "n"))


@pytest.fixture(scope="module")
def just_ik(tmp_path_factory: pytest.TempPathFactory) -> tamis.Table:
    return table_a(tmp_path_factory.mktemp("ik") / "t", ("ik", "k"))


@pytest.fixture
def out_of_sync(tmp_path: Path) -> tamis.Table:
    """Case 19: ik covers the loads 0, 2, 3 of five."""
    table = table_a(tmp_path / "t", ("ik", "k"))
    every = ids(table)
    table.drop_index_segments("ik", [every[1], every[4]])
    return table


def missing(table: tamis.Table, name: str = "ik") -> list[int]:
    """Which loads are missing, by number."""
    every = ids(table)
    return sorted(every.index(segment) for segment in info(table, name).missing)


# --- 4.1 in sync ---


def test_01_a_point(just_ik: tamis.Table) -> None:
    report = same(just_ik, f"k = {key_in(2)}")
    assert used(report) == {"ik": (5, 0)}
    assert (report.parts.skipped_index, report.parts.kept) == (4, 1)
    assert report.bytes.index > 0


def test_02_a_value_that_is_not_there(tmp_path: Path) -> None:
    table = empty_table(tmp_path / "t")
    for segment in range(3):
        rows = rows_of(segment)
        table.append(rows.filter(pc.not_equal(rows["k"], 4_321)))
    table.create_index("ik", ["k"])
    report = same(table, "k = 4321")
    assert (report.parts.kept, report.segments.by_index, report.bytes.leader + report.bytes.follower) == (0, 3, 0)
    assert report.bytes.index > 0


def test_03_a_long_list_of_one_segment(just_ik: tamis.Table) -> None:
    keys = ", ".join(str(k) for k in rows_of(3)["k"].to_pylist()[:1_000])
    report = same(just_ik, f"k IN ({keys})")
    assert (report.parts.kept, used(report)) == (1, {"ik": (5, 0)})


@pytest.mark.parametrize(("low", "high"), [(100, 130), (100, 100), (130, 100), (-5, 3), (9_990, 99_999)])
def test_04_between(just_ik: tamis.Table, low: int, high: int) -> None:
    report = same(just_ik, f"k BETWEEN {low} AND {high}")
    assert used(report) or report.parts.kept == 0


def test_05_prefixes(a: tamis.Table) -> None:
    assert "is" in used(same(a, "s LIKE 'ab00001%'"))
    same(a, "s LIKE '%0001'")


def test_06_or_of_two_indexes(a: tamis.Table) -> None:
    report = same(a, f"k = {key_in(1)} OR s = '{rows_of(4)['s'][9].as_py()}'")
    assert set(used(report)) >= {"is"}
    assert len(used(report)) == 2
    assert report.parts.kept == 2
    both = same(a, f"k = {key_in(1)} OR s = '{rows_of(1)['s'][9].as_py()}'")
    assert (both.rows.matched, both.parts.kept) == (2, 1), "two rows of one part"


def test_07_or_with_a_leg_without_index(just_ik: tamis.Table) -> None:
    report = same(just_ik, f"k = {key_in(1)} OR n = 3")
    assert used(report) == {}
    assert "OR" in report.index_reason


def test_08_the_rest_is_checked_again(just_ik: tamis.Table) -> None:
    for n in range(7):
        assert used(same(just_ik, f"k = {key_in(0)} AND n = {n}")) == {"ik": (5, 0)}


@pytest.mark.parametrize("row_filter", ["k <> 5", "k NOT IN (1, 2, 3)", "s NOT LIKE 'ab%'"])
def test_09_negations(a: tamis.Table, row_filter: str) -> None:
    report = same(a, row_filter)
    assert used(report) == {}
    assert "would not pay" in report.index_reason


@pytest.mark.parametrize(("row_filter", "rows"), [("n IS NULL", 200), ("n <=> NULL", 200), ("n = NULL", 0)])
def test_10_nulls(a: tamis.Table, row_filter: str, rows: int) -> None:
    report = same(a, row_filter, options={"tamis.index.use": "in"})
    assert (report.rows.matched, report.parts.kept > 0) == (rows, rows > 0)


def test_11_a_query_can_leave_the_index(a: tamis.Table) -> None:
    report = same(a, f"k = {key_in(0)}", options={"tamis.index.use": "off"})
    assert (used(report), report.index_reason) == ({}, "tamis.index.use is off")
    assert used(same(a, f"k = {key_in(0)}", options={"tamis.index.use": "IKG"})) == {"ikg": (5, 0)}


def test_12_the_best_fit(a: tamis.Table) -> None:
    key = key_in(0)
    assert used(same(a, f"k = {key} AND g = {key % 10}")) == {"ikg": (5, 0)}
    assert used(same(a, f"k = {key}")) == {"ik": (5, 0)}


@pytest.mark.parametrize(
    "row_filter", ["CAST(k AS STRING) = '77'", "k + 1 = 78", "abs(k) = 77", "CAST(k AS DOUBLE) = 77.0", "k % 5000 = 77"]
)
@pytest.mark.parametrize("use", ["auto", "lookup"])
def test_13_functions(just_ik: tamis.Table, row_filter: str, use: str) -> None:
    report = same(just_ik, row_filter, options={"tamis.index.use": use})
    assert used(report) == {"ik": (5, 0)} or use == "auto"


def test_14_case_of_names(just_ik: tamis.Table) -> None:
    assert used(same(just_ik, f"K = {key_in(0)}")) == {"ik": (5, 0)}


def test_15_another_column_with_the_same_values(just_ik: tamis.Table) -> None:
    assert used(same(just_ik, "w IN (1, 2, 3)")) == {}
    assert used(same(just_ik, "n IN (1, 2, 3)")) == {}


@pytest.mark.parametrize(
    "row_filter", ["f = double('NaN')", "f = 0.0", "f = -0.0", "f > 9990", "f <=> NULL", "f >= double('NaN')", "f < 5"]
)
def test_16_nan_and_zeros(a: tamis.Table, row_filter: str) -> None:
    assert "if" in used(same(a, row_filter, options={"tamis.index.use": "if"})) or row_filter == "f <=> NULL"


def test_17_a_filter_that_keeps_most(tmp_path: Path) -> None:
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


def test_18_each_scan_has_its_own_use(just_ik: tamis.Table) -> None:
    left, right = just_ik.scan(f"k = {key_in(0)}"), just_ik.scan("k > 10")
    left.to_arrow(), right.to_arrow()
    assert left.report is not None
    assert right.report is not None
    assert (used(left.report), used(right.report)) == ({"ik": (5, 0)}, {})


# --- 4.2 out of sync ---


def test_19_index_where_it_covers_statistics_where_not(out_of_sync: tamis.Table) -> None:
    report = same(out_of_sync, "k IN (1, 2000, 4000, 6000, 8000, 9000)")
    assert used(report) == {"ik": (3, 2)}
    assert missing(out_of_sync) == [1, 4]


def test_20_a_row_of_a_missing_segment(out_of_sync: tamis.Table) -> None:
    report = same(out_of_sync, f"k = {key_in(1)}")
    assert (report.rows.matched, report.parts.skipped_index, report.parts.kept) == (1, 3, 2)


def test_21_statistics_prune_missing_segments(tmp_path: Path) -> None:
    table = empty_table(tmp_path / "t")
    for low in (0, 5_000):
        table.append(
            rows_of(0).filter(pc.less(rows_of(0)["k"], 5_000)) if not low else rows_of(1).filter(pc.greater(rows_of(1)["k"], 5_000))
        )
    table.create_index("ik", "k")
    table.drop_index_segments("ik", [ids(table)[1]])
    report = same(table, "k = 17")
    assert (report.segments.by_stats, used(report)) == (1, {"ik": (1, 0)})


def test_22_23_repair_of_one_and_of_all(out_of_sync: tamis.Table) -> None:
    every = ids(out_of_sync)
    before = same(out_of_sync, f"k = {key_in(2)}").bytes.read
    out_of_sync.repair_index("ik", [every[1]])
    assert missing(out_of_sync) == [4]
    assert used(same(out_of_sync, f"k = {key_in(2)}")) == {"ik": (4, 1)}
    out_of_sync.repair_index()
    assert missing(out_of_sync) == []
    after = same(out_of_sync, f"k = {key_in(2)}")
    assert used(after) == {"ik": (5, 0)}
    assert after.bytes.leader + after.bytes.follower < before


def test_24_missing_segments_do_not_leak(tmp_path: Path, out_of_sync: tamis.Table) -> None:
    """The original kept one set of missing segments for all tables and queries of a process."""
    other = table_a(tmp_path / "other", ("ik", "k"))
    same(out_of_sync, f"k = {key_in(0)}")
    assert used(same(other, f"k = {key_in(0)}")) == {"ik": (5, 0)}
    out_of_sync.repair_index("ik")
    assert used(same(out_of_sync, f"k = {key_in(0)}")) == {"ik": (5, 0)}


@pytest.fixture
def two_out_of_sync(tmp_path: Path) -> tamis.Table:
    table = table_a(tmp_path / "two", ("ik", "k"), ("is", "s"))
    every = ids(table)
    table.drop_index_segments("ik", [every[0], every[1]])
    table.drop_index_segments("is", [every[3], every[4], every[0]])
    return table


def test_25_27_and_of_two(two_out_of_sync: tamis.Table) -> None:
    report = same(two_out_of_sync, f"k = {key_in(2)} AND s = '{rows_of(2)['s'][5].as_py()}'")
    assert report.rows.matched == 1
    assert report.parts.kept == 2, "the segment that holds the row, and the one that neither index covers"
    assert set(used(report)) == {"ik", "is"}


def test_26_or_of_two(two_out_of_sync: tamis.Table) -> None:
    for segment in range(SEGMENTS):
        report = same(two_out_of_sync, f"k = {key_in(segment)} OR s = '{rows_of(4)['s'][7].as_py()}'")
        assert report.rows.matched == 2


def test_28_all_index_segments_dropped(just_ik: tamis.Table, tmp_path: Path) -> None:
    table = table_a(tmp_path / "t", ("ik", "k"))
    table.drop_index_segments("ik", ids(table))
    report = same(table, f"k = {key_in(0)}")
    assert used(report) == {}
    assert "covers none" in report.index_reason
    assert missing(table) == [0, 1, 2, 3, 4]


def test_29_an_index_on_nothing(tmp_path: Path) -> None:
    table = empty_table(tmp_path / "t")
    table.create_index("ik", "k")
    assert same(table, "k = 5").rows.matched == 0
    table.append(rows_of(0))
    assert (missing(table), used(same(table, f"k = {key_in(0)}"))) == ([], {"ik": (1, 0)})


def test_30_31_a_build_that_fails_with_a_load(tmp_path: Path) -> None:
    table = table_a(tmp_path / "t", ("ik", "k"), ("ig", "g"), segments=2)
    with failing("ik"):
        assert table.append(rows_of(2)).rows_inserted == 2_000
    assert (missing(table), missing(table, "ig")) == ([2], [])
    (reason,) = info(table).missing.values()
    assert "told to fail" in reason
    assert same(table, f"k = {key_in(2)}").rows.matched == 1
    table.append(rows_of(3))
    assert missing(table) == [2], "what failed stays listed until it is repaired"
    table.repair_index()
    assert missing(table) == []


def test_32_a_build_that_fails_at_creation(tmp_path: Path) -> None:
    table = table_a(tmp_path / "t", segments=2)
    with failing(), pytest.raises(StoreUnavailable, match="could not be built"):
        table.create_index("ik", "k")
    assert missing(table) == [0, 1]
    assert same(table, f"k = {key_in(0)}").rows.matched == 1
    table.drop_index("ik")
    table.create_index("ik", "k")
    assert missing(table) == []


def test_33_a_delete_validates_nothing(tmp_path: Path) -> None:
    """The original's row delete marked index segments as valid that had never been built."""
    table = table_a(tmp_path / "t", segments=2)
    with failing(), pytest.raises(StoreUnavailable):
        table.create_index("ik", "k")
    assert delete(table, f"k = {key_in(0, 8)}") == 1
    assert missing(table) == [0, 1]
    assert same(table, f"k = {key_in(0)}").rows.matched == 1
    assert same(table, f"k = {key_in(0, 8)}").rows.matched == 0


def test_34_a_delete_changes_no_coverage(out_of_sync: tamis.Table) -> None:
    assert delete(out_of_sync, f"k IN ({key_in(1)}, {key_in(2)})") == 2
    assert missing(out_of_sync) == [1, 4]
    for segment in range(SEGMENTS):
        assert same(out_of_sync, f"k = {key_in(segment)}").rows.matched == (segment not in (1, 2))


def test_35_a_repair_that_fails_says_so(out_of_sync: tamis.Table) -> None:
    version = out_of_sync.version
    with failing(), pytest.raises(StoreUnavailable) as caught:
        out_of_sync.repair_index("ik")
    assert caught.value.code == "INDEX_BUILD_FAILED"
    assert (out_of_sync.refresh().version, missing(out_of_sync)) == (version, [1, 4])


def test_36_unknown_names(just_ik: tamis.Table) -> None:
    version = just_ik.refresh().version
    with pytest.raises(NotFound, match="ik"):
        just_ik.repair_index("nothing")
    with pytest.raises(InvalidInput) as caught:
        just_ik.repair_index("ik", ["no such segment"])
    assert caught.value.code == "UNKNOWN_SEGMENT"
    assert just_ik.refresh().version == version


def test_37_a_repair_of_nothing(out_of_sync: tamis.Table) -> None:
    assert out_of_sync.repair_index("ik").parts_added > 0
    version = out_of_sync.refresh().version
    before = out_of_sync.store.io.bytes
    again = out_of_sync.repair_index("ik")
    assert (again.parts_added, again.bytes_written, out_of_sync.refresh().version) == (0, 0, version)
    assert out_of_sync.store.io.bytes - before < 100_000, "the base was read"


def test_38_39_opened_again(out_of_sync: tamis.Table) -> None:
    again = tamis.open(out_of_sync.path)
    assert missing(again) == [1, 4]
    assert used(same(again, f"k = {key_in(0)}")) == used(same(out_of_sync, f"k = {key_in(0)}")) == {"ik": (3, 2)}


def test_40_limits(out_of_sync: tamis.Table) -> None:
    keys = ", ".join(str(k) for s in range(5) for k in rows_of(s)["k"].to_pylist()[:50])
    assert out_of_sync.scan(f"k IN ({keys})", limit=10).to_arrow().num_rows == 10


def test_41_42_deletes_and_order(tmp_path: Path) -> None:
    table = table_a(tmp_path / "t", ("ik", "k"))
    assert delete(table, "k < 5") == 5
    found = table.scan("k < 10", ["k"]).to_arrow()["k"].to_pylist()
    assert sorted(found)[:5] == [5, 6, 7, 8, 9]
    assert table.scan("k < 60", limit=10).to_arrow().num_rows == 10
    assert used(same(table, "k < 10"))["ik"][1] == 0


# --- 4.3 operations ---


def test_46_50_all_rows_of_a_segment_deleted(tmp_path: Path) -> None:
    table = table_a(tmp_path / "t", ("ik", "k"), segments=3)
    lows = rows_of(1)["k"].to_pylist()
    assert delete(table, f"k IN ({', '.join(map(str, lows))})") == 2_000
    report = same(table, f"k = {key_in(1)}")
    assert report.rows.matched == 0
    assert len(info(table).covered) == 2


def test_rows_written_anew_by_an_overwrite(tmp_path: Path) -> None:
    table = table_a(tmp_path / "t", ("ik", "k"), segments=3)
    old, new = key_in(1), 999_999
    row = table.scan(f"k = {old}").to_arrow()
    table.overwrite(row.set_column(0, "k", pa.array([new])), row_filter=f"k = {old}")
    assert missing(table) == []
    assert (same(table, f"k = {old}").rows.matched, same(table, f"k = {new}").rows.matched) == (0, 1)


def test_43_44_compaction(tmp_path: Path, out_of_sync: tamis.Table) -> None:
    for table in (table_a(tmp_path / "c", ("ik", "k")), out_of_sync):
        table.compact()
        assert missing(table) == []
        assert len(info(table).covered) == len(ids(table)) < SEGMENTS
        for segment in range(SEGMENTS):
            report = same(table, f"k = {key_in(segment)}")
            assert (report.rows.matched, used(report)["ik"][1]) == (1, 0)


def test_45_compaction_whose_index_fails(tmp_path: Path) -> None:
    table = table_a(tmp_path / "t", ("ik", "k"))
    with failing():
        table.compact()
    assert missing(table) == list(range(len(ids(table))))
    assert same(table, f"k = {key_in(0)}").rows.matched == 1


def test_47_48_update(tmp_path: Path) -> None:
    table = table_a(tmp_path / "t", ("ik", "k"), segments=3)
    old, other = key_in(1), key_in(2)
    assert table.update({"k": "k + 1000000"}, row_filter=f"k = {old}").rows_updated == 1
    assert table.update({"g": "77"}, row_filter=f"k = {other}").rows_updated == 1
    assert missing(table) == []
    assert [same(table, f"k = {key}").rows.matched for key in (old, old + 1_000_000, other)] == [0, 1, 1]
    assert table.scan(f"k = {other}", ["g"]).to_arrow()["g"].to_pylist() == [77]


def test_49_merge(tmp_path: Path) -> None:
    table = tamis.create(tmp_path / "t")
    for segment in range(3):
        table.append(rows_of(segment))
    table.create_index("ik", "k")
    rows = pa.concat_tables([rows_of(1).slice(0, 20), rows_of(4).slice(0, 20)])
    merge = table.merge(rows, on="source.k = target.k").when_matched_delete(condition="source.k % 2 = 0").when_matched_update({"g": "99"})
    merge.when_not_matched_insert().execute()
    assert missing(table) == []
    for key in rows["k"].to_pylist():
        report = same(table, f"k = {key}")
        assert report.rows.matched == (0 if key % 2 == 0 and key in rows_of(1)["k"].to_pylist() else 1)


def test_a_segment_of_which_one_part_is_not_covered_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A repair goes step by step; one that is stopped inside a segment has not covered it."""
    from tamis.maintain import index

    table = empty_table(tmp_path / "t", properties={"tamis.write.part_bytes": "20k"})
    table.append(pa.concat_tables([rows_of(0, 70_000), rows_of(1, 70_000)]))
    table.create_index("ik", "k", build="deferred")
    assert len(table.metadata("parts")) > 1
    monkeypatch.setattr(index, "STEP_ROWS", 10)
    real, calls = index.entry, []

    def stopped(*arguments: object) -> object:
        calls.append(1)
        if len(calls) == 2:
            raise StoreUnavailable("stopped", code="INDEX_BUILD_FAILED")
        return real(*arguments)

    monkeypatch.setattr(index, "entry", stopped)
    with pytest.raises(StoreUnavailable):
        table.repair_index()
    assert info(table.refresh()).index_segments == 1
    assert missing(table) == [0]
    assert used(same(table, "k = 5")) == {}
    table.repair_index()
    assert (missing(table), used(same(table, "k = 5"))) == ([], {"ik": (1, 0)})


def test_51_overwrite(tmp_path: Path) -> None:
    table = table_a(tmp_path / "t", ("ik", "k"), segments=3)
    table.overwrite(rows_of(4))
    assert (missing(table), len(info(table).covered)) == ([], 1)
    assert same(table, f"k = {key_in(1)}").rows.matched == 0
    assert used(same(table, f"k = {key_in(4)}")) == {"ik": (1, 0)}


def test_52_overwrite_of_a_part_leaves_the_others(tmp_path: Path) -> None:
    table = table_a(tmp_path / "t", ("ik", "k"), segments=3)
    table.overwrite(rows_of(0).slice(0, 10).set_column(1, "g", pa.array([77] * 10)), row_filter=f"k IN ({key_in(0)}, {key_in(0, 6)})")
    assert missing(table) == []
    assert used(same(table, f"k = {key_in(2)}"))["ik"][1] == 0


def test_53_drop_of_a_column(tmp_path: Path) -> None:
    table = table_a(tmp_path / "t", ("ik", "k"), ("io", "o.a"))
    for column, index in (("k", "ik"), ("o", "io")):
        with pytest.raises(InvalidInput, match=index) as error:
            table.alter().drop_column(column).commit()
        assert error.value.code == "INDEXED_COLUMN"
    table.alter().drop_column("w").commit()
    report = same(table, f"k = {key_in(2)}")
    assert used(report) == {"ik": (5, 0)}
    assert report.rows.matched == 1
    table.drop_index("io")
    table.alter().drop_column("o").commit()


def test_54_rename_of_a_column(tmp_path: Path) -> None:
    table = table_a(tmp_path / "t", ("ik", "k"))
    table.alter().rename_column("k", "k2").commit()
    table.append(rows_of(0, segments=SEGMENTS + 1).rename_columns(["k2", "g", "n", "s", "f", "o", "w"]).slice(0, 1))
    report = same(table, f"k2 = {key_in(2)}")
    assert used(report) == {"ik": (5, 0)}  # the last load is one row: its bounds say more
    assert report.rows.matched in (1, 2)
    assert info(table).columns == ("k2",)


def test_55_widening(tmp_path: Path) -> None:
    table = tamis.create(tmp_path / "t")
    for segment in range(3):
        rows = rows_of(segment)
        table.append(pa.table({"k": rows["k"].cast(pa.int32()), "w": rows["w"]}))
    table.create_index("ik", "k")
    table.alter().widen("k", pa.int64()).commit()
    table.append(pa.table({"k": pa.array([2**40, 3, None], pa.int64()), "w": [1.0, 2.0, 3.0]}))
    for row_filter, matched in (
        (f"k = {key_in(2)}", 1),
        (f"k = {2**40}", 1),
        (f"k > {2**31}", 1),
        (f"k IN ({key_in(0)}, {2**40})", 2),
        ("k IS NULL", 1),
    ):
        assert same(table, row_filter).rows.matched == matched


def test_56_a_column_with_a_default(tmp_path: Path) -> None:
    table = table_a(tmp_path / "t", ("ik", "k"))
    table.alter().add_column("c", pa.int32(), default="7").commit()
    table.create_index("ic", "c")
    table.append(rows_of(0, 3).append_column("c", pa.array([8, None, 7], pa.int32())))
    report = same(table, "c = 7")
    assert report.rows.matched in (0, SEGMENTS * len(rows_of(0)) + 1)  # 0: parts that match wholly need no filter
    assert table.scan("c = 7").count() == SEGMENTS * len(rows_of(0)) + 1
    assert table.scan("c = 8").count() == 1
    assert same(table, f"c = 7 AND k = {key_in(2)}").rows.matched == 1
    assert table.scan("c IS NULL").count() == 1


def test_58_restore(tmp_path: Path) -> None:
    table = table_a(tmp_path / "t", ("ik", "k"))
    version = table.version
    table.update({"s": "'new'"}, f"k = {key_in(1)}")
    table.delete(f"k = {key_in(2)}")
    table.append(pa.table({**{name: rows_of(0)[name].slice(0, 1) for name in rows_of(0).column_names}, "k": [77_777]}))
    table.restore(version)
    assert missing(table) == []
    assert same(table, "k = 77777").parts.kept == 0
    for key in (key_in(1), key_in(2)):
        report = same(table, f"k = {key}")
        assert used(report)["ik"][1] == 0
        assert report.rows.matched == 1
    assert table.scan("s = 'new'").count() == 0


def test_57_time_travel(tmp_path: Path) -> None:
    table = table_a(tmp_path / "t", segments=2)
    before = table.version
    table.create_index("ik", "k")
    between = table.refresh().version
    table.append(rows_of(2))
    assert used(same(table, f"k = {key_in(0)}", version=before)) == {}
    assert used(same(table, f"k = {key_in(0)}", version=between)) == {"ik": (2, 0)}
    assert same(table, f"k = {key_in(2)}", version=between).rows.matched == 0
    assert [i.name for i in tamis.open(table.path, version=before).indexes()] == []
    assert used(same(table, f"k = {key_in(2)}")) == {"ik": (3, 0)}


def test_59_loads_beside_a_repair(out_of_sync: tamis.Table) -> None:
    other = tamis.open(out_of_sync.path)
    other.append(rows_of(0))
    held = tamis.open(out_of_sync.path, version=out_of_sync.version)
    out_of_sync.repair_index("ik")
    assert missing(out_of_sync) == []
    assert used(same(held, f"k = {key_in(0)}")) == {"ik": (3, 2)}
    assert used(same(out_of_sync, f"k = {key_in(0)}")) == {"ik": (6, 0)}


def test_60_a_drop_under_a_query(tmp_path: Path) -> None:
    table = table_a(tmp_path / "t", ("ik", "k"))
    scan = table.scan(f"k = {key_in(0)}")
    tamis.open(table.path).drop_index("ik")
    assert scan.to_arrow().num_rows == 1
    assert used(same(table, f"k = {key_in(0)}")) == {}


def test_61_names(tmp_path: Path) -> None:
    table = table_a(tmp_path / "t", ("ik", "k"), segments=1)
    with pytest.raises(AlreadyExists):
        table.create_index("IK", "g")
    table.create_index("ik2", "k")
    assert [i.name for i in table.indexes()] == ["ik", "ik2"]
    with pytest.raises(NotFound):
        table.drop_index("other")


def test_62_deferred_builds(tmp_path: Path) -> None:
    table = table_a(tmp_path / "t", segments=2)
    table.create_index("ik", "k", build="deferred")
    table.append(rows_of(2))
    assert missing(table) == [0, 1, 2]
    assert "deferred" in list(info(table).missing.values())[-1]
    table.repair_index()
    assert missing(table) == []


def test_a_field_of_a_struct(tmp_path: Path) -> None:
    table = table_a(tmp_path / "t", ("io", "o.a"), segments=3)
    assert used(same(table, f"o.a = {key_in(0) if key_in(0) % 9 else key_in(0, 6)}")) == {"io": (3, 0)}
    assert same(table, "o.a IS NULL", options={"tamis.index.use": "io"}).rows.matched > 0


@pytest.mark.parametrize("columns", [[], ["nothing"], ["k", "k"], ["o"]])
def test_what_cannot_be_indexed(just_ik: tamis.Table, columns: list[str]) -> None:
    with pytest.raises((InvalidInput, NotFound)):
        just_ik.create_index("bad", columns)
    assert [i.name for i in just_ik.indexes()] == ["ik"]


def test_errors_are_not_hidden(tmp_path: Path) -> None:
    """A conjunct before the indexed one may fail on a row that the index would drop: then the index drops nothing."""
    table = tamis.create(tmp_path / "t")
    table.append(pa.table({"k": np.arange(100), "t": ["x" if i == 7 else str(i) for i in range(100)]}))
    table.create_index("ik", "k")
    with pytest.raises(InvalidInput, match="x"):
        table.scan("CAST(t AS INT) > 0 AND k = 50").to_arrow()
    assert len(table.scan("k = 50 AND CAST(t AS INT) > 0").to_arrow()) == 1
    with pytest.raises(InvalidInput, match="x"):
        table.scan("k = 7 AND CAST(t AS INT) > 0").to_arrow()


def test_63_rows_along_a_curve(tmp_path: Path) -> None:
    table = table_a(tmp_path / "t", ("ik", "k"))
    table.compact(cluster_by=["k", "w"])
    for key in (key_in(1), key_in(4)):
        report = same(table, f"k = {key}")
        assert report.rows.matched == 1
