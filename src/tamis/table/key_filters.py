"""Filters by sets of keys, as Arrow columns: 100,000 keys need no SQL parsing and no loop."""

from __future__ import annotations

import decimal
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.expr import Call, Expr, Literals, column_by_ids, make_call
from tamis.core.types import DataType, Decimal, Field, Schema
from tamis.core.types.arrow import to_arrow_type
from tamis.core.types.char_values import char_length, without_lengths
from tamis.core.types.utf8_texts import padded_texts, spark_lengths
from tamis.engine.part_writer.arrow_casts import fit_array
from tamis.engine.part_writer.plain_arrays import to_plain
from tamis.engine.scan.column_selection import find_fields
from tamis.errors import InvalidInput, TamisError


def parse_keys(keys: Mapping[str, Any] | None, schema: Schema) -> tuple[Expr, ...]:
    """Build one membership conjunct per column from values that Arrow can convert; NULL keys match nothing.

    Raises ``InvalidInput`` (``BAD_KEYS``) if ``keys`` is not a mapping, or a value is not a column or has an
    unsuitable type; ``NotFound`` (``COLUMN_NOT_FOUND``).
    """
    if keys is None:
        return ()
    if not isinstance(keys, Mapping):
        raise _bad("keys", f"keys are {type(keys).__name__}, not values by column")
    return tuple(_key_conjunct(schema, name, given) for name, given in keys.items())


def _key_conjunct(schema: Schema, name: str, given: Any) -> Expr:
    path = find_fields(schema, name)
    column = column_by_ids(schema, tuple(f.id for f in path))
    made = make_call("in", column, Literals(column.type, _values(given, path[-1], name)))
    if not isinstance(made, Call):
        raise _bad(name, f"Column {name!r} is {column.type}, which has no keys")
    return made


def _values(given: Any, field: Field, name: str) -> pa.Array:
    """Return the distinct values in the column's type, without those that the column cannot hold.

    Texts may be longer than the column's length: so may values of other writers.
    """
    array, kind = _array(given, name), without_lengths(field.type)
    try:
        array = to_plain(array).unique().drop_null()
        found = fit_array(_representable_values(array, kind), Field(field.name, kind, id=field.id), name).drop_null()
        length = char_length(field.type)
        return found if length is None else _padded_keys(found, length)
    except (TamisError, pa.ArrowException):
        raise _bad(name, f"Column {name!r} is {field.type}, the keys are {array.type}") from None


def _padded_keys(keys: pa.Array, length: int) -> pa.Array:
    """Return the keys as a CHAR column holds them: trailing blanks do not make another key."""
    trimmed = pc.utf8_rtrim(keys, " ")
    longer = pc.greater(spark_lengths(trimmed), length)
    padded = pc.if_else(longer, keys, padded_texts(trimmed, length))
    return pa.concat_arrays([padded, keys.filter(pc.greater(spark_lengths(keys), length))]).unique()


def _representable_values(array: pa.Array, column: DataType) -> pa.Array:
    """Return the values that ``column`` can hold exactly.

    Returns values of an unrelated kind unchanged; the caller rejects them.
    """
    wanted = to_arrow_type(column)
    if isinstance(column, Decimal):
        return _decimals(array, column)
    if (
        array.type == wanted
        or not any(these(array.type) and those(wanted) for these, those in _ALIKE)
        or _zoned(array.type) != _zoned(wanted)
    ):
        return array
    there = array.cast(wanted, safe=False)
    same = pc.equal(there.cast(array.type, safe=False), array)
    if pa.types.is_unsigned_integer(array.type):  # the cast of a too-large value wraps around and back
        same = pc.and_(same, pc.greater_equal(there, pa.scalar(0, wanted)))
    return there.filter(pc.or_(same, pc.is_nan(array)) if pa.types.is_floating(array.type) else same)


def _decimals(array: pa.Array, column: Decimal) -> pa.Array:
    """Keep the values whose integer and fractional digits fit ``column``."""
    if pa.types.is_integer(array.type):
        array = array.cast(pa.decimal128(20, 0))
    if not pa.types.is_decimal(array.type):
        return array
    wide = array.cast(pa.decimal256(76, max(array.type.scale, column.scale)))
    limit = pa.scalar(decimal.Decimal(10) ** (column.precision - column.scale), wide.type)
    return array.filter(pc.and_(pc.equal(pc.round(wide, column.scale), wide), pc.less(pc.abs(wide), limit)))


def _zoned(kind: pa.DataType) -> bool:
    return pa.types.is_timestamp(kind) and kind.tz is not None


_kinds = pa.types
_ALIKE: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType], bool]], ...] = (
    (_kinds.is_integer, _kinds.is_integer),
    (_kinds.is_integer, _kinds.is_floating),
    (_kinds.is_floating, _kinds.is_floating),
    (_kinds.is_timestamp, _kinds.is_timestamp),
    (_kinds.is_date, _kinds.is_date),
    (_kinds.is_time, _kinds.is_time),
    (_kinds.is_duration, _kinds.is_duration),
)
"""Pairs of kinds (given, column) that can hold identical values in different types."""


def _array(given: Any, name: str) -> pa.Array:
    try:
        if hasattr(given, "__arrow_c_stream__") and not isinstance(given, pa.ChunkedArray):
            given = pa.chunked_array(given)
        if isinstance(given, pa.ChunkedArray):
            return given.combine_chunks()
        return given if isinstance(given, pa.Array) else pa.array(given)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        raise _bad(name, f"{type(given).__name__} is no column of keys") from None


def _bad(name: str, what: str) -> InvalidInput:
    return InvalidInput(
        f"{what}.", code="BAD_KEYS", name=name, remedy='Give an Arrow array by column: keys={"id": pa.array([1, 2])}.'
    )
