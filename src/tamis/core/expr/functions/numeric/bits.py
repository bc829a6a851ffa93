"""Bit operations and shifts of integers, in two's complement as Java computes them."""

from __future__ import annotations

import numpy as np

from tamis.core.expr.arrow_values import (
    Datum,
    Evaluated,
    Mask,
    Numbers,
    build_array,
    mask_union,
    null_mask,
    row_count,
    stored_numbers,
)
from tamis.core.expr.coerce import implicit_cast, wider_numeric
from tamis.core.expr.registry import Bounds, Claim, Function, Signature, declare_function
from tamis.core.expr.tree import Call, Expr, Literal, Mode
from tamis.core.types import BYTE, INTEGER, INTEGRAL, LONG, SHORT
from tamis.core.types.arrow import to_arrow_type

WIDTHS = {BYTE: 8, SHORT: 16, INTEGER: 32, LONG: 64}


def _two(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Signature | None:
    if len(args) != 2 or any(a.type not in INTEGRAL for a in args):
        return None
    target = wider_numeric(args[0].type, args[1].type, mode)
    return Signature(tuple(implicit_cast(a, target, mode, zone) for a in args), target) if target is not None else None


def _one(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Signature | None:  # noqa: ARG001
    return Signature(args, args[0].type) if len(args) == 1 and args[0].type in INTEGRAL else None


def _shifted(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Signature | None:
    """Resolve a shift: of INT or BIGINT, by an INT."""
    if len(args) != 2 or any(a.type not in INTEGRAL for a in args):
        return None
    kind = LONG if args[0].type == LONG else INTEGER
    return Signature((implicit_cast(args[0], kind, mode, zone), implicit_cast(args[1], INTEGER, mode, zone)), kind)


def _counted(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Signature | None:
    found = _one(args, mode, zone)
    return found and Signature(found.args, INTEGER)


def _one_bit(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Signature | None:
    """Resolve BIT_GET with a constant position inside the type; others fail in every mode."""
    if len(args) != 2 or args[0].type not in INTEGRAL or args[1].type not in INTEGRAL:
        return None
    at = args[1].value if isinstance(args[1], Literal) else None
    inside = at is not None and 0 <= at < WIDTHS[args[0].type]
    return Signature((args[0], implicit_cast(args[1], INTEGER, mode, zone)), BYTE) if inside else None


def _shift(call: Call, x: Numbers, count: Numbers) -> Numbers:
    """Shift by the count modulo the width, as Java does."""
    count = (count & (63 if call.type == LONG else 31)).astype(x.dtype)
    if call.function == "shift_left":
        return np.asarray(np.left_shift(x, count))
    if call.function == "shift_right":
        return np.asarray(np.right_shift(x, count))
    unsigned = np.uint64 if call.type == LONG else np.uint32
    return np.asarray(np.right_shift(x.astype(unsigned), count.astype(unsigned)).astype(x.dtype))


def _computed(call: Call, args: list[Datum]) -> Evaluated:
    values = [stored_numbers(a) for a in args]
    match call.function:
        case "bits_and":
            out = np.bitwise_and(*values)
        case "bits_or":
            out = np.bitwise_or(*values)
        case "bits_xor":
            out = np.bitwise_xor(*values)
        case "bits_not":
            out = np.invert(values[0])
        case "bit_count":
            out = count_of(values[0].astype(np.int64))
        case "bit_get":
            out = np.right_shift(values[0].astype(np.int64), values[1].astype(np.int64)) & 1
        case _:
            out = _shift(call, *values)
    arrow = to_arrow_type(call.type)
    whole = np.broadcast_to(np.asarray(out).astype(arrow.to_pandas_dtype()), (row_count(args),))
    return Evaluated(build_array(whole, mask_union(*(null_mask(a) for a in args)), arrow))


def count_of(values: Numbers) -> Numbers:
    """Return the number of set bits of 64-bit integers."""
    return np.asarray(np.bitwise_count(values.view(np.uint64) if values.ndim else np.uint64(int(values) % 2**64)))


for _name, _sql, _catalyst in (
    ("bits_and", "&", "BitwiseAnd"),
    ("bits_or", "|", "BitwiseOr"),
    ("bits_xor", "^", "BitwiseXor"),
):
    declare_function(
        Function(
            _name, _two, _computed, sql=(_sql,), catalyst=(_catalyst,), rule="bits", note="by the bits all values share"
        )
    )
declare_function(
    Function("bits_not", _one, _computed, sql=("~",), catalyst=("BitwiseNot",), claims=lambda _: (Claim.DOWN,))
)
declare_function(
    Function(
        "bit_count",
        _counted,
        _computed,
        sql=("bit_count",),
        catalyst=("BitwiseCount",),
        rule="bits",
        note="by the bits all values share",
    )
)
declare_function(
    Function(
        "bit_get",
        _one_bit,
        _computed,
        sql=("bit_get", "getbit"),
        catalyst=("BitwiseGet",),
        rule="bits",
        note="a constant position",
    )
)


def _keeps_all_bits(call: Call, bounds: Bounds) -> Mask:
    """Return where shifting left loses no bit of either bound, nor of what lies between them."""
    count = stored_numbers(bounds[1][0]) & (63 if call.type == LONG else 31)
    ok: Mask = np.ones((), bool)
    for bound in bounds[0]:
        x = stored_numbers(bound)
        moved = np.left_shift(x, count.astype(x.dtype))
        ok = ok & (np.right_shift(moved, count.astype(x.dtype)) == x)
    return np.asarray(ok)


def _bounds_share_sign(call: Call, bounds: Bounds) -> Mask:  # noqa: ARG001
    """Return where both bounds have the same sign, so that their order is that of unsigned numbers."""
    lo, hi = (stored_numbers(b) for b in bounds[0])
    return np.asarray((lo >= 0) | (hi < 0))


for _name, _sqls, _catalyst, _guard, _note in (
    ("shift_left", ("shiftleft", "<<"), "ShiftLeft", _keeps_all_bits, "while no bit is lost"),
    ("shift_right", ("shiftright", ">>"), "ShiftRight", None, ""),
    (
        "shift_right_unsigned",
        ("shiftrightunsigned", ">>>"),
        "ShiftRightUnsigned",
        _bounds_share_sign,
        "while the sign stays",
    ),
):
    declare_function(
        Function(
            _name,
            _shifted,
            _computed,
            sql=_sqls,
            catalyst=(_catalyst,),
            claims=lambda _: (Claim.UP, Claim.FIXED),
            guard=_guard,
            note=_note,
        )
    )
