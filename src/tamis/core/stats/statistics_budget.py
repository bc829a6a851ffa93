"""Limits a part's statistics to a number of bytes that grows with its rows.

Invariant: no bound ever moves inward; what is dropped is unknown. Value sets are dropped first; then texts
are shortened; then positions of arrays and keys of maps are dropped; then paths of JSON documents, positions of
lists first, then the deepest and most mixed; then bounds of columns, the longest first; then the columns of
clustering tuples from the last one on; then counts; then bounds of clustering columns, those of the first one last,
and their counts. Statistics that recent filters used are dropped after all others, and those that
``tamis.stats.keep`` names are never dropped. A dropped path is noted in the row above it, so that it is not taken
for absent.

The cost is linear in the number of statistics: sizes are kept incrementally, and Arrow arrays are built once,
from what is left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from tamis.core.expr.functions.text.text_order import next_text
from tamis.core.stats.columns import clustering_tuples
from tamis.core.stats.columns.bounds import shortened_bound
from tamis.core.stats.columns.clustering_tuples import FIRST_EXACT, LAST_EXACT
from tamis.core.stats.json_paths.kept_paths import KeptPaths
from tamis.core.stats.json_paths.path_rows import (
    INCOMPLETE,
    LONG,
    REAL,
    ROOT,
    STRING,
    TRIMMED,
    Paths,
    PathStatistics,
    list_of_position,
    nearest_ancestor,
)
from tamis.core.stats.statistics_columns import (
    BOUNDS,
    HI_EXACT,
    LISTED,
    LO_EXACT,
    NO_ROOM,
    PLACED,
    PLACES,
    VALUES,
    Figure,
)

BYTES = 64 * 2**10
"""The default budget of a part of up to ``ROWS`` rows."""
ROWS = 65_536
_LENGTHS = (32, 16, 8)
"""Lengths in characters to which texts are shortened, in order."""
_PATH_BYTES = 24
"""Bytes of a path's row besides its text and bounds: kinds and counts."""

_SHORTENED = (
    ("lo", "exact", LO_EXACT),
    ("hi", "exact", HI_EXACT),
    ("first", "edge", FIRST_EXACT),
    ("last", "edge", LAST_EXACT),
)
"""The kinds whose texts are shortened, each with the flags that say whether it is exact, and its bit there."""

Places = frozenset[tuple[int, str]]
"""Column ids with the path in their documents ($ for the column itself)."""


@dataclass(frozen=True, slots=True)
class Priorities:
    """The statistics that are never dropped (``always``) and those that are dropped last."""

    always: Places = frozenset()
    last: Places = frozenset()


_NONE = Priorities()


@dataclass(slots=True)
class Trimmed:
    """The statistics that are left: arrays of one row by column name, and the paths of documents.

    ``dropped`` is the number of statistics that were dropped, ``excess`` the bytes beyond the budget, which
    statistics that are always kept can cause.
    """

    statistics: dict[str, pa.Array]
    documents: dict[int, Paths]
    size: int
    dropped: int = 0
    excess: int = 0


