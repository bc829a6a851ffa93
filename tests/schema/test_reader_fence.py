"""A reader is fenced by the columns whose values it uses: not by what a count leaves out, nor by what is inside a struct that it only tests for NULL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import tamis
from tamis.errors import SchemaFenced
from tamis.world import new_id

STRUCT = pa.struct([("x", pa.int32()), ("y", pa.string())])
VALUES = [{"x": 1, "y": "a"}, None, {"x": None, "y": None}]
TYPES = {
    "struct": (STRUCT, VALUES, "s"),
    "array": (pa.list_(STRUCT), [[VALUES[0]], None, []], "s.element"),
    "map": (pa.map_(pa.string(), STRUCT), [[("k", VALUES[0])], None, []], "s.value"),
    "struct in struct": (pa.struct([("t", STRUCT)]), [{"t": VALUES[0]}, {"t": None}, {"t": VALUES[2]}], "s.t"),
}


def held_table(name: str, kind: str) -> tuple[tamis.Table, tamis.Table, str]:
    """A table, an object that holds its first schema, and the field whose fields may change."""
    arrow, values, inner = TYPES[kind]
    table = tamis.create(f"memory://{name}-{new_id()}", pa.schema([("id", pa.int64()), ("s", arrow)]))
    table.append(pa.table({"id": [0, 1, 2], "s": pa.array(values, arrow)}))
    return table, tamis.open(table.path), inner


def ids(table: tamis.Table, row_filter: str) -> list[int]:
    found = table.scan(row_filter, ["id"]).to_arrow()["id"].to_pylist()
    assert table.scan(row_filter).count() == len(found)
    assert table.scan(row_filter).exists() == bool(found)
    return sorted(found)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("lazy", ["auto", "off"])
def test_what_is_inside_does_not_fence_a_test_for_null(kind: str, lazy: str) -> None:
    """All fields that the reader knows go, new ones come, and parts of both schemas are read, also after compaction."""
    table, held, inner = held_table(f"null-{lazy}", kind)
    table.alter().set_properties({"tamis.read.lazy": lazy}).commit()
    tested = "s.t" if kind == "struct in struct" else "s"
    table.alter().widen(f"{inner}.x", "BIGINT").add_column(f"{inner}.z", "BIGINT").commit()
    table.alter().drop_column(f"{inner}.x").drop_column(f"{inner}.y").commit()
    now = table.schema.field("s").type
    new = {"struct": [{"z": 1}, None], "array": [[{"z": 1}], None], "map": [[("k", {"z": 1})], None]}
    rows = new.get(kind, [{"t": {"z": 1}}, {"t": None}])
    table.append(pa.table({"id": [3, 4], "s": pa.array(rows, now)}))
    for _ in range(2):
        assert ids(held, f"{tested} IS NOT NULL") == [0, 2, 3]
        assert ids(held, f"{tested} IS NULL") == [1, 4]
        assert ids(held, f"NOT ({tested} IS NULL) AND id > 0") == [2, 3]
        assert ids(held, f"{tested} IS NULL OR id = 0") == [0, 1, 4]
        with pytest.raises(SchemaFenced):
            held.scan(f"{tested} IS NOT NULL").to_arrow()
        table.compact()
    assert held.delete(f"{tested} IS NULL").rows_deleted == 2
    assert ids(table, "id >= 0") == [0, 2, 3]


@pytest.mark.parametrize("kind", TYPES)
def test_a_count_is_fenced_by_its_filter_alone(kind: str) -> None:
    table, held, inner = held_table("count", kind)
    table.alter().drop_column(f"{inner}.y").commit()
    every = held.scan()
    assert (every.count(), every.exists(), held.scan("id > 0").count(), held.scan(limit=2).count()) == (3, True, 2, 2)
    assert every.aggregate(["count(*)", "max(id)"]).to_pylist() == [{"count(*)": 3, "max(id)": 2}]
    assert every.aggregate((), ["id"]).num_rows == 3
    for read in (every.to_arrow, every.to_batches, every.plan, every.explain, lambda: every.aggregate("count(s)")):
        with pytest.raises(SchemaFenced) as caught:
            read()
        assert (caught.value.code, caught.value.name) == ("FENCED_READD_DELETED", f"{inner}.y")


@pytest.mark.parametrize(
    "read",
    [
        lambda held: held.scan("s.y = 'a'"),
        lambda held: held.scan("s.y IS NOT NULL"),
        lambda held: held.scan("s IS NOT NULL AND s.y = 'a'").count(),
        lambda held: held.scan("NOT (s IS NULL OR s.y = 'a')").count(),
    ],
    ids=["compared", "a field tested for NULL", "beside a test", "beside a test in one conjunct"],
)
def test_values_that_went_fence_a_filter(read: Callable[[tamis.Table], Any]) -> None:
    table, held, _ = held_table("values", "struct")
    table.alter().drop_column("s.y").commit()
    with pytest.raises(SchemaFenced) as caught:
        read(held)
    assert caught.value.name == "s.y"


def test_a_tested_column_that_went_or_may_be_null_by_now_fences() -> None:
    table = tamis.create("memory://gone", pa.schema([("id", pa.int64()), pa.field("s", STRUCT, nullable=False), ("t", STRUCT)]))  # fmt: skip
    table.append(pa.table({"id": [0], "s": pa.array(VALUES[:1], STRUCT), "t": pa.array([None], STRUCT)}, table.schema))
    held = tamis.open(table.path)
    table.alter().drop_not_null("s").drop_column("t").add_column("t", STRUCT).commit()
    for row_filter, code in {
        "t IS NOT NULL": "FENCED_READD_DELETED",
        "t IS NULL": "FENCED_READD_DELETED",
        "s IS NOT NULL": "FENCED_TIGHTEN",
    }.items():
        with pytest.raises(SchemaFenced) as caught:
            held.scan(row_filter).count()
        assert caught.value.code == code
    assert held.scan().count() == 1
