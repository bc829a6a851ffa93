"""ORDER BY … LIMIT k and LIMIT, embedded: random small tables with ties, NULLs, NaN, both zeros, long texts and deleted rows, against sorting every row in Python."""

from __future__ import annotations

import math
from functools import cmp_to_key, partial
from random import Random  # noqa: TID251  # seeded
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import settings

import tamis
from tamis.core.expr import short_sql
from tamis.core.types.arrow import from_arrow_schema
from tamis.engine.part_reader import ReadCounters, read_part
from tamis.engine.scan import limit_pruning as limits
from tamis.engine.scan import top_k
from tamis.engine.scan.scan_order import parse_order, sorted_rows
from tamis.errors import InvalidInput, NotFound
from tamis.spark.scan import pushdown

SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.float64()), ("s", pa.string()), ("id", pa.int64())])
EXAMPLES = settings().max_examples
TABLES, QUERIES = max(EXAMPLES // 25, 3), 12
FILTERS = {
    None: lambda r: True,
    "a >= 5": lambda r: r["a"] is not None and r["a"] >= 5,
    "id > 3": lambda r: r["id"] > 3,
}
OFF = {"tamis.scan.topk": "off", "tamis.scan.limits": "off"}


def a_table(path: Any, rng: Any) -> tamis.Table:
    table, count = tamis.create(path, SCHEMA), 0
    for _ in range(rng.randint(1, 6)):
        base, rows = rng.choice([0, 5, 10]), rng.randint(1, 8)
        odd = [math.nan, None, -0.0, 0.0, 1.5, base + 0.5]
        made = [
            {
                "a": None if rng.random() < 0.1 else base + rng.randint(0, 3),
                "b": rng.choice(odd),
                "s": rng.choice(["x" * 70 + str(rng.randint(0, 3)), "é", None, "b"]),
                "id": count + i,
            }
            for i in range(rows)
        ]
        table.append(pa.Table.from_pylist(made, SCHEMA))
        count += rows
    if rng.random() < 0.6:
        table.delete(f"id % {rng.randint(2, 4)} = 0")
    return table


def compared(x: Any, y: Any, descending: bool, nulls_first: bool) -> int:
    """Below 0 where ``x`` comes first."""
    if x is None or y is None:
        return 0 if x is y else (-1 if (x is None) == nulls_first else 1)
    nan_x, nan_y = (isinstance(v, float) and math.isnan(v) for v in (x, y))
    found = int(nan_x) - int(nan_y) if nan_x or nan_y else (x > y) - (x < y)
    return -found if descending else found


def in_order(order: list[tuple[str, bool, bool]], x: dict[str, Any], y: dict[str, Any]) -> int:
    return next((found for c, d, n in order if (found := compared(x[c], y[c], d, n))), 0)


def places(rows: list[dict[str, Any]], order: list[tuple[str, bool, bool]]) -> list[tuple[Any, ...]]:
    """The keys of rows so that equal ones are equal: −0.0 as 0.0, NaN as a word."""
    return [tuple("NaN" if isinstance(v := r[c], float) and math.isnan(v) else v for c, _, _ in order) for r in rows]


@pytest.mark.push_cases(1)
@pytest.mark.parametrize("seed", range(TABLES))
def test_the_first_rows_are_those_of_sorting_everything(tmp_path: Any, seed: int) -> None:
    rng = Random(seed)
    table = a_table(tmp_path / "t", rng)
    every = table.scan().to_arrow().to_pylist()
    for _ in range(QUERIES):
        order = [(c, rng.random() < 0.5, rng.random() < 0.5) for c in rng.sample(["a", "b", "s"], rng.randint(1, 2))]
        order_by = ", ".join(f"{c} {'DESC' if d else 'ASC'} NULLS {'FIRST' if n else 'LAST'}" for c, d, n in order)
        k, condition = rng.randint(0, 9), rng.choice(list(FILTERS))
        expected = sorted(filter(FILTERS[condition], every), key=cmp_to_key(partial(in_order, order)))[:k]
        for options in ({}, OFF, {"tamis.audit.percent": 100}, {"tamis.stats.filter": "off"}):
            scan = table.scan(condition, order_by=order_by, limit=k, options=options)
            found = scan.to_arrow().to_pylist()
            assert places(found, order) == places(expected, order), (order_by, k, condition, options)
            assert len({r["id"] for r in found}) == len(found)
            assert all(any(repr(r) == repr(e) for e in every) and FILTERS[condition](r) for r in found)
            parts = scan.report.parts
            assert parts.total == sum(n for name, n in parts.items() if name.startswith("skipped")) + parts.kept
            assert not scan.report.violations
        limited = table.scan(condition, limit=k).to_arrow().to_pylist()
        wanted = [r for r in every if FILTERS[condition](r)]
        assert len(limited) == min(k, len(wanted))
        assert all(any(repr(r) == repr(e) for e in wanted) for r in limited)
        assert table.scan(condition, limit=k).count() == min(k, len(wanted))
        assert table.scan(condition).exists() == bool(wanted)


@pytest.mark.push_cases(1)
@pytest.mark.parametrize("seed", range(TABLES))
def test_what_a_look_at_the_best_parts_leaves_to_read_has_the_first_rows(
    tmp_path: Any, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The look reads one part or all, as Spark's driver does; sorting what tasks then read gives the first rows."""
    rng = Random(seed + 1_000)
    table = a_table(tmp_path / "t", rng)
    every = table.scan().to_arrow().to_pylist()
    for turn in range(QUERIES):
        order = [(c, rng.random() < 0.5, rng.random() < 0.5) for c in rng.sample(["a", "b", "s"], rng.randint(1, 2))]
        order_by = ", ".join(f"{c} {'DESC' if d else 'ASC'} NULLS {'FIRST' if n else 'LAST'}" for c, d, n in order)
        k, condition = rng.randint(1, 9), rng.choice(list(FILTERS))
        monkeypatch.setattr(pushdown, "LOOK_BYTES", 1 if turn % 2 else 2**26)
        plan = pushdown.reduce_to_top(table.scan(condition, order_by=order_by, limit=k).plan(), 1.0)
        read = [
            row
            for ref in plan.parts
            for batch in read_part(ref, plan.spec, ReadCounters())
            for row in batch.to_pylist()
        ]
        by = cmp_to_key(partial(in_order, order))
        expected = sorted(filter(FILTERS[condition], every), key=by)[:k]
        assert places(sorted(read, key=by)[:k], order) == places(expected, order), (order_by, k, condition, turn)
        assert len({row["id"] for row in read}) == len(read)
        assert (
            plan.report.parts.total
            == sum(n for name, n in plan.report.parts.items() if name.startswith("skipped")) + plan.report.parts.kept
        )
        assert plan.report.parts.kept == len(plan.parts)


@pytest.fixture(scope="module")
def ordered(tmp_path_factory: pytest.TempPathFactory) -> tamis.Table:
    """20 parts of 100 rows; ``ts`` rises from part to part, ``x`` is anywhere."""
    table, rng = tamis.create(tmp_path_factory.mktemp("ordered")), Random(1)
    for start in range(0, 2_000, 100):
        columns = {
            "ts": list(range(start, start + 100)),
            "x": [rng.random() for _ in range(100)],
            "wide": [f"{i}" * 20 for i in range(100)],
        }
        table.append(pa.table(columns))
    return table


def test_large_rows_are_held_and_returned_in_pieces(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrow cannot join texts of more than 2 GiB."""
    monkeypatch.setattr(top_k, "HELD_BYTES", 1_000)
    table = tamis.create(tmp_path / "t", SCHEMA)
    for first in (0, 40):
        rows = [{"a": i, "b": None, "s": f"{i:03}" * 50, "id": i} for i in range(first, first + 40)]
        table.append(pa.Table.from_pylist(rows, SCHEMA))
    scan = table.scan("id >= 10", order_by="s DESC", limit=25)
    batches = list(scan.to_batches())
    assert [i for batch in batches for i in batch["id"].to_pylist()] == list(range(79, 54, -1))
    assert len(batches) > 3
    assert all(batch.nbytes < 2_000 for batch in batches)


def test_long_keys_are_cut_to_the_best_before_they_are_many(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(top_k, "HELD_BYTES", 3_000)
    sorted_bytes = list[int]()

    def noted(rows: pa.Table, *more: Any) -> pa.Table:
        sorted_bytes.append(rows.nbytes)
        return sorted_rows(rows, *more)

    monkeypatch.setattr(top_k, "sorted_rows", noted)
    table = tamis.create(tmp_path / "t", SCHEMA)
    table.append(pa.Table.from_pylist([{"a": 0, "b": None, "s": "x", "id": 0}], SCHEMA))
    search = top_k.TopK(table.scan(order_by="s DESC", limit=5).plan(), lambda *_: None)
    batches = (pa.record_batch([[f"{i:03}" * 50], pa.array([i], pa.int64())], ["s", "_row"]) for i in range(100))
    (best,) = search._kept(batches, 0)
    assert best.column(0).to_pylist() == [f"{i:03}" * 50 for i in range(99, 94, -1)]
    assert max(sorted_bytes) < 4_000
    assert len(sorted_bytes) > 5


def test_a_clustered_column_reads_the_last_part(ordered: tamis.Table) -> None:
    scan = ordered.scan(order_by="ts DESC", limit=100)
    assert scan.explain().parts.skipped_topk == 19  # statistics alone say so
    assert scan.to_arrow()["ts"].to_pylist() == list(range(1_999, 1_899, -1))
    assert (scan.report.parts.kept, scan.report.parts.skipped_topk) == (1, 19)
    assert {
        "conjunct": "ORDER BY ts DESC LIMIT 100",
        "statistic": "ts",
        "parts_skipped": 19,
        "rest": None,
    } in scan.report.because
    assert ordered.scan(order_by="ts DESC", limit=100, options=OFF).explain().parts.kept == 20


def test_an_unclustered_column_is_bounded_by_what_was_found(ordered: tamis.Table) -> None:
    scan = ordered.scan(order_by=[("x", "descending")], limit=2)
    best = ordered.scan().to_arrow().sort_by([("x", "descending")]).slice(0, 2)
    assert scan.explain().parts.skipped_topk == 0
    assert scan.to_arrow().equals(best.combine_chunks())
    assert scan.report.parts.skipped_topk >= 12
    assert scan.report.bytes.follower < scan.report.bytes.table / 6  # of parts this small a read takes in the gaps


def test_a_filter_that_may_fail_is_run_everywhere(ordered: tamis.Table) -> None:
    """What sorting every row would raise is raised, although the part with the failing row is far from the first rows."""
    with pytest.raises(InvalidInput, match="fails on a row"):
        ordered.scan("1 / (ts - 50) > -1", order_by="ts DESC", limit=3).to_arrow()
    assert ordered.scan("ts > 50 AND 1 / (ts - 50) > -1", order_by="ts DESC", limit=3).to_arrow()["ts"].to_pylist() == [
        1_999,
        1_998,
        1_997,
    ]


def test_a_limit_takes_parts_that_match_wholly(ordered: tamis.Table) -> None:
    scan = ordered.scan("ts >= 950", limit=10)
    assert scan.to_arrow().num_rows == 10
    assert (scan.report.parts.kept, scan.report.parts.skipped_limit) == (1, 10)
    assert ordered.scan("ts >= 950", limit=10, options=OFF).explain().parts.skipped_limit == 0
    assert ordered.scan(limit=150).to_arrow()["ts"].to_pylist() == list(range(150))  # without a filter the first ones


def test_existence_is_metadata_where_a_part_matches_wholly(ordered: tamis.Table) -> None:
    scan = ordered.scan("ts >= 950")
    assert scan.exists()
    assert (
        scan.report.parts.answered,
        scan.report.parts.kept,
        scan.report.bytes.leader + scan.report.bytes.follower,
    ) == (1, 0, 0)
    assert not ordered.scan("ts > 5000").exists()


def test_enough_parts_for_a_limit() -> None:
    class Parts:
        all_match = np.array([True, False, True, True])
        live_rows = np.array([1, 50, 2, 40])

        def __len__(self) -> int:
            return 4

    parts: Any = Parts()
    chosen = {k: np.flatnonzero(limits.enough_parts(parts, k)).tolist() for k in (0, 1, 2, 3, 41, 43, 44)}
    assert chosen == {0: [], 1: [0], 2: [3], 3: [3], 41: [2, 3], 43: [0, 2, 3], 44: [0, 1, 2, 3]}


def bound(table: tamis.Table, order_by: str, limit: int) -> str | None:
    """What metadata alone says that the first rows must satisfy."""
    plan = table.scan(order_by=order_by, limit=limit, options=OFF).plan()
    found = limits.RankedParts(plan.parts, (), plan.order, plan.spec.part_schemas, (0, 0)).bound(limit)
    return None if found is None else short_sql(found)


def test_a_bound_counts_only_rows_that_are_sure_to_reach_it(tmp_path: Any) -> None:
    """Deleted rows do not count; NULLs do where they come first, NaN where it does."""
    table = tamis.create(tmp_path / "t")
    table.append(pa.table({"x": [5.0, 6.0, 7.0, 8.0], "y": [5.0, 6.0, math.nan, None]}))
    table.append(pa.table({"x": [1.0, 2.0, 3.0, 4.0], "y": [1.0, 2.0, 3.0, 4.0]}))
    assert bound(table, "x DESC", 4) == "(x >= 5.0D)"
    assert bound(table, "x DESC", 5) == "(x >= 1.0D)"
    assert bound(table, "x DESC", 9) is None
    assert bound(table, "y DESC", 3) == "(y >= 5.0D)"  # NaN comes first, NULL last
    assert bound(table, "y DESC", 4) == "(y >= 1.0D)"
    assert bound(table, "y DESC NULLS FIRST", 4) == "((y IS NULL) OR (y >= 5.0D))"
    assert bound(table, "y ASC NULLS LAST", 6) == "(y <= 6.0D)"  # neither NULL nor NaN
    assert bound(table, "y ASC NULLS LAST", 7) is None
    assert bound(table, "y ASC", 7) == "((y IS NULL) OR (y <= 6.0D))"
    table.delete("x = 8.0")
    assert bound(table, "x DESC", 3) == "(x >= 5.0D)"
    assert bound(table, "x DESC", 4) == "(x >= 1.0D)"


@pytest.mark.parametrize(
    ("order_by", "code"),
    [
        ("", "BAD_ORDER"),
        ("ts UP", "BAD_ORDER"),
        ("ts,,x", "BAD_ORDER"),
        (7, "BAD_ORDER"),
        ("n.inner", "BAD_ORDER"),
        ("nothing", "COLUMN_NOT_FOUND"),
    ],
)
def test_what_is_no_order_is_refused(tmp_path: Any, order_by: Any, code: str) -> None:
    table = tamis.create(
        tmp_path / "t", pa.schema([("ts", pa.int64()), ("x", pa.int64()), ("n", pa.struct([("inner", pa.int64())]))])
    )
    with pytest.raises((InvalidInput, NotFound)) as caught:
        table.scan(order_by=order_by, limit=1)
    assert caught.value.code == code
    with pytest.raises(InvalidInput, match="needs a limit"):
        table.scan(order_by="ts")


def test_the_name_in_a_pair_stands_for_itself() -> None:
    schema = from_arrow_schema(pa.schema([("A B", pa.int64()), ("a.b", pa.int64()), ("x`", pa.int64())])).assign_ids(0)
    given = [("A B", "descending"), ["a.b", "asc nulls last"], ("`A B`", "DESC"), ("x`", " Ascending ")]
    assert [str(by) for by in parse_order(given, schema)] == ["A B DESC", "`a.b` NULLS LAST", "A B DESC", "`x```"]
    for direction in ("up", "asc, x", "nulls", "descnulls last"):
        with pytest.raises(InvalidInput, match="BAD_ORDER"):
            parse_order([("A B", direction)], schema)
