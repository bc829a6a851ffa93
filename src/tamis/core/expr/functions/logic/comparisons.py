"""Comparisons, IN and null tests.

NaN is greater than any number and equal to itself; −0.0 equals 0.0; text compares by bytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.expr.arrow_values import (
    Datum,
    Evaluated,
    Mask,
    any_set,
    boolean_array,
    build_array,
    full_length,
    is_false,
    is_true,
    mask_union,
    none_of,
    null_mask,
    null_where,
    row_count,
    storage_dtype,
    stored_numbers,
)
from tamis.core.expr.calls import make_call
from tamis.core.expr.coerce import cast_to_common, has_order, implicit_cast, is_numeric
from tamis.core.expr.registry import Function, Signature, declare_function, declare_sugar
from tamis.core.expr.tree import FALSE, TRUE, Call, Expr, Literal, Literals, Mode
from tamis.core.types import BOOLEAN, DOUBLE, FLOAT, NULL
from tamis.core.types.float_values import with_one_zero

_ARROW = {
    "eq": pc.equal,
    "ne": pc.not_equal,
    "lt": pc.less,
    "le": pc.less_equal,
    "gt": pc.greater,
    "ge": pc.greater_equal,
}


def compare_values(op: str, a: Datum, b: Datum) -> Datum:
    """Compute ``a op b`` in Spark's order, NULL where either is; ``op`` is a canonical name (``eq``, …)."""
    result = _ARROW[op](a, b)
    if not pa.types.is_floating(a.type):
        return result
    x, y = stored_numbers(a), stored_numbers(b)
    nan_x, nan_y = np.isnan(x), np.isnan(y)
    if not (nan_x.any() or nan_y.any()):
        return result
    less, equal = ~nan_x & nan_y, nan_x & nan_y
    x, y = np.where(nan_x | nan_y, 0, x), np.where(nan_x | nan_y, 0, y)
    plain = ~(nan_x | nan_y)
    lt, eq = less | (plain & (x < y)), equal | (plain & (x == y))
    values = {"eq": eq, "ne": ~eq, "lt": lt, "le": lt | eq, "gt": ~(lt | eq), "ge": ~lt}[op]
    return build_array(np.atleast_1d(values), mask_union(null_mask(a), null_mask(b)), pa.bool_())


