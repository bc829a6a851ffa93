"""Store assignment: convert an expression to a column's type, or refuse it by name (Spark's ANSI rules)."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from tamis.core.expr import Expr, Literal, Mode, Opaque, check_supported, evaluate, make_call, to_sql
from tamis.core.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGRAL,
    NULL,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    Decimal,
    Field,
    Schema,
    String,
)
from tamis.core.types.char_values import without_lengths
from tamis.core.types.identifiers import split_path
from tamis.engine.part_writer.identity_values import given_number
from tamis.errors import InvalidInput, NotFound, SchemaMismatch

Arrays = Mapping[int, pa.Array]

_TIMES = frozenset({DATE, TIMESTAMP, TIMESTAMP_NTZ})


def assignable_column(schema: Schema, name: str) -> Field:
    """Return the column to assign.

    Raises ``NotFound``, or ``InvalidInput`` (``BAD_VALUES``) for a struct field.
    """
    try:
        return schema.find(name)[-1]
    except NotFound:
        path = split_path(name)
        if len(path) == 1 and path != (name,):
            return schema.find(path)[-1]
        if len(path) == 1 or not _there(schema, path):
            raise
        raise InvalidInput(
            f"{name!r} is a field: values are given to whole columns.",
            code="BAD_VALUES",
            name=name,
            remedy=f"Give the whole of {path[0]!r}: by upsert, or by UPDATE through Spark.",
        ) from None


def check_assigned(column: Field) -> None:
    """Raise ``InvalidInput`` (``IDENTITY_VALUE``) for a column whose numbers no statement gives."""
    if column.identity is not None and column.identity.always:
        raise given_number(column.name, "a value")


def _there(schema: Schema, path: tuple[str, ...]) -> bool:
    try:
        return bool(schema.find(path))
    except NotFound:
        return False


def assigned_value(value: Expr, target: Field, zone: str, text: str | None = None) -> Expr:
    """Convert ``value``, written as ``text``, to the column's type.

    Raises ``SchemaMismatch`` (``UNSAFE_CAST``) if Spark would not store it there.
    """
    if value.type == target.type or (isinstance(value.type, String) and isinstance(target.type, String)):
        return value
    if value.type.children and str(without_lengths(value.type)) == str(without_lengths(target.type)):
        return value  # only column ids differ, and lengths of texts, to which values are fitted when they are written
    if isinstance(value, Literal) and value.value is None:
        return Literal(target.type, None)
    if isinstance(value, Opaque) and value.type == NULL:
        check_supported(value)
    if not _storable(value.type, target.type):
        raise SchemaMismatch(
            f"A {value.type} cannot be stored in column {target.name!r}, which is {target.type}.",
            code="UNSAFE_CAST",
            name=target.name,
            remedy=_cast(text or to_sql(value), make_call("cast", value, zone=zone, type=target.type)),
        )
    return make_call("cast", value, mode=Mode.ANSI, zone=zone, type=target.type)


def _cast(text: str, cast: Expr) -> str:
    if isinstance(cast, Opaque):
        return f"Give a value of type {cast.type}."
    return f"Write CAST({text} AS {cast.type}), or give a value of that type."


def computed_values(value: Expr, arrays: Arrays, length: int, now_micros: int | None, column: str) -> pa.Array:
    """Evaluate ``value`` for some rows. Raises ``InvalidInput`` (``VALUE_FAILED``) naming the column."""
    out = evaluate(value, arrays, length, now_micros=now_micros)
    if out.failed is not None and out.failed.any():
        raise InvalidInput(
            f"The value {to_sql(value)} of {column} fails on a row: {out.error}",
            code="VALUE_FAILED",
            name=column,
            remedy="Use try_cast, try_add or their like for NULL instead, or exclude such rows.",
        )
    values = out.values
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def check_known(value: Expr) -> Expr:
    """Return ``value``; raise ``InvalidInput`` like ``check_supported`` if it cannot be evaluated here."""
    check_supported(value)
    return value


def _storable(source: DataType, target: DataType) -> bool:
    numbers = isinstance(source, Decimal) or source in INTEGRAL or source in {FLOAT, DOUBLE}
    if isinstance(target, Decimal) or target in INTEGRAL or target in {FLOAT, DOUBLE}:
        return numbers
    if isinstance(target, String):
        return not source.children and source != NULL
    return source in _TIMES and target in _TIMES and source != BOOLEAN
