"""Decodes statistics from manifest rows without trusting them.

Invariant: a statistic that has the wrong type, cannot be decoded, is negative, NaN, inverted or stored twice
becomes NULL, which means unknown. No content of a manifest makes this module raise.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.schema.widening import type_widens
from tamis.core.stats.columns.value_sets import MOST
from tamis.core.stats.statistics_columns import (
    COUNTS,
    DROPPED,
    HI_EXACT,
    LO_EXACT,
    NO_ROOM,
    VALUES,
    Name,
    arrow_type,
    count_name,
    parse_name,
)
from tamis.core.stats.whole_columns import whole_column
from tamis.core.types import DataType, DayTimeInterval, String, Time
from tamis.core.types.arrow import to_arrow_type


class Bounds(NamedTuple):
    """Inclusive bounds in one type and whether they occur; NULL where unknown."""

    lo: pa.Array
    hi: pa.Array
    lo_exact: pa.BooleanArray
    hi_exact: pa.BooleanArray


class Decoder:
    """The statistics columns of a table, by column id."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table
        self._bounds: dict[int, dict[DataType, dict[str, str]]] = {}
        self._counts: dict[int, set[str]] = {}
        self._values: dict[int, dict[DataType, str]] = {}
        for name in table.column_names:
            parsed = parse_name(name)
            if parsed is None:
                continue
            self._counts.setdefault(parsed.id, set())
            if parsed.type is None:
                self._counts[parsed.id].add(parsed.kind)
            elif parsed.kind == VALUES:
                self._values.setdefault(parsed.id, {})[parsed.type] = name
            else:
                self._bounds.setdefault(parsed.id, {}).setdefault(parsed.type, {})[parsed.kind] = name

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def ids(self) -> list[int]:
        return list(self._counts)

    def kinds(self, column_id: int) -> set[str]:
        """Return the kinds of counts stored for this column."""
        return self._counts.get(column_id, set())

    def types(self, column_id: int) -> list[DataType]:
        """Return the types under which this column has bounds."""
        return list(self._bounds.get(column_id, ()))

    def rows(self) -> pa.Int64Array:
        """The column ``rows``: physical rows of each piece."""
        return _not_negative(self._take("rows", pa.int64()))

    def count(self, column_id: int, kind: str) -> pa.Int64Array:
        return _not_negative(self._take(count_name(column_id, kind), COUNTS[kind]).cast(pa.int64()))

    def bounds(self, column_id: int, target: DataType) -> Bounds:
        """Return the bounds stored under ``target`` or under any type that reads as it."""
        arrow, flags = to_arrow_type(target), self._take(count_name(column_id, "exact"), COUNTS["exact"])
        lo, hi, present = pa.nulls(len(self), arrow), pa.nulls(len(self), arrow), _all(False, len(self))
        for data_type, names in self._bounds.get(column_id, {}).items():
            low, high = (
                self._take(names.get(kind, ""), arrow_type(Name(column_id, kind, data_type))) for kind in ("lo", "hi")
            )
            here = pc.or_(low.is_valid(), high.is_valid())
            twice, present = pc.and_(here, present), pc.or_(here, present)
            if reads_as(data_type, target):
                lo, hi = _filled(lo, _as(low, arrow)), _filled(hi, _as(high, arrow))
            lo, hi = _blank(lo, twice), _blank(hi, twice)
        lo, hi = _sane(lo, hi)
        return Bounds(lo, hi, _flag(flags, LO_EXACT, lo), _flag(flags, HI_EXACT, hi))

    def no_room(self, column_id: int) -> pa.BooleanArray:
        """Return where bounds were dropped for lack of space, alone or with all other statistics of the column."""
        flags, nulls = (self._take(count_name(column_id, kind), COUNTS[kind]) for kind in ("exact", "nulls"))
        bounds = pc.fill_null(pc.not_equal(pc.bit_wise_and(flags, pa.scalar(NO_ROOM, flags.type)), 0), False)
        dropped = pc.fill_null(pc.greater(self._take(DROPPED, pa.int32()), 0), False)
        return pc.or_(bounds, pc.and_(dropped, pc.and_(flags.is_null(), nulls.is_null())))

    def value_types(self, column_id: int) -> list[DataType]:
        """Return the types under which this column has value sets."""
        return list(self._values.get(column_id, ()))

    def values(self, column_id: int, target: DataType) -> pa.ListArray:
        """Return the value sets as ``target``.

        A set is NULL if it is missing, stored twice, empty or too large, or if it contains NULL.
        """
        arrow = pa.list_(to_arrow_type(target))
        out, present = pa.nulls(len(self), arrow), np.zeros(len(self), np.bool_)
        for data_type, name in self._values.get(column_id, {}).items():
            found = self._take(name, arrow_type(Name(column_id, VALUES, data_type)))
            here = np.asarray(found.is_valid())
            if here.any():
                fits = reads_as(data_type, target) and not present.any()
                out = _sets(found, arrow) if fits else pa.nulls(len(self), arrow)
            present |= here
        return out

    def _take(self, name: str, expected: pa.DataType) -> pa.Array:
        """Return a whole column if it has the type that its name implies, else NULLs."""
        found = whole_column(self._table, name, expected)
        return pa.nulls(len(self), expected) if found is None else found


