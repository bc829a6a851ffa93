"""Decides a piece by cases: an unprovable piece may be provable for each of a column's few values.

Invariant: every row of a piece is in one of its cases (in several, where a column is NULL). A piece is
therefore *none* if all its cases are, and *all* if all are. Cases come from:

- the set of a column's values, if the statistics have one: then a filter is exact, whatever its functions;
- every integer or day between close bounds, and every day between two instants. These are used only if the
  filter needs
  what bounds cannot give (a remainder, a day of the week); otherwise they would cost time without effect.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.expr import registry
from tamis.core.expr.arrow_values import Datum, Mask, Numbers, build_array, literal_scalar, stored_numbers
from tamis.core.expr.json_codec.json_path import Steps
from tamis.core.expr.registry import Claim, Partial
from tamis.core.expr.time_zones import DAY, zone_named
from tamis.core.expr.tree import Call, Column, Expr, Literal
from tamis.core.pruning.evidence import ColumnEvidence, Evidence
from tamis.core.types import DATE, INTEGRAL, STRING, TIMESTAMP, TIMESTAMP_NTZ, DataType
from tamis.sizes import SIZES

MOST = SIZES.abstract_cases
"""Largest number of cases per piece; columns are added while the product of their cases stays within it."""
_WIDEST = SIZES.abstract_width
"""Largest number of integers or days between two bounds that are enumerated."""
_AT_ONCE, _BUDGET = 2**17, 2**22
"""Cases decided together, and in one call; pieces beyond that are left undivided."""
_FAR = 2**62
"""Numbers beyond this are not used in arithmetic."""
Ids = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Cases:
    """The cases of one column.

    Those of piece ``i`` are the ``sizes[i]`` entries of ``lo`` and ``hi`` from ``starts[i]`` on; -1 if it is
    not divided.
    """

    sizes: Numbers
    starts: Numbers
    lo: pa.Array
    hi: pa.Array


class Divided:
    """The evidence of ``base`` for the cases of some pieces: case ``k`` is a part of piece ``owner[k]``."""

    def __init__(self, base: Evidence, owner: Numbers, chosen: Mapping[Ids, tuple[_Cases, Numbers]]) -> None:
        self.owner = owner
        self._base, self._at, self._chosen = base, pa.array(owner), chosen

    def __len__(self) -> int:
        return len(self.owner)

    def rows(self) -> pa.Int64Array:
        return self._base.rows().take(self._at)

    def column(self, ids: Ids) -> ColumnEvidence | None:
        found: ColumnEvidence | None = _taken(self._base.column(ids), self._at)
        if found is None or ids not in self._chosen:
            return found
        cases, at = self._chosen[ids]
        mask, where = pa.array(at >= 0), pa.array(np.maximum(at, 0))
        lo, hi = (pc.if_else(mask, new.take(where), old) for new, old in ((cases.lo, found.lo), (cases.hi, found.hi)))
        return replace(found, lo=lo, hi=hi)

    def elements(self, ids: Ids) -> Any:
        return _taken(self._asked("elements", ids), self._at)

    def place(self, ids: Ids, place: str) -> Any:
        return _taken(self._asked("place", ids, place), self._at)

    def sizes(self, ids: Ids) -> Any:
        return _taken(self._asked("sizes", ids), self._at)

    def document(self, ids: Ids, steps: Steps) -> Any:
        return _taken(self._asked("document", ids, steps), self._at)

    def edges(self, ids: Ids) -> Any:
        return _taken(self._asked("edges", ids), self._at)

    def _asked(self, name: str, *args: Any) -> Any:
        ask = getattr(self._base, name, None)
        return ask(*args) if ask is not None else None


def _taken(found: Any, at: pa.Array) -> Any:
    """Take these positions from every array of a dataclass."""
    if found is None:
        return found
    rows, changed = np.asarray(at), {}
    for name, old in ((f.name, getattr(found, f.name)) for f in fields(found)):
        if isinstance(old, pa.Array):
            changed[name] = old.take(at)
        elif isinstance(old, np.ndarray) and old.ndim:
            changed[name] = old[rows]
    return replace(found, **changed)


def divided_cases(conjuncts: Sequence[Expr], evidence: Evidence, left: Mask) -> Iterator[Divided]:
    """Yield the cases of the pieces ``left`` in order, in batches; pieces with a single case are left out."""
    pieces = np.flatnonzero(left)
    if not len(pieces):
        return
    found = {
        column.ids: cases
        for column in _columns(conjuncts)
        if (cases := _cases(conjuncts, column, evidence)) is not None
    }
    ways = np.ones(len(pieces), np.int64)
    digits: list[tuple[Ids, _Cases, Numbers, Numbers]] = []
    for ids, cases in found.items():
        size = cases.sizes[pieces]
        size = np.where(ways * size <= MOST, size, 1)
        digits.append((ids, cases, size, ways))
        ways = ways * size
    many = ways > 1
    ends = np.cumsum(np.where(many, ways, 0))
    many &= ends <= _BUDGET
    for group in range(int(ends[many][-1] // _AT_ONCE) + 1 if many.any() else 0):
        rows = np.flatnonzero(many & (ends // _AT_ONCE == group))
        if len(rows):
            yield _expanded(evidence, pieces, rows, ways, digits)


def _expanded(
    evidence: Evidence,
    pieces: Numbers,
    rows: Numbers,
    ways: Numbers,
    digits: list[tuple[Ids, _Cases, Numbers, Numbers]],
) -> Divided:
    """Combine the columns' cases, numbered like the digits of a mixed-radix number."""
    each = ways[rows]
    row = np.repeat(rows, each)
    number = np.arange(len(row)) - np.repeat(np.cumsum(each) - each, each)
    chosen = {}
    for ids, cases, size, stride in digits:
        start = np.where(size[row] > 1, cases.starts[pieces[row]], -1)
        chosen[ids] = cases, np.where(start >= 0, start + number // stride[row] % size[row], -1)
    return Divided(evidence, pieces[row], chosen)


def _columns(conjuncts: Sequence[Expr]) -> list[Column]:
    return list(dict.fromkeys(node for conjunct in conjuncts for node in conjunct.walk() if isinstance(node, Column)))


def _cases(conjuncts: Sequence[Expr], column: Column, evidence: Evidence) -> _Cases | None:
    """Return how the column divides the pieces, or None; unreadable statistics divide nothing."""
    try:
        ask = getattr(evidence, "values", None)
        listed = ask(column.ids) if ask is not None else None
        if listed is not None:
            return _by_values(listed, _wanted(conjuncts, column))
        if column.type in (*INTEGRAL, DATE, TIMESTAMP, TIMESTAMP_NTZ) and any(_loses(c, column) for c in conjuncts):
            return _by_range(column.type, evidence.column(column.ids), _zone(conjuncts))
    except Exception:  # noqa: BLE001  (statistics that cannot be read are unknown)
        return None
    return None


def _by_values(listed: pa.ListArray, wanted: Datum | None) -> _Cases | None:
    sizes = pc.fill_null(pc.list_value_length(listed), 1).to_numpy().astype(np.int64)
    many = sizes > 1
    starts = np.where(many, np.cumsum(np.where(np.asarray(listed.is_valid()), sizes, 0)) - sizes, -1)
    values = listed.flatten()
    if wanted is not None and values.type == wanted.type:
        many &= ~_holds(listed, values, wanted)
    return _Cases(np.where(many, sizes, 1), np.where(many, starts, -1), values, values) if many.any() else None


def _holds(listed: pa.ListArray, values: pa.Array, wanted: Datum) -> Mask:
    """Return which sets hold the value."""
    found = np.zeros(len(listed), bool)
    found[np.asarray(pc.list_parent_indices(listed).filter(pc.equal(values, wanted)))] = True
    return found


def _wanted(conjuncts: Sequence[Expr], column: Column) -> Datum | None:
    """Return the constant that the column must equal, if that is all that the filter says of it; else None.

    Cases prove nothing of a piece whose set holds the constant and another value: in the case of the constant all is
    as for the whole piece, which the comparison narrows to the constant, and in another one the filter is false.
    """
    about = [c for c in conjuncts if column in _columns([c])]
    match [c for c in about if not is_presence_check(c)]:
        case [
            Call(
                function="eq", args=(Column() as same, Literal() as literal) | (Literal() as literal, Column() as same)
            )
        ] if same == column and literal.value is not None and literal.type == column.type in (*INTEGRAL, DATE, STRING):
            return literal_scalar(literal.value, literal.type)
    return None


def _by_range(data_type: DataType, found: ColumnEvidence | None, zone_: str) -> _Cases | None:
    """Enumerate values between close bounds; instants by day in the zone's calendar."""
    if found is None or found.type != data_type:
        return None
    whole = data_type not in (TIMESTAMP, TIMESTAMP_NTZ)
    at = zone_named(zone_ if data_type == TIMESTAMP else "UTC")
    known = np.asarray(pc.and_(found.lo.is_valid(), found.hi.is_valid()))
    lo, hi = (np.where(known, stored_numbers(b).astype(np.int64), 0) for b in (found.lo, found.hi))
    known &= (np.abs(lo) < _FAR) & (np.abs(hi) < _FAR)
    lo, hi = np.where(known, lo, 0), np.where(known, hi, 0)
    first, last = (lo, hi) if whole else (at.local(lo) // DAY, at.local(hi) // DAY)
    near = known & (lo < hi) & (first < last) & (last - first < _WIDEST)
    if not near.any():
        return None
    sizes = np.where(near, last - first + 1, 1)
    starts = np.where(near, np.cumsum(np.where(near, sizes, 0)) - sizes, -1)
    owner = np.repeat(np.flatnonzero(near), sizes[near])
    step = np.arange(len(owner)) - starts[owner]
    low = high = first[owner] + step
    if not whole:  # neighbouring midnights leave no gap, wherever they are
        low, high = at.instants(low * DAY), at.instants((high + 1) * DAY) - 1
        low, high = np.where(step == 0, lo[owner], low), np.where(step == sizes[owner] - 1, hi[owner], high)
    dtype = stored_numbers(found.lo).dtype
    return _Cases(
        sizes,
        starts,
        build_array(low.astype(dtype), None, found.lo.type),
        build_array(high.astype(dtype), None, found.hi.type),
    )


def is_presence_check(conjunct: Expr) -> bool:
    """Return whether the conjunct is ``column IS NOT NULL``, in Spark's form or SQL's."""
    match conjunct:
        case (
            Call(function="is_not_null", args=(Column(),))
            | Call(function="not", args=(Call(function="is_null", args=(Column(),)),))
        ):
            return True
    return False


def _zone(conjuncts: Sequence[Expr]) -> str:
    """Return the session's zone if the filter uses it, else UTC."""
    return next(
        (node.zone for c in conjuncts for node in c.walk() if isinstance(node, Call) and node.zone is not None), "UTC"
    )


def _loses(tree: Expr, column: Column) -> bool:
    """Return whether ``tree`` uses a property of the column that does not follow from bounds."""
    return any(isinstance(node, Call) and _blunt(node, column) for node in tree.walk())


def _blunt(call: Call, column: Column) -> bool:
    entry = registry.function_entry(call.function)
    if entry.rule in _SHARP or all(column != node for node in call.walk()):
        return False
    if call.function == "cast":
        return call.type == STRING
    if entry.guard is not None or entry.rule is not None or entry.partial(call) is Partial.ANYWHERE:
        return True
    claims = entry.claims(call) if entry.claims else (Claim.FIXED,) * len(call.args)
    return any(
        claim is Claim.FIXED and any(column == n for n in arg.walk())
        for arg, claim in zip(call.args, claims, strict=False)
    )


_SHARP = frozenset(
    {
        "compare",
        "null_safe_eq",
        "and",
        "or",
        "not",
        "is_null",
        "is_nan",
        "in",
        "starts_with",
        "coalesce",
        "case",
        "extreme",
        "whole",
        "abs",
        "timestamp_add",
    }
)
"""Rules that lose nothing of a column's bounds."""
