"""Chooses the paths to collect where documents have too many.

An object with more keys than a part may have paths is folded: rare keys below it become unknown, and so do
others if there is still no room. Its siblings and ancestors, and all paths that are to be kept, stay. The
object with the most keys is folded first, at any depth; ties are broken by depth and name, so that parts of
similar documents are folded alike. What is below a kept path is folded last, and only if there are more than
``MOST_KEPT`` paths below kept ones.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Mapping

from tamis.core.expr.json_codec.json_path import ELEMENT, POSITIONS, Steps, placed_steps, stored_path
from tamis.core.stats.json_paths.kept_paths import KeptPaths
from tamis.core.stats.json_paths.path_rows import (
    INCOMPLETE,
    TRIMMED,
    Paths,
    PathStatistics,
    last_key,
    list_of_position,
    parent_of,
)
from tamis.sizes import SIZES

MOST_PATHS = SIZES.document_paths
MOST_KEPT = 8 * MOST_PATHS
"""Paths of a column that are collected below kept ones: memory stays bounded, whatever the documents hold."""
_RARE = 8
"""A key is rare if fewer than one in this many values of the object have it."""


class PathSelection:
    """The paths of one column that are collected; it remembers which objects were folded.

    ``kept`` paths are collected with what is below them, ``recent`` ones by themselves.
    """

    def __init__(self, kept: Collection[str] = (), recent: Collection[str] = ()) -> None:
        self._kept = KeptPaths(kept, recent)
        self._listed: dict[str, frozenset[str]] = {}
        """The keys that are still collected of each folded object, by its path."""
        self._unplaced: set[str] = set()
        """The lists whose elements are no longer collected by position."""

    def positions_below(self, paths: Paths, here: PathStatistics, steps: Steps) -> int:
        """Return how many elements of the list at ``steps`` to collect by position.

        Where they were given up, notes that in ``here``, and leaves rows in ``paths`` for what is kept below it.
        """
        if placed_steps((*steps, 0))[-1] == ELEMENT:
            return 0
        path = stored_path(steps)
        if path in self._unplaced:
            self._leave_kept_rows(paths, path, here)
            here.kinds |= INCOMPLETE | TRIMMED
            return 0
        return POSITIONS

    def keys_below(self, path: str, counts: Mapping[str, int], objects: int) -> frozenset[str] | None:
        """Return the keys to collect of the objects at ``path``, or None for all.

        ``counts`` tells how many of the ``objects`` objects have each key.
        """
        if path not in self._listed and len(counts) > MOST_PATHS:
            kept = self._kept.within_kept(path)
            if kept and len(counts) <= MOST_KEPT:
                return None
            frequent = [key for key, count in counts.items() if kept or count * _RARE >= objects]
            first = sorted(frequent, key=lambda key: (-counts[key], key))[: MOST_KEPT if kept else MOST_PATHS]
            self._listed[path] = frozenset([*first, *self._kept.keys_below(path)])
        return self._listed.get(path)

    def fold_objects(self, paths: Paths) -> Paths:
        """Fold objects until there are at most ``MOST_PATHS`` paths besides kept ones; changes ``paths``.

        Positions of lists are given up first, because the row of all elements is true of them, too.
        """
        if len(paths) <= MOST_PATHS:
            return paths
        kept = {path for path in paths if self._kept.within_kept(path)}
        self._fold_until(MOST_PATHS + len(kept), paths, kept=False)
        if len(kept) > MOST_KEPT:
            self._fold_until(MOST_PATHS + MOST_KEPT, paths, kept=True)
        return paths

    def _fold_until(self, most: int, paths: Paths, *, kept: bool) -> None:
        """Fold objects that are below kept paths, or the others, until there are at most ``most`` paths."""
        if len(paths) > most:
            self._give_up_positions(paths, most, kept=kept)
        if len(paths) <= most:
            return
        children: dict[str, list[str]] = {}
        for path in paths:
            above = parent_of(path)
            if above is not None and not self._kept.leads_to_kept(path) and self._kept.within_kept(path) is kept:
                children.setdefault(above, []).append(path)
        heap = [_priority(path, len(below)) for path, below in children.items()]
        heapq.heapify(heap)
        while len(paths) > most and heap:
            path = heapq.heappop(heap)[-1]
            if path in paths:
                self._fold(paths, path, children, most)
                if children[path]:
                    heapq.heappush(heap, _priority(path, len(children[path])))

    def _give_up_positions(self, paths: Paths, most: int, *, kept: bool) -> None:
        """Drop the rows by position, list by list, nested lists and those with the most rows first.

        A list of which a position is kept is left alone, also if no list has been so long yet.
        """
        placed: dict[str, list[str]] = {}
        for path in paths:
            owner = list_of_position(path)
            if owner is not None:
                placed.setdefault(owner, []).append(path)
        given_up = {
            owner for owner in placed if self._kept.within_kept(owner) is kept and not self._keeps_position(owner)
        }
        for owner in sorted(given_up, key=lambda o: (list_of_position(o) is None, -len(placed[o]), o)):
            if len(paths) <= most:
                break
            self._unplaced.add(owner)
            for path in placed[owner]:
                del paths[path]
            if owner in paths:
                self._leave_kept_rows(paths, owner, paths[owner])
                paths[owner].kinds |= INCOMPLETE | TRIMMED

    def _keeps_position(self, path: str) -> bool:
        return any(list_of_position(below) == path for below in self._kept.paths_below(path))

    def _leave_kept_rows(self, paths: Paths, path: str, here: PathStatistics) -> None:
        """Add empty rows for kept paths one step below ``path``, which is about to become incomplete.

        Without a row they would be unknown: so far they are absent, and they are still collected from later documents.
        """
        if not here.kinds & INCOMPLETE:
            for child in self._kept.paths_below(path):
                paths.setdefault(child, PathStatistics())

    def _fold(self, paths: Paths, path: str, children: dict[str, list[str]], most: int) -> None:
        """Drop the rare children of an object; if there is none, drop others until the paths fit.

        Below kept paths, rare children are as good as others.
        """
        below = sorted(children[path], key=lambda child: (-paths[child].present, child))
        whole = self._kept.within_kept(path)
        rare = [child for child in below if not whole and paths[child].present * _RARE < paths[path].present]
        for child in rare or below[::-1]:
            if not rare and len(paths) <= most:
                break
            _drop(paths, child, children)
        children[path] = [child for child in below if child in paths]
        kept = self._kept.keys_below(path)
        self._leave_kept_rows(paths, path, paths[path])
        paths[path].kinds |= INCOMPLETE | TRIMMED
        left = (last_key(child) for child in children[path])
        self._listed[path] = frozenset([*kept, *(key for key in left if key is not None)])


def _priority(path: str, children: int) -> tuple[int, int, str]:
    return -children, -(path.count(".") + path.count("[")), path


def _drop(paths: Paths, path: str, children: Mapping[str, list[str]]) -> None:
    """Drop a path and all below it."""
    pending = [path]
    while pending:
        gone = pending.pop()
        if paths.pop(gone, None) is not None:
            pending += children.get(gone, ())