def _sets(found: pa.ListArray, arrow: pa.DataType) -> pa.ListArray:
    """Cast the sets to a wider type; NULL where the content is not a valid set."""
    members, offsets = _as(found.values, arrow.value_type), found.offsets.to_numpy()
    nothing = np.concatenate([[0], np.cumsum(np.asarray(members.is_null()))])
    sizes = np.diff(offsets)
    bad = (sizes < 1) | (sizes > MOST) | (nothing[offsets[1:]] > nothing[offsets[:-1]]) | np.asarray(found.is_null())
    return pa.ListArray.from_arrays(pa.array(offsets), members, type=arrow, mask=pa.array(bad))


def reads_as(old: DataType, new: DataType) -> bool:
    """Return whether bounds of type ``old`` are valid bounds of type ``new``.

    The types are equal, widened, or differ only in lengths and precisions that values do not show.
    """
    alike = any(isinstance(old, kind) and isinstance(new, kind) for kind in (String, Time, DayTimeInterval))
    return alike or type_widens(old, new)


def _as(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Cast to a wider type; all NULL if a value does not fit."""
    try:
        return values.cast(target)
    except pa.ArrowException:
        return pa.nulls(len(values), target)


def _sane(lo: pa.Array, hi: pa.Array) -> tuple[pa.Array, pa.Array]:
    floating = pa.types.is_floating(lo.type)
    bad = pc.fill_null(pc.greater(lo, hi), False)
    if floating:
        bad = pc.or_(bad, pc.or_(pc.fill_null(pc.is_nan(lo), False), pc.fill_null(pc.is_nan(hi), False)))
    lo, hi = _blank(lo, bad), _blank(hi, bad)
    if floating:
        lo = pc.if_else(pc.fill_null(pc.equal(lo, 0.0), False), pa.scalar(-0.0, lo.type), lo)
        hi = pc.if_else(pc.fill_null(pc.equal(hi, 0.0), False), pa.scalar(0.0, hi.type), hi)
    return lo, hi


def _filled(array: pa.Array, other: pa.Array) -> pa.Array:
    return other if array.null_count == len(array) else pc.coalesce(array, other)


def _blank(array: pa.Array, where: pa.BooleanArray) -> pa.Array:
    if not where.null_count and not where.true_count:
        return array
    return pc.if_else(where, pa.scalar(None, array.type), array)


def _all(value: bool, length: int) -> pa.BooleanArray:
    return pa.repeat(pa.scalar(value), length)


def _flag(flags: pa.Array, bit: int, bound: pa.Array) -> pa.BooleanArray:
    """Return whether ``bit`` is set; unknown where there is no bound."""
    return _blank(pc.not_equal(pc.bit_wise_and(flags, pa.scalar(bit, flags.type)), 0), bound.is_null())


def _not_negative(counts: pa.Int64Array) -> pa.Int64Array:
    return _blank(counts, pc.fill_null(pc.less(counts, 0), False))
