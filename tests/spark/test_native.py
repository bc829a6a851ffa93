"""Spark's own Parquet reader is used only where it gives the same rows, and each refusal says why."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from tamis.core.expr import conjuncts_of, parse_predicate
from tamis.core.types import (
    DATE,
    INTEGER,
    LONG,
    STRING,
    VARIANT,
    Array,
    DataType,
    Field,
    Map,
    Schema,
    String,
    Struct,
    Time,
)
from tamis.engine.scan import Options
from tamis.spark.scan.native_reader import lazy_reader_saves_little, obstacle, requested_schema


def schema(*types: DataType, **more: Any) -> Schema:
    return Schema(tuple(Field(f"c{i}", kind, **more) for i, kind in enumerate(types))).assign_ids(0)


def plan(
    selected: Schema,
    written: Schema,
    *,
    lazy: str = "auto",
    url: str = "/t",
    formats: tuple[str, ...] = ("parquet",),
    audit: int = 0,
    deleted: int = 0,
) -> Any:
    count = len(formats)
    parts = pa.table(
        {"format": list(formats), "schema_id": [written.schema_id] * count, "deleted": [deleted, *[0] * (count - 1)]}
    )
    return SimpleNamespace(
        options=Options(read_lazy=lazy),
        parts=SimpleNamespace(table=parts),
        audit=[None] * audit,
        shared=(),
        spec=SimpleNamespace(url=url, part_schemas={written.schema_id: written}, schema=selected, positions=False),
    )


INNER = Struct((Field("a", LONG), Field("b", STRING)))


@pytest.mark.parametrize(
    "kind", [LONG, STRING, DATE, INNER, Array(Field("element", INNER)), Map(Field("key", STRING), Field("value", LONG))]
)
def test_a_full_scan_of_plain_columns_is_native(kind: DataType) -> None:
    columns = schema(kind)
    assert obstacle(plan(columns, columns), columns, filtered=False) is None


def test_a_renamed_column_is_native() -> None:
    columns = schema(LONG)
    renamed = replace(columns, fields=(replace(columns.fields[0], name="other"),))
    assert obstacle(plan(renamed, columns), renamed, filtered=False) is None


def test_columns_that_took_the_names_of_others_are_ours() -> None:
    """Spark's reader takes the types to convert columns to by their names."""
    old = schema(INTEGER, DATE)
    swapped = Schema(tuple(replace(f, name=g.name) for f, g in zip(old.fields, reversed(old.fields), strict=True)))
    reason = "another column was called 'c1' in older parts"
    assert obstacle(plan(swapped, old), swapped, filtered=False) == reason
    assert obstacle(plan(swapped, old), Schema(swapped.fields[:1]), filtered=False) is None, "the other is not read"
    alike = schema(INTEGER, INTEGER)
    both = Schema(tuple(replace(f, name=g.name) for f, g in zip(alike.fields, reversed(alike.fields), strict=True)))
    assert obstacle(plan(both, alike), both, filtered=False) is None
    inner, outer = (
        Schema((Field("s", Array(Field("element", Struct(one.fields), id=9)), id=8),)) for one in (old, swapped)
    )
    assert obstacle(plan(outer, inner), outer, filtered=False) == reason


def test_some_fields_of_a_struct_are_native() -> None:
    columns = schema(INNER)
    (top,) = columns.fields
    some = replace(columns, fields=(replace(top, type=Struct(top.type.children[1:])),))
    assert obstacle(plan(some, columns), some, filtered=False) is None


@pytest.mark.parametrize(
    ("changes", "filtered", "reason"),
    [
        ({"lazy": "on"}, False, "tamis.read.lazy is on"),
        ({"lazy": "off"}, False, "tamis.read.lazy is off"),
        ({}, True, "there is a filter"),
        ({"url": "s3://bucket/t"}, False, "not on a local disk"),
        ({"formats": ("parquet", "vortex")}, False, "not all parts are Parquet"),
        ({"deleted": 1}, False, "deleted rows"),
        ({"audit": 1}, False, "audited"),
    ],
)
def test_what_stands_in_the_way_is_said(changes: dict[str, Any], filtered: bool, reason: str) -> None:
    columns = schema(LONG)
    assert reason in (obstacle(plan(columns, columns, **changes), columns, filtered=filtered) or "")


def test_a_filter_is_no_obstacle_where_native_is_asked_for() -> None:
    columns = schema(LONG)
    assert obstacle(plan(columns, columns, lazy="native"), columns, filtered=True) is None


@pytest.mark.parametrize(
    ("size", "columns", "text", "limit", "little"),
    [
        (2**20, 10, "c0 % 2 = 1", "8MB", True),
        (2**20, 10, "c0 = 1", "0", False),
        (2**30, 10, "c0 = 1", "8MB", False),
        (2**30, 2, "c0 = 1", "8MB", True),
        (2**30, 2, "c0 % 2 = 1", "8MB", False),
        (10 * 2**20, 10, "c0 = 1", "8MB", True),
    ],
    ids=["all is little", "never", "much is saved", "less than half is saved", "not told whole", "little is saved"],
)
def test_a_filter_is_sparks_where_laziness_saves_little(
    size: int, columns: int, text: str, limit: str, little: bool
) -> None:
    whole = schema(*[LONG] * 10)
    made = plan(whole, whole)
    made.options, made.proofs, made.parts.bytes = Options.resolve({"tamis.read.native_bytes": limit}), {}, size
    made.spec.conjuncts = conjuncts_of(parse_predicate(text, whole))
    assert lazy_reader_saves_little(made, replace(whole, fields=whole.fields[:columns]), whole) is little


@pytest.mark.parametrize("kind", [VARIANT, Time(6), String(collation="UNICODE"), Array(Field("element", VARIANT))])
def test_types_on_which_readers_may_differ_are_ours(kind: DataType) -> None:
    columns = schema(kind)
    assert "has type" in (obstacle(plan(columns, columns), columns, filtered=False) or "")


def test_a_widened_column_is_ours() -> None:
    old, new = schema(INTEGER), schema(LONG)
    assert "changed its type" in (obstacle(plan(new, old), new, filtered=False) or "")


@pytest.mark.parametrize(("default", "ours"), [(None, False), (7, True)])
def test_a_column_younger_than_a_part(default: int | None, ours: bool) -> None:
    old = schema(LONG)
    new = replace(old, fields=(*old.fields, Field("young", LONG, id=9, initial_default=default)))
    assert (obstacle(plan(new, old), new, filtered=False) is not None) is ours


def test_no_column_needs_no_reader() -> None:
    columns = schema(LONG)
    none = replace(columns, fields=())
    assert "no column" in (obstacle(plan(none, columns), none, filtered=False) or "")


def test_columns_are_asked_for_by_id_and_without_defaults() -> None:
    columns = schema(INNER, String("char", 5), Array(Field("element", INNER)), write_default="NULL")
    asked = json.loads(requested_schema(columns))["fields"]
    assert [f["metadata"] for f in asked] == [{"parquet.field.id": f.id} for f in columns.fields]
    assert [f["type"] for f in asked[1:2]] == ["string"]
    inner = asked[2]["type"]["elementType"]["fields"]
    assert [f["metadata"]["parquet.field.id"] for f in inner] == [
        f.id for f in columns.fields[2].type.children[0].type.children
    ]
