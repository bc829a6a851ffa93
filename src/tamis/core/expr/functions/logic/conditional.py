"""COALESCE, IF, CASE, NULLIF, GREATEST and LEAST.

Only the branch taken counts: failures in others are ignored.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.expr.arrow_values import Datum, Evaluated, any_set, full_length, is_true, none_of, null_mask, row_count
from tamis.core.expr.calls import make_call
from tamis.core.expr.coerce import cast_to_common, has_order, implicit_cast, is_text
from tamis.core.expr.functions.logic.comparisons import compare_values
from tamis.core.expr.registry import Claim, Function, Signature, declare_function, declare_sugar
from tamis.core.expr.tree import Call, Expr, Literal, Mode
from tamis.core.types import BOOLEAN, NULL
from tamis.core.types.arrow import to_arrow_type


def _alike(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Signature | None:
    brought_ = cast_to_common(args, mode, zone) if args else None
    return Signature(*brought_) if brought_ and (has_order(brought_[1]) or brought_[1] == NULL) else None


def _coalesce(call_: Call, args: list[Evaluated]) -> Evaluated:
    n = row_count([a.values for a in args])
    out, failed, error = pa.nulls(n, to_arrow_type(call_.type)), none_of(n), None
    open_ = np.ones(n, bool)
    for arg in args:
        if arg.failed is not None:
            now = open_ & arg.failed
            failed, open_, error = failed | now, open_ & ~now, error or (arg.error if now.any() else None)
        null = null_mask(arg.values)
        takes = open_ if null is None else open_ & ~null
        out = pc.if_else(pa.array(np.broadcast_to(takes, (n,))), arg.values, out)
        open_ = open_ & ~takes
    return Evaluated(out, any_set(failed), error)


declare_function(
    Function(
        "coalesce",
        _alike,
        combine=_coalesce,
        sql=("coalesce", "ifnull", "nvl"),
        catalyst=("Coalesce",),
        rule="coalesce",
    )
)


def _branches(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Signature | None:
    """Resolve ``condition, value, condition, value, …, otherwise``."""
    if len(args) < 3 or len(args) % 2 == 0:
        return None
    conditions = tuple(implicit_cast(a, BOOLEAN, mode, zone) if a.type == NULL else a for a in args[:-1:2])
    values = cast_to_common((*args[1::2], args[-1]), mode, zone)
    if values is None or any(c.type != BOOLEAN for c in conditions) or not (has_order(values[1]) or values[1] == NULL):
        return None
    out: list[Expr] = []
    for condition, value in zip(conditions, values[0], strict=False):
        out += [condition, value]
    return Signature((*out, values[0][-1]), values[1])


def _case(call_: Call, args: list[Evaluated]) -> Evaluated:
    n = row_count([a.values for a in args])
    out, failed, error = pa.nulls(n, to_arrow_type(call_.type)), none_of(n), None
    open_ = np.ones(n, bool)
    for index in range(0, len(args), 2):
        last = index == len(args) - 1
        takes = open_
        if not last:
            condition = args[index]
            if condition.failed is not None:
                now = open_ & condition.failed
                failed, open_, error = failed | now, open_ & ~now, error or (condition.error if now.any() else None)
            takes = open_ & is_true(condition.values)
        value = args[index if last else index + 1]
        if value.failed is not None:
            now = takes & value.failed
            failed, error = failed | now, error or (value.error if now.any() else None)
        out = pc.if_else(pa.array(np.broadcast_to(takes, (n,))), value.values, out)
        open_ = open_ & ~takes
    return Evaluated(pc.if_else(pa.array(failed), pa.scalar(None, out.type), out), any_set(failed), error)


declare_function(
    Function("case", _branches, combine=_case, sql=("case", "if", "iff"), catalyst=("CaseWhen", "If"), rule="case")
)


@declare_sugar("nullif", catalyst=("NullIf",))
def _nullif(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Expr | None:
    if len(args) != 2:
        return None
    return make_call(
        "case",
        make_call("eq", *args, mode=mode, zone=zone, type=BOOLEAN),
        Literal(args[0].type, None),
        args[0],
        mode=mode,
        zone=zone,
    )


@declare_sugar("nvl2", catalyst=("Nvl2",))
def _nvl2(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Expr | None:
    return (
        make_call("case", make_call("is_not_null", args[0]), args[1], args[2], mode=mode, zone=zone)
        if len(args) == 3
        else None
    )


def _extreme(call_: Call, args: list[Datum]) -> Evaluated:
    """Return the greatest or least value that is not NULL; NaN is greater than any number."""
    n = row_count(args)
    out = full_length(args[0], n)
    better = "gt" if call_.function == "greatest" else "lt"
    for arg in args[1:]:
        wins = pc.fill_null(compare_values(better, arg, out), False)
        free = null_mask(out)
        mask = np.asarray(full_length(wins, n).to_numpy(zero_copy_only=False))
        out = pc.if_else(pa.array(mask if free is None else mask | free), arg, out)
    return Evaluated(out)


def _several(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Signature | None:
    """Resolve GREATEST or LEAST, which take no text beside another type, in either mode."""
    if len({is_text(a.type) for a in args if a.type != NULL}) > 1:
        return None
    signature = _alike(args, mode, zone) if len(args) > 1 else None
    return signature if signature and signature.type != NULL else None


for _name, _catalyst in (("greatest", ("Greatest",)), ("least", ("Least",))):
    declare_function(
        Function(
            _name,
            _several,
            _extreme,
            sql=(_name,),
            catalyst=_catalyst,
            claims=lambda c: (Claim.UP,) * len(c.args),
            rule="extreme",
            keeps_nulls=True,
        )
    )
