"""Limits a part's statistics to a number of bytes that grows with its rows.

Invariant: no bound ever moves inward; what is dropped is unknown. Value sets are dropped first; then texts
are shortened; then paths of JSON documents are dropped, the deepest and most mixed first; then bounds of
columns, the longest first. What should be kept (by ``tamis.stats.keep``, or because recent filters used it)
is dropped last. A dropped path is noted in the row above it, so that it is not taken for absent.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from tamis.core.stats.columns.bounds import next_bytes, next_text
from tamis.core.stats.json_paths.path_rows import INCOMPLETE, LONG, REAL, ROOT, STRING, TRIMMED, Paths, PathStatistics
from tamis.core.stats.statistics_columns import (
    BOUNDS,
    COUNTS,
    HI_EXACT,
    LO_EXACT,
    NO_ROOM,
    VALUES,
    count_name,
    parse_name,
)

BYTES = 64 * 2**10
"""The default budget of a part of up to ``ROWS`` rows."""
ROWS = 65_536
_LENGTHS = (32, 16, 8)
"""Lengths in characters to which texts are shortened, in order."""

Kept = frozenset[tuple[int, str]]
"""Column ids with the path in their documents ($ for the column itself)."""


@dataclass(slots=True)
class Trimmed:
    """The statistics that are left, and the number of those dropped."""

    statistics: pa.Table
    documents: dict[int, Paths]
    dropped: int = 0


def budget(given: int | None, rows: int) -> int:
    """Return the bytes for a part with this many rows."""
    return (BYTES if given is None else given) * max(1, -(-rows // ROWS))


def trim(statistics: pa.Table, documents: dict[int, Paths], room: int, keep: Kept = frozenset()) -> Trimmed:
    """Trim a part's statistics (one row) and paths to at most ``room`` bytes."""
    out = Trimmed(statistics, documents)
    if _size(out) <= room:
        return out
    _drop_values(out, keep, kept=False)
    if _size(out) <= room:
        return out
    for length in _LENGTHS:
        _shorten(out, length, keep)
        if _size(out) <= room:
            return out
    for kept in (False, True):
        if kept:
            _drop_values(out, keep, kept)
        for identifier, path in _least_useful(out.documents, keep, kept):
            if _size_of(out, room):
                return out
            _drop_path(out, identifier, path)
        for identifier in _longest(out.statistics, keep, kept):
            if _size_of(out, room):
                return out
            _drop_bounds(out, identifier)
    return out


def _size_of(out: Trimmed, room: int) -> bool:
    return _size(out) <= room


def _size(out: Trimmed) -> int:
    """Return the bytes of the values; names are not counted because they compress well."""
    columns = sum(_width(column[0]) for column in out.statistics.columns)
    return columns + sum(_path_size(path, found) for paths in out.documents.values() for path, found in paths.items())


def _width(value: pa.Scalar) -> int:
    if not value.is_valid:
        return 0
    if isinstance(value, pa.ListScalar):
        return sum(map(_width, value))
    # Only text and binary (a base class of text in Arrow) convert to Python, which lacks some dates.
    return len(value.as_py()) if isinstance(value, pa.BinaryScalar) else 8


def _path_size(path: str, found: PathStatistics) -> int:
    bounds = (
        16 * bool(found.kinds & LONG) + 16 * bool(found.kinds & REAL) + sum(len(text or "") for text in found.string)
    )
    return len(path) + 24 + bounds


def _drop_values(out: Trimmed, keep: Kept, kept: bool) -> None:
    """Drop the value sets of columns; their bounds stay."""
    for name in out.statistics.column_names:
        parsed = parse_name(name)
        if parsed is not None and parsed.kind == VALUES and ((parsed.id, ROOT) in keep) is kept:
            out.dropped += out.statistics[name].null_count == 0
            out.statistics = _with(out.statistics, name, pa.nulls(1, out.statistics.schema.field(name).type))


