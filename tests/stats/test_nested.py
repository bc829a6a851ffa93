"""Leaves of structs, lists and maps: NULL is counted where it is read, hidden values never."""

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tamis.core.stats import Collector, TableEvidence
from tamis.core.types import INTEGER, LONG, STRING, VARIANT, Field, Schema, String, Struct
from tamis.core.types.arrow import to_arrow_schema
from tamis.core.types.logical import Array, Map
from tests.values import nested_rows, nested_schema

SCHEMA = nested_schema()


def evidence_of(schema: Schema, rows: list[dict[str, Any]], cut: int = 0) -> TableEvidence:
    collector = Collector(schema)
    for part in (rows[:cut], rows[cut:]):
        collector.update(pa.RecordBatch.from_pylist(part, schema=to_arrow_schema(schema)))
    return TableEvidence(collector.finish().append_column("rows", pa.array([len(rows)])), schema)


def seen(field: Field, values: list[Any], path: tuple[int, ...]) -> list[Any]:
    """What the column ``path`` reads as, row by row (element by element): the oracle, written the slow way."""
    if not path:
        return values
    below: list[Any] = []
    match field.type:
        case Struct(fields):
            child = next(f for f in fields if f.id == path[0])
            below = [None if v is None else v[child.name] for v in values]
        case Array(child):
            below = [e for v in values if v is not None for e in v]
        case Map(key, value):
            child = key if key.id == path[0] else value
            below = [pair[0 if child is key else 1] for v in values if v is not None for pair in v]
    return seen(child, below, path[1:])


@given(st.data())
def test_every_field_at_every_depth(data: st.DataObject) -> None:
    rows = data.draw(nested_rows(SCHEMA))
    evidence = evidence_of(SCHEMA, rows, data.draw(st.integers(0, len(rows))))
    for ids, leaf in SCHEMA.walk():
        top = SCHEMA.by_id[ids[0]]
        read = seen(top, [row[top.name] for row in rows], ids[1:])
        found = evidence.column(ids)
        assert found is not None
        assert (found.count[0].as_py(), found.nulls[0].as_py()) == (len(read), read.count(None)), leaf
        plain = [v for v in read if v is not None and v == v and not isinstance(v, dict | list)]
        if plain and not leaf.type.children:
            assert found.lo[0].as_py() <= min(plain)
            assert found.hi[0].as_py() is None or found.hi[0].as_py() >= max(plain)


def test_values_below_a_null_parent_do_not_count() -> None:
    schema = Schema((Field("s", Struct((Field("a", LONG), Field("l", Array(Field("element", INTEGER)))))),)).assign_ids(
        0
    )
    hidden = pa.StructArray.from_arrays(
        [pa.array([1, 100]), pa.array([[1], [100]], pa.list_(pa.int32()))],
        fields=list(to_arrow_schema(schema)[0].type),
        mask=pa.array([False, True]),
    )
    collector = Collector(schema)
    collector.update(pa.record_batch([hidden], schema=to_arrow_schema(schema)))
    row = collector.finish().to_pylist()[0]
    assert (row["2|long|hi"], row["2|nulls"], row["4|integer|hi"], row["4|count"]) == (1, 1, 1, 1)


def test_sliced_lists_and_maps() -> None:
    schema = Schema(
        (
            Field("m", Map(Field("key", STRING, nullable=False), Field("value", LONG))),
            Field("l", Array(Field("element", LONG))),
        )
    ).assign_ids(0)
    rows = [
        {"m": [("a", 1)], "l": [1]},
        {"m": None, "l": None},
        {"m": [("b", 2), ("c", None)], "l": [2, None]},
        {"m": [("d", 9)], "l": [9]},
    ]
    batch = pa.RecordBatch.from_pylist(rows, schema=to_arrow_schema(schema)).slice(1, 2)
    collector = Collector(schema)
    collector.update(batch)
    row = collector.finish().to_pylist()[0]
    assert (row["2|string|lo"], row["2|string|hi"], row["2|count"]) == ("b", "c", 2)
    assert (row["3|long|hi"], row["3|nulls"], row["5|long|hi"], row["5|count"]) == (2, 1, 2, 2)


def test_entries_below_a_null_map_do_not_count() -> None:
    schema = Schema((Field("m", Map(Field("key", STRING, nullable=False), Field("value", LONG))),)).assign_ids(0)
    shown = pa.array([[("a", 1)], [("z", 100)]], pa.map_(pa.string(), pa.int64()))
    validity = pa.py_buffer(bytes([0b01]))
    hidden = pa.Array.from_buffers(
        shown.type,
        2,
        [validity, shown.buffers()[1]],
        children=[
            pa.StructArray.from_arrays(
                [shown.keys, shown.items],
                fields=[pa.field("key", pa.string(), nullable=False), pa.field("value", pa.int64())],
            )
        ],
    )
    collector = Collector(schema)
    collector.update(pa.RecordBatch.from_arrays([hidden], names=["m"]))
    row = collector.finish().to_pylist()[0]
    assert (row["1|nulls"], row["2|string|hi"], row["3|long|hi"], row["3|count"]) == (1, "a", 1, 1)


def test_collated_and_variant_columns_have_counts_only() -> None:
    schema = Schema((Field("c", String(collation="UTF8_LCASE"), id=1), Field("v", VARIANT, id=2)))
    rows: list[dict[str, Any]] = [
        {"c": "a", "v": {"value": b"\x0c\x01", "metadata": b"\x01\x00\x00"}},
        {"c": None, "v": None},
    ]
    collector = Collector(schema)
    collector.update(pa.RecordBatch.from_pylist(rows, schema=to_arrow_schema(schema)))
    assert collector.finish().to_pylist() == [{"1|nulls": 1, "2|nulls": 1}]
