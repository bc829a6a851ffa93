"""Evidence from the rows of the tables ``paths`` and ``path_unions``.

Nothing is trusted: a row that contradicts itself, or has bits unknown to this version, is unknown.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.expr.json_codec.iso_times import KINDS, NO_TIME
from tamis.core.expr.json_codec.json_path import ELEMENT, PLACED, Steps, placed_steps, stored_step
from tamis.core.pruning.evidence import DocumentEvidence
from tamis.core.stats.json_paths import path_rows as rows

Ints = np.ndarray[Any, np.dtype[np.int64]]
Bools = np.ndarray[Any, np.dtype[np.bool_]]

_VALUES = rows.FALSE | rows.TRUE | rows.LONG | rows.REAL | rows.STRING | rows.LIST | rows.MAP | rows.OTHER


class PathTable:
    """The rows of ``table`` by piece: ``piece[i]`` is the piece that row ``i`` describes, or -1."""

    def __init__(self, table: pa.Table, piece: Ints, pieces: int, *, joined: bool = False) -> None:
        self._table, self._piece, self._pieces, self._joined = table, piece, pieces, joined
        self._columns: dict[int, dict[str, pa.Array] | None] = {}

    @staticmethod
    def of_parts(table: pa.Table, parts: pa.Table) -> PathTable:
        """Match rows with ``segment`` and ``part`` to the rows of ``parts``, which are sorted by both."""
        keys, wanted = _key(parts), _key(table)
        at = np.searchsorted(keys, wanted)
        at = np.minimum(at, max(len(keys) - 1, 0))
        found = keys[at] == wanted if len(keys) else np.zeros(len(wanted), bool)
        return PathTable(table, np.where(found, at, -1), len(keys))

    @staticmethod
    def of_segments(table: pa.Table, segments: int) -> PathTable:
        """Match rows with ``segment``, which describe the union of its parts."""
        return PathTable(table, np.asarray(table["segment"]).astype(np.int64), segments, joined=True)

    def at(self, column_id: int, steps: Steps, physical: pa.Int64Array, *, variant: bool) -> DocumentEvidence | None:
        """Return the evidence of a path, or None if the table has nothing about the column.

        ``physical`` are the pieces' rows. ``variant`` means a VARIANT column, for which rows of earlier
        writers may be partial (see ``path_rows.WALK``).
        """
        columns = self._columns_of(column_id)
        if columns is None:
            return None
        places, repeated = self._places(columns, steps)
        partial = _partial(columns, places) if variant else np.zeros(self._pieces, bool)
        return _evidence(columns, places, physical, repeated, partial)

    def _places(self, columns: dict[str, pa.Array], steps: Steps) -> tuple[list[Ints], Bools]:
        """Return the rows of each piece at each step, and where the last describes elements of any position.

        A piece without a usable row by position has the row of all elements.
        """
        forms = list(dict.fromkeys(placed_steps(steps, placed) for placed in range(PLACED + 1)))
        by_path: dict[str, Ints] = {}
        chosen, repeated = list[Ints](), np.zeros(self._pieces, bool)
        for form in forms:
            paths = ["$" + "".join(map(stored_step, form[:depth])) for depth in range(len(form) + 1)]
            for path in paths:
                if path not in by_path:
                    by_path[path] = self._rows_at(columns, path)
            mine = [by_path[path] for path in paths]
            usable = self._usable(columns, form, mine) if chosen else np.ones(self._pieces, bool)
            chosen = [np.where(usable, a, b) for a, b in zip(mine, chosen or mine, strict=True)]
            repeated = np.where(usable, ELEMENT in form, repeated)
        return chosen, repeated

    def _columns_of(self, column_id: int) -> dict[str, pa.Array] | None:
        if column_id not in self._columns:
            found = {
                kind: self._column(rows.path_column(column_id, kind), arrow) for kind, arrow in rows.COLUMNS.items()
            }
            for kind in rows.LATER_COLUMNS:  # absent if an earlier version wrote them
                if found[kind] is None:
                    found[kind] = pa.nulls(len(self._table), rows.COLUMNS[kind])
            whole = {kind: array for kind, array in found.items() if array is not None}
            self._columns[column_id] = whole if len(whole) == len(found) else None
        return self._columns[column_id]

    def _column(self, name: str, expected: pa.DataType) -> pa.Array | None:
        at = self._table.schema.get_field_index(name)  # -1 also if the name occurs twice
        if at < 0 or self._table.schema.field(at).type != expected:
            return None
        try:
            array = pa.concat_arrays(self._table.column(at).chunks or [pa.nulls(0, expected)])
            array.validate(full=True)
        except pa.ArrowException:
            return None
        return array

    def _rows_at(self, columns: dict[str, pa.Array], path: str) -> Ints:
        """Return the row of each piece at ``path``: -1 for none, -2 for two."""
        here = np.flatnonzero(np.asarray(pc.fill_null(pc.equal(columns["path"], path), False)) & (self._piece >= 0))
        out = np.full(self._pieces, -1, np.int64)
        out[self._piece[here]] = here
        out[np.bincount(self._piece[here], minlength=self._pieces) > 1] = -2
        return out

    def _usable(self, columns: dict[str, pa.Array], form: Steps, places: list[Ints]) -> Bools:
        """Return where the rows by position say something: a row, or that the position is absent.

        In a union they say nothing below an INCOMPLETE list. Writers that knew no positions joined the rows of
        two parts as if a position were a key of the object above, and kept one that a part does not describe.
        """
        usable: Bools = (places[-1] >= 0) | ((places[-1] == -1) & _absent(columns, places)[0])
        for step, place in zip(form, places, strict=False):
            if isinstance(step, int) and step != ELEMENT:
                walk = np.asarray(pc.fill_null(_take(columns["walk"], place), 0))
                usable &= (place >= 0) & (walk >= rows.PLACED_ELEMENTS)
                if self._joined:
                    usable &= (_kinds(columns, place) & rows.INCOMPLETE) == 0
        return usable


def _key(table: pa.Table) -> Ints:
    return np.asarray(table["segment"]).astype(np.int64) << 32 | np.asarray(table["part"]).astype(np.int64)


def _take(array: pa.Array, at: Ints) -> pa.Array:
    return array.take(pa.array(at, mask=at < 0))


def _kinds(columns: dict[str, pa.Array], at: Ints) -> Ints:
    """Return the kinds of rows; all bits where there is no valid row."""
    found = np.asarray(pc.fill_null(_take(columns["kinds"], at), -1)).astype(np.int64)
    return np.where((at == -1) | (found < 0), -1, found)


def _partial(columns: dict[str, pa.Array], places: list[Ints]) -> Bools:
    """Return where an earlier writer's row may cover only some layouts of the objects above it.

    That is the case if one of them is INCOMPLETE.
    """
    walk = np.asarray(pc.fill_null(_take(columns["walk"], places[-1]), 0))
    above = [(place >= 0) & ((_kinds(columns, place) & rows.INCOMPLETE) != 0) for place in places[:-1]]
    partial: Bools = (walk < rows.WHOLE) & np.logical_or.reduce([np.zeros(len(walk), bool), *above])
    return partial


def _evidence(
    columns: dict[str, pa.Array], places: list[Ints], physical: pa.Int64Array, repeated: Bools, partial: Bools
) -> DocumentEvidence:
    leaf = places[-1]
    root = _kinds(columns, places[0])
    good = (places[0] >= 0) & (root >= 0) & (root <= rows.KNOWN) & ((root & rows.STRANGE) == 0)
    good &= ~partial
    for place in places:
        good &= place != -2
    absent, trimmed = _absent(columns, places)
    kinds = _kinds(columns, leaf)
    there = leaf >= 0
    present, counted = _count(_take(columns["present"], leaf))
    nulls, nulls_known = _count(_take(columns["nulls"], leaf))
    all_rows, sized = _count(physical)
    sane = there & counted & (kinds >= 0) & (kinds <= rows.KNOWN) & ((present > 0) == ((kinds & _VALUES) != 0))
    sane &= repeated | ~sized | (present + np.where(nulls_known, nulls, 0) <= all_rows)
    known = good & (sane | (~there & absent))
    kinds = np.where(there & known, kinds, 0)
    full = sized & ~repeated & there & (present + np.where(nulls_known, nulls, 0) == all_rows)
    all_values = sized & ~repeated & there & (present == all_rows)
    invalid = known & ((root & rows.INVALID) != 0)
    missing = known & ~full & ~all_values
    null = known & there & ~all_values & np.where(nulls_known, nulls > 0, True)

    def has(bit: int) -> Bools:
        return np.asarray((kinds & bit) != 0)

    long, real, string = (_bounds(columns, kind, leaf) for kind in ("long", "real", "string"))
    exact = has(rows.LO_EXACT) & has(rows.HI_EXACT)
    return DocumentEvidence(
        known, ~known & trimmed, missing, null, has(rows.FALSE), has(rows.TRUE), has(rows.LONG), *long, has(rows.REAL),
        *real, exact, has(rows.STRING), *string, has(rows.LIST), has(rows.MAP), has(rows.OTHER), invalid,
        *_times(columns, leaf),
    )  # fmt: skip


def _times(columns: dict[str, pa.Array], leaf: Ints) -> tuple[Ints, pa.Array, pa.Array]:
    """Return the form of times, 0 unless all are of one kind, and their bounds."""
    form = np.asarray(pc.fill_null(_take(columns["time.form"], leaf), 0)).astype(np.int64)
    one_kind = np.isin(form & KINDS, [1 << bit for bit in range(KINDS.bit_length()) if KINDS & 1 << bit & ~NO_TIME])
    lo, hi = _bounds(columns, "time", leaf)
    return np.where(one_kind, form, 0), lo, hi


def _absent(columns: dict[str, pa.Array], places: list[Ints]) -> tuple[Bools, Bools]:
    """Return where the path is known to be absent, and where a row was dropped for lack of space.

    A path is absent if the deepest row above it lists all its keys.
    """
    complete = np.zeros(len(places[0]), bool)
    trimmed = np.zeros(len(places[0]), bool)
    for place in places[:-1]:
        kinds = _kinds(columns, place)
        here = place >= 0
        fine = (kinds >= 0) & (kinds <= rows.KNOWN) & ((kinds & rows.INCOMPLETE) == 0)
        complete = np.where(here, fine, complete)
        trimmed = np.where(here, (kinds >= 0) & ((kinds & rows.TRIMMED) != 0), trimmed)
    return complete, trimmed


def _count(array: pa.Array) -> tuple[Ints, Bools]:
    """Return counts and where they are known."""
    values = np.asarray(pc.fill_null(array, -1)).astype(np.int64)
    return np.where(values < 0, 0, values), values >= 0


def _bounds(columns: dict[str, pa.Array], kind: str, at: Ints) -> tuple[pa.Array, pa.Array]:
    lo, hi = _take(columns[f"{kind}.lo"], at), _take(columns[f"{kind}.hi"], at)
    bad = pc.fill_null(pc.greater(lo, hi), False)
    if pa.types.is_floating(lo.type):
        bad = pc.or_(bad, pc.or_(pc.fill_null(pc.is_nan(lo), False), pc.fill_null(pc.is_nan(hi), False)))
    nothing = pa.scalar(None, lo.type)
    return pc.if_else(bad, nothing, lo), pc.if_else(bad, nothing, hi)
