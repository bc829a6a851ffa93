"""The stored form of JSON path statistics: rows of a segment's table ``paths``, per part, column and path.

Invariant: a row lists the kinds of values at its path and admits every value that occurs. What a row does not
say is unknown; a path without a row is known to be absent only if the row above it lists all its keys.
Columns are named by column id, so that only those of requested columns are read.

Counts are of the part's documents (below a list: of its elements). ``present`` counts values other than
JSON's null. ``nulls`` counts JSON's nulls, or is NULL if they were not distinguished from missing keys.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.core.expr.json_codec.iso_times import NO_TIMES, NOTHING, Times

FALSE, TRUE, LONG, REAL, STRING, LIST, MAP, OTHER = (1 << i for i in range(8))
"""Kinds of values.

LONG: 64-bit integers. REAL: all other numbers. OTHER: scalars that JSON lacks.
"""
STRANGE = 1 << 8
"""At the root: Spark's functions disagree on some document (duplicate keys, non-standard JSON)."""
INVALID = 1 << 9
"""At the root: some text is not JSON, and no path finds anything in it."""
INCOMPLETE = 1 << 10
"""Keys or elements below are not all listed."""
TRIMMED = 1 << 11
"""Keys or elements below were dropped for lack of space."""
LO_EXACT, HI_EXACT = 1 << 12, 1 << 13
"""The bound of REAL is the shortest decimal of this double, and occurs as such."""
KNOWN = (1 << 14) - 1
"""All known bits; any other is a kind of a later version and makes the row unknown."""

ROOT = "$"
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_QUOTED, _POSITION = re.compile(r"\['(?:[^'\\]|\\.)*'\]", re.DOTALL), re.compile(r"\[\d\]")

WHOLE, PLACED_ELEMENTS = 1, 2
WALK = PLACED_ELEMENTS
"""How a document's paths were walked, as stored in ``walk``: from 1 on each path from all its values.

Earlier writers (0, or no such column) walked the layouts of VARIANT objects one after another. If a limit
ended that walk, rows below an INCOMPLETE object may cover only some of its layouts.

From 2 on, the first elements of lists have rows by position (``json_path.POSITIONS``) besides the row of all
elements. Only below a row with 2 are such rows believed, and is a position without a row absent if the row is
not INCOMPLETE: what wrote 1 knew no positions, and joined rows as if a position were a key. Therefore they are
not believed below an INCOMPLETE row of a union either.
"""

COLUMNS = {
    "path": pa.string(),
    "kinds": pa.int32(),
    "present": pa.int64(),
    "nulls": pa.int64(),
    "long.lo": pa.int64(),
    "long.hi": pa.int64(),
    "real.lo": pa.float64(),
    "real.hi": pa.float64(),
    "string.lo": pa.string(),
    "string.hi": pa.string(),
    "walk": pa.int8(),
    "time.form": pa.int32(),
    "time.lo": pa.int64(),
    "time.hi": pa.int64(),
}
"""The suffixes of column names after the column id and a bar, with their types."""
STACKED = pa.schema({"column_id": pa.int32(), **COLUMNS})
"""The columns of a part's paths on the way from its writer to its committer."""
MOST_CELLS = 2**26
"""Limit on paths times columns of a part."""
LATER_COLUMNS = frozenset({"walk", "time.form", "time.lo", "time.hi"})
"""Columns that earlier writers did not have; NULL if absent."""


@dataclass(slots=True)
class PathStatistics:
    """The statistics of one path in one part.

    Bounds are inclusive, None if unknown; those of REAL are the nearest doubles.
    """

    kinds: int = 0
    present: int = 0
    nulls: int | None = 0
    long: tuple[int | None, int | None] = (None, None)
    real: tuple[float | None, float | None] = (None, None)
    string: tuple[str | None, str | None] = (None, None)
    walk: int = WALK
    times: Times | None = None
    """The form and bounds of dates and times (``iso_times``), or None if they were not determined."""

    def known_times(self) -> Times:
        """Return ``times``; texts and other scalars whose times were not determined are no times."""
        if self.times is not None:
            return self.times
        return NO_TIMES if self.kinds & (STRING | OTHER) else NOTHING

    def add(self, other: PathStatistics) -> None:
        """Widen by the statistics of other documents at the path."""
        lo, hi = self._real_exact(other)
        self.long = _both(self.long, other.long, self.kinds & LONG, other.kinds & LONG)
        self.real = _both(self.real, other.real, self.kinds & REAL, other.kinds & REAL)
        self.string = _both(self.string, other.string, self.kinds & STRING, other.kinds & STRING)
        self.times = self.known_times().joined(other.known_times())
        self.kinds = ((self.kinds | other.kinds) & ~(LO_EXACT | HI_EXACT)) | lo | hi
        self.walk = min(self.walk, other.walk)
        self.present += other.present
        self.nulls = None if self.nulls is None or other.nulls is None else self.nulls + other.nulls

    def _real_exact(self, other: PathStatistics) -> tuple[int, int]:
        """Return the exactness bits of both bounds after ``add``."""
        out = []
        for at, bit in ((0, LO_EXACT), (1, HI_EXACT)):
            mine, theirs = (s.real[at] if s.kinds & REAL else None for s in (self, other))
            if mine is None or theirs is None:
                out.append((self.kinds if theirs is None else other.kinds) & bit)
            elif mine == theirs:
                out.append(self.kinds & other.kinds & bit)
            else:
                out.append((self.kinds if (mine < theirs) == (at == 0) else other.kinds) & bit)
        return out[0], out[1]


