"""What crosses from a worker to the JVM: batches of a good size, in order, in the types that Spark takes."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tamis.spark.executors import read_task
from tamis.spark.executors.read_task import LARGEST_BATCH, cast_batch, join_batches, spark_schema


def batch(*values: int) -> pa.RecordBatch:
    return pa.record_batch([pa.array(values, pa.int64())], ["x"])


@pytest.mark.parametrize(
    ("sizes", "smallest", "expected"),
    [
        ([], 4, []),
        ([0, 0], 4, []),
        ([1, 1, 1, 1, 1], 4, [4, 1]),
        ([5, 5], 4, [5, 5]),
        ([1, 5, 1], 4, [6, 1]),  # order is kept: the small one goes with the large one that follows
        ([3, 0, 1], 4, [4]),
    ],
)
def test_small_batches_are_joined_in_order(sizes: list[int], smallest: int, expected: list[int]) -> None:
    counter = iter(range(100))
    given = [batch(*(next(counter) for _ in range(n))) for n in sizes]
    out = list(join_batches(given, smallest))
    assert [len(b) for b in out] == expected
    assert [v for b in out for v in b.column(0).to_pylist()] == list(range(sum(sizes)))


def test_wide_rows_are_joined_as_far_as_their_bytes_allow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_task, "JOINED_BYTES", 1_000)
    widths = [400, 500, 300, 2_000, 1, 1, 1, 996, 1]
    given = [pa.record_batch([["x" * width]], ["t"]) for width in widths]
    out = list(join_batches(given, 1_000))
    assert [len(b) for b in out] == [2, 1, 1, 3, 1, 1]
    assert [len(t) for b in out for t in b.column(0).to_pylist()] == widths


def test_large_batches_are_cut() -> None:
    out = list(join_batches([batch(*range(LARGEST_BATCH + 10))], 4))
    assert [len(b) for b in out] == [LARGEST_BATCH, 10]


def test_times_become_nanoseconds_at_any_depth() -> None:
    time = pa.time64("us")
    schema = pa.schema(
        {
            "t": time,
            "s": pa.struct({"t": time, "n": pa.int8()}),
            "l": pa.list_(time),
            "m": pa.map_(pa.string(), time),
            "d": pa.date32(),
        }
    )
    target = spark_schema(schema)
    ns = pa.time64("ns")
    assert target == pa.schema(
        {
            "t": ns,
            "s": pa.struct({"t": ns, "n": pa.int8()}),
            "l": pa.list_(ns),
            "m": pa.map_(pa.string(), ns),
            "d": pa.date32(),
        }
    )
    row = {"t": 1, "s": {"t": 2, "n": 3}, "l": [4], "m": [("k", 5)], "d": 6}
    source = pa.RecordBatch.from_pylist([row, dict.fromkeys(row)], schema=schema)
    out = cast_batch(source, target)
    assert out.schema == target
    assert out.column("l").to_pylist() == source.column("l").to_pylist()


def test_a_batch_in_the_right_types_is_not_copied() -> None:
    given = batch(1, 2)
    assert cast_batch(given, given.schema) is given


def test_rows_without_columns_keep_their_number() -> None:
    assert len(cast_batch(pa.record_batch([pa.array([1, 2, 3])], ["x"]).select([]), pa.schema([]))) == 3
