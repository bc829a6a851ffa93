"""Estimates the share of rows that a filter keeps in each piece, from bounds.

An estimate affects cost only, never the result. Values are assumed to be uniform between their bounds, and
columns to be independent. An unknown selectivity is None.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.expr import Call, Column, Expr, Literal
from tamis.core.expr.arrow_values import literal_scalar
from tamis.core.pruning import Evidence
from tamis.cost_model import COSTS

Shares = np.ndarray[Any, np.dtype[np.float64]]

_TURNED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
MOST = COSTS.differing_share
"""Assumed share of rows that differ from a value, are not in a list, or do not match a pattern."""
_GRID = (np.arange(16) + 0.5) / 16
"""Sample points between a column's bounds, used to compare it with another column."""


def expected_share(conjuncts: Sequence[Expr], evidence: Evidence) -> Shares | None:
    """Estimate, for each piece, the share of rows that satisfies all ``conjuncts``; None if unknown."""
    ranges: dict[tuple[int, ...], list[tuple[bool, Shares]]] = {}
    shares: list[Shares | None] = []
    for conjunct in conjuncts:
        if (side := _side(conjunct)) is not None:
            column, literal, more = side
            below = _below(column, literal, evidence)
            if below is None:
                return None
            ranges.setdefault(column.ids, []).append((more, below))
        else:
            shares.append(_share(conjunct, evidence))
    return _product([*shares, *(_between(ends) for ends in ranges.values())])


def _product(shares: Sequence[Shares | None]) -> Shares | None:
    known = [s for s in shares if s is not None]
    return reduce(np.multiply, known) if known and len(known) == len(shares) else None


def _share(expr: Expr, evidence: Evidence) -> Shares | None:
    match expr:
        case Call(function="and"):
            return expected_share(expr.args, evidence)
        case Call(function="or"):
            return _inverse(_product([_inverse(_share(a, evidence)) for a in expr.args]))
        case (
            Call(function="ne")
            | Call(
                function="not", args=(Call(function="eq" | "in" | "like" | "contains" | "starts_with" | "ends_with"),)
            )
        ):
            return np.full(len(evidence), MOST)
        case Call(function="not", args=(inner,)):
            return _inverse(_share(inner, evidence))
        case Call(function="is_not_null", args=(Column() as column,)):
            return _inverse(_nulls(column, evidence))
        case Call(function="is_null", args=(Column() as column,)):
            return _nulls(column, evidence)
        case Call(function=op, args=(Column() as left, Column() as right)) if op in _TURNED:
            return _less(left, right, evidence) if op in {"lt", "le"} else _less(right, left, evidence)
    if (side := _side(expr)) is None:
        return None
    below = _below(side[0], side[1], evidence)
    return None if below is None else _between([(side[2], below)])


def _inverse(share: Shares | None) -> Shares | None:
    return None if share is None else 1 - share


def _side(expr: Expr) -> tuple[Column, Literal, bool] | None:
    """Match a comparison with a constant: the column, the constant, and whether values above it match."""
    match expr:
        case Call(function=op, args=(Column() as column, Literal() as literal)) if op in _TURNED:
            return column, literal, op in {"gt", "ge"}
        case Call(function=op, args=(Literal() as literal, Column() as column)) if op in _TURNED:
            return column, literal, _TURNED[op] in {"gt", "ge"}
    return None


def _between(ends: Iterable[tuple[bool, Shares]]) -> Shares:
    """Return the share between the tightest ends of ranges of one column.

    An end is (whether values above it match, the share below it).
    """
    from_, to = reduce(_tighter, ends, (np.float64(0), np.float64(1)))
    share: Shares = np.maximum(to - from_, 0.0)
    return share


def _tighter(held: tuple[Any, Any], end: tuple[bool, Shares]) -> tuple[Any, Any]:
    (from_, to), (more, below) = held, end
    return (np.maximum(from_, below), to) if more else (from_, np.minimum(to, below))


def _below(column: Column, literal: Literal, evidence: Evidence) -> Shares | None:
    """Estimate the share of a column's values below a constant."""
    bounds = _bounds(column, evidence)
    if bounds is None or literal.value is None or column.type != literal.type:
        return None
    try:
        at = _numbers(pa.repeat(literal_scalar(literal.value, literal.type), 1))[0]
    except (pa.ArrowException, ValueError, TypeError):
        return None
    return _part(at, *bounds)


def _less(left: Column, right: Column, evidence: Evidence) -> Shares | None:
    """Estimate the share of rows in which ``left`` is below ``right``."""
    a, b = _bounds(left, evidence), _bounds(right, evidence)
    if a is None or b is None or left.type != right.type:
        return None
    with np.errstate(invalid="ignore"):  # infinite bounds make NaN, which _part turns into one half
        values = a[0][:, None] * (1 - _GRID) + a[1][:, None] * _GRID
    above: Shares = (1 - _part(values, b[0][:, None], b[1][:, None])).mean(axis=1)
    return above


def _part(at: Any, lo: Shares, hi: Shares) -> Shares:
    with np.errstate(all="ignore"):  # a single value, or bounds too far apart for a double
        share: Shares = np.where(hi > lo, (at - lo) / (hi - lo), at > lo)
    return np.clip(np.nan_to_num(share, nan=0.5), 0.0, 1.0)


def _nulls(column: Column, evidence: Evidence) -> Shares | None:
    found = evidence.column(column.ids)
    if found is None:
        return None
    nulls, count = (
        pc.fill_null(a.cast(pa.float64()), float("nan")).to_numpy(zero_copy_only=False)
        for a in (found.nulls, found.count)
    )
    share: Shares = nulls / np.maximum(count, 1.0)
    return None if np.isnan(share).any() else share


def _bounds(column: Column, evidence: Evidence) -> tuple[Shares, Shares] | None:
    """Return a column's bounds as numbers; None if unknown in some piece or not numeric."""
    found = evidence.column(column.ids)
    if found is None or found.type != column.type:
        return None
    try:
        lo, hi = _numbers(found.lo), _numbers(found.hi)
    except (pa.ArrowException, ValueError, TypeError):
        return None
    return None if np.isnan(lo).any() or np.isnan(hi).any() else (lo, hi)


def _numbers(values: pa.Array) -> Shares:
    """Convert numbers, dates and times to doubles, NULL to NaN; raise ``TypeError`` for other types."""
    if pa.types.is_temporal(values.type):
        values = values.view(pa.int32() if values.type.bit_width == 32 else pa.int64())
    if not (pa.types.is_integer(values.type) or pa.types.is_floating(values.type) or pa.types.is_decimal(values.type)):
        raise TypeError(values.type)
    out: Shares = pc.fill_null(values.cast(pa.float64(), safe=False), float("nan")).to_numpy(zero_copy_only=False)
    return out
