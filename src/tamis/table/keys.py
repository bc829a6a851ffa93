"""Rows by a set of keys: whole Arrow columns as conjuncts, so that a hundred thousand keys cost no text and no loop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tamis.errors import InvalidInput, TamisError
from tamis.exec.cast import fit
from tamis.expr import Call, Expr, Literals, bound, call
from tamis.scan.selection import find
from tamis.types import Field, Schema
from tamis.types.arrow import to_arrow_type


def parse_keys(keys: Mapping[str, Any] | None, schema: Schema) -> tuple[Expr, ...]:
    """For each column a conjunct: that it is one of the values given (anything that Arrow makes a column of). NULL is no value, and equals none.

    Raises ``InvalidInput`` (``BAD_KEYS``) for what is no mapping, no column of values, or of a type that the column's values do not have; ``NotFound`` (``COLUMN_NOT_FOUND``).
    """
    if keys is None:
        return ()
    if not isinstance(keys, Mapping):
        raise _bad("keys", f"keys are {type(keys).__name__}, not values by column")
    return tuple(_among(schema, name, given) for name, given in keys.items())


def _among(schema: Schema, name: str, given: Any) -> Expr:
    path = find(schema, name)
    column = bound(schema, tuple(f.id for f in path))
    made = call("in", column, Literals(column.type, _values(given, path[-1], name)))
    if not isinstance(made, Call):
        raise _bad(name, f"Column {name!r} is {column.type}, which has no keys")
    return made


def _values(given: Any, field: Field, name: str) -> pa.Array:
    """The values as an array of the column's type, each once; those that the column cannot hold are left out."""
    array = _array(given, name).unique().drop_null()
    wanted = to_arrow_type(field.type)
    if pa.types.is_integer(array.type) and pa.types.is_integer(wanted) and array.type != wanted:
        least, most = (pa.scalar(limit, pa.int64()) for limit in _range(wanted))
        if array.type == pa.uint64():
            array = array.filter(pc.less_equal(array, pa.scalar(2**63 - 1, pa.uint64())))
        array = array.cast(pa.int64())
        array = array.filter(pc.and_(pc.greater_equal(array, least), pc.less_equal(array, most))).cast(wanted)
    try:
        return fit(array, Field(field.name, field.type, id=field.id), name).drop_null()
    except (TamisError, pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise _bad(name, f"Column {name!r} is {field.type}, the keys are {array.type}") from None


def _range(kind: pa.DataType) -> tuple[int, int]:
    half = 1 << (kind.bit_width - 1)
    return -half, half - 1


def _array(given: Any, name: str) -> pa.Array:
    try:
        if hasattr(given, "__arrow_c_stream__") and not isinstance(given, pa.ChunkedArray):
            given = pa.chunked_array(given)
        if isinstance(given, pa.ChunkedArray):
            return given.combine_chunks()
        return given if isinstance(given, pa.Array) else pa.array(given)
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, ValueError):
        raise _bad(name, f"{type(given).__name__} is no column of keys") from None


def _bad(name: str, what: str) -> InvalidInput:
    return InvalidInput(f"{what}.", code="BAD_KEYS", name=name, remedy='Give an Arrow array by column: keys={"id": pa.array([1, 2])}.')
