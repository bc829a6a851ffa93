"""What was written is what is read, for every type, nested and awkward."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.core.types import NULL, STRING, VARIANT, Array, Field, Map, Schema, String, Struct
from tamis.core.types.arrow import to_arrow_schema
from tamis.storage.files import open_part
from tamis.storage.object_store.store import open_store
from tests.files.parts import read_all, write_part
from tests.values import ATOMIC, column, nested_rows, nested_schema

STORE = open_store("memory://round-trip")


def same(a: pa.Array, b: pa.Array) -> bool:
    """Equal bit by bit: NaN payloads and zeros' signs as well."""
    if pa.types.is_floating(a.type):
        bits = pa.int32() if a.type.bit_width == 32 else pa.int64()
        a, b = a.view(bits), b.view(bits)
    return bool(a.equals(b))


FORMATS = ["parquet", "vortex", "orc"]


def cycled(values: pa.Array, length: int) -> pa.Array:
    return values.take(pa.array(np.arange(length) % len(values))) if len(values) else pa.nulls(length, values.type)


@settings(max_examples=settings().max_examples // 3)  # an example has what each type had of its own
@given(st.tuples(*map(column, ATOMIC)))
def test_every_type(drawn: tuple[pa.Array, ...]) -> None:
    """Of every type one column, and one in a struct: together, for a file costs more than its columns."""
    length = max(map(len, drawn))
    fields = [Field(f"a.{n} c", t, id=n) for n, t in enumerate(ATOMIC, 1)]
    below = Struct(tuple(Field(f"x{n}", t, id=100 + n) for n, t in enumerate(ATOMIC, 1)))
    schema = Schema((*fields, Field("a", below, id=99)))
    arrow = to_arrow_schema(schema)
    columns = [cycled(values, length) for values in drawn]
    struct = pa.StructArray.from_arrays(columns, fields=list(arrow.field("a").type))
    for form in FORMATS:
        ref = write_part(
            STORE, schema, [pa.record_batch([*columns, struct], schema=arrow)] if length else [], form=form
        )
        back = read_all(STORE, ref, schema)
        assert len(back) == length
        if not length:
            continue
        assert back.column_names == [str(f.id) for f in schema]
        assert back.schema.types == arrow.types
        found = back["99"].combine_chunks()
        for at, (data_type, values) in enumerate(zip(ATOMIC, columns, strict=True)):
            assert same(back.column(at).combine_chunks(), values), (form, data_type)
            assert same(found.field(at), values), (form, data_type)


@settings(max_examples=settings().max_examples // 2)
@given(nested_rows(nested_schema()))
def test_nested(rows: list[dict[str, Any]]) -> None:
    schema = nested_schema()
    batch = pa.RecordBatch.from_pylist(rows, schema=to_arrow_schema(schema))
    for form in FORMATS:
        back = read_all(STORE, write_part(STORE, schema, [batch] if rows else [], form=form), schema)
        if rows:
            assert str(back.rename_columns(schema.names).to_pylist()) == str(batch.to_pylist()), form
            assert back.schema.field(1).type.equals(to_arrow_schema(schema).field(1).type, check_metadata=True)


@pytest.mark.parametrize("form", FORMATS)
def test_values_under_a_null_struct_are_not_seen(form: str) -> None:
    """Arrow may keep a value where the struct above is NULL; pyarrow's ORC writer, where the outermost struct is never NULL, gives it to the next row."""
    inner = Struct((Field("x", ATOMIC[4], id=3), Field("s", STRING, id=4)))
    schema = Schema(
        (Field("o", Struct((Field("d", inner, id=2),)), id=1), Field("l", Array(Field("element", inner, id=6)), id=5))
    )
    rows = [{"d": {"x": n, "s": f"text {n}"} if n % 3 else None} for n in range(20)]
    batch = pa.RecordBatch.from_pylist(
        [{"o": row, "l": [row["d"], row["d"]]} for row in rows], schema=to_arrow_schema(schema)
    )
    assert batch.column(0).field(0).field(0).null_count == 0  # unseen values are there
    back = read_all(STORE, write_part(STORE, schema, [batch, batch.slice(3, 9)], form=form), schema)
    assert back.rename_columns(["o", "l"]).to_pylist() == [*batch.to_pylist(), *batch.slice(3, 9).to_pylist()]


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
    rows = [
        {"v": one, "n": None, "c": "ab   ", "l": "É", "vs": [one, None], "mv": [("k", one)]},
        dict.fromkeys(schema.names),
    ]
    batch = pa.RecordBatch.from_pylist(rows, schema=to_arrow_schema(schema))
    back = read_all(STORE, write_part(STORE, schema, [batch], form=form), schema)
    assert back.column_names == ["1", "3", "4", "5", "7"]
    assert back.to_pylist() == [{str(f.id): row[f.name] for f in schema if f.id != 2} for row in rows]
    assert back.schema.field(0).type.field(1).metadata == {b"variant": b"true"}


def test_footer_says_what_spark_looks_for(tmp_path: Path) -> None:
    schema = Schema((Field("d", ATOMIC[12], id=3),))
    ref = write_part(
        open_store(tmp_path),
        schema,
        [pa.record_batch([pa.array([0], pa.int32()).view(pa.date32())], schema=to_arrow_schema(schema))],
    )
    metadata = pq.read_metadata(tmp_path / ref.path)
    assert metadata.metadata[b"org.apache.spark.version"] == b"4.3.0"
    assert metadata.row_group(0).column(0).compression == "ZSTD"  # few rows; see test_encoding
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
    ref = write_part(
        STORE,
        schema,
        [pa.RecordBatch.from_pylist([{"s": {"x": 1, "y": "z"}}, {"s": None}], schema=to_arrow_schema(schema))],
    )
    assert read_all(STORE, ref, schema, [3]).to_pylist() == [{"1": {"y": "z"}}, {"1": None}]
    part = open_part(STORE, ref, schema)
    assert part.cost([2], [0]) + part.cost([3], [0]) == part.cost([1], [0])
