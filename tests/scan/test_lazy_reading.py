"""Lazy reading gives the rows of the same query with ``tamis.read.lazy = off``, and reads less or hardly more."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tamis
from tamis.core.expr import parse_predicate
from tamis.core.types.arrow import from_arrow_schema
from tamis.engine.part_reader import ReadCounters, read_part
from tests.scan.wide_tables import BLOCK, BLOCKS, ODD, ROWS, data_bytes, run, same, wide


@pytest.fixture(scope="module")
def t(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return wide(tmp_path_factory.mktemp("wide"))


def test_a_value_that_is_nowhere_costs_no_follower(t: Any) -> None:
    found, report = run(t, "k = 3")
    assert (len(found), report.bytes["follower"]) == (0, 0)
    assert report.bytes["leader"] > 0


def test_one_row_costs_its_block_at_most(t: Any) -> None:
    followers = run(t, "hit = 1", lazy="off")[1].bytes["follower"]
    found, report = run(t, f"k = {t.scan('n = 20000').to_arrow()['k'][0]}")
    assert len(found) == 1
    assert 0 < report.bytes["follower"] <= followers / BLOCKS * 1.5


@pytest.mark.slow
@pytest.mark.parametrize("form", ["parquet", "orc"])
def test_two_hits_read_the_followers_of_two_blocks(tmp_path: Path, form: str) -> None:
    """The other blocks stay unread. Vortex has segments larger than these blocks, and promises it only for rows of few segments."""
    found, report = run(wide(tmp_path, form=form), "hit = 1")
    assert len(found) == 2
    assert (report.blocks["read"], report.blocks["skipped_filter"] + report.blocks["skipped_stats"]) == (2, BLOCKS - 2)
    assert 0 < report.bytes["follower"] < 0.6 * report.bytes["table"]


def test_a_hit_in_the_last_block_reads_its_followers_only(t: Any) -> None:
    followers = run(t, "last = 5", lazy="off")[1].bytes["follower"]
    found, report = run(t, "last = 5")
    assert len(found) == 1
    assert report.bytes["follower"] < 0.3 * followers


@pytest.mark.parametrize("text", ["k >= 0", "k % 2 = 0"])
def test_a_filter_that_keeps_everything_costs_no_more_than_eager_reading(t: Any, text: str) -> None:
    base, report = run(t, text, lazy="off")[1], run(t, text)[1]
    assert data_bytes(report) <= 1.02 * data_bytes(base)
    assert report.requests <= 2 * base.requests  # a block of each window is looked at before it is known
    assert report.reader != "lazy"
    assert report.rows["matched"] == ROWS


def test_in_a_large_part_looking_first_is_next_to_nothing(tmp_path: Path) -> None:
    count = 2_000_000
    data = pa.table({name: pa.array(np.arange(count) * 2 % 126, pa.int8()) for name in ("k", "f")})
    table = tamis.create(tmp_path, data.schema)
    table.append(data)
    cost = {}
    for lazy in ("off", "auto"):
        plan = table.scan("k % 2 = 0", options={"tamis.read.lazy": lazy}).plan()
        (ref,), counters = list(plan.parts), ReadCounters()
        assert sum(len(batch) for batch in read_part(ref, plan.spec, counters)) == count
        cost[lazy] = counters
    assert cost["auto"].requests <= cost["off"].requests + 3  # the block looked at, and the pieces that it splits
    assert cost["auto"].bytes_leader + cost["auto"].bytes_follower <= 1.02 * (
        cost["off"].bytes_leader + cost["off"].bytes_follower
    )


def test_few_rows_by_three_columns_save_most_bytes(tmp_path: Path) -> None:
    table = wide(tmp_path, 104)
    for fields, bound in ((("k", "hit", "last", *(f"f{i}" for i in range(13))), 0.55), (("*",), 0.30)):
        text = "k = 3 OR hit = 1 OR last = 5"
        base, report = run(table, text, fields, "off"), run(table, text, fields)
        assert report[0].equals(base[0])
        assert data_bytes(report[1]) <= bound * data_bytes(base[1])


@pytest.mark.parametrize("fields", [("k", "hit"), ()])
def test_leaders_alone_cost_no_follower(t: Any, fields: tuple[str, ...]) -> None:
    scan = t.scan("hit = 1 AND k > 0", fields or ("k",))
    assert (len(scan.to_arrow()) if fields else scan.count()) == 2
    assert scan.report.bytes["follower"] == 0


def test_segments_removed_by_bounds_are_not_read(tmp_path: Path) -> None:
    table = wide(tmp_path, 8, segments=5)
    _, report = run(table, f"n BETWEEN {2 * ROWS} AND {3 * ROWS - 1} AND hit = 1")
    assert (report.segments["total"], report.segments["skipped"]) == (5, 4)
    assert report.bytes["leader"] + report.bytes["follower"] < sum(p.bytes for p in table.scan().plan().parts) / 5


def test_leaders_that_are_most_of_the_bytes_cost_little_more(t: Any) -> None:
    base, report = (
        run(t, "k + few + hit + last + f0 > 0", ("k", "f1"), "off")[1],
        run(t, "k + few + hit + last + f0 > 0", ("k", "f1"))[1],
    )
    assert data_bytes(report) <= 1.05 * data_bytes(base)


def test_survivors_in_every_block_cost_little_more(t: Any) -> None:
    base, report = run(t, "few = 17", lazy="off"), run(t, "few = 17")
    assert report[0].equals(base[0])
    assert data_bytes(report[1]) <= 1.02 * data_bytes(base[1])


@pytest.mark.push_cases(2)
@pytest.mark.parametrize(
    "text",
    [
        "few < 3",
        "k % 1000 < 20 AND hit = 0",
        "n < 9000 OR few = 99",
        "NOT (few > 50)",
        "f3 % 7 = 1 AND f4 % 7 = 2",
        "last <> 7",
    ],
)
def test_lazy_reading_reads_hardly_more_than_eager(t: Any, text: str) -> None:
    base, report = run(t, text, lazy="off"), run(t, text)
    assert report[0].equals(base[0])
    assert data_bytes(report[1]) <= 1.02 * data_bytes(base[1])


@pytest.fixture(scope="module", params=["parquet", "vortex", "orc"])
def odd(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    table = tamis.create(tmp_path_factory.mktemp("odd"), ODD.schema, format=request.param)
    table.append(ODD)
    return table


NULLS = {
    "n = 1": [0, 4], "n <> 1": [1, 3], "NOT (n = 1)": [1, 3], "n IN (1, 2)": [0, 1, 4], "n NOT IN (1, 2)": [3], "n BETWEEN 2 AND 3": [1, 3],
    "n IS NULL": [2, 5], "n IS NOT NULL": [0, 1, 3, 4], "n <=> NULL": [2, 5], "n <=> 1": [0, 4],
}  # fmt: skip


@pytest.mark.push_cases(10)
@pytest.mark.parametrize("text", NULLS)
def test_a_null_row_passes_no_comparison(odd: Any, text: str) -> None:
    same(odd, text, NULLS[text])


def test_null_in_a_list_is_never_equal(odd: Any) -> None:
    same(odd, "n NOT IN (1, NULL)", [])
    same(odd, "n IN (1, NULL)", [0, 4])


def test_what_cannot_be_run_here_drops_nothing_behind_it(t: Any) -> None:
    """Its conjunct is left to Spark; those before it drop rows here. Those behind it may not: its error on a dropped row would be lost. What cannot fail hides nothing. An OR is one conjunct."""
    from tamis.core.expr import Opaque, conjuncts_of
    from tamis.core.types import BOOLEAN
    from tamis.engine.part_reader import ReadCounters, ReadSpec, read_part

    plan = t.scan("k > 0").plan()
    runnable, unknown = conjuncts_of(parse_predicate("hit = 1", plan.spec.schema)), Opaque(BOOLEAN, "udf(k)", ())
    harmless = Opaque(BOOLEAN, "hash(k) > 0", (), total=True)
    for wanted, rows in (((*runnable, unknown), 2), ((unknown, *runnable), ROWS), ((harmless, *runnable), 2)):
        counters = ReadCounters()
        spec = ReadSpec(plan.spec.url, plan.spec.schema, plan.spec.part_schemas, conjuncts=wanted, errors="keep")
        assert (
            sum(len(b) for ref in plan.parts for b in read_part(replace(ref, all_match=False), spec, counters)) == rows
        )
        assert (counters.bytes_follower < sum(ref.bytes for ref in plan.parts) / 10) == (rows == 2)


def test_an_or_of_ands_keeps_its_shape(t: Any) -> None:
    legs = " OR ".join(f"(few IN ({i}, {i + 1}, 7) AND last IN (7, {i}))" for i in range(8))
    tree = parse_predicate(legs, from_arrow_schema(t.scan().to_arrow().schema))
    assert sum(1 for _ in tree.walk()) <= 2 * (16 * 4 + 16 + 16)
    assert run(t, legs)[0].equals(run(t, legs, lazy="off")[0])


def test_a_thousand_values_on_three_columns_give_the_same_rows(t: Any) -> None:
    values = ", ".join(str(3 + 2 * i) for i in range(1000))
    text = f"k IN ({values}) OR f0 IN ({values}) OR hit IN (1, {values})"
    assert run(t, text)[0].equals(run(t, text, lazy="off")[0])
    assert len(run(t, text)[0]) == 2 + BLOCKS  # the threes of each block


def test_doubles_compare_as_in_spark(odd: Any) -> None:
    for text, rows in {
        "x = double('NaN')": [0], "x IN (double('NaN'), 0D)": [0, 2, 3], "x < 0": [4], "x > 1": [0, 1], "NOT (x > 1)": [2, 3, 4],
        "x BETWEEN -0.0D AND 0.0D": [2, 3], "x = -0.0D": [2, 3], "x > double('Infinity')": [0],
    }.items():  # fmt: skip
        same(odd, text, rows)


def test_trailing_blanks_of_text_count(odd: Any) -> None:
    same(odd, "c = 'ab'", [0])
    same(odd, "c IN ('ab ', 'b')", [1, 5])


def test_decimals_of_another_scale_compare_by_value(odd: Any) -> None:
    for text, rows in {
        "d = 1.1000": [0],
        "d < 1.2499999": [0, 3, 4],
        "d IN (99.990, 1.255)": [5],
        "d > 100000000000000000000.5": [],
        "d <> 1.25": [0, 3, 4, 5],
    }.items():
        same(odd, text, rows)


def test_old_instants_compare_in_the_zone_of_the_session(odd: Any) -> None:
    same(odd, "at < timestamp'1582-10-15 00:00:00'", [0])
    same(odd, "at >= timestamp'1850-01-01' AND at < timestamp'1970-01-01 00:00:01'", [1, 3])
    same(odd, "cast(at AS date) = date'2024-03-31'", options={"timezone": "America/New_York"})
    same(odd, "at > timestamp'2024-03-31 03:00:00'", options={"timezone": "Europe/Berlin"})


def test_fields_of_structs_are_filtered_with_lists_beside_them(odd: Any) -> None:
    same(odd, "s.a = 1", [0, 5])
    same(odd, "s.a IS NULL", [1, 2])
    same(odd, "s.a >= 2 OR n = 2", [1, 3, 4], ("l", "m", "s"))


def test_columns_that_a_part_lacks_have_their_defaults(tmp_path: Path) -> None:
    from tamis.engine.part_reader import ReadCounters, ReadSpec, read_part

    table = tamis.create(tmp_path, pa.schema([("a", pa.int64()), ("c", pa.int64())]))
    table.append(pa.table({"a": [1, 2], "c": [10, 20]}))
    plan = table.scan().plan()
    old = plan.spec.schema
    from tamis.core.types import LONG, Field, Schema

    new = Schema((old.fields[0], Field("c", LONG, id=9, initial_default=7), Field("e", LONG, id=10)), schema_id=1)
    for text, rows in {"c = 7": [1, 2], "c = 10": [], "e IS NULL AND a = 2": [2], "e = 1": []}.items():
        counters = ReadCounters()
        spec = ReadSpec(plan.spec.url, new, {0: old, 1: new}, conjuncts=(parse_predicate(text, new),))
        assert [
            a
            for ref in plan.parts
            for b in read_part(replace(ref, all_match=False), spec, counters)
            for a in b.column(0).to_pylist()
        ] == rows
        assert counters.bytes_follower == 0 or rows


@pytest.mark.push_cases(1)
@pytest.mark.parametrize("form", ["parquet", "vortex", "orc"])
def test_an_index_leaves_lazy_reading_one_block(tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The index leaves one block of which even the leaders are read."""
    monkeypatch.setattr("tamis.storage.object_store.store.GAP_LOCAL", 0)  # what lies between two pages would come along
    table = wide(tmp_path, form=form)
    text = f"k = {table.scan('n = 20000').to_arrow()['k'][0]}"
    without, lazily = run(table, text)
    table.create_index("ik", "k")
    found, both = run(table, text)
    assert found.equals(without)
    assert len(found) == 1
    assert [i["name"] for i in both.indexes] == ["ik"]
    assert (both.blocks["skipped_index"], both.blocks["read"]) == (BLOCKS - 1, 1)
    assert data_bytes(both) < data_bytes(lazily)
    assert both.bytes["follower"] <= 1.05 * lazily.bytes["follower"]  # Vortex splits a common read by an estimate
    assert both.bytes["leader"] < lazily.bytes["leader"]


