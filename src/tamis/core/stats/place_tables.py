"""Statistics of single positions and keys in manifest rows, as the statistics columns of one place.

Invariant: nothing stored is trusted. A list that is missing, cannot be decoded, or has another length than the list of
places is NULL, which means unknown; so is a place that is listed twice. What is taken out is decoded by ``Decoder``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.stats.statistics_columns import COUNTS, LISTED, PLACED, PLACES, count_name
from tamis.core.stats.whole_columns import whole_column
from tamis.sizes import SIZES

Ints = np.ndarray[Any, np.dtype[np.int64]]
MOST_PLACES = max(SIZES.map_keys, 8)
"""Largest number of places in the union of several pieces."""


def placed_names(table: pa.Table) -> dict[int, list[str]]:
    """Return the names of place statistics by column id, for columns that list places."""
    found: dict[int, list[str]] = {}
    listing: set[int] = set()
    for name in table.column_names:
        head, _, rest = name.partition("|")
        kind = rest.rpartition("|")[2]
        if not (head.isascii() and head.isdecimal() and (kind.startswith(PLACED) or kind in (PLACES, LISTED))):
            continue
        found.setdefault(int(head), []).append(name)
        if rest == PLACES:
            listing.add(int(head))
    return {column_id: names for column_id, names in found.items() if column_id in listing}


def placed_name(name: str) -> str:
    """Return the name under which lists of the statistic ``name`` are stored."""
    head, _, kind = name.rpartition("|")
    return f"{head}|{PLACED}{kind}"


class PlaceTables:
    """The statistics of the places of one element or value, decoded once for all places."""

    def __init__(self, table: pa.Table, column_id: int, names: Sequence[str]) -> None:
        """Decode the statistics ``names`` of one column (see ``placed_names``)."""
        self._id, self._rows = column_id, len(table)
        self._places = _lists(table, count_name(column_id, PLACES), pa.string())
        self._listed = _flags(table, count_name(column_id, LISTED))
        if self._places is not None:
            self._listed &= self._places.known & self._places.all_differ()
        self._found: dict[str, _Lists] = {}
        """The lists of each statistic, by the name that it has in the statistics of columns."""
        for name in names if self._places is not None else ():
            head, _, kind = name.rpartition("|")
            found = _lists(table, name) if kind.startswith(PLACED) else None
            if found is not None:
                self._found[f"{head}|{kind.removeprefix(PLACED)}"] = found

    def at(self, place: str) -> pa.Table | None:
        """Return the statistics of one place under the names that columns have; None if no piece has places.

        Where all places are listed and this one is not among them, the counts are zero.
        """
        places = self._places
        if places is None:
            return None
        hits = np.flatnonzero(np.asarray(pc.fill_null(pc.equal(places.values, place), False)))
        owner = places.owner[hits]
        times = np.bincount(owner, minlength=self._rows)
        once = times[owner] == 1
        entry = np.full(self._rows, -1, np.int64)
        entry[owner[once]] = (hits - places.starts[owner])[once]
        absent = self._listed & (times == 0)
        columns: dict[str, pa.Array] = {}
        for name, found in self._found.items():
            whole = found.known & (found.sizes == places.sizes)
            fits = whole & (entry >= 0)
            taken = found.values.take(pa.array(np.where(fits, found.starts + entry, 0), mask=~fits))
            kind = name.rpartition("|")[2]
            if kind in COUNTS and taken.type == COUNTS[kind]:
                taken = pc.if_else(pa.array(absent & whole), pa.scalar(0, taken.type), taken)
            columns[name] = taken
        for kind in ("count", "nulls"):
            columns.setdefault(count_name(self._id, kind), pa.nulls(self._rows, COUNTS[kind]))
        return pa.table(columns)

    def candidates(self) -> tuple[list[str], bool]:
        """Return the places that most pieces list, and whether these are all that occur."""
        if self._places is None:
            return [], False
        found = pc.value_counts(self._places.values.drop_null())
        ranked = sorted(zip(pc.negate(found.field(1)).to_pylist(), found.field(0).to_pylist(), strict=True))
        whole = bool(self._places.known.all()) and bool(self._listed.all())
        return [text for _, text in ranked[:MOST_PLACES]], whole and len(ranked) <= MOST_PLACES


class _Lists:
    """A column of lists: the values of all of them, and where those of each piece are."""

    def __init__(self, array: pa.ListArray) -> None:
        self.known = np.asarray(array.is_valid())
        self.values = array.flatten()
        self.sizes: Ints = np.asarray(pc.fill_null(pc.list_value_length(array), 0)).astype(np.int64)
        self.starts: Ints = np.cumsum(self.sizes) - self.sizes
        self.owner: Ints = np.repeat(np.arange(len(array)), self.sizes)

    def all_differ(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return the pieces in whose lists no value is there twice."""
        codes = self.values.dictionary_encode()
        numbers = np.asarray(codes.indices.fill_null(-1)).astype(np.int64)
        pairs = np.unique(self.owner * (len(codes.dictionary) + 1) + numbers + 1)
        different = np.bincount(pairs // (len(codes.dictionary) + 1), minlength=len(self.sizes))
        return np.asarray(different == self.sizes)


def _lists(table: pa.Table, name: str, values: pa.DataType | None = None) -> _Lists | None:
    """Return a column of lists (of ``values``) if it is there and whole, else None."""
    at = table.schema.get_field_index(name)
    kind = table.schema.field(at).type if at >= 0 else None
    if kind is None or not pa.types.is_list(kind) or (values is not None and kind.value_type != values):
        return None
    array = whole_column(table, name, kind)
    return None if array is None else _Lists(array)


def _flags(table: pa.Table, name: str) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return where a column of booleans is true."""
    flags = whole_column(table, name, pa.bool_())
    if flags is None:
        return np.zeros(len(table), np.bool_)
    return np.asarray(pc.fill_null(flags, False).to_numpy(zero_copy_only=False))
