"""Converts ``Field.initial_default``, the value in parts older than a column, to an Arrow scalar."""

from __future__ import annotations

import base64
import math
from decimal import Decimal as PyDecimal
from typing import Any

import pyarrow as pa

from tamis.core.types.arrow import to_arrow_type
from tamis.core.types.logical import (
    BINARY,
    DOUBLE,
    FLOAT,
    VARIANT,
    Array,
    DataType,
    Decimal,
    Field,
    Map,
    String,
    Struct,
)
from tamis.errors import CorruptData, InvalidInput


def initial_scalar(field: Field) -> pa.Scalar:
    """Return the default of ``field``; a null scalar if it has none.

    The JSON form: numbers, texts and booleans as they are, decimals as text, binaries as base64, dates as
    days and instants, times and intervals as microseconds (or as ISO text), NaN and infinities as text,
    structs as objects (also the two binaries of a VARIANT), maps as lists of pairs. CHAR values are padded here. Raises
    ``CorruptData`` for a value that does not fit the type.
    """
    arrow = to_arrow_type(field.type)
    try:
        value = _plain(field.initial_default, field.type)
        if isinstance(value, str) and not (pa.types.is_string(arrow) or pa.types.is_decimal(arrow)):
            return pa.scalar(value).cast(arrow)
        return pa.scalar(value, arrow)
    except (pa.ArrowException, ValueError, TypeError, ArithmeticError, AttributeError, KeyError) as error:
        raise CorruptData(
            f"Column {field.name!r} has a default that is not a {field.type}: {field.initial_default!r}.",
            name=field.name,
            remedy="Restore the table's log.",
        ) from error


def initial_json(value: pa.Scalar) -> Any:
    """Return the JSON form of ``value`` for ``Field.initial_default``; None for NULL."""
    if not value.is_valid:
        return None
    kind = value.type
    if pa.types.is_struct(kind):
        return {f.name: initial_json(value[f.name]) for f in kind}
    if pa.types.is_map(kind):
        return [[initial_json(entry["key"]), initial_json(entry["value"])] for entry in value.values]
    if pa.types.is_list(kind):
        return [initial_json(item) for item in value.values]
    if pa.types.is_decimal(kind):
        return str(value.as_py())
    if pa.types.is_binary(kind):
        return base64.b64encode(value.as_py()).decode()
    if pa.types.is_floating(kind):
        number = value.as_py()
        return number if math.isfinite(number) else str(number)
    if pa.types.is_date(kind):
        return value.cast(pa.int32()).as_py()
    if pa.types.is_temporal(kind):
        return value.cast(pa.int64()).as_py()
    try:
        return value.as_py()
    except UnicodeDecodeError as error:
        raise InvalidInput(
            "A default is a text that is not UTF-8, which cannot be stored.",
            code="BAD_DEFAULT",
            name=value.as_buffer().to_pybytes().hex(),
            remedy="Make the column BINARY, or leave the default out.",
        ) from error


def _plain(value: Any, data_type: DataType) -> Any:
    """Convert the JSON value to one that ``pa.scalar`` accepts."""
    if value is None:
        return None
    match data_type:
        case Decimal():
            return PyDecimal(str(value))
        case Struct(fields):
            return {f.name: _plain(value.get(f.name), f.type) for f in fields}
        case Array(element):
            return [_plain(v, element.type) for v in value]
        case Map(key, item):
            return [(_plain(k, key.type), _plain(v, item.type)) for k, v in value]
        case String("char", int(length)) if isinstance(value, str):
            return value.ljust(length)
    if data_type == BINARY:
        return base64.b64decode(value)
    if data_type == VARIANT:
        return {name: base64.b64decode(part) for name, part in value.items()}
    if data_type in (FLOAT, DOUBLE):
        return float(value)
    return value
