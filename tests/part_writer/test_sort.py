"""Sorting in bounded memory: the same rows, in Spark's ascending order, equal ones as they came."""

import math
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.core.types import DOUBLE, LONG, STRING, Array, DataType, Field, Schema, Struct
from tamis.core.types.arrow import to_arrow_schema
from tamis.engine.part_writer import external_sort, sorted_batches
from tamis.engine.part_writer.clustering_order import ClusteringOrder
from tamis.errors import InvalidInput
from tests.values import ATOMIC, column, kind_of

SCHEMA = Schema(
    (
        Field("n", LONG, id=1),
        Field("s", Struct((Field("x", DOUBLE, id=3), Field("t", STRING, id=4))), id=2),
        Field("at", LONG, id=5),
    )
)
KEYS = ((2, 3), (1,))


@pytest.fixture(autouse=True)
def tiny_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs that do not fit into one batch: merging has to go back to them."""
    monkeypatch.setattr(external_sort, "STEP_BYTES", 64)


def rank(value: Any) -> tuple[Any, ...]:
    if value is None:
        return (0, 0)
    if isinstance(value, float) and math.isnan(value):
        return (2, 0)
    return (1, value.encode() if isinstance(value, str) else value)


def rows() -> st.SearchStrategy[list[dict[str, Any]]]:
    number, text = st.none() | st.integers(-2, 2), st.none() | st.sampled_from(["", "a", "é"])
    doubles = st.none() | st.sampled_from([0.0, -0.0, 1.0, float("nan"), float("-inf")])
    struct = st.none() | st.tuples(doubles, text).map(lambda pair: {"x": pair[0], "t": pair[1]})
    return st.lists(st.tuples(number, struct), max_size=30).map(
        lambda items: [{"n": n, "s": s, "at": i} for i, (n, s) in enumerate(items)]
    )


@given(rows(), st.integers(1, 7), st.sampled_from([1, 200, 400, 10**9]))
def test_same_rows_in_order(data: list[dict[str, Any]], size: int, memory: int) -> None:
    whole = pa.RecordBatch.from_pylist(data, schema=to_arrow_schema(SCHEMA))
    batches = [whole.slice(i, size) for i in range(0, len(whole), size)]
    result = [row for b in sorted_batches(batches, SCHEMA, KEYS, memory) for row in b.to_pylist()]
    expected = sorted(data, key=lambda r: (rank(r["s"] and r["s"]["x"]), rank(r["n"])))
    assert str(result) == str(expected)


@pytest.mark.parametrize("data_type", ATOMIC, ids=kind_of)
@given(st.data())
def test_every_type_has_its_order(data_type: DataType, data: st.DataObject) -> None:
    values = data.draw(column(data_type))
    schema = Schema((Field("c", data_type, id=1),))
    batch = pa.record_batch([values], schema=to_arrow_schema(schema))
    order = ClusteringOrder(schema, ((1,),))
    raw = (
        pa.array(values.view(pa.int32() if values.type.bit_width == 32 else pa.int64()))
        if pa.types.is_temporal(values.type)
        else values
    )
    got = raw.take(order.sort(batch)).to_pylist()
    assert str(got) == str(sorted(raw.to_pylist(), key=rank))
    assert order.is_sorted(batch) == ([rank(v) for v in raw.to_pylist()] == sorted(rank(v) for v in raw.to_pylist()))


@given(rows())
def test_holds_says_whether_rows_are_in_order(data: list[dict[str, Any]]) -> None:
    keys = [(rank(r["s"] and r["s"]["x"]), rank(r["n"])) for r in data]
    batch = pa.RecordBatch.from_pylist(data, schema=to_arrow_schema(SCHEMA))
    assert ClusteringOrder(SCHEMA, KEYS).is_sorted(batch) == (keys == sorted(keys))


@pytest.mark.merge
def test_many_spilled_runs() -> None:
    schema = Schema((Field("n", LONG, id=1),))
    data = [
        pa.record_batch([[(i * 7919) % 100_003 for i in range(k, k + 5_000)]], schema=to_arrow_schema(schema))
        for k in range(0, 100_000, 5_000)
    ]
    out = [n for b in sorted_batches(data, schema, ((1,),), 100_000) for n in b.column(0).to_pylist()]
    assert out == sorted(n for b in data for n in b.column(0).to_pylist())


@pytest.fixture
def sorts(monkeypatch: pytest.MonkeyPatch) -> dict[bool, list[int]]:
    """Return the bytes of what is sorted at once: runs in the making (False), and runs that are merged (True)."""
    sizes: dict[bool, list[int]] = {False: [], True: []}

    class Noted(ClusteringOrder):
        def sort(self, batch: pa.RecordBatch, *, in_runs: bool = False) -> pa.UInt64Array:
            sizes[in_runs].append(batch.nbytes)
            return super().sort(batch, in_runs=in_runs)

    monkeypatch.setattr(external_sort, "ClusteringOrder", Noted)
    return sizes


@pytest.mark.parametrize("memory", [30_000, 100_000, 400_000], ids=["merged twice", "merged in part", "merged once"])
@pytest.mark.parametrize("size", [100, 4_000])
def test_wide_rows_and_many_runs_stay_within_memory(
    sorts: dict[bool, list[int]], monkeypatch: pytest.MonkeyPatch, memory: int, size: int
) -> None:
    """Whether they come in small batches or in one, and although their widths differ a thousandfold."""
    monkeypatch.setattr(external_sort, "STEP_BYTES", 2_000)
    schema = Schema((Field("n", LONG, id=1), Field("at", LONG, id=2), Field("s", STRING, id=3)))
    count = 4_000
    whole = pa.record_batch(
        [
            pa.array([i * 7 % 50 for i in range(count)], pa.int64()),
            pa.array(range(count), pa.int64()),
            pa.array(["x" * (900 + i % 700 if i % 9 == 0 else i % 3) for i in range(count)]),
        ],
        schema=to_arrow_schema(schema),
    )
    batches = (whole.slice(start, size) for start in range(0, count, size))
    out = pa.Table.from_batches(sorted_batches(batches, schema, ((1,),), memory))
    assert out.equals(pa.Table.from_batches([whole]).sort_by([("n", "ascending"), ("at", "ascending")]))
    assert len(sorts[False]) > 1
    assert max(sorts[False]) <= memory * 0.6
    assert max(sorts[True]) <= memory // 3


def test_files_of_merged_runs_are_removed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    schema = Schema((Field("n", LONG, id=1),))
    data = [pa.record_batch([pa.array([n], pa.int64())], schema=to_arrow_schema(schema)) for n in range(20, 0, -1)]
    out = sorted_batches(data, schema, ((1,),), 16)
    first = next(out).column(0).to_pylist()
    assert len(list(tmp_path.glob("*/*"))) == 2, "no more runs than are merged now"
    assert [*first, *(n for batch in out for n in batch.column(0).to_pylist())] == list(range(1, 21))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", [(9,), (2,), (6,), (6, 7), ()])
def test_what_cannot_be_ordered_is_named(path: tuple[int, ...]) -> None:
    schema = Schema((*SCHEMA.fields, Field("l", Array(Field("element", LONG, id=7)), id=6)))
    with pytest.raises(InvalidInput, match="BAD_CLUSTERING"):
        ClusteringOrder(schema, (path,))


def test_rows_are_held_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was gathered is let go as soon as it stands in one piece."""
    monkeypatch.setattr(external_sort, "OUT_ROWS", 4)
    schema = Schema((Field("n", LONG, id=1), Field("s", STRING, id=2)))
    size, count = 1 << 17, 24

    def batches() -> Iterator[pa.RecordBatch]:
        for at in range(count):
            yield pa.record_batch(
                [pa.array([at, -at], pa.int64()), pa.array(["x" * size] * 2)], schema=to_arrow_schema(schema)
            )

    before = pa.total_allocated_bytes()
    held = [pa.total_allocated_bytes() - before for _ in sorted_batches(batches(), schema, ((1,),), 1 << 30)]
    assert len(held) == count // 2
    assert max(held) < 1.5 * 2 * size * count