def test_fields_beside_the_one_that_is_filtered_are_followers(tmp_path: Path) -> None:
    random = np.random.default_rng(7)
    texts = pa.array([random.bytes(20).hex() for _ in range(40_000)])
    mask = pa.array(np.arange(40_000) % 5 == 0)
    struct = pa.StructArray.from_arrays([pa.array(random.integers(0, 100, 40_000)), texts], names=["a", "b"], mask=mask)
    table = tamis.create(tmp_path, pa.schema([("s", struct.type)]))
    table.append(pa.table({"s": struct}))
    for text, rows in (("s.a = 1000 OR s.a = -3", 0), ("s.a = 50", None)):
        found, report = run(table, text, lazy="on")
        assert found.equals(run(table, text, lazy="off")[0])
        assert rows is None or (len(found), report.bytes["follower"]) == (0, 0)
    assert report.bytes["leader"] < report.bytes["table"] / 5
    assert found["s"].to_pylist() == [v for v in struct.to_pylist() if v is not None and v["a"] == 50]


def test_filters_look_below_arrays_and_maps(odd: Any) -> None:
    same(odd, "try_element_at(l, 1) = 1 AND n = 1", [0])
    same(odd, "size(l) = 3 OR m['a'] = 2", [3, 4])
    same(odd, "m['k'] = 1", [0])
    same(odd, "exists(l, x -> x > 3) AND n IS NULL", [5])
    same(odd, "array_contains(l, 3) AND x < 0", [4], ("m", "n"))