def join_documents(found: Sequence[PathStatistics]) -> PathStatistics:
    """Return the statistics of all documents that these describe, at least one; what ``add`` gives one by one.

    Those of one kind, which are common, are joined in one pass.
    """
    first = found[0]
    kind = _ALIKE.get(first.kinds)
    if kind is None or any(s.kinds != first.kinds or s.nulls != 0 or s.times not in _UNTIMED for s in found):
        return _joined_slowly(found)
    ends = [getattr(s, kind) for s in found]
    lows, highs = [low for low, _ in ends], [high for _, high in ends]
    if None in lows or None in highs:
        return _joined_slowly(found)
    out = PathStatistics(first.kinds, sum(s.present for s in found), 0, walk=min(s.walk for s in found))
    setattr(out, kind, (min(lows), max(highs)))
    return out


_ALIKE = {LONG: "long", STRING: "string", REAL | LO_EXACT | HI_EXACT: "real"}
"""The bounds of values of one kind, by ``kinds``."""
_UNTIMED = (None, NO_TIMES)


def _joined_slowly(found: Sequence[PathStatistics]) -> PathStatistics:
    out = replace(found[0])
    for other in found[1:]:
        out.add(other)
    return out


def _both(mine: tuple, theirs: tuple, has_mine: int, has_theirs: int) -> tuple:  # type: ignore[type-arg]  # of one of three types
    if not has_mine or not has_theirs:
        return mine if has_mine else theirs
    (a, b), (c, d) = mine, theirs
    return (None if a is None or c is None else min(a, c), None if b is None or d is None else max(b, d))


Paths = dict[str, PathStatistics]
"""The paths of one column in one part, or in some of its documents, by their stored text."""


def parent_of(path: str) -> str | None:
    """Return the stored text of the path one step above, or None for the root."""
    if path == ROOT:
        return None
    if _of_element(path):
        return path[:-3]
    # A quote inside a quoted key is escaped, so that the last "['" before the closing quote opens the last step.
    return path[: path.rindex("['", 0, -2)] if path.endswith("']") else path[: path.rindex(".")]


def last_key(path: str) -> str | None:
    """Return the key of the path's last step, or None for the root and for elements of an array."""
    above = parent_of(path)
    if above is None or _of_element(path):
        return None
    step = path[len(above) :]
    return step[1:] if step.startswith(".") else _ESCAPED.sub(r"\1", step[2:-2])


def _of_element(path: str) -> bool:
    """Return whether the last step is to an element of a list: ``[*]``, or a position of one digit."""
    return path.endswith("]") and not path.endswith("']")


def list_of_position(path: str) -> str | None:
    """Return the path of the innermost list of which ``path`` names a position, or None."""
    plain = _QUOTED.sub(lambda key: "_" * len(key[0]), path) if "['" in path else path
    places = [step.start() for step in _POSITION.finditer(plain)]
    return path[: places[-1]] if places else None


def ancestors_of(path: str) -> Iterator[str]:
    """Yield the paths above this one, the nearest first."""
    above = parent_of(path)
    while above is not None:
        yield above
        above = parent_of(above)


def nearest_ancestor(path: str, paths: Container[str]) -> str | None:
    """Return the nearest path above this one that is listed in ``paths``, or None."""
    return next((above for above in ancestors_of(path) if above in paths), None)


