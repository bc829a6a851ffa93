"""Collects the paths of VARIANT columns: walks the binary form path by path, for all rows at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.expr.json_codec import variant_columns as v
from tamis.core.expr.json_codec.iso_times import (
    DATE_VALUE,
    INSTANT_VALUE,
    LOCAL_VALUE,
    NO_TIMES,
    Times,
    looks_like_time,
    times_of_texts,
)
from tamis.core.expr.json_codec.json_path import ELEMENT, Steps, stored_path
from tamis.core.expr.json_codec.variant_bytes import (
    bytes_at,
    decimals_at,
    decimals_in,
    longs_at,
    longs_in,
    places_at,
    string_slices,
)
from tamis.core.expr.time_zones import DAY
from tamis.core.stats.json_paths.element_paths import paths_of_elements
from tamis.core.stats.json_paths.json_strings import are_plain, lines_of_texts, lines_of_words, string_statistics
from tamis.core.stats.json_paths.path_rows import (
    FALSE,
    HI_EXACT,
    INCOMPLETE,
    LIST,
    LO_EXACT,
    LONG,
    MAP,
    OTHER,
    REAL,
    ROOT,
    STRANGE,
    STRING,
    TRIMMED,
    TRUE,
    Paths,
    PathStatistics,
    combine_paths,
)
from tamis.core.stats.json_paths.path_selection import PathSelection
from tamis.core.stats.json_paths.text_paths import DEEPEST
from tamis.sizes import SIZES

LEAST, AT_ONCE = SIZES.variant_values, 2**20
"""Values and bytes walked together, few enough to stay in the cache (measured)."""
MANY = SIZES.variant_layout
"""Number of objects of one layout from which reading their fields together pays off."""
_FIFTEEN = 10**15
_TYPED_TIMES = {
    v.DATE: (DATE_VALUE, "<i4", DAY),
    v.TIMESTAMP: (INSTANT_VALUE, "<i8", 1),
    v.TIMESTAMP_NTZ: (LOCAL_VALUE, "<i8", 1),
}
"""By kind of value: its form, its stored type, and microseconds per unit."""
_POWERS = np.array([10.0**scale for scale in range(23)])


def paths_of(column: pa.StructArray, selection: PathSelection | None = None) -> Paths:
    """Return the paths of a block's values that ``selection`` takes.

    Undecodable values make all paths unknown, and raise no error.
    """
    selection = selection or PathSelection()
    found: Paths = {}
    count = max(LEAST, len(column) * AT_ONCE // max(column.nbytes, 1))
    try:
        for start in range(0, len(column) or 1, count):
            now = _Walk(selection).of(v.nodes(column.slice(start, count)))
            found = selection.fold_objects(combine_paths(found, now) if found else now)
    except (LookupError, ValueError, ArithmeticError, MemoryError, pa.ArrowException):
        return {ROOT: PathStatistics(STRANGE | INCOMPLETE, 0, None)}
    return found


class _Walk:
    def __init__(self, selection: PathSelection) -> None:
        self._found: Paths = {}
        self._selection = selection

    def of(self, nodes: v.Nodes) -> Paths:
        self._walk(nodes if not (nodes.at < 0).any() else nodes.take(nodes.at >= 0), ())
        return self._found

    def _walk(self, nodes: v.Nodes, steps: Steps) -> None:
        """Record a path from all of its values in the block.

        Each path is walked once, so that a walk that stops at a limit leaves no path partially covered.
        """
        here = self._found[stored_path(steps)] = PathStatistics()
        kinds = nodes.kinds()
        first = int(kinds[0]) if len(kinds) else v.MISSING
        distinct = [first] if (kinds == first).all() else np.unique(kinds).tolist()
        for kind in distinct:
            mine = nodes if len(distinct) == 1 else nodes.take(kinds == kind)
            if kind == v.MISSING:
                continue
            if kind == v.NULL:
                here.add(PathStatistics(0, 0, len(mine)))
            else:
                here.add(_leaf(mine, kind))
                self._below(here, mine, kind, steps)

    def _below(self, here: PathStatistics, nodes: v.Nodes, kind: int, steps: Steps) -> None:
        if kind not in (v.OBJECT, v.ARRAY):
            return
        if len(steps) >= DEEPEST:
            here.kinds |= INCOMPLETE
            return
        if kind == v.ARRAY:
            elements = _by_position(nodes, self._selection.positions_below(self._found, here, steps))
            self._found |= paths_of_elements(steps, elements, self._apart)
            return
        layouts = list(v.members(nodes))
        taken = self._taken(here, layouts, len(nodes), stored_path(steps))
        layouts_with = Counter(chain.from_iterable(keys for keys, _, _ in layouts))
        listed: dict[str, list[tuple[Any, Any]]] = {key: [] for key in sorted(taken or ())}
        for keys, rows, at in layouts:
            mine = [line for line, key in enumerate(keys) if taken is None or key in taken]
            own = [line for line in mine if layouts_with[keys[line]] == 1] if at.shape[1] >= MANY else []
            if own:
                self._together(
                    nodes, [keys[line] for line in own], rows, at if len(own) == len(keys) else at[own], steps
                )
            own_keys = {keys[line] for line in own}
            for line in mine:
                if keys[line] not in own_keys:
                    listed.setdefault(keys[line], []).append((rows, at[line]))
                else:
                    listed.pop(keys[line], None)
        for key, groups in listed.items():
            if not groups:  # a folded object is walked for this key, and no value of the block has it
                self._found[stored_path((*steps, key))] = PathStatistics()
                continue
            rows = groups[0][0] if len(groups) == 1 else np.concatenate([rows for rows, _ in groups])
            at = groups[0][1] if len(groups) == 1 else np.concatenate([at for _, at in groups])
            if len(groups) > 1:  # readers of texts expect ascending positions
                order = np.argsort(at)
                rows, at = rows[order], at[order]
            self._walk(nodes.child(rows, at), (*steps, key))

    def _apart(self, nodes: v.Nodes, steps: Steps) -> Paths:
        """Return the paths at and below ``steps``, without adding them to the others."""
        others, self._found = self._found, {}
        self._walk(nodes, steps)
        found, self._found = self._found, others
        return found

    def _taken(self, here: PathStatistics, layouts: list[Any], objects: int, path: str) -> frozenset[str] | None:
        """Return the keys to walk of the objects at a path, or None for all."""
        counts: Counter[str] = Counter()
        for keys, rows, _ in layouts:
            for key in keys:
                counts[key] += len(rows)
        taken = self._selection.keys_below(path, counts, objects)
        if taken is not None and not counts.keys() <= taken:
            here.kinds |= INCOMPLETE | TRIMMED
        return taken

    def _together(self, nodes: v.Nodes, keys: list[str], rows: Any, at: Any, steps: Steps) -> None:
        """Record fields that occur in one layout only, reading fields of uniform kind together.

        ``at`` has a line for each key.
        """
        words, headers, kinds = v.headers(nodes.data, at)
        alike = (kinds == kinds[:, :1]).all(axis=1)
        by_line: dict[int, PathStatistics] = {}
        for kind, read in ((v.LONG, _longs), (v.STRING, _short_strings), (v.DECIMAL, _easy_decimals)):
            lines = np.flatnonzero(alike & (kinds[:, 0] == kind))
            if len(lines):
                found = read(nodes.data, at[lines], headers[lines], words[lines])
                by_line |= {line: one for line, one in zip(lines.tolist(), found, strict=True) if one is not None}
        for line, key in enumerate(keys):
            if line in by_line:
                self._found[stored_path((*steps, key))] = by_line[line]
            else:
                self._walk(nodes.child(rows, at[line]), (*steps, key))


def _by_position(nodes: v.Nodes, placed: int) -> Iterator[tuple[int, v.Nodes]]:
    """Yield the elements of the first ``placed`` positions that occur, and then all others."""
    rows, at, nth = v.elements(nodes)
    every = v.Nodes(nodes.data, at, nodes.shape[rows], nodes.names)
    for position in range(min(placed, int(nth.max()) + 1 if len(nth) else 0)):
        yield position, every.take(nth == position)
    yield ELEMENT, every.take(nth >= placed) if placed else every


def _longs(data: Any, at: Any, headers: Any, words: Any) -> list[PathStatistics | None]:
    """Return the statistics of integers, for each line of positions.

    ``words`` are the eight bytes at each; they may be overwritten.
    """
    values = longs_in(words, headers)
    if values is None:
        values = longs_at(data, at, headers)
    return [
        PathStatistics(LONG, at.shape[1], 0, long=both)
        for both in zip(values.min(axis=1).tolist(), values.max(axis=1).tolist(), strict=True)
    ]


def _short_strings(data: Any, at: Any, headers: Any, words: Any) -> list[PathStatistics] | list[None]:
    """Return the statistics of strings, for each line of positions; None if not all strings are plain."""
    if int(headers.max()) <= v.SEVEN_BYTES and ((headers & 3) == 1).all():
        return lines_of_words(words.view(np.uint64) >> np.uint64(8), headers >> 2) or [None] * len(at)
    starts, lengths = places_at(data, at, headers)
    ends = starts + lengths
    return lines_of_texts(data, starts, ends) if are_plain(data, starts, ends) else [None] * len(at)


def _easy_decimals(data: Any, at: Any, headers: Any, words: Any) -> list[PathStatistics | None]:
    """Return the statistics of decimals, for each line of positions; None unless all are easy."""
    found = decimals_in(words, headers)
    values, easy = _quotients(*decimals_at(data, at, headers)) if found is None else _quotients(*found, np.True_)
    kinds, good = REAL | LO_EXACT | HI_EXACT, easy.all(axis=1).tolist()
    both = zip(values.min(axis=1).tolist(), values.max(axis=1).tolist(), strict=True)
    return [
        PathStatistics(kinds, at.shape[1], 0, real=ends) if fine else None
        for fine, ends in zip(good, both, strict=True)
    ]


def _quotients(unscaled: Any, scale: Any, small: Any) -> tuple[Any, Any]:
    """Return decimals as doubles, and for which of them this is easy.

    If both numbers are exact doubles, the quotient is the double nearest to the decimal; with at most 15
    digits, its shortest text is that of the decimal.
    """
    easy = small & (unscaled < _FIFTEEN) & (unscaled > -_FIFTEEN) & (scale < len(_POWERS))
    return unscaled / _POWERS.take(scale, mode="clip"), easy


def _leaf(nodes: v.Nodes, kind: int) -> PathStatistics:
    count = len(nodes)
    if kind == v.LONG:
        values = v.longs(nodes)
        return PathStatistics(LONG, count, 0, long=(int(values.min()), int(values.max())))
    if kind == v.STRING:
        return _strings(nodes)
    if kind in (v.DOUBLE, v.DECIMAL):
        return _reals(nodes, kind)
    if kind in _TYPED_TIMES:
        form, width, scale = _TYPED_TIMES[kind]
        moments = v.fixed(nodes, width).astype(np.int64)
        lo, hi = int(moments.min()) * scale, int(moments.max()) * scale
        times = Times(form, lo, hi) if max(-lo, hi) < 2**63 else NO_TIMES
        return PathStatistics(OTHER, count, 0, times=times)
    plain = {v.TRUE: TRUE, v.FALSE: FALSE, v.OBJECT: MAP, v.ARRAY: LIST}.get(kind, OTHER)
    return PathStatistics(plain, count, 0)


def _strings(nodes: v.Nodes) -> PathStatistics:
    starts, lengths = v.places(nodes)
    ends = starts + lengths
    if are_plain(nodes.data, starts, ends):
        return string_statistics(nodes.data, starts, ends)
    values = string_slices(nodes.data, starts, lengths)
    values.validate(full=True)
    both = pc.min_max(values)
    low, high = both["min"].as_py(), both["max"].as_py()
    times = times_of_texts(values) if looks_like_time(low) and looks_like_time(high) else NO_TIMES
    return PathStatistics(STRING, len(nodes), 0, string=(low, high), times=times)


def _reals(nodes: v.Nodes, kind: int) -> PathStatistics:
    if kind == v.DOUBLE:
        values = v.fixed(nodes, "<f8")
        if not np.isfinite(values).all():
            return PathStatistics(OTHER | REAL, len(nodes), 0)
        return PathStatistics(
            REAL | LO_EXACT | HI_EXACT, len(nodes), 0, real=(float(values.min()), float(values.max()))
        )
    values, easy = _quotients(*decimals_at(nodes.data, nodes.at, bytes_at(nodes.data, nodes.at)))
    parts = []
    if easy.any():
        values = values[easy]
        parts.append(
            PathStatistics(REAL | LO_EXACT | HI_EXACT, len(values), 0, real=(float(values.min()), float(values.max())))
        )
    if not easy.all():
        numbers = v.decimals(nodes.take(~easy))
        parts.append(PathStatistics(REAL, len(numbers), 0, real=(float(min(numbers)), float(max(numbers)))))
    for other in parts[1:]:
        parts[0].add(other)
    return parts[0]
