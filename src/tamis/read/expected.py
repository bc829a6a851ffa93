"""How many rows of each block a filter is likely to keep, guessed from bounds. A guess decides what is cheap, never which rows there are.

Values are taken to lie evenly between their bounds, and conjuncts not to depend on each other. What cannot be guessed is None.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.domain import Evidence
from tamis.expr import Call, Column, Expr, Literal
from tamis.expr.evaluate import scalar

Shares = np.ndarray[Any, np.dtype[np.float64]]

_TURNED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


def expected(conjuncts: Sequence[Expr], evidence: Evidence) -> Shares | None:
    """Of each piece, the share of rows that satisfies all ``conjuncts``; None where one of them cannot be guessed."""
    shares = [_share(c, evidence) for c in conjuncts]
    known = [s for s in shares if s is not None]
    return reduce(np.multiply, known) if known and len(known) == len(shares) else None


def _share(expr: Expr, evidence: Evidence) -> Shares | None:
    match expr:
        case Call(function="and"):
            return expected(expr.args, evidence)
        case Call(function="or"):
            kept = [_share(a, evidence) for a in expr.args]
            known = [s for s in kept if s is not None]
            return 1 - reduce(np.multiply, [1 - s for s in known]) if len(known) == len(kept) else None
        case Call(function="not", args=(inner,)):
            share = _share(inner, evidence)
            return None if share is None else 1 - share
        case Call(function=op, args=(Column() as column, Literal() as literal)) if op in _TURNED:
            return _below(column, literal, evidence, more=op in {"gt", "ge"})
        case Call(function=op, args=(Literal() as literal, Column() as column)) if op in _TURNED:
            return _below(column, literal, evidence, more=_TURNED[op] in {"gt", "ge"})
    return None


def _below(column: Column, literal: Literal, evidence: Evidence, *, more: bool) -> Shares | None:
    """The share of a column's values on one side of a constant."""
    found = evidence.column(column.ids)
    if found is None or literal.value is None or not found.type == column.type == literal.type:
        return None
    try:
        lo, hi = _numbers(found.lo), _numbers(found.hi)
        at = _numbers(pa.repeat(scalar(literal.value, literal.type), 1))[0]
    except (pa.ArrowException, ValueError, TypeError):
        return None
    if np.isnan(lo).any() or np.isnan(hi).any():
        return None
    below: Shares = np.clip((at - lo) / np.maximum(hi - lo, np.finfo(np.float64).tiny), 0.0, 1.0)
    return 1 - below if more else below


def _numbers(values: pa.Array) -> Shares:
    """Numbers and moments as doubles, NULL as NaN; raises for what has no distances."""
    if pa.types.is_temporal(values.type):
        values = values.view(pa.int32() if values.type.bit_width == 32 else pa.int64())
    if not (pa.types.is_integer(values.type) or pa.types.is_floating(values.type) or pa.types.is_decimal(values.type)):
        raise TypeError(values.type)
    out: Shares = pc.fill_null(values.cast(pa.float64(), safe=False), float("nan")).to_numpy(zero_copy_only=False)
    return out