def combine_paths(mine: Paths, theirs: Paths) -> Paths:
    """Return the union of the paths of both sides.

    A path that one side lacks is absent there, unless that side does not list all keys above it; then the
    path is omitted.
    """
    out: Paths = {}
    for path, found in mine.items():
        other = theirs.get(path)
        if other is not None:
            out[path] = replace(found)
            out[path].add(other)
        elif not _hidden(path, theirs):
            out[path] = replace(found)
    out |= {path: replace(found) for path, found in theirs.items() if path not in mine and not _hidden(path, mine)}
    return out


def _hidden(path: str, paths: Paths) -> bool:
    """Return whether a path that is not listed may occur all the same.

    The nearest row above it says whether all keys are listed. For rows of earlier writers (see ``WALK``),
    every row above it must say so. A list's row of a writer without positions lists none.
    """
    nearest, below = True, path
    for above in ancestors_of(path):
        found = paths.get(above)
        if found is not None:
            if (nearest or found.walk < WHOLE) and found.kinds & (INCOMPLETE | STRANGE):
                return True
            if nearest and found.walk < PLACED_ELEMENTS and found.kinds & LIST and _at_position(below):
                return True
            nearest = False
        below = above
    return False


def _at_position(path: str) -> bool:
    """Return whether the last step is a position."""
    return _of_element(path) and not path.endswith("[*]")


def table_of(columns: dict[int, Paths]) -> pa.Table | None:
    """Return the rows of one part, or None if there are none.

    Columns stand side by side: a row has one path of each, or NULL. One below the other, the values would be
    as many as columns times paths of all columns.
    """
    rows = stacked_paths(columns)
    return None if rows is None else side_by_side(rows)


def stacked_paths(columns: dict[int, Paths]) -> pa.Table | None:
    """Return the paths of one part in the columns of ``STACKED``, one row per column and path; None if there are none.

    A writer sends them in this form: it has few columns, however many the table has.
    """
    counts = {identifier: len(paths) for identifier, paths in columns.items() if paths}
    if not counts:
        return None
    ids = np.repeat(np.fromiter(counts, np.int32, len(counts)), list(counts.values()))
    names = [path for paths in columns.values() for path in sorted(paths)]
    found = [paths[path] for paths in columns.values() for path in sorted(paths)]
    times = [s.known_times() for s in found]
    values: dict[str, list[Any]] = {
        "path": names,
        "kinds": [s.kinds for s in found],
        "present": [s.present for s in found],
        "nulls": [s.nulls for s in found],
        "long.lo": [s.long[0] for s in found],
        "long.hi": [s.long[1] for s in found],
        "real.lo": [s.real[0] for s in found],
        "real.hi": [s.real[1] for s in found],
        "string.lo": [s.string[0] for s in found],
        "string.hi": [s.string[1] for s in found],
        "walk": [s.walk for s in found],
        "time.form": [t.form for t in times],
        "time.lo": [t.lo for t in times],
        "time.hi": [t.hi for t in times],
    }
    return pa.table([pa.array(ids), *(pa.array(values[kind], arrow) for kind, arrow in COLUMNS.items())], STACKED)


def side_by_side(rows: pa.Table) -> pa.Table:
    """Return the rows of ``stacked_paths`` as those of ``table_of``.

    Raises ``ValueError`` if the rows of a column do not follow each other, or if the result would be too large.
    """
    rows = rows.combine_chunks()
    ids = rows["column_id"].to_numpy()
    starts = np.flatnonzero(np.diff(ids, prepend=-1))
    if not len(ids) or rows["column_id"].null_count or ids.min() < 0 or len(np.unique(ids)) != len(starts):
        raise ValueError("the paths of a column do not follow each other")
    counts = np.diff(starts, append=len(ids))
    most, nth = int(counts.max()), np.arange(counts.max())
    if most * len(counts) > MOST_CELLS:
        raise ValueError(f"{most} paths of {len(counts)} columns are too many")
    places = None
    if (counts != most).any():
        places = pa.array((starts[:, None] + nth).ravel(), mask=(nth >= counts[:, None]).ravel())
    owners = ids[starts].tolist()
    # One array of all columns per kind, cut into slices: thousands of short arrays take longer to make.
    whole = [rows[kind].chunk(0) if places is None else rows[kind].chunk(0).take(places) for kind in COLUMNS]
    return pa.Table.from_arrays(
        [array.slice(at * most, most) for at in range(len(owners)) for array in whole],
        names=[path_column(identifier, kind) for identifier in owners for kind in COLUMNS],
    )


def path_column(column_id: int, kind: str) -> str:
    return f"{column_id}|{kind}"
