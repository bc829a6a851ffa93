"""Extremes that the file's writer found are those that the collector would have found, or unknown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.core.stats import Collector
from tamis.core.stats.columns.bounds import LIMIT
from tamis.core.types import BINARY, DOUBLE, INTEGER, LONG, STRING, DataType, Field, Schema, Struct
from tamis.core.types.arrow import to_arrow_schema
from tamis.core.types.logical import Array
from tamis.engine.part_writer import WriteSpec, write_parts
from tamis.storage.files import create_part
from tamis.storage.object_store import open_store
from tests.values import ATOMIC, column, kind_of, nested_rows, nested_schema

STORE = open_store("memory://extremes")
NESTED = nested_schema()


def schema_of(data_type: DataType) -> Schema:
    return Schema((Field("c", data_type, id=7),))


def by_file(schema: Schema, blocks: Sequence[pa.RecordBatch], form: str = "parquet") -> pa.Table:
    """The statistics of blocks whose extremes come from the file that holds them."""
    writer = create_part(STORE, f"data/p.{form}", form, to_arrow_schema(schema))
    collector = Collector(schema, measured=writer.measured)
    for block in blocks:
        writer.write(block)
        collector.update(block)
    writer.close({})
    collector.resolve(writer.extremes())
    return collector.finish()


def by_collector(schema: Schema, blocks: Sequence[pa.RecordBatch]) -> pa.Table:
    """The oracle: the extremes of each block by Arrow's kernels."""
    collector = Collector(schema)
    for block in blocks:
        collector.update(block)
    return collector.finish()


def check(schema: Schema, blocks: Sequence[pa.RecordBatch]) -> None:
    assert by_file(schema, blocks).equals(by_collector(schema, blocks))


@pytest.mark.parametrize("data_type", ATOMIC, ids=kind_of)
@given(st.data())
def test_of_every_type(data_type: DataType, data: st.DataObject) -> None:
    schema = schema_of(data_type)
    arrays = data.draw(st.lists(column(data_type), max_size=4))
    check(schema, [pa.RecordBatch.from_arrays([a], schema=to_arrow_schema(schema)) for a in arrays])


@given(st.data())
def test_of_nested_columns(data: st.DataObject) -> None:
    blocks = data.draw(st.lists(nested_rows(NESTED), max_size=3))
    check(NESTED, [pa.RecordBatch.from_pylist(rows, schema=to_arrow_schema(NESTED)) for rows in blocks])


def test_values_below_a_null_parent_do_not_count() -> None:
    schema = Schema((Field("s", Struct((Field("a", LONG), Field("t", STRING)))),)).assign_ids(0)
    hidden = pa.StructArray.from_arrays(
        [pa.array([5, 1, 100, 7]), pa.array(["m", "a", "z", "n"])],
        fields=list(to_arrow_schema(schema)[0].type),
        mask=pa.array([False, True, True, False]),
    )
    blocks = [pa.record_batch([hidden], schema=to_arrow_schema(schema))]
    check(schema, blocks)
    row = by_file(schema, blocks).to_pylist()[0]
    assert (row["2|long|lo"], row["2|long|hi"], row["3|string|lo"], row["3|string|hi"]) == (5, 7, "m", "n")


@pytest.mark.parametrize("longest", [LIMIT, LIMIT + 1, 5_000])
@pytest.mark.parametrize("data_type", [STRING, BINARY], ids=kind_of)
def test_texts_of_any_length(data_type: DataType, longest: int) -> None:
    """Parquet leaves out long extremes, and a writer may cut them as it likes."""
    schema, arrow = schema_of(data_type), to_arrow_schema(schema_of(data_type))
    texts = [["b", "c" * longest], ["a" * longest, "b"], ["b"], [None], ["a" * longest]]
    check(schema, [pa.record_batch([pa.array(t).cast(arrow[0].type)], schema=arrow) for t in texts])


def test_texts_that_are_no_utf8() -> None:
    schema = schema_of(STRING)
    blocks = [
        pa.record_batch([pa.array(values).view(pa.string())], schema=to_arrow_schema(schema))
        for values in ([b"ab\xff", b"ab\xfe\x01"], [b"\xff"], [b"ac", None])
    ]
    check(schema, blocks)
    assert by_file(schema, blocks[:1])["7|string|lo"].to_pylist() == ["ab"]


