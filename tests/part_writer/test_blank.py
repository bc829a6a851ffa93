"""Values that nobody sees, of every kind, and required fields below parents that are NULL."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tamis.core.types import INTEGER, STRING, VARIANT, Array, Field, Map, Schema, Struct
from tamis.core.types.blank_values import blank_array
from tamis.engine.part_writer import conform_batches

TYPES = [
    pa.bool_(),
    pa.int8(),
    pa.int64(),
    pa.float64(),
    pa.decimal128(20, 3),
    pa.string(),
    pa.binary(),
    pa.date32(),
    pa.time64("us"),
    pa.timestamp("us", tz="UTC"),
    pa.duration("us"),
    pa.list_(pa.string()),
    pa.map_(pa.string(), pa.int32()),
    pa.struct([("a", pa.int32()), ("b", pa.list_(pa.struct([("c", pa.string())])))]),
    pa.struct([]),
]


@pytest.mark.parametrize("data_type", TYPES, ids=str)
@pytest.mark.parametrize("length", [0, 1, 9])
def test_blanks_are_valid_values(data_type: pa.DataType, length: int) -> None:
    array = blank_array(data_type, length)
    array.validate(full=True)
    assert (len(array), array.null_count, array.type) == (length, 0, data_type)


@pytest.mark.parametrize("rows", [[None], [None, {"a": 1, "s": "x", "l": ["y"], "m": [("k", 1)], "n": {"b": 2}}, None]])
def test_required_fields_below_null_parents_can_be_stored(rows: list[object], tmp_path: Path) -> None:
    inner = (
        Field("a", INTEGER, nullable=False),
        Field("s", STRING, nullable=False),
        Field("l", Array(Field("element", STRING)), nullable=False),
        Field("m", Map(Field("key", STRING, nullable=False), Field("value", INTEGER)), nullable=False),
        Field("n", Struct((Field("b", INTEGER, nullable=False),)), nullable=False),
    )
    schema = Schema((Field("st", Struct(inner)),)).assign_ids(0)
    data = pa.table({"st": pa.array(rows, pa.struct([("a", pa.int32()), ("s", pa.string()), ("l", pa.list_(pa.string())),
                     ("m", pa.map_(pa.string(), pa.int32())), ("n", pa.struct([("b", pa.int32())]))]))})  # fmt: skip
    stored = pa.Table.from_batches(list(conform_batches(data, schema)))
    pq.write_table(stored, tmp_path / "t.parquet")
    assert pq.read_table(tmp_path / "t.parquet")["st"].to_pylist() == rows


def test_a_variant_that_is_null_can_be_stored(tmp_path: Path) -> None:
    schema = Schema((Field("v", VARIANT),)).assign_ids(0)
    rows = [None, {"value": b"\x0c\x01", "metadata": b"\x01\x00\x00"}]
    data = pa.table({"v": pa.array(rows, pa.struct([("value", pa.binary()), ("metadata", pa.binary())]))})
    pq.write_table(pa.Table.from_batches(list(conform_batches(data, schema))), tmp_path / "t.parquet")
    assert pq.read_table(tmp_path / "t.parquet")["v"].to_pylist() == rows
