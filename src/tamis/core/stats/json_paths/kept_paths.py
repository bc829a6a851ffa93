"""Paths of one column of JSON documents that are to be kept, with the paths above and below them."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from tamis.core.stats.json_paths.path_rows import ancestors_of, last_key, parent_of


class KeptPaths:
    """A set of paths, and of paths without those below them (``alone``).

    A lookup takes time that grows with the depth of a path, not with the number of paths.
    """

    def __init__(self, paths: Iterable[str] = (), alone: Iterable[str] = ()) -> None:
        self._whole = frozenset(paths)
        self._named = self._whole.union(alone)
        self._above = frozenset(above for path in self._named for above in ancestors_of(path))
        self._below: dict[str, set[str]] = {}
        for path in self._named | self._above:
            above = parent_of(path)
            if above is not None:
                self._below.setdefault(above, set()).add(path)

    def concerns(self, path: str) -> bool:
        """Return whether the path is kept, or is above or below one that is: evidence needs all of them."""
        return self.leads_to_kept(path) or self.within_kept(path)

    def within_kept(self, path: str) -> bool:
        """Return whether the path is kept with those below it, or is below one that is."""
        return bool(self._whole) and (path in self._whole or any(above in self._whole for above in ancestors_of(path)))

    def leads_to_kept(self, path: str) -> bool:
        """Return whether the path is kept, or is above one that is."""
        return path in self._named or path in self._above

    def keys_below(self, path: str) -> Collection[str]:
        """Return the keys one step below the path that are kept, or lead to a kept path."""
        return {key for below in self.paths_below(path) if (key := last_key(below)) is not None}

    def paths_below(self, path: str) -> Collection[str]:
        """Return the paths one step below the path that are kept, or lead to a kept path."""
        return self._below.get(path, ())