def test_deleted_rows_are_neither_leaders_nor_followers(tmp_path: Path) -> None:
    table = wide(tmp_path, 8, segments=2)
    assert table.delete(f"hit = 1 AND n < {ROWS}").rows_deleted == 2
    found, report = run(table, "hit = 1")
    assert found["n"].to_pylist() == [ROWS + 2 * BLOCK + 5, ROWS + 5 * BLOCK + 77]
    first = run(table, f"hit = 1 AND n < {ROWS}")[1]
    assert (first.rows["matched"], first.bytes["follower"]) == (0, 0)
    assert report.blocks["read"] == 2


@pytest.mark.push_cases(1)
@pytest.mark.parametrize("form", ["parquet", "vortex", "orc"])
def test_rows_deep_behind_rejected_ones_are_changed(tmp_path: Path, form: str) -> None:
    table = wide(tmp_path, 8, form=form)
    before = table.scan().to_arrow()
    assert table.update({"few": "CAST(-1 AS BIGINT)"}, "last = 5").rows_updated == 1
    assert table.delete("hit = 1").rows_deleted == 2
    gone = {2 * BLOCK + 5, 5 * BLOCK + 77}
    expected = before.filter(pa.array([n not in gone for n in range(ROWS)]))
    few_values = np.where(expected["n"].to_numpy() == ROWS - 3, -1, expected["few"].to_numpy())
    expected = expected.set_column(expected.column_names.index("few"), "few", pa.array(few_values))
    assert table.scan().to_arrow().sort_by("n").equals(expected.combine_chunks())