def _shorten(out: Trimmed, length: int, keep: Kept) -> None:
    for identifier, paths in out.documents.items():
        for path, found in paths.items():
            if found.kinds & STRING and not _kept(identifier, path, keep):
                low, high = found.string
                found.string = (
                    low and low[:length],
                    high if high is None or len(high) <= length else next_text(high[:length]),
                )
    for name in out.statistics.column_names:
        parsed = parse_name(name)
        if parsed is not None and parsed.kind in BOUNDS and (parsed.id, ROOT) not in keep:
            _shorten_column(out, name, parsed.id, parsed.kind, length)


def _shorten_column(out: Trimmed, name: str, identifier: int, kind: str, length: int) -> None:
    value = out.statistics[name][0]
    plain = value.as_py() if pa.types.is_string(value.type) or pa.types.is_binary(value.type) else None
    if plain is None or len(plain) <= length:
        return
    short = plain[:length]
    if kind == "hi":
        short = next_text(short) if isinstance(short, str) else next_bytes(short)
    out.statistics = _with(out.statistics, name, pa.array([short], value.type))
    _unflag(out, identifier, LO_EXACT if kind == "lo" else HI_EXACT)


def _unflag(out: Trimmed, identifier: int, bit: int, instead: int = 0) -> None:
    name = count_name(identifier, "exact")
    if name in out.statistics.column_names:
        out.statistics = _with(
            out.statistics, name, pa.array([(out.statistics[name][0].as_py() or 0) & ~bit | instead], COUNTS["exact"])
        )


def _with(table: pa.Table, name: str, column: pa.Array) -> pa.Table:
    return table.set_column(table.schema.get_field_index(name), name, column)


def _kept(identifier: int, path: str, keep: Kept) -> bool:
    """Return whether this path, or one above or below it, is to be kept: evidence needs all of them."""
    return any(i == identifier and (_leads(path, other) or _leads(other, path)) for i, other in keep)


def _leads(above: str, below: str) -> bool:
    return below.startswith(above) and below[len(above) :][:1] in {"", ".", "["}


def _least_useful(documents: dict[int, Paths], keep: Kept, kept: bool) -> Iterable[tuple[int, str]]:
    """Return paths in the order in which they are dropped.

    Deeper paths come first, at equal depth those with more kinds, then the longest.
    """

    def order(item: tuple[int, str, PathStatistics]) -> tuple[int, int, int]:
        _, path, found = item
        return -(path.count(".") + path.count("[")), -bin(found.kinds & 0xFF).count("1"), -_path_size(path, found)

    found = [
        (i, path, s) for i, paths in documents.items() for path, s in paths.items() if _kept(i, path, keep) is kept
    ]
    return [(i, path) for i, path, _ in sorted(found, key=order)]


def _drop_path(out: Trimmed, identifier: int, path: str) -> None:
    """Drop this path and those below it, and note that in the row above."""
    paths = out.documents[identifier]
    gone = [other for other in paths if _leads(path, other)]
    for other in gone:
        del paths[other]
    out.dropped += len(gone)
    above = max((other for other in paths if _leads(other, path)), key=len, default=None)
    if above is not None:
        paths[above].kinds |= INCOMPLETE | TRIMMED


def _longest(statistics: pa.Table, keep: Kept, kept: bool) -> list[int]:
    """Return the columns with bounds, longest bounds first."""
    sizes: dict[int, int] = {}
    for name in statistics.column_names:
        parsed = parse_name(name)
        if parsed is not None and parsed.kind in BOUNDS and ((parsed.id, ROOT) in keep) is kept:
            sizes[parsed.id] = sizes.get(parsed.id, 0) + _width(statistics[name][0])
    return sorted(sizes, key=lambda i: -sizes[i])


def _drop_bounds(out: Trimmed, identifier: int) -> None:
    for name in out.statistics.column_names:
        parsed = parse_name(name)
        if parsed is not None and parsed.id == identifier and parsed.kind in BOUNDS:
            out.statistics = _with(out.statistics, name, pa.nulls(1, out.statistics.schema.field(name).type))
    _unflag(out, identifier, LO_EXACT | HI_EXACT, NO_ROOM)
    out.dropped += 1
