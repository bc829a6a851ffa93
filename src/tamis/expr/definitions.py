"""Column definitions as Spark SQL writes them (``ts TIMESTAMP NOT NULL, tags ARRAY<STRING>``), as a schema."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import sqlglot
from sqlglot import exp

from tamis.errors import InvalidInput
from tamis.expr.literals import type_of
from tamis.types import Array, DataType, DayTimeInterval, Field, Map, Schema, Struct
from tamis.types.arrow import to_arrow_schema

_DAY_TIME = {"day", "hour", "minute", "second"}


def columns(text: str) -> pa.Schema:
    """The schema that ``text`` describes. Raises ``InvalidInput`` (``BAD_SCHEMA``) naming what cannot be."""
    try:
        table = sqlglot.parse_one(f"CREATE TABLE t ({text})", dialect="databricks")
    except sqlglot.errors.SqlglotError as error:
        raise _bad(text, f"It cannot be read: {str(error).splitlines()[0].rstrip('.')}") from error
    parts = table.this.expressions if isinstance(table, exp.Create) and isinstance(table.this, exp.Schema) else []
    if not parts or not all(isinstance(part, exp.ColumnDef) and part.args.get("kind") for part in parts):
        raise _bad(text, "It is no list of columns with types")
    return to_arrow_schema(Schema(tuple(_field(part) for part in parts)))


def _field(node: Any) -> Field:
    kinds = [c.args["kind"] for c in node.args.get("constraints") or ()]
    if other := next((k for k in kinds if not isinstance(k, exp.NotNullColumnConstraint)), None):
        raise _bad(other.sql("databricks"), "Only NOT NULL can stand beside a type; the rest is for CREATE TABLE in SQL")
    return Field(node.name, _type(node.args["kind"]), nullable=all(k.args.get("allow_null") for k in kinds))


def _type(node: Any) -> DataType:
    name = node.this.name if isinstance(node, exp.DataType) and isinstance(node.this, exp.DataType.Type) else ""
    inner = list(node.expressions)
    if name == "STRUCT":
        return Struct(tuple(_field(part) for part in inner))
    if name in {"ARRAY", "LIST"} and inner:
        return Array(Field("element", _type(inner[0])))
    if name == "MAP" and len(inner) == 2:
        return Map(Field("key", _type(inner[0]), nullable=False), Field("value", _type(inner[1])))
    if isinstance(node.this, exp.Interval) and isinstance(node.this.args.get("unit"), exp.IntervalSpan):
        unit = node.this.args["unit"]
        first, last = unit.this.name.lower(), unit.expression.name.lower()
        if {first, last} <= _DAY_TIME:
            return DayTimeInterval(first, last)
        raise _bad(node.sql("databricks"), "Intervals of years and months cannot be stored")
    found = type_of(node)
    if found is None:
        raise _bad(node.sql("databricks"), "There is no such type")
    return found


def _bad(name: str, why: str) -> InvalidInput:
    return InvalidInput(
        f"{name!r} is not a schema. {why}.", code="BAD_SCHEMA", name=name, remedy='Write columns as "ts TIMESTAMP, user BIGINT NOT NULL".'
    )
