"""Converts between Arrow columns and NumPy storage; shared by all kernels.

A *datum* is an Arrow array of the batch's length, or a scalar that stands for a constant column. NULL is
Arrow's; failure is a separate mask, because one bad row must not stop the others.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.expr.tree import Mode
from tamis.core.types import DataType, Decimal
from tamis.core.types.arrow import to_arrow_type

Datum = Any
"""``pa.Array | pa.Scalar`` (pyarrow ships no usable types)."""
Mask = np.ndarray[Any, np.dtype[np.bool_]]
Numbers = np.ndarray[Any, np.dtype[Any]]


@dataclass(slots=True)
class Evaluated:
    """The values of an expression, one per row.

    Rows marked in ``failed`` have no value (NULL); ``error`` is the message of the first of them.
    """

    values: Datum
    failed: Mask | None = None
    error: str | None = None


_STORAGE: list[tuple[Callable[[Any], bool], Any]] = [
    (pa.types.is_int8, np.int8),
    (pa.types.is_int16, np.int16),
    (pa.types.is_int32, np.int32),
    (pa.types.is_int64, np.int64),
    (pa.types.is_float32, np.float32),
    (pa.types.is_float64, np.float64),
    (pa.types.is_date32, np.int32),
    (pa.types.is_timestamp, np.int64),
    (pa.types.is_duration, np.int64),
    (pa.types.is_time64, np.int64),
]


def storage_dtype(arrow_type: Any) -> Any:
    """Return the NumPy type in which values of ``arrow_type`` are stored; None if it has no fixed width."""
    return next((dtype for matches, dtype in _STORAGE if matches(arrow_type)), None)


def stored_numbers(x: Datum) -> Numbers:
    """Return the stored numbers (0-dimensional for a scalar); they are meaningless where NULL."""
    if isinstance(x, pa.Scalar):
        return stored_numbers(pa.repeat(x, 1)).reshape(())
    if pa.types.is_boolean(x.type):
        return is_true(x)
    data = x.buffers()[1]
    dtype = storage_dtype(x.type)
    if data is None:
        return np.zeros(len(x), dtype)
    return np.frombuffer(data, dtype)[x.offset : x.offset + len(x)]


def null_mask(x: Datum) -> Mask | None:
    """Return where ``x`` is NULL; None if nowhere."""
    if isinstance(x, pa.Scalar):
        return None if x.is_valid else np.ones((), bool)
    if x.null_count == 0:
        return None
    return boolean_flags(x.is_null())


def has_value(x: Datum) -> Mask:
    """Return where ``x`` is not NULL."""
    if isinstance(x, pa.Scalar):
        return np.asarray(x.is_valid)
    return boolean_flags(x.is_valid()) if x.null_count else np.ones(len(x), bool)


def mask_union(*masks: Mask | None) -> Mask | None:
    """Return the union of masks, where None is an empty one."""
    out: Mask | None = None
    for mask in masks:
        if mask is not None:
            out = mask if out is None else out | mask
    return out


def any_set(mask: Mask | None) -> Mask | None:
    """Return ``mask``, or None if it marks nothing."""
    return mask if mask is not None and bool(mask.any()) else None


def build_array(values: Numbers, null: Mask | None, arrow_type: Any) -> Datum:
    """Build an Arrow array of ``arrow_type`` over stored numbers, NULL where ``null`` is set."""
    if null is not None and null.shape != values.shape:
        null = np.broadcast_to(null, values.shape)
    array = pa.array(np.ascontiguousarray(values), mask=null)
    return array if array.type == arrow_type else array.view(arrow_type)


def is_true(x: Datum) -> Mask:
    """Return where a boolean datum is true (not where NULL)."""
    if isinstance(x, pa.Scalar):
        return np.asarray(x.is_valid and x.as_py() is True)
    return boolean_flags(x.fill_null(False) if x.null_count else x)


def is_false(x: Datum) -> Mask:
    """Return where a boolean datum is false (not where NULL)."""
    if isinstance(x, pa.Scalar):
        return np.asarray(x.is_valid and x.as_py() is False)
    return ~boolean_flags(x.fill_null(True) if x.null_count else x)


def boolean_flags(x: Datum) -> Mask:
    """Convert booleans without NULLs by their bits, fifteen times as fast as Arrow does."""
    bits = x.buffers()[1] if isinstance(x, pa.BooleanArray) and len(x) else None
    if bits is None:
        return np.asarray(x.to_numpy(zero_copy_only=False))
    first, end = x.offset % 8, x.offset + len(x)
    held = np.frombuffer(bits, np.uint8)[x.offset // 8 : (end + 7) // 8]
    return np.unpackbits(held, count=first + len(x), bitorder="little")[first:].view(np.bool_)


def boolean_array(true: Mask, false: Mask, length: int) -> Datum:
    """Build a boolean array that is NULL where neither mask is set."""
    true, false = np.broadcast_to(true, (length,)), np.broadcast_to(false, (length,))
    return pa.array(true, mask=~(true | false))


def full_length(x: Datum, length: int) -> Any:
    """Return ``x`` as an array of ``length`` rows."""
    return pa.repeat(x, length) if isinstance(x, pa.Scalar) else x


def row_count(values: list[Datum]) -> int:
    """Return the number of rows of the arrays among ``values``; 1 if all are constants."""
    return next((len(v) for v in values if not isinstance(v, pa.Scalar)), 1)


def null_where(x: Datum, where: Mask | None) -> Datum:
    """Return ``x`` with NULL where the mask is set."""
    if where is None or not where.any():
        return x
    if isinstance(x, pa.Scalar):
        if where.ndim == 0:
            return pa.scalar(None, x.type)
        x = pa.repeat(x, len(where))
    return pc.if_else(pa.array(np.broadcast_to(where, (len(x),))), pa.scalar(None, x.type), x)


def mode_outcome(values: Datum, bad: Mask | None, mode: Mode, message: str) -> Evaluated:
    """Return ``values`` with the rows of ``bad`` failing (ANSI) or NULL (TRY, LEGACY)."""
    bad = any_set(bad)
    if bad is None:
        return Evaluated(values)
    values = null_where(values, bad)
    return Evaluated(values, bad, message) if mode is Mode.ANSI else Evaluated(values)


def wide_decimal(x: Datum) -> Datum:
    """Cast integers or decimals to 76 digits at their own scale."""
    return x.cast(pa.decimal256(76, x.type.scale if pa.types.is_decimal(x.type) else 0))


def fit_decimal(x: Datum, target: Decimal, mode: Mode, message: str) -> Evaluated:
    """Round a wide decimal half up to the target's scale; one with too many digits fails or is NULL."""
    if x.type.scale > target.scale:
        x = pc.round(x, ndigits=target.scale, round_mode="half_towards_infinity")
    whole = target.precision - target.scale
    if whole + x.type.scale >= 76:  # the limit is beyond all wide decimals of this scale
        return Evaluated(x.cast(to_arrow_type(target)))
    limit = pa.scalar(decimal.Decimal(10**whole), pa.decimal256(76, x.type.scale))
    bad = np.asarray(pc.greater_equal(pc.abs(x), limit).fill_null(False).to_numpy(zero_copy_only=False))
    return mode_outcome(null_where(x, bad).cast(to_arrow_type(target)), bad, mode, message)


def none_of(length: int) -> Mask:
    """Return a mask that marks no row."""
    return np.zeros(length, bool)


def literal_scalar(value: Any, data_type: DataType) -> Any:
    """A literal's value as an Arrow scalar."""
    return pa.scalar(value, to_arrow_type(data_type))


def plain_value(value: Any) -> Any:
    """An Arrow scalar as a literal's value: instants, dates, times and intervals as integers."""
    if not value.is_valid:
        return None
    arrow_type = value.type
    if any(
        check(arrow_type)
        for check in (pa.types.is_timestamp, pa.types.is_duration, pa.types.is_date32, pa.types.is_time64)
    ):
        return value.value
    return value.as_py()
