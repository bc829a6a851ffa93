"""What was written is what is read, for every type, nested and awkward."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.files import open_part
from tamis.state.store import open_store
from tamis.types import NULL, STRING, VARIANT, Array, DataType, Field, Map, Schema, String, Struct
from tamis.types.arrow import to_arrow_schema
from tests.files.parts import read_all, write_part
from tests.values import ATOMIC, column, kind_of, nested_rows, nested_schema

STORE = open_store("memory://round-trip")


def same(a: pa.Array, b: pa.Array) -> bool:
    """Equal bit by bit: NaN payloads and zeros' signs as well."""
    if pa.types.is_floating(a.type):
        bits = pa.int32() if a.type.bit_width == 32 else pa.int64()
        a, b = a.view(bits), b.view(bits)
    return bool(a.equals(b))


FORMATS = ["parquet", "vortex", "orc"]


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("data_type", ATOMIC, ids=kind_of)
@given(st.data())
def test_every_type(data_type: DataType, form: str, data: st.DataObject) -> None:
    schema = Schema((Field("a.b c", data_type, id=3), Field("a", Struct((Field("x", data_type, id=5),)), id=4)))
    values = data.draw(column(data_type))
    struct = pa.StructArray.from_arrays([values], fields=list(to_arrow_schema(schema)[1].type))
    ref = write_part(STORE, schema, [pa.record_batch([values, struct], schema=to_arrow_schema(schema))] if len(values) else [], form=form)
    back = read_all(STORE, ref, schema)
    if not len(values):
        assert not len(back)
        return
    assert back.column_names == ["3", "4"]
    assert back.schema.types == to_arrow_schema(schema).types
    assert same(back["3"].combine_chunks(), values)
    assert same(back["4"].combine_chunks().field(0), values)


@pytest.mark.parametrize("form", FORMATS)
@given(st.data())
def test_nested(form: str, data: st.DataObject) -> None:
    schema = nested_schema()
    rows = data.draw(nested_rows(schema))
    batch = pa.RecordBatch.from_pylist(rows, schema=to_arrow_schema(schema))
    ref = write_part(STORE, schema, [batch] if rows else [], form=form)
    back = read_all(STORE, ref, schema)
    if rows:
        assert str(back.rename_columns(schema.names).to_pylist()) == str(batch.to_pylist())
        assert back.schema.field(1).type.equals(to_arrow_schema(schema).field(1).type, check_metadata=True)


@pytest.mark.parametrize("form", FORMATS)
def test_variant_void_char_and_collated(form: str) -> None:
    schema = Schema(
        (
            Field("v", VARIANT, id=1),
            Field("n", NULL, id=2),
            Field("c", String("char", 5), id=3),
            Field("l", String(collation="UTF8_LCASE"), id=4),
            Field("vs", Array(Field("element", VARIANT, id=6)), id=5),
            Field("mv", Map(Field("key", STRING, nullable=False, id=8), Field("value", VARIANT, id=9)), id=7),
        )
    )
    one = {"value": b"\x0c\x01", "metadata": b"\x01\x00\x00"}
    rows = [{"v": one, "n": None, "c": "ab   ", "l": "É", "vs": [one, None], "mv": [("k", one)]}, dict.fromkeys(schema.names)]
    batch = pa.RecordBatch.from_pylist(rows, schema=to_arrow_schema(schema))
    back = read_all(STORE, write_part(STORE, schema, [batch], form=form), schema)
    assert back.column_names == ["1", "3", "4", "5", "7"]
    assert back.to_pylist() == [{str(f.id): row[f.name] for f in schema if f.id != 2} for row in rows]
    assert back.schema.field(0).type.field(1).metadata == {b"variant": b"true"}


def test_footer_says_what_spark_looks_for(tmp_path: Path) -> None:
    schema = Schema((Field("d", ATOMIC[12], id=3),))
    ref = write_part(
        open_store(tmp_path), schema, [pa.record_batch([pa.array([0], pa.int32()).view(pa.date32())], schema=to_arrow_schema(schema))]
    )
    metadata = pq.read_metadata(tmp_path / ref.path)
    assert metadata.metadata[b"org.apache.spark.version"] == b"4.3.0"
    assert metadata.row_group(0).column(0).compression == "ZSTD"
    assert metadata.row_group(0).column(0).has_offset_index


@pytest.mark.parametrize("form", FORMATS)
def test_names_do_not_matter_ids_do(form: str) -> None:
    """``a`` and ``a.b`` are different columns, though pyarrow would take one for a field of the other."""
    schema = Schema((Field("a", ATOMIC[4], id=1), Field("a.b", ATOMIC[4], id=2), Field("A", ATOMIC[4], id=3)))
    ref = write_part(STORE, schema, [pa.record_batch([[1], [2], [3]], schema=to_arrow_schema(schema))], form=form)
    for i in (1, 2, 3):
        assert read_all(STORE, ref, schema, [i]).to_pylist() == [{str(i): i}]


def test_a_struct_field_brings_only_itself() -> None:
    schema = Schema((Field("s", Struct((Field("x", ATOMIC[4], id=2), Field("y", STRING, id=3))), id=1),))
    ref = write_part(STORE, schema, [pa.RecordBatch.from_pylist([{"s": {"x": 1, "y": "z"}}, {"s": None}], schema=to_arrow_schema(schema))])
    assert read_all(STORE, ref, schema, [3]).to_pylist() == [{"1": {"y": "z"}}, {"1": None}]
    part = open_part(STORE, ref, schema)
    assert part.cost([2], [0]) + part.cost([3], [0]) == part.cost([1], [0])
