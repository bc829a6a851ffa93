"""Column definitions as Spark SQL writes them (``ts TIMESTAMP NOT NULL, tags ARRAY<STRING>``), as a schema."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import sqlglot
from sqlglot import exp

from tamis.errors import InvalidInput
from tamis.expr.literals import bad_type, type_of
from tamis.types import Array, DataType, DayTimeInterval, Field, Map, Schema, String, Struct, Time
from tamis.types.arrow import to_arrow_schema

_MOST_DIGITS = 6
"""Of the fraction of a second."""
_DAY_TIME = ("day", "hour", "minute", "second")


def columns(text: str) -> pa.Schema:
    """The schema that ``text`` describes. Raises ``InvalidInput`` (``BAD_SCHEMA``, ``BAD_TYPE``) naming what cannot be."""
    try:
        table = sqlglot.parse_one(f"CREATE TABLE t (\n{text}\n)", dialect="databricks")
    except sqlglot.errors.SqlglotError as error:
        raise _bad(text, _where(error, text)) from error
    parts = table.this.expressions if isinstance(table, exp.Create) and isinstance(table.this, exp.Schema) else []
    if not parts or not all(isinstance(part, exp.ColumnDef) and part.args.get("kind") for part in parts):
        raise _bad(text, "It is no list of columns with types")
    return to_arrow_schema(Schema(tuple(_field(part) for part in parts)))


def _where(error: sqlglot.errors.SqlglotError, text: str) -> str:
    """At which word of ``text``, which begins on the second line of what was parsed, it cannot be read any more."""
    if not isinstance(error, sqlglot.errors.ParseError):
        return "A quote or a comment in it does not end"
    word, line, end = (error.errors[0].get(key) for key in ("highlight", "line", "col"))
    if not word or not line or not end or line - 1 > len(text.splitlines()):
        return "It ends too soon"
    at = f"column {end - len(word) + 1}" if line == 2 else f"line {line - 1}, column {end - len(word) + 1}"
    return f"It cannot be read from {word!r} on ({at}): a type is unknown, or a comma is missing"


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
    if isinstance(node.this, exp.Interval):
        return _interval(node)
    found = _sized(name.lower(), node) or type_of(node)
    if found is None:
        raise bad_type(node, "")
    return found


def _sized(name: str, node: Any) -> DataType | None:
    """CHAR(n), VARCHAR(n) and TIME(n), which a column can have and a CAST cannot; None for any other type. Raises ``InvalidInput`` (``BAD_TYPE``) for a size that cannot be."""
    sizes = [part.name for part in node.expressions]
    if name not in {"char", "varchar", "time"} or not sizes:
        return None
    if len(sizes) > 1 or not sizes[0].isdecimal():
        raise bad_type(node, "it takes one whole number")
    size = int(sizes[0])
    if name == "time":
        if size > _MOST_DIGITS:
            raise bad_type(node, f"a time of day has at most {_MOST_DIGITS} digits")
        return Time(size)
    if not size:
        raise bad_type(node, "its length is 1 or more")
    return String(name, size)


def _interval(node: Any) -> DataType:
    unit = node.this.args.get("unit")
    span = isinstance(unit, exp.IntervalSpan)
    first, last = (unit.this.name.lower(), unit.expression.name.lower()) if span else (unit.name.lower(),) * 2
    if {first, last} <= {"year", "month"}:
        raise bad_type(node, "intervals of years and months cannot be stored")
    if not (first in _DAY_TIME and last in _DAY_TIME and _DAY_TIME.index(first) <= _DAY_TIME.index(last)):
        raise bad_type(node, "fields go from DAY by HOUR and MINUTE to SECOND")
    return DayTimeInterval(first, last)


def _bad(name: str, why: str) -> InvalidInput:
    return InvalidInput(
        f"{name!r} is not a schema. {why}.", code="BAD_SCHEMA", name=name, remedy='Write columns as "ts TIMESTAMP, user BIGINT NOT NULL".'
    )
