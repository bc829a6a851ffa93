"""A map's key may widen, since keys that differ still do. What would make other keys equal is refused."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import tamis
from tamis.errors import IncompatibleSchema, SchemaFenced
from tamis.storage.files.formats import FORMATS

INT, BIG = pa.int32(), pa.int64()
BEYOND = 2**40


def schema_of(key: pa.DataType) -> pa.Schema:
    return pa.schema([("id", BIG), ("m", pa.map_(key, pa.string()))])


def struct(*fields: tuple[str, pa.DataType]) -> pa.DataType:
    return pa.struct(fields)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (INT, BIG),
        (pa.float32(), pa.float64()),
        (pa.date32(), pa.timestamp("us")),
        (pa.decimal128(5, 2), pa.decimal128(7, 2)),
        (struct(("x", INT), ("y", pa.string())), struct(("x", BIG), ("y", pa.string()))),
    ],
    ids=str,
)
def test_keys_widen_where_widening_is_allowed(old: pa.DataType, new: pa.DataType) -> None:
    tamis.schema.check_migration([schema_of(old)], schema_of(new), widen=True)
    for history, then, widen in ((old, new, False), (new, old, True)):
        with pytest.raises(IncompatibleSchema) as caught:
            tamis.schema.check_migration([schema_of(history)], schema_of(then), widen=widen)
        assert (caught.value.code, caught.value.name) == ("MIGRATION_MAP_KEY", "m.key")


@pytest.mark.parametrize(
    "new",
    [
        struct(("x", INT)),
        struct(("x", INT), ("y", pa.string()), ("z", INT)),
        struct(("y", pa.string()), ("x", INT)),
        struct(("x", INT), ("z", pa.string())),
        pa.struct([pa.field("x", INT, nullable=False), ("y", pa.string())]),
        INT,
    ],
    ids=str,
)
def test_a_key_keeps_its_fields(new: pa.DataType) -> None:
    old = struct(("x", INT), ("y", pa.string()))
    with pytest.raises(IncompatibleSchema, match="would make other keys equal") as caught:
        tamis.schema.check_migration([schema_of(old)], schema_of(new), widen=True)
    assert caught.value.code == "MIGRATION_MAP_KEY"


@pytest.mark.parametrize("change", ["drop", "add"])
def test_a_table_refuses_other_fields_of_a_key(change: str) -> None:
    key = struct(("x", INT), ("y", pa.string()))
    table = tamis.create(f"memory://key-{change}", schema_of(key))
    alter = table.alter()
    with pytest.raises(IncompatibleSchema) as caught:
        (alter.drop_column("m.key.y") if change == "drop" else alter.add_column("m.key.z", "INT")).commit()
    assert caught.value.code == "MIGRATION_MAP_KEY"


def entries(keys: list[Any], kind: pa.DataType) -> pa.Array:
    return pa.array([None if k is None else [(k, f"v{k}"), (7, "seven")] for k in keys], pa.map_(kind, pa.string()))


@pytest.mark.parametrize("data_format", sorted(FORMATS))
def test_parts_from_before_and_after_a_widened_key_are_read_as_one_table(data_format: str) -> None:
    """Look-ups find keys of both, parts without the key are skipped, compaction joins them, and readers of the map alone are fenced."""
    table = tamis.create(f"memory://widened-key-{data_format}", schema_of(INT), format=data_format)
    table.append(pa.table({"id": [0, 1], "m": entries([1, None], INT)}))
    held = tamis.open(table.path)
    table.alter().widen("m.key", "BIGINT").commit()
    table.append(pa.table({"id": [2, 3], "m": entries([BEYOND, 1], BIG)}))
    assert table.schema.field("m").type == pa.map_(BIG, pa.string())
    shown = [[(1, "v1"), (7, "seven")], None, [(BEYOND, f"v{BEYOND}"), (7, "seven")], [(1, "v1"), (7, "seven")]]
    for compacted in (False, True):
        assert table.scan().to_arrow().sort_by("id")["m"].to_pylist() == shown
        for row_filter, ids in {
            "m[1] = 'v1'": [0, 3],
            f"m[{BEYOND}] IS NOT NULL": [2],
            "element_at(m, 7) = 'seven'": [0, 2, 3],
            "m[5] IS NULL": [0, 1, 2, 3],
        }.items():
            assert sorted(table.scan(row_filter, ["id"]).to_arrow()["id"].to_pylist()) == ids, row_filter
        if not compacted:
            assert len(table.scan(f"m[{BEYOND}] = 'v{BEYOND}'").plan().parts) == 1
        with pytest.raises(SchemaFenced) as caught:
            held.scan().to_arrow()
        assert (caught.value.code, caught.value.name) == ("FENCED_MAP_KEY", "m.key")
        assert held.scan("m IS NULL").count() == 1
        table.compact()
    assert table.verify().problems.num_rows == 0


def test_a_field_of_a_struct_that_is_a_key_widens() -> None:
    old, new = struct(("x", INT), ("y", pa.string())), struct(("x", BIG), ("y", pa.string()))
    table = tamis.create("memory://struct-key", schema_of(old))
    table.append(pa.table({"id": [0], "m": pa.array([[({"x": 1, "y": "a"}, "p")]], pa.map_(old, pa.string()))}))
    table.alter().widen("m.key.x", "BIGINT").commit()
    table.append(pa.table({"id": [1], "m": pa.array([[({"x": BEYOND, "y": "a"}, "q")]], pa.map_(new, pa.string()))}))
    shown = [[({"x": 1, "y": "a"}, "p")], [({"x": BEYOND, "y": "a"}, "q")]]
    for _ in range(2):
        assert table.scan().to_arrow().sort_by("id")["m"].to_pylist() == shown
        table.compact()
