"""Bounds of an Iceberg manifest, decoded for all files at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    Decimal,
    String,
    Time,
)
from tamis.core.types.arrow import to_arrow_type

Raw = Sequence[bytes | None]

_WIDTHS: dict[DataType, tuple[tuple[int, str], ...]] = {
    BOOLEAN: ((1, "<i1"),),
    INTEGER: ((4, "<i4"),),
    LONG: ((8, "<i8"), (4, "<i4")),
    FLOAT: ((4, "<f4"),),
    DOUBLE: ((8, "<f8"), (4, "<f4")),
    DATE: ((4, "<i4"),),
    TIMESTAMP: ((8, "<i8"),),
    TIMESTAMP_NTZ: ((8, "<i8"),),
}
"""By type, the numbers in which files may have a bound: the type's own, and those that it was promoted from."""

MICROS_OF_DAY = 86_400_000_000


def decoded_bounds(raw: Raw, data_type: DataType) -> pa.Array | None:
    """Return single-value bounds as an array; NULL where one is absent or is none; None for a type without."""
    arrow = to_arrow_type(data_type)
    if isinstance(data_type, String):
        return pa.array([_text(value) for value in raw], arrow)
    if data_type == BINARY:
        return pa.array(raw, arrow)
    if isinstance(data_type, Decimal):
        return _decimals(raw, data_type)
    if isinstance(data_type, Time):
        return _numbers(raw, ((8, "<i8"),)).cast(arrow)
    widths = _WIDTHS.get(data_type)
    if widths is None:
        return None
    if data_type == TIMESTAMP_NTZ:  # dates of columns that were promoted count days
        days = _numbers(raw, ((4, "<i4"),))
        return pc.coalesce(_numbers(raw, widths), pc.multiply(days.cast(pa.int64()), MICROS_OF_DAY)).cast(arrow)
    found = _numbers(raw, widths)
    if data_type in (FLOAT, DOUBLE):
        return pc.if_else(pc.fill_null(pc.is_nan(found), False), pa.scalar(None, found.type), found).cast(arrow)
    return found.cast(arrow)


def _text(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


def _numbers(raw: Raw, widths: Sequence[tuple[int, str]]) -> pa.Array:
    """Return numbers of the first width; those of others are widened."""
    out: Any = np.zeros(len(raw), widths[0][1])
    known = np.zeros(len(raw), np.bool_)
    for width, kind in widths:
        places = [at for at, value in enumerate(raw) if value is not None and len(value) == width]
        values = np.frombuffer(b"".join(raw[at] or b"" for at in places), kind)
        out[places] = values
        known[places] = True
    return pa.array(out, mask=~known)


def _decimals(raw: Raw, data_type: Decimal) -> pa.Array:
    """Return unscaled big-endian numbers as decimals."""
    limit = 10**data_type.precision
    numbers = [None if not value or len(value) > 16 else int.from_bytes(value, "big", signed=True) for value in raw]
    words = np.zeros((len(raw), 2), "<u8")
    fits = np.array([n is not None and -limit < n < limit for n in numbers], np.bool_)
    for at in np.flatnonzero(fits).tolist():
        whole = (numbers[at] or 0) % 2**128
        words[at] = (whole & (2**64 - 1), whole >> 64)
    data = pa.py_buffer(words.tobytes())
    values = pa.Array.from_buffers(to_arrow_type(data_type), len(raw), [None, data])
    return pc.if_else(pa.array(fits), values, pa.scalar(None, values.type))
