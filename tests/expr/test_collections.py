"""Arrays and maps: our rows are Spark's, by either front end; and what is decided from statistics holds for the rows."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tamis.core import expr
from tamis.core.expr import Opaque
from tamis.core.pruning import decide
from tamis.core.stats import Collector, TableEvidence
from tamis.core.types import DOUBLE, INTEGER, LONG, STRING, Array, Field, Map, Schema, Struct
from tamis.core.types.arrow import to_arrow_schema
from tamis.engine.part_reader.filter_order import can_fail, ordered_conjunction

SCHEMA = Schema(
    (
        Field("id", LONG, True, 20),
        Field("arr", Array(Field("element", LONG, True, 2)), True, 1),
        Field("mp", Map(Field("key", STRING, False, 4), Field("value", INTEGER, True, 5)), True, 3),
        Field("i", INTEGER, True, 6),
        Field(
            "ss",
            Array(Field("element", Struct((Field("x", LONG, True, 9), Field("n", STRING, True, 10))), True, 8)),
            True,
            7,
        ),
        Field("fs", Array(Field("element", DOUBLE, True, 12)), True, 11),
    )
)
FILTERS = """
arr[0] = 2
arr[i] > 3
arr[5] IS NULL
element_at(arr, 1) = 11
element_at(arr, -1) > 3
try_element_at(arr, 2) = 2
try_element_at(arr, -2) IS NULL
try_element_at(mp, 'a') > 1
mp['a'] = 5
mp.b > 1
mp['a'] IS NULL
element_at(mp, 'b') = 2
size(arr) = 0
size(mp) > 1
cardinality(arr) <= 2
array_size(arr) >= 3
size(arr) IS NULL
array_contains(arr, 10)
NOT array_contains(arr, 4)
array_contains(arr, i)
array_contains(fs, double('NaN'))
exists(arr, x -> x > 9)
exists(arr, x -> x > i)
exists(arr, x -> x IS NULL)
exists(arr, x -> 10 / x > 3)
forall(arr, x -> x < 20)
NOT forall(arr, x -> x <> 3)
exists(ss, y -> y.x > 50 AND y.n LIKE 'a%')
exists(fs, x -> isnan(x))
exists(arr, x -> x BETWEEN 4 AND 6) IS NULL
""".strip().splitlines()


def piece(rng: np.random.Generator, rows: int, first: int) -> pa.Table:
    """Rows near each other, with NULL arrays, NULL elements and empty arrays, and pieces that have none of some of them."""
    base, nulls = int(rng.integers(0, 12)), rng.choice([0.0, 0.3])
    shortest, longest = sorted(int(v) for v in rng.integers(0, 4, 2))

    def maybe(value: Any, share: float = nulls) -> Any:
        return None if rng.random() < share else value

    def many(make: Any) -> Any:
        return maybe([maybe(make()) for _ in range(int(rng.integers(shortest, longest + 1)))])

    data = [
        {
            "id": first + row,
            "arr": many(lambda: base + int(rng.integers(0, 3))),
            "mp": maybe([(k, maybe(int(rng.integers(0, 6)))) for k in "abc"[: int(rng.integers(0, 4))]]),
            "i": maybe(int(rng.integers(0, 3))),
            "ss": many(lambda: {"x": maybe(base * 10), "n": maybe(["a1", "b"][int(rng.integers(2))])}),
            "fs": many(lambda: [1.5, float("nan"), -0.0][int(rng.integers(3))]),
        }
        for row in range(rows)
    ]
    return pa.Table.from_pylist(data, schema=to_arrow_schema(SCHEMA))


def batch(rows: pa.Table) -> dict[int, Any]:
    return {f.id: rows.column(i) for i, f in enumerate(SCHEMA.fields)}


def collected(pieces: list[pa.Table]) -> TableEvidence:
    tables = []
    for rows in pieces:
        collector = Collector(SCHEMA)
        for b in rows.combine_chunks().to_batches():
            collector.update(b)
        tables.append(collector.finish().append_column("rows", pa.array([rows.num_rows], pa.int64())))
    return TableEvidence(pa.concat_tables(tables, promote_options="default"), SCHEMA)


@cache
def generated() -> tuple[list[pa.Table], TableEvidence]:
    rng = np.random.default_rng(3)
    pieces = [piece(rng, int(rng.integers(1, 4)), 0) for _ in range(100)]
    return pieces, collected(pieces)


@pytest.mark.push_cases(20)
@pytest.mark.parametrize("ansi", [True, False])
@pytest.mark.parametrize("text", FILTERS)
def test_what_is_decided_holds(text: str, ansi: bool) -> None:
    pieces, evidence = generated()
    conjuncts = expr.conjuncts_of(expr.parse_predicate(text, SCHEMA, ansi=ansi))
    decision = decide(conjuncts, evidence, strict=True)
    for number, rows in enumerate(pieces):
        keep, failed, error = expr.filter_mask(conjuncts, batch(rows), rows.num_rows)
        if decision.none[number]:
            assert not keep.any(), f"wrong skip: {rows.to_pylist()}"
            assert not failed.any(), f"hidden error {error}: {rows.to_pylist()}"
        if decision.all[number]:
            assert keep.all(), f"wrong all: {rows.to_pylist()}"
    assert decision.none.any() or decision.all.any(), "never decides"


def test_must_skip() -> None:
    """Filters, and how many of four pieces are skipped."""
    rows: list[list[list[int] | None]] = [[[1, 2]], [[], [3]], [[10, 11, 12], [13]], [None, []]]
    pieces = [
        pa.Table.from_pylist([{"arr": a, "mp": [("k", 1)] if a else []} for a in p], schema=to_arrow_schema(SCHEMA))
        for p in rows
    ]
    expected = {
        "size(arr) = 0": 2, "size(arr) >= 3": 3, "arr[0] > 2": 1, "array_contains(arr, 3)": 3, "exists(arr, x -> x > 11)": 3,
        "exists(arr, x -> x = 5)": 4, "mp['k'] = 1": 1, "mp['other'] = 1": 4, "element_at(mp, 'k') > 1": 4, "cardinality(mp) > 1": 4,
        "exists(arr, x -> x > 5 AND x < 3)": 4, "try_element_at(arr, 1) = 7": 4, "arr IS NULL": 3,
    }  # fmt: skip
    found = {
        f: int(decide(expr.conjuncts_of(expr.parse_predicate(f, SCHEMA)), collected(pieces), strict=True).none.sum())
        for f in expected
    }
    assert found == expected


@pytest.mark.parametrize("ansi", [True, False])
@pytest.mark.parametrize(("second", "stays"), [("try_element_at(arr, i) = 5", True), ("try_element_at(arr, -1) = 5", False)])  # fmt: skip
def test_an_index_of_zero_is_an_error_in_every_mode(second: str, stays: bool, ansi: bool) -> None:
    """So what may have it keeps its place behind a test that excludes it; a constant index cannot be zero."""
    filters = [expr.parse_predicate(text, SCHEMA, ansi=ansi) for text in ("size(arr) = 1", second)]
    table = pa.Table.from_pylist([{"arr": [5, 6], "i": 0}, {"arr": [5], "i": 1}], schema=to_arrow_schema(SCHEMA))
    run = ordered_conjunction(filters, None)
    for cost, seconds in zip(run.legs.costs, (5.0, 1.0), strict=True):
        cost.rows, cost.seconds = 1.0, seconds
    assert run.order() == ([0, 1] if stays else [1, 0])
    keep, failed, _ = run.mask(batch(table.combine_chunks()), 2)
    assert (keep.tolist(), failed.tolist()) == ([False, True], [False, False])
    assert can_fail(filters[1]) == stays


@pytest.mark.parametrize("text", ["element_at(arr, i) = 5", "try_element_at(arr, i) = 5", "element_at(arr, 0) = 5"])
def test_what_may_be_an_index_of_zero_can_fail(text: str) -> None:
    assert expr.can_fail(expr.parse_predicate(text, SCHEMA, ansi=False))
    assert not expr.can_fail(expr.parse_predicate("element_at(arr, 2) = 5 AND arr[i] = 5", SCHEMA, ansi=False))


@pytest.mark.spark
@pytest.mark.parametrize("ansi", [True, False])
@pytest.mark.push_cases(1)
def test_rows_are_those_of_spark(spark: Any, ansi: bool, tmp_path: Any) -> None:
    """By SQL text and by Catalyst's tree; where a row fails here, Spark fails."""
    from tamis.spark.jvm_bridge.adapter import bridge_of
    from tamis.spark.jvm_bridge.catalyst import known_nodes, translate_filters
    from tamis.spark.jvm_bridge.node_settings import zone_table

    rng = np.random.default_rng(8)
    table = pa.concat_tables([piece(rng, 8, 8 * n) for n in range(6)])
    session = spark.newSession()
    session.conf.set("spark.sql.ansi.enabled", str(ansi).lower())
    session.createDataFrame(table).coalesce(1).write.parquet(str(tmp_path / "rows"))
    frame, wrong = session.read.parquet(str(tmp_path / "rows")), []
    for text in FILTERS:
        plan = frame.where(text)._jdf.queryExecution().optimizedPlan()
        while plan.getClass().getSimpleName() not in {"Filter", "LocalRelation", "LogicalRelation"}:
            plan = plan.child()
        if plan.getClass().getSimpleName() != "Filter":
            continue  # Spark knows the answer already
        helper = bridge_of(spark)
        trees = translate_filters(
            helper.helper("TreeText").render(helper.seq([plan.condition()]), known_nodes()), SCHEMA, zone_table(helper)
        ).conjuncts
        opaque = [n.text for c in trees for n in c.walk() if isinstance(n, Opaque)]
        ways = {"text": expr.conjuncts_of(expr.parse_predicate(text, SCHEMA, ansi=ansi)), "catalyst": trees}
        for way, conjuncts in ways.items():
            if opaque and way == "catalyst":
                wrong.append(f"{text}: not understood {opaque}")
                continue
            keep, failed, _ = expr.filter_mask(conjuncts, batch(table), table.num_rows)
            try:
                theirs: Any = sorted(r.id for r in frame.where(text).select("id").collect())
            except Exception as error:
                theirs = "fails" if "[" in str(error) else error
            ours = "fails" if failed.any() else table.column("id").filter(pa.array(keep)).to_pylist()
            if ours != theirs:
                wrong.append(f"{way} {text}: ours {ours}, Spark {theirs}")
    assert "\n".join(wrong) == ""