def part_budget(given: int | None, rows: int) -> int:
    """Return the bytes for a part with this many rows."""
    return (BYTES if given is None else given) * max(1, -(-rows // ROWS))


def trim_statistics(
    figures: Iterable[Figure], documents: dict[int, Paths], room: int, priorities: Priorities = _NONE
) -> Trimmed:
    """Trim a part's statistics and paths to at most ``room`` bytes of values.

    Names are not counted: they are stored once per segment. ``documents`` is changed in place.
    """
    ledger = _Ledger(documents)
    for figure in figures:
        ledger.add(figure)
    if ledger.size > room:
        for _ in _reductions(ledger, priorities):
            if ledger.size <= room:
                break
    return Trimmed(ledger.arrays(), documents, ledger.size, ledger.dropped, max(0, ledger.size - room))


@dataclass(slots=True)
class _Column:
    """The figures of one column by kind, and their sizes in bytes."""

    figures: dict[str, Figure] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)


class _Ledger:
    """A part's statistics and the bytes that they take."""

    def __init__(self, documents: dict[int, Paths]) -> None:
        self.columns: dict[int, _Column] = {}
        self.documents = documents
        self.size = sum(_path_size(path, found) for paths in documents.values() for path, found in paths.items())
        self.dropped = 0

    def add(self, figure: Figure) -> None:
        name = figure[0]
        identifier = int(name[: name.index("|")])
        column = self.columns.get(identifier)
        if column is None:
            column = self.columns[identifier] = _Column()
        self._set(column, name[name.rindex("|") + 1 :], figure)

    def arrays(self) -> dict[str, pa.Array]:
        """Return an array of one value for each figure: slices of one array per type, which are faster to make.

        Lists are not slices, so that readers need not account for their offsets.
        """
        by_type: dict[pa.DataType, list[Any]] = {}
        found: dict[str, tuple[pa.DataType, int]] = {}
        for column in self.columns.values():
            for name, arrow, value in column.figures.values():
                values = by_type.setdefault(arrow, [])
                found[name] = (arrow, len(values))
                values.append(value)
        whole = {arrow: _cells(values, arrow) for arrow, values in by_type.items()}
        return {name: whole[arrow](at) for name, (arrow, at) in found.items()}

    def drop(self, identifier: int, kinds: Iterable[str]) -> int:
        """Drop these kinds of a column's figures; return how many of them held a value."""
        column, held = self.columns[identifier], 0
        for kind in kinds:
            if kind in column.figures:
                del column.figures[kind]
                width = column.sizes.pop(kind)
                self.size -= width
                held += width > 0
        return held

    def drop_bounds(self, identifier: int) -> None:
        """Drop a column's bounds, and note that there was no room for them."""
        self.drop(identifier, BOUNDS)
        self._flag(identifier, LO_EXACT | HI_EXACT, NO_ROOM)
        self.dropped += 1

    def drop_places(self, identifier: int) -> bool:
        """Drop the statistics of single positions or keys, all together; return whether there were any."""
        kinds = [k for k in self.columns[identifier].figures if k in (PLACES, LISTED) or k.startswith(PLACED)]
        held = self.drop(identifier, kinds)
        self.dropped += held > 0
        return held > 0

    def drop_counts(self, identifier: int) -> None:
        """Drop all of a column's figures but its bounds."""
        counts = [kind for kind in self.columns[identifier].figures if kind not in BOUNDS]
        self.dropped += self.drop(identifier, counts)

    def drop_path(self, identifier: int, path: str) -> None:
        """Drop a path and note that in the row above it."""
        paths = self.documents[identifier]
        self.size -= _path_size(path, paths.pop(path))
        self.dropped += 1
        above = nearest_ancestor(path, paths)
        if above is not None:
            paths[above].kinds |= INCOMPLETE | TRIMMED

    def shorten_path(self, identifier: int, path: str, length: int) -> None:
        found = self.documents[identifier][path]
        before = _path_size(path, found)
        low, high = found.string
        found.string = (
            low and low[:length],
            high if high is None or len(high) <= length else next_text(high[:length]),
        )
        self.size += _path_size(path, found) - before

    def shorten_bounds(self, identifier: int, length: int) -> None:
        """Shorten a column's texts, in bounds and in clustering tuples; what is shortened is no longer exact."""
        column = self.columns[identifier]
        for kind, flags, bit in _SHORTENED:
            if column.sizes.get(kind, 0) > length:
                name, arrow, value = column.figures[kind]
                short = shortened_bound(value, length, upper=kind in ("hi", "last"))
                if short is not value:
                    self._set(column, kind, (name, arrow, short))
                    self._flag(identifier, bit, flags=flags)

    def rank(self, identifier: int) -> int:
        """Return the column's place in the clustering tuples, or -1."""
        figure = self.columns[identifier].figures.get("rank")
        return -1 if figure is None else int(figure[2])

    def _flag(self, identifier: int, clear: int, put: int = 0, *, flags: str = "exact") -> None:
        column = self.columns[identifier]
        if flags in column.figures:
            name, arrow, value = column.figures[flags]
            column.figures[flags] = (name, arrow, value & ~clear | put)

    def _set(self, column: _Column, kind: str, figure: Figure) -> None:
        width = _width(figure[2])
        self.size += width - column.sizes.get(kind, 0)
        column.figures[kind], column.sizes[kind] = figure, width


def _cells(values: list[Any], arrow: pa.DataType) -> Callable[[int], pa.Array]:
    """Return a function that gives the array of one of ``values``."""
    if pa.types.is_nested(arrow):
        nothing = pa.nulls(1, arrow)
        return lambda at: nothing if values[at] is None else pa.array([values[at]], arrow)
    whole = pa.array(values, arrow)
    return lambda at: whole.slice(at, 1)


def _reductions(ledger: _Ledger, priorities: Priorities) -> Iterator[None]:
    """Make the statistics smaller, one step at a time."""
    always, late = _paths_by_column(priorities.always), _paths_by_column(priorities.last)
    nothing = KeptPaths()

    def of_columns(last: bool) -> list[int]:
        return [
            i for i in ledger.columns if (i, ROOT) not in priorities.always and ((i, ROOT) in priorities.last) is last
        ]

    def of_paths(last: bool) -> list[tuple[int, str, PathStatistics]]:
        return [
            (i, path, found)
            for i, paths in ledger.documents.items()
            for path, found in paths.items()
            if not always.get(i, nothing).concerns(path) and late.get(i, nothing).concerns(path) is last
        ]

    for last in (False, True):
        columns = of_columns(last)
        for identifier in columns:
            ledger.dropped += ledger.drop(identifier, [VALUES])
        yield
        paths = of_paths(last)
        for length in _LENGTHS if not last else ():
            for identifier, path, found in paths:
                if found.kinds & STRING:
                    ledger.shorten_path(identifier, path, length)
            for identifier in columns:
                ledger.shorten_bounds(identifier, length)
            yield
        for identifier in reversed(columns):
            if ledger.drop_places(identifier):
                yield
        for identifier, path, _ in sorted(paths, key=_usefulness):
            ledger.drop_path(identifier, path)
            yield
        yield from _column_reductions(ledger, columns)


def _column_reductions(ledger: _Ledger, columns: list[int]) -> Iterator[None]:
    """Drop all that is left of these columns, one step at a time; bounds of the first clustering column go last."""
    ranks = {identifier: rank for identifier in columns if (rank := ledger.rank(identifier)) >= 0}
    for identifier in _longest_bounds(ledger, [i for i in columns if i not in ranks]):
        ledger.drop_bounds(identifier)
        yield
    for identifier in sorted(ranks, key=ranks.__getitem__, reverse=True):
        ledger.drop(identifier, clustering_tuples.KINDS)
        ledger.dropped += 1
        yield
    for identifier in columns:
        if identifier not in ranks:
            ledger.drop_counts(identifier)
            yield
    for identifier in sorted(_longest_bounds(ledger, list(ranks)), key=ranks.__getitem__, reverse=True):
        ledger.drop_bounds(identifier)
        yield
    for identifier in ranks:
        ledger.drop_counts(identifier)
        yield


def _paths_by_column(places: Places) -> dict[int, KeptPaths]:
    by_column: dict[int, list[str]] = {}
    for identifier, path in places:
        by_column.setdefault(identifier, []).append(path)
    return {identifier: KeptPaths(paths) for identifier, paths in by_column.items()}


def _usefulness(item: tuple[int, str, PathStatistics]) -> tuple[bool, int, int, int]:
    """Order paths as they are dropped: positions, then deep ones, then those of many kinds, then the longest.

    A path that is not kept has no kept path below it, so that the paths below it are dropped before it.
    """
    _, path, found = item
    depth = path.count(".") + path.count("[")
    return list_of_position(path) is None, -depth, -(found.kinds & 0xFF).bit_count(), -_path_size(path, found)


def _longest_bounds(ledger: _Ledger, columns: list[int]) -> list[int]:
    """Return the columns with bounds, longest bounds first; of equals, the last column first."""
    sizes = {i: sum(ledger.columns[i].sizes.get(kind, 0) for kind in BOUNDS) for i in columns}
    return sorted(
        (i for i in reversed(columns) if any(k in ledger.columns[i].figures for k in BOUNDS)), key=lambda i: -sizes[i]
    )


def _width(value: Any) -> int:
    """Return the bytes of a figure: 8 for a fixed width, the length of a text, the sum of a set."""
    if value is None:
        return 0
    if isinstance(value, int):
        return 8
    if isinstance(value, str | bytes):
        return len(value.encode() if isinstance(value, str) else value)
    if isinstance(value, pa.Array):
        return sum(map(_width, value))
    if not value.is_valid:
        return 0
    # Binary is a base class of text in Arrow.
    return int(value.as_buffer().size) if isinstance(value, pa.BinaryScalar) else 8


def _path_size(path: str, found: PathStatistics) -> int:
    texts = sum(len(text.encode()) for text in (path, *found.string) if text)
    times = 20 if found.times is not None and found.times.lo is not None else 0
    return texts + times + _PATH_BYTES + 16 * bool(found.kinds & LONG) + 16 * bool(found.kinds & REAL)
