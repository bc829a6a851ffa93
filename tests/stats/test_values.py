"""The few values of a column: every value is in the set, through batches, unions and trimming; what cannot be a set is none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.core.stats import Collector, TableEvidence, union_statistics
from tamis.core.stats.columns.value_sets import MOST, is_listable
from tamis.core.stats.statistics_budget import Priorities, trim_statistics
from tamis.core.types import DATE, DOUBLE, INTEGER, LONG, STRING, DataType, Field, Schema
from tests.values import ATOMIC, column, kind_of

LISTED = [t for t in ATOMIC if is_listable(t)]


def schema_of(data_type: DataType) -> Schema:
    return Schema((Field("c", data_type, id=7),))


def collected(data_type: DataType, *batches: pa.Array) -> pa.Table:
    collector = Collector(schema_of(data_type))
    for values in batches:
        collector.update(pa.record_batch([values], names=["c"]))
    return collector.finish().append_column("rows", pa.array([sum(map(len, batches))]))


def sets(table: pa.Table, data_type: DataType) -> list[list[object] | None]:
    found = TableEvidence(table, schema_of(data_type)).values((7,))
    return [None] * len(table) if found is None else found.to_pylist()


@given(st.data())
def test_every_value_is_in_the_set(data: st.DataObject) -> None:
    data_type = data.draw(st.sampled_from(LISTED))
    parts = [
        [data.draw(column(data_type)) for _ in range(data.draw(st.integers(1, 2)))]
        for _ in range(data.draw(st.integers(1, 3)))
    ]
    tables = [collected(data_type, *batches) for batches in parts]
    together = union_statistics(pa.concat_tables(tables)).append_column(
        "rows", pa.array([sum(t["rows"][0].as_py() for t in tables)])
    )
    for table, batches in [*zip(tables, parts, strict=True), (together, [b for part in parts for b in part])]:
        (found,) = sets(table, data_type)
        if found is not None:
            assert {v for b in batches for v in b.to_pylist()} - {None} <= set(found)


@pytest.mark.parametrize("data_type", [t for t in ATOMIC if not is_listable(t)], ids=kind_of)
def test_some_types_have_none(data_type: DataType) -> None:
    assert not [name for name in Collector(schema_of(data_type)).finish().column_names if name.endswith("|set")]


def test_few_are_kept_and_many_are_not() -> None:
    few_values, many_values = (
        pa.array([f"v{i % MOST}" for i in range(5_000)] + [None]),
        pa.array([f"v{i % (MOST + 1)}" for i in range(5_000)]),
    )
    (found,) = sets(collected(STRING, few_values, few_values), STRING)
    assert found is not None
    assert found == sorted(found, key=str)
    assert len(found) == MOST
    assert sets(collected(STRING, many_values), STRING) == [None]
    assert sets(collected(STRING, few_values.slice(0, 10), many_values), STRING) == [None]
    assert sets(collected(STRING, pa.array(["a", "x" * 65])), STRING) == [None]
    assert sets(collected(STRING, pa.array([b"\xff"]).view(pa.string())), STRING) == [None]
    assert sets(collected(STRING, pa.nulls(3, pa.string())), STRING) == [None], "emptiness is a matter of counts"


def test_the_first_rows_may_all_differ_if_one_of_them_is_null() -> None:
    """A few rows tell that there are too many values; the distinct values of a batch give its bounds."""
    fits = pa.array([None, *range(MOST), *range(MOST)])
    (found,) = sets(collected(INTEGER, fits.cast(pa.int32())), INTEGER)
    assert found == list(range(MOST))
    assert sets(collected(INTEGER, pa.array([*range(MOST + 1), None, 0], pa.int32())), INTEGER) == [None]


@pytest.mark.parametrize("first", [MOST, MOST + 1, MOST + 2, 300])
def test_bounds_are_those_of_all_batches_wherever_the_set_is_given_up(first: int) -> None:
    batches = [pa.array([*range(5), None, *range(first)] * 2, pa.int64()), pa.array([-7, 1_000, None] * 3, pa.int64())]
    for ordered in (batches, batches[::-1]):
        row = collected(LONG, *ordered).to_pylist()[0]
        assert (row["7|long|lo"], row["7|long|hi"], row["7|nulls"]) == (-7, 1_000, 5)
        assert row["7|exact"] == 3


@pytest.mark.parametrize(
    "late",
    [pa.array(range(1_000)), pa.array(range(MOST + 1)), pa.array([*range(MOST), None])],
    ids=["sampled", "merged", "fits"],
)
@pytest.mark.parametrize("early", [1, 2])
def test_a_collector_that_gives_up_has_no_set(late: pa.Array, early: int) -> None:
    """A first batch of few values must not be taken for the whole part (7 values, then a batch at which the collector gives up)."""
    few_values = pa.array([i % 7 for i in range(600)])
    table = collected(LONG, *[few_values] * early, late)
    (found,) = sets(table, LONG)
    values = set(late.drop_null().to_pylist()) | set(range(7))
    assert found == (sorted(values) if len(values) <= MOST else None)
    (after,) = sets(collected(LONG, *[few_values] * early, late, few_values), LONG)
    assert after == found, "a collector that gave up stays so"


def test_sets_of_earlier_writers_are_not_believed() -> None:
    """Their collectors could give up and still answer: such a set is stored under another name, which no reader knows."""
    table = pa.table({"rows": [2], "7|long|lo": [1], "7|long|hi": [9], "7|long|values": [[1]]})
    assert sets(table, LONG) == [None]
    assert union_statistics(table).column_names == ["7|long|lo", "7|long|hi", "7|exact"]


def test_a_union_knows_what_all_know() -> None:
    def one(*values: str | None) -> pa.Table:
        return collected(STRING, pa.array(values, pa.string()))

    def both(*tables: pa.Table) -> list[object] | None:
        whole = union_statistics(pa.concat_tables(tables, promote_options="default"))
        return sets(whole.append_column("rows", pa.array([sum(t["rows"][0].as_py() for t in tables)])), STRING)[0]

    assert both(one("b"), one("a", None)) == ["a", "b"]
    assert both(one("b"), one(None)) == ["b"], "only NULLs: no say in values"
    assert both(one("b"), one(*(str(i) for i in range(40)))) is None
    assert both(one("b"), one("a").drop_columns(["7|string|set"])) is None


BAD = {
    "outside the bounds": {"7|long|lo": [1], "7|long|hi": [2], "7|long|set": [[1, 3]]},
    "nothing": {"7|long|lo": [1], "7|long|hi": [2], "7|long|set": pa.array([[]], pa.list_(pa.int64()))},
    "with a NULL": {"7|long|set": pa.array([[1, None]], pa.list_(pa.int64()))},
    "of another type": {"7|long|set": [["a"]]},
    "no list": {"7|long|set": [5]},
    "of text": {"7|string|set": [["a"]]},
    "said twice": {"7|long|set": [[1]], "7|integer|set": pa.array([[1]], pa.list_(pa.int32()))},
    "too many": {"7|long|set": [list(range(MOST + 1))]},
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_is_unknown(case: str) -> None:
    assert sets(pa.table({"rows": [10], **BAD[case]}), LONG) == [None]


def test_a_widened_column_keeps_its_values() -> None:
    table = pa.table(
        {"rows": [2, 2], "7|integer|set": pa.array([[1, 2], None], pa.list_(pa.int32())), "7|long|set": [None, [2**40]]}
    )
    assert sets(table.slice(0, 1), LONG) == [[1, 2]]
    assert sets(table, LONG) == [None, None], "under two types in one table: unknown"
    assert sets(collected(INTEGER, pa.array([5, 5], pa.int32())), LONG) == [[5]]


def test_a_column_younger_than_the_part_has_no_set() -> None:
    table = collected(STRING, pa.array(["a"])).append_column("schema_id", pa.array([0], pa.int32()))
    schemas = {
        0: Schema((Field("other", LONG, id=1),), schema_id=0),
        1: Schema((Field("c", STRING, id=7),), schema_id=1),
    }
    assert TableEvidence(table, schemas).values((7,)) in (None, pa.array([None], pa.list_(pa.string())))


def test_value_sets_are_dropped_before_bounds() -> None:
    table = collected(STRING, pa.array(["aa", "bb", "cc"])).drop_columns(["rows"])
    figures = [
        (name, column.type, _plain(column[0])) for name, column in zip(table.column_names, table.columns, strict=True)
    ]
    left = trim_statistics(figures, {}, trim_statistics(figures, {}, 10**6).size - 1)
    assert left.dropped == 1
    assert "7|string|set" not in left.statistics
    assert left.statistics["7|string|lo"].to_pylist() == ["aa"]
    last = trim_statistics(figures, {}, 20, Priorities(last=frozenset({(7, "$")})))
    assert "7|string|set" not in last.statistics
    always = trim_statistics(figures, {}, 20, Priorities(always=frozenset({(7, "$")})))
    assert always.statistics["7|string|set"].to_pylist() == [["aa", "bb", "cc"]]


def _plain(value: pa.Scalar) -> Any:
    """Return a figure as collectors give it: sets as arrays, counts as Python's integers."""
    if isinstance(value, pa.ListScalar):
        return value.values
    return value.as_py() if pa.types.is_integer(value.type) else value


def test_noise_is_no_set() -> None:
    noise = pa.py_buffer(np.random.default_rng(5).bytes(4096))
    offsets = pa.array([0, 2, 4], pa.int32())
    for data_type in (LONG, DATE, DOUBLE):
        arrow = pa.int64() if data_type == LONG else pa.date32() if data_type == DATE else pa.float64()
        members = pa.Array.from_buffers(arrow, 4, [None, noise])
        table = pa.table({"rows": [2, 2], f"7|{data_type.to_json()}|set": pa.ListArray.from_arrays(offsets, members)})
        found = TableEvidence(table, schema_of(data_type)).values((7,))
        assert found is None or len(found) == 2
        union_statistics(table)
