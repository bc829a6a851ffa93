"""Shared by the time functions: units, results of kernels, and the range in which days do not wrap."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tamis.core.expr.arrow_values import (
    Datum,
    Evaluated,
    Mask,
    Numbers,
    build_array,
    mask_union,
    mode_outcome,
    null_mask,
    row_count,
    stored_numbers,
)
from tamis.core.expr.registry import Bounds
from tamis.core.expr.tree import Call, Expr, Literal, Mode
from tamis.core.types import DATE, INTEGER, YEAR_MONTH, DataType
from tamis.core.types.arrow import to_arrow_type


def named_unit(arg: Expr, units: dict[str, str]) -> str | None:
    """Return the unit that a constant text names, or None."""
    return units.get(arg.value.lower()) if isinstance(arg, Literal) and isinstance(arg.value, str) else None


def int64_numbers(x: Datum) -> Numbers:
    """Return the stored numbers in 64 bits."""
    return stored_numbers(x).astype(np.int64, copy=False)


def _null(args: list[Datum]) -> Mask | None:
    return mask_union(*(null_mask(a) for a in args))


def build_typed(values: Numbers, args: list[Datum], data_type: DataType) -> Datum:
    """Build an array of ``data_type``, NULL where an argument is."""
    arrow = to_arrow_type(data_type)
    n = row_count(args)
    values = np.broadcast_to(values, (n,))
    narrow = values.astype(np.int32) if data_type in (DATE, INTEGER, YEAR_MONTH) else values
    null = _null(args)
    return build_array(narrow, None if null is None else np.broadcast_to(null, (n,)), arrow)


def build_checked(values: Numbers, bad: Mask, args: list[Datum], data_type: DataType) -> Evaluated:
    """Build a result in which overflow of a date or timestamp fails in every mode."""
    n, null = row_count(args), _null(args)
    bad = np.broadcast_to(bad, (n,))
    bad = bad if null is None else bad & ~null
    return mode_outcome(
        build_typed(values, args, data_type), bad, Mode.ANSI, "[DATETIME_OVERFLOW] Datetime operation overflowed."
    )


def far_from_the_edge(call_: Call, bounds: Bounds) -> Mask:  # noqa: ARG001
    """Return where days cannot overflow 32 bits, which would wrap silently."""
    ok: Mask = np.ones((), bool)
    for lo, hi in bounds:
        for bound in (lo, hi):
            if not pa.types.is_string(bound.type):
                mask = null_mask(bound)
                ok = ok & (np.abs(int64_numbers(bound)) < 2**30) & (True if mask is None else ~mask)
    return ok