def _pair(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Signature | None:
    if len(args) != 2:
        return None
    brought = cast_to_common(args, mode, zone, sides=True)
    if brought is None or not (has_order(brought[1]) or brought[1] == NULL):
        return None
    if all(isinstance(a, Literal) and a.type == NULL for a in args):  # NULL < NULL: Arrow does not order untyped values
        return Signature((Literal(BOOLEAN, None), Literal(BOOLEAN, None)), BOOLEAN)
    return Signature(brought[0], BOOLEAN)


def _kernel(call: Call, args: list[Datum]) -> Evaluated:
    return Evaluated(compare_values(call.function, args[0], args[1]))


for _name, _sql, _catalyst in (
    ("eq", ("=", "=="), ("EqualTo",)),
    ("ne", ("<>", "!="), ()),
    ("lt", ("<",), ("LessThan",)),
    ("le", ("<=",), ("LessThanOrEqual",)),
    ("gt", (">",), ("GreaterThan",)),
    ("ge", (">=",), ("GreaterThanOrEqual",)),
):
    declare_function(
        Function(_name, _pair, _kernel, sql=_sql, catalyst=_catalyst, rule="compare", note="bounds against bounds")
    )


def _null_safe(call: Call, args: list[Datum]) -> Evaluated:  # noqa: ARG001
    n = row_count(args)
    equal = np.asarray(
        full_length(pc.fill_null(compare_values("eq", args[0], args[1]), False), n).to_numpy(zero_copy_only=False)
    )
    null_a, null_b = _where_null(args[0]), _where_null(args[1])
    return Evaluated(build_array(np.broadcast_to(equal | (null_a & null_b), (n,)), None, pa.bool_()))


def _where_null(x: Datum) -> Mask:
    mask = null_mask(x)
    return np.zeros((), bool) if mask is None else mask


declare_function(
    Function(
        "null_safe_eq",
        _pair,
        _null_safe,
        sql=("<=>", "equal_null"),
        catalyst=("EqualNullSafe",),
        rule="null_safe_eq",
        keeps_nulls=True,
    )
)


def _one(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Signature | None:  # noqa: ARG001
    return Signature(args, BOOLEAN) if len(args) == 1 else None


def _is_null(call: Call, args: list[Datum]) -> Evaluated:
    mask = np.broadcast_to(_where_null(args[0]), (row_count(args),))
    return Evaluated(build_array(mask if call.function == "is_null" else ~mask, None, pa.bool_()))


declare_function(
    Function(
        "is_null",
        _one,
        _is_null,
        sql=("isnull",),
        catalyst=("IsNull",),
        rule="is_null",
        keeps_nulls=True,
        collated=True,
    )
)
declare_function(
    Function(
        "is_not_null",
        _one,
        _is_null,
        sql=("isnotnull",),
        catalyst=("IsNotNull",),
        rule="is_not_null",
        keeps_nulls=True,
        collated=True,
    )
)


def _floating(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Signature | None:
    if len(args) != 1:
        return None
    if args[0].type in {FLOAT, DOUBLE}:
        return Signature(args, BOOLEAN)
    return Signature((implicit_cast(args[0], DOUBLE, mode, zone),), BOOLEAN) if is_numeric(args[0].type) else None


def _is_nan(call: Call, args: list[Datum]) -> Evaluated:  # noqa: ARG001
    mask = null_mask(args[0])
    values = np.isnan(stored_numbers(args[0]))
    return Evaluated(build_array(values & ~mask if mask is not None else values, None, pa.bool_()))


declare_function(
    Function("is_nan", _floating, _is_nan, sql=("isnan",), catalyst=("IsNaN",), rule="is_nan", keeps_nulls=True)
)


def _listed(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Signature | None:
    if len(args) < 2:
        return None
    brought = cast_to_common(args, mode, zone)
    if brought is None or not has_order(brought[1]) or any(isinstance(a, Literals) for a in (args[0], *brought[0][2:])):
        return None
    return Signature(brought[0], BOOLEAN)


def _in(call: Call, args: list[Evaluated]) -> Evaluated:
    """Evaluate IN: a NULL value needs no options; otherwise the options in order until one matches."""
    value, n = args[0], row_count([a.values for a in args])
    if isinstance(call.args[1], Literals):
        return Evaluated(
            null_where(_member(full_length(value.values, n), call.args[1].array), value.failed),
            value.failed,
            value.error,
        )
    failed = none_of(n) if value.failed is None else np.array(np.broadcast_to(value.failed, (n,)))
    done = failed | np.broadcast_to(_where_null(value.values), (n,))
    unknown, found, error = done.copy(), none_of(n), value.error
    for option in args[1:]:
        if option.failed is not None:
            now = ~done & option.failed
            failed, done, error = failed | now, done | now, error or option.error
        equal = compare_values("eq", value.values, option.values)
        found |= ~done & is_true(equal)
        unknown |= ~done & ~(is_true(equal) | is_false(equal))
        done |= found
    return Evaluated(boolean_array(found, ~(found | unknown | failed), n), any_set(failed), error)


def _member(values: Datum, listed: Datum) -> Datum:
    """Compute ``values IN listed`` by hashing, in time independent of the list's length.

    NULL where not found and the list, or the value, has a NULL.
    """
    values, known = with_one_zero(values), with_one_zero(listed.drop_null())
    unknown = null_mask(values)
    mask = _found(values, known)
    if listed.null_count:
        unknown = mask_union(unknown, ~mask)
    return build_array(mask, unknown, pa.bool_())


_FEW = 16
_ODD = np.uint64(0x9E3779B97F4A7C15)
_SPARSE = 7
"""Binary logarithm of the table's slots for each listed value; so few rows of other values are looked up in vain."""


def _found(values: Datum, known: Datum) -> Mask:
    """Return where a value is among ``known``.

    For long lists of integers, a small table that fits in the cache first rules out most rows.
    """
    if (
        len(known) <= _FEW
        or len(values) < 4 * len(known)
        or not np.issubdtype(storage_dtype(values.type) or np.float64, np.integer)
    ):
        plain: Mask = pc.is_in(values, value_set=known, skip_nulls=True).to_numpy(zero_copy_only=False)
        return plain
    bits = min(22, max(14, len(known).bit_length() + _SPARSE))
    table: Mask = np.zeros(1 << bits, bool)
    table[_slots(stored_numbers(known), bits)] = True
    out: Mask = table.take(_slots(stored_numbers(values), bits))
    candidates = np.flatnonzero(out)
    hits = pc.is_in(values.take(pa.array(candidates)), value_set=known, skip_nulls=True)
    out[candidates] = np.asarray(hits.to_numpy(zero_copy_only=False))
    return out


def _slots(stored: np.ndarray[Any, np.dtype[Any]], bits: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Hash numbers to ``bits`` bits; as signed numbers, since others are converted before they are used as indexes."""
    keys = stored.view(np.uint64) if stored.dtype == np.int64 else stored.astype(np.int64).view(np.uint64)
    slots = keys * _ODD
    slots >>= np.uint64(64 - bits)
    return slots.view(np.int64)


declare_function(
    Function(
        "in",
        _listed,
        combine=_in,
        sql=("in",),
        catalyst=("In", "InSet"),
        rule="in",
        note="every listed value against the bounds",
    )
)


@declare_sugar("between")
def _between(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Expr | None:
    if len(args) != 3:
        return None
    low = make_call("ge", args[0], args[1], mode=mode, zone=zone, type=BOOLEAN)
    return make_call("and", low, make_call("le", args[0], args[2], mode=mode, zone=zone, type=BOOLEAN))


def _truth_test(args: tuple[Expr, ...], value: Literal, mode: Mode, zone: str | None) -> Expr | None:
    """Return ``x IS TRUE`` or ``x IS FALSE``, which is never NULL; None for other than one argument."""
    return make_call("null_safe_eq", args[0], value, mode=mode, zone=zone, type=BOOLEAN) if len(args) == 1 else None


declare_sugar("is_true")(lambda args, mode, zone: _truth_test(args, TRUE, mode, zone))
declare_sugar("is_false")(lambda args, mode, zone: _truth_test(args, FALSE, mode, zone))