def test_an_or_of_the_clustering_column_and_another_loses_no_row(tmp_path: Path) -> None:
    data = pa.table({"day": np.arange(4_000) // 1_000, "k": np.arange(4_000) * 7919 % 4_001, "v": np.arange(4_000)})
    table = tamis.create(tmp_path, data.schema, cluster_by=["day"])
    for day in range(4):
        table.append(data.slice(day * 1_000, 1_000))
    for text in ("day = 2 OR k = 17", "day = 9 OR k = 17", "(day = 1 AND k < 50) OR (day > 2 AND v % 2 = 0)"):
        keep = {
            "day = 2 OR k = 17": lambda r: r["day"] == 2 or r["k"] == 17,
            "day = 9 OR k = 17": lambda r: r["k"] == 17,
        }.get(text, lambda r: (r["day"] == 1 and r["k"] < 50) or (r["day"] > 2 and r["v"] % 2 == 0))
        same(table, text)
        assert table.scan(text).to_arrow().sort_by("v").to_pylist() == [r for r in data.to_pylist() if keep(r)]


def test_off_is_off_for_a_scan_and_for_a_table(t: Any, tmp_path: Path) -> None:
    assert run(t, "hit = 1", lazy="off")[1].reader == "eager"
    assert run(t, "hit = 1")[1].reader == "lazy"
    table = tamis.create(tmp_path, ODD.schema, properties={"tamis.read.lazy": "off"})
    table.append(ODD)
    for options, reader in (({}, "eager"), ({"tamis.read.lazy": "on"}, "lazy")):
        scan = table.scan("x < 0", options=options)
        assert len(scan.to_arrow()) == 4
        assert scan.report.reader == reader


@pytest.mark.parametrize("form", ["parquet", "vortex", "orc"])
def test_keys_that_a_join_adds_read_less_and_keep_the_rows(tmp_path: Path, form: str) -> None:
    """What a join learns becomes one more conjunct behind those that the plan had: fewer rows, the same ones. (Through Spark: tests/spark.)"""
    table = wide(tmp_path, 8, form=form)
    keys = table.scan("n IN (20000, 90000)").to_arrow()["k"].to_pylist()
    planned, wanted = run(table, "few >= 0")
    found, report = run(table, f"few >= 0 AND k IN ({keys[0]}, {keys[1]})")
    assert found.equals(planned.filter(pa.array(np.isin(planned["k"].to_numpy(), keys))))
    assert len(found) == 2
    assert form != "parquet" or data_bytes(report) < data_bytes(
        wanted
    )  # both blocks of this size have a hit, which costs the others as much as all


def test_a_limit_costs_no_more(t: Any) -> None:
    limited = t.scan("few = 17", limit=1)
    assert len(limited.to_arrow()) == 1
    assert data_bytes(limited.report) <= data_bytes(run(t, "few = 17")[1])


def test_bytes_add_up_and_belong_to_one_run(t: Any) -> None:
    first, second = run(t, "hit = 1")[1], run(t, "hit = 1")[1]
    for report in (first, second):
        assert report.bytes["read"] == sum(report.bytes[k] for k in ("metadata", "index", "leader", "follower"))
        assert report.segments["total"] == 1
    assert first.rows == second.rows
    assert first.bytes["follower"] == second.bytes["follower"]


def test_explain_names_index_leaders_and_what_could_not_be_used(tmp_path: Path) -> None:
    table = wide(tmp_path, 8)
    table.create_index("ik", "k")
    table.append(pa.table({name: np.arange(3) for name in table.schema.names}))
    explanation = str(table.explain("k = 2 AND hit % 2 = 1"))
    assert "leaders: k, hit" in explanation
    assert "hit % 2 = 1" in explanation.replace("(", "").replace(")", "")
    report = table.explain("k = 2 AND hit % 2 = 1")
    assert [(i["name"], i["segments"], i["missing"]) for i in report.indexes] == [("ik", 2, 0)]


def test_explain_counts_and_reads_no_data(t: Any) -> None:
    report = t.explain("hit = 1")
    assert data_bytes(report) == 0
    assert report.rows["total"] == ROWS
    assert (report.segments["total"], report.parts["kept"]) == (1, 1)
