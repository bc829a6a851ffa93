"""Paths of VARIANT columns: the binary form is walked path by path, all rows at once, by gathers over whole arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.expr.documents import variant as v
from tamis.expr.documents.paths import ELEMENT, Steps, stored
from tamis.stats.path_rows import (
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
    TRUE,
    Paths,
    PathStatistics,
    combined,
)
from tamis.stats.path_strings import plain, texts
from tamis.stats.path_text import DEEPEST, MOST_PATHS

LEAST, AT_ONCE = 1024, 2**21
"""Values and bytes that are walked together: as many as stay in the cache (measured)."""


def paths_of(column: pa.StructArray) -> dict[str, PathStatistics]:
    """The paths of a block's values. What cannot be decoded is nothing known, never an error."""
    found: Paths = {}
    count = max(LEAST, len(column) * AT_ONCE // max(column.nbytes, 1))
    try:
        for start in range(0, len(column) or 1, count):
            now = _Walk().of(v.nodes(column.slice(start, count)))
            found = combined(found, now) if found else now
    except (LookupError, ValueError, ArithmeticError, MemoryError, pa.ArrowException):
        return {ROOT: PathStatistics(STRANGE | INCOMPLETE, 0, None)}
    return found


class _Walk:
    def __init__(self) -> None:
        self._found: dict[str, PathStatistics] = {}

    def of(self, nodes: v.Nodes) -> dict[str, PathStatistics]:
        self._walk(nodes if not (nodes.at < 0).any() else nodes.take(nodes.at >= 0), ())
        return self._found

    def _walk(self, nodes: v.Nodes, steps: Steps) -> None:
        here = PathStatistics()
        text = stored(steps)
        if text in self._found:
            self._found[text].add(here)
            here = self._found[text]
        else:
            self._found[text] = here
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
            rows, at = v.elements(nodes)
            self._walk(v.Nodes(nodes.data, at, nodes.shape[rows], nodes.names), (*steps, ELEMENT))
            return
        listed: dict[str, list[tuple[Any, Any]]] = {}
        for key, rows, at in v.members(nodes):
            listed.setdefault(key, []).append((rows, at))
        for key, groups in listed.items():
            if len(self._found) >= MOST_PATHS:
                here.kinds |= INCOMPLETE
                return
            rows = groups[0][0] if len(groups) == 1 else np.concatenate([rows for rows, _ in groups])
            at = groups[0][1] if len(groups) == 1 else np.concatenate([at for _, at in groups])
            if len(groups) > 1:  # texts lie in ascending places
                order = np.argsort(at)
                rows, at = rows[order], at[order]
            self._walk(v.Nodes(nodes.data, at, nodes.shape if len(rows) == len(nodes) else nodes.shape[rows], nodes.names), (*steps, key))


def _leaf(nodes: v.Nodes, kind: int) -> PathStatistics:
    count = len(nodes)
    if kind == v.LONG:
        values = v.longs(nodes)
        return PathStatistics(LONG, count, 0, long=(int(values.min()), int(values.max())))
    if kind == v.STRING:
        return _strings(nodes)
    if kind in (v.DOUBLE, v.DECIMAL):
        return _reals(nodes, kind)
    plain = {v.TRUE: TRUE, v.FALSE: FALSE, v.OBJECT: MAP, v.ARRAY: LIST}.get(kind, OTHER)
    return PathStatistics(plain, count, 0)


def _strings(nodes: v.Nodes) -> PathStatistics:
    starts, lengths = v.places(nodes)
    ends = starts + lengths
    if plain(nodes.data, starts, ends):
        return texts(nodes.data, starts, ends)
    values = v.slices(nodes.data, starts, lengths)
    values.validate(full=True)
    both = pc.min_max(values)
    return PathStatistics(STRING, len(nodes), 0, string=(both["min"].as_py(), both["max"].as_py()))


def _reals(nodes: v.Nodes, kind: int) -> PathStatistics:
    if kind == v.DOUBLE:
        values = v.fixed(nodes, "<f8")
        if not np.isfinite(values).all():
            return PathStatistics(OTHER | REAL, len(nodes), 0)
        return PathStatistics(REAL | LO_EXACT | HI_EXACT, len(nodes), 0, real=(float(values.min()), float(values.max())))
    unscaled, scale, small = v.small_decimals(nodes)
    # Both numbers are doubles, and so the quotient is the double nearest to the decimal; of at most 15 digits, it is told by its shortest text.
    easy = small & (np.abs(unscaled) < 10**15) & (scale <= 22)
    parts = []
    if easy.any():
        values = unscaled[easy] / np.power(10.0, scale[easy])
        parts.append(PathStatistics(REAL | LO_EXACT | HI_EXACT, len(values), 0, real=(float(values.min()), float(values.max()))))
    if not easy.all():
        numbers = v.decimals(nodes.take(~easy))
        parts.append(PathStatistics(REAL, len(numbers), 0, real=(float(min(numbers)), float(max(numbers)))))
    for other in parts[1:]:
        parts[0].add(other)
    return parts[0]