def test_both_zeros() -> None:
    schema = schema_of(DOUBLE)
    for values in ([0.0], [-0.0], [0.0, -0.0], [float("nan"), 0.0]):
        table = by_file(schema, [pa.record_batch([pa.array(values)], schema=to_arrow_schema(schema))])
        assert [str(table[name][0]) for name in ("7|double|lo", "7|double|hi")] == ["-0.0", "0.0"]
        assert table["7|exact"].to_pylist() == [0]


def test_blocks_of_nulls_and_nans_have_no_extremes_and_need_none() -> None:
    schema = schema_of(DOUBLE)
    lists = [[None, None], [float("nan")], [2.0, 1.0], [float("nan"), None]]
    blocks = [pa.record_batch([pa.array(v, pa.float64())], schema=to_arrow_schema(schema)) for v in lists]
    check(schema, blocks)
    row = by_file(schema, blocks).to_pylist()[0]
    assert (row["7|double|lo"], row["7|double|hi"], row["7|nulls"], row["7|nans"]) == (1.0, 2.0, 3, 2)


def collected(*blocks: Sequence[int | None]) -> Collector:
    collector = Collector(schema_of(LONG), measured=[7])
    for values in blocks:
        collector.update(pa.record_batch([pa.array(values, pa.int64())], names=["c"]))
    return collector


def bounds_of(collector: Collector) -> list[Any]:
    row = collector.finish().to_pylist()[0]
    return [row["7|long|lo"], row["7|long|hi"], row["7|exact"]]


@pytest.mark.parametrize(
    "extremes",
    [
        None,
        {},
        {8: (pa.array([1, 3]), pa.array([2, 4]))},
        {7: (pa.array([1, None]), pa.array([2, 4]))},
        {7: (pa.array([1, 3]), pa.array([2, None]))},
        {7: (pa.array([1]), pa.array([2]))},
        {7: (pa.array([1, 3]), pa.array([2]))},
    ],
    ids=[
        "not asked",
        "no column",
        "another column",
        "no least",
        "no greatest",
        "a block too few",
        "a greatest too few",
    ],
)
def test_what_the_file_does_not_say_is_unknown(extremes: dict[int, tuple[pa.Array, pa.Array]] | None) -> None:
    """Extremes of some blocks must not be taken for those of the part."""
    collector = collected([1, 2], [3, 4])
    if extremes is not None:
        collector.resolve(extremes)
    assert bounds_of(collector) == [None, None, 0]
    assert collector.finish()["7|nulls"].to_pylist() == [0]


def test_extremes_of_some_blocks_are_no_bounds() -> None:
    """Long texts are measured at once, others wait for the file."""
    for texts in ([["b" * (LIMIT + 1)], ["a", "c"]], [["a", "c"], ["b" * (LIMIT + 1)]]):
        collector = Collector(schema_of(STRING), measured=[7])
        for values in texts:
            collector.update(pa.record_batch([pa.array(values)], names=["c"]))
        row = collector.finish().to_pylist()[0]
        assert (row["7|string|lo"], row["7|string|hi"], row["7|exact"]) == (None, None, 0)


def test_batches_without_rows_are_no_blocks() -> None:
    collector = collected([], [1, 2], [], [3, 4])
    collector.resolve({7: (pa.array([1, 3]), pa.array([2, 4]))})
    assert bounds_of(collector) == [1, 4, 3]


def test_of_formats_without_extremes() -> None:
    schema = schema_of(LONG)
    blocks = [pa.record_batch([pa.array([3, 1])], schema=to_arrow_schema(schema))]
    assert by_file(schema, blocks, "orc").equals(by_collector(schema, blocks))


@given(st.data())
def test_parts_of_full_blocks(data: st.DataObject) -> None:
    """``write_parts`` takes full blocks' extremes from the file, also where parts have several blocks or a short one."""
    schema = Schema(
        (
            Field("n", INTEGER, id=1),
            Field("t", STRING, id=2),
            Field("s", Struct((Field("x", DOUBLE, id=4),)), id=3),
            Field("l", Array(Field("element", LONG, id=6)), id=5),
        )
    )
    batch = pa.RecordBatch.from_pylist(data.draw(nested_rows(schema, 20)), schema=to_arrow_schema(schema))
    spec = WriteSpec("memory://extremes", schema, block_rows=data.draw(st.integers(1, 8)), part_bytes=4_000)
    start = 0
    for part in write_parts([batch], spec):
        rows = batch.slice(start, part["rows"][0].as_py())
        plain = by_collector(schema, [rows])
        names = [name for name in plain.column_names if not name.endswith("|set")]
        assert part.select(names).equals(plain.select(names))
        start += len(rows)
    assert start == len(batch)
