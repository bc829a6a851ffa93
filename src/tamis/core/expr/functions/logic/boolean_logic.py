"""Three-valued AND, OR and NOT in Spark's order of evaluation: in AND only false stops, in OR only true."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow.compute as pc

from tamis.core.expr.arrow_values import (
    Datum,
    Evaluated,
    any_set,
    boolean_array,
    full_length,
    is_false,
    is_true,
    row_count,
)
from tamis.core.expr.coerce import implicit_cast
from tamis.core.expr.registry import Function, Signature, declare_function
from tamis.core.expr.tree import Call, Expr, Mode
from tamis.core.types import BOOLEAN, NULL


def _booleans(name: str) -> Callable[[tuple[Expr, ...], Mode, str | None], Signature | None]:
    """Flatten nested calls of one function: the order of evaluation stays, and long chains stay shallow."""

    def resolve(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Signature | None:
        flat = [b for a in args for b in (a.args if isinstance(a, Call) and a.function == name else (a,))]
        typed = tuple(implicit_cast(a, BOOLEAN, mode, zone) if a.type == NULL else a for a in flat)
        return Signature(typed, BOOLEAN) if len(typed) > 1 and all(a.type == BOOLEAN for a in typed) else None

    return resolve


def _fold(call: Call, args: list[Evaluated]) -> Evaluated:
    """Combine left to right; ``settled`` rows (false in AND, true in OR) skip further arguments."""
    conjunction = call.function == "and"
    n = row_count([a.values for a in args])
    settled = np.zeros(n, bool)
    failed = np.zeros(n, bool)
    unsure = np.zeros(n, bool)
    error: str | None = None
    for arg in args:
        live = ~(settled | failed)
        if arg.failed is not None:
            now = live & arg.failed
            if now.any():
                failed, error = failed | now, error or arg.error
                live = live & ~now
        stops = is_false(arg.values) if conjunction else is_true(arg.values)
        goes_on = is_true(arg.values) if conjunction else is_false(arg.values)
        settled |= live & stops
        unsure |= live & ~(stops | goes_on)
    certain = ~(settled | unsure | failed)
    yes, no = (certain, settled) if conjunction else (settled, certain)
    return Evaluated(boolean_array(yes, no, n), any_set(failed), error)


declare_function(Function("and", _booleans("and"), combine=_fold, sql=("and",), catalyst=("And",), rule="and"))
declare_function(Function("or", _booleans("or"), combine=_fold, sql=("or",), catalyst=("Or",), rule="or"))


def _negatable(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Signature | None:
    if len(args) != 1:
        return None
    arg = implicit_cast(args[0], BOOLEAN, mode, zone) if args[0].type == NULL else args[0]
    return Signature((arg,), BOOLEAN) if arg.type == BOOLEAN else None


def _not(call: Call, args: list[Datum]) -> Evaluated:  # noqa: ARG001
    return Evaluated(full_length(pc.invert(args[0]), row_count(args)))


declare_function(Function("not", _negatable, _not, sql=("not", "!"), catalyst=("Not",), rule="not"))
