"""Narrows columns by the conjuncts that are already true: ``x > 5`` leaves ``x`` in (5, ∞) and not NULL.

Only rows for which every earlier conjunct is true reach a later one, so its specs may be narrowed. Bounds are
inclusive, so ``>`` narrows like ``>=``, except for types whose next value is known.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.expr.arrow_values import Datum
from tamis.core.expr.tree import Call, Column, Expr, Literals
from tamis.core.pruning.bound_comparison import ordered_values
from tamis.core.pruning.interpreter import Interpreter
from tamis.core.pruning.value_spec import NO, Spec, meet_specs, no_bound, spec_of
from tamis.core.types import BOOLEAN, DATE, DOUBLE, FLOAT, INTEGRAL, TIMESTAMP, TIMESTAMP_NTZ

_WHOLE = frozenset({*INTEGRAL, DATE, TIMESTAMP, TIMESTAMP_NTZ})
"""Types without a value between two neighbours, where ``<`` excludes the bound."""
_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq"}


def narrow_specs(run: Interpreter, conjunct: Expr) -> None:
    """Record the narrower specs that follow from ``conjunct`` being true."""
    if not isinstance(conjunct, Call):
        return
    name, args = conjunct.function, conjunct.args
    if name in _MIRRORED:
        for column, other, op in ((args[0], args[1], name), (args[1], args[0], _MIRRORED[name])):
            if isinstance(column, Column) and column.type != BOOLEAN:
                _compared(run, column, op, spec_of(run(other)))
    elif name == "in" and isinstance(args[0], Column) and isinstance(args[1], Literals):
        _listed(run, args[0], args[1].array)
    elif name == "is_not_null" and isinstance(args[0], Column) and args[0].type != BOOLEAN:
        _keep(run, args[0], replace(run.column(args[0]), null=NO))


def _compared(run: Interpreter, column: Column, op: str, other: Spec) -> None:
    """Narrow ``column``, given that ``column op other`` is true.

    Neither side is NULL. NaN is greater than all numbers, so only an upper bound excludes it.
    """
    nothing = no_bound(column.type)
    lo = other.lo if op in {"gt", "ge", "eq"} else nothing
    hi = other.hi if op in {"lt", "le", "eq"} else nothing
    if column.type in _WHOLE and op in {"lt", "gt"}:
        lo, hi = _beside(lo, 1), _beside(hi, -1)
    if column.type in (FLOAT, DOUBLE):
        if other.nan.any():
            return
        nan = NO if op in {"lt", "le", "eq"} else run.column(column).nan
    else:
        nan = NO
    _keep(run, column, replace(run.column(column), lo=lo, hi=hi, null=NO, nan=nan))


def _beside(bound: Datum, step: int) -> Datum:
    """Return the next (or previous) whole number, day or microsecond; the bound itself at the end of its type."""
    kind = bound.type
    plain = pa.int32() if pa.types.is_date32(kind) else kind if pa.types.is_integer(kind) else pa.int64()
    try:
        return pc.add_checked(bound.cast(plain), pa.scalar(step, plain)).cast(kind)
    except pa.ArrowInvalid:
        return bound


def _listed(run: Interpreter, column: Column, array: Datum) -> None:
    values = array.drop_null()
    if len(values) == 0 or column.type in (FLOAT, DOUBLE, BOOLEAN):
        return
    among = ordered_values(values)
    _keep(run, column, replace(run.column(column), lo=among[0], hi=among[-1], null=NO))


def _keep(run: Interpreter, column: Column, spec: Spec) -> None:
    run.narrowed[column.ids] = meet_specs(run.column(column), spec)
