"""Collects JSON paths while a part is written.

Sources are VARIANT columns, and strings if a sample of them parses as objects.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import Any

import pyarrow as pa

from tamis.core.stats.collector_state import GAVE_UP, GaveUp
from tamis.core.stats.columns.bounds import cut_high, cut_low
from tamis.core.stats.json_paths import text_paths, variant_paths
from tamis.core.stats.json_paths.path_rows import ROOT, STRANGE, STRING, Paths, combined
from tamis.core.stats.json_paths.path_selection import PathSelection
from tamis.core.stats.json_paths.similar_documents import Documents
from tamis.core.types import BINARY_COLLATION, VARIANT, DataType, String


def collects(data_type: DataType) -> bool:
    """Return whether values of this type may be JSON documents."""
    return data_type == VARIANT or (
        isinstance(data_type, String) and data_type.kind == "string" and data_type.collation == BINARY_COLLATION
    )


class PathCollector:
    """Collects the JSON paths of one column over the batches of a part.

    ``kept`` and ``recent`` are paths that are collected however many others there are (see ``PathSelection``).
    """

    def __init__(self, data_type: DataType, kept: Collection[str] = (), recent: Collection[str] = ()) -> None:
        self._selection = PathSelection(kept, recent)
        self._read: Callable[[Any], Paths] = (
            partial(variant_paths.paths_of, selection=self._selection)
            if data_type == VARIANT
            else Documents(self._selection).paths_of
        )
        self._state: Paths | GaveUp = {}
        """The paths so far, or ``GAVE_UP`` after a document without usable paths."""
        self._wanted: bool | None = True if data_type == VARIANT else None  # None: no string was seen yet
        self._admitted: Callable[[], bool] | None = None

    def limited(self, admitted: Callable[[], bool]) -> None:
        """Collect only if ``admitted`` says so, which is asked when documents are seen first."""
        self._admitted = admitted

    def update(self, array: pa.Array) -> None:
        """Add the documents of one batch.

        NULLs are not counted: they are the difference to the number of rows.
        """
        if self._wanted is None and array.null_count < len(array):
            self._wanted = text_paths.looks_like_objects(array)
        if self._wanted and self._admitted is not None:
            self._wanted, self._admitted = self._admitted(), None
        if not self._wanted or isinstance(self._state, GaveUp):
            return
        found = self._read(array)
        if found[ROOT].kinds & STRANGE:
            self._state = GAVE_UP
        else:
            self._state = self._selection.folded(combined(self._state, found) if self._state else found)

    def finish(self) -> Paths:
        """Return the paths with truncated text bounds.

        Empty if paths are not collected; only the root if the collector gave up.
        """
        if isinstance(self._state, GaveUp):
            return text_paths.nothing()
        for found in self._state.values():
            if found.kinds & STRING:
                found.string = (_cut(found.string[0], cut_low), _cut(found.string[1], cut_high))
        return self._state


def _cut(value: str | None, cut: Callable[[pa.Scalar], tuple[pa.Scalar, bool]]) -> str | None:
    return None if value is None else cut(pa.scalar(value))[0].as_py()
