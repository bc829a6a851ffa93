"""Collects JSON paths while a part is written.

Sources are VARIANT columns, and strings if a sample of them parses as objects.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cached_property, partial
from typing import Any

import pyarrow as pa

from tamis.core.stats.collector_state import GAVE_UP, GaveUp
from tamis.core.stats.columns.bounds import cut_text
from tamis.core.stats.json_paths import document_samples, text_paths, variant_paths
from tamis.core.stats.json_paths.kept_memory import keep_freed_memory
from tamis.core.stats.json_paths.path_rows import (
    INCOMPLETE,
    MAP,
    ROOT,
    STRANGE,
    STRING,
    TRIMMED,
    Paths,
    combine_paths,
)
from tamis.core.stats.json_paths.path_selection import PathSelection
from tamis.core.stats.json_paths.similar_documents import Documents
from tamis.core.stats.json_paths.text_paths import FEW
from tamis.core.types import BINARY_COLLATION, VARIANT, DataType, String


def collects_paths(data_type: DataType) -> bool:
    """Return whether values of this type may be JSON documents."""
    return data_type == VARIANT or (
        isinstance(data_type, String) and data_type.kind == "string" and data_type.collation == BINARY_COLLATION
    )


class PathCollector:
    """Collects the JSON paths of one column over the batches of a part.

    ``kept`` and ``recent`` are paths that are collected however many others there are (see ``PathSelection``).
    """

    def __init__(self, data_type: DataType, kept: Collection[str] = (), recent: Collection[str] = ()) -> None:
        self._type, self._kept, self._recent = data_type, kept, recent
        self._state: Paths | GaveUp = {}
        """The paths so far, or ``GAVE_UP`` after a document without usable paths."""
        self._wanted: bool | None = True if data_type == VARIANT else None  # None: no string was seen yet
        self._may_be_admitted: Callable[[], bool] | None = None
        self._admitted: Callable[[], bool] | None = None

    @cached_property
    def _selection(self) -> PathSelection:
        return PathSelection(self._kept, self._recent)

    @cached_property
    def _read(self) -> Callable[[Any], Paths]:
        keep_freed_memory()
        if self._type == VARIANT:
            return partial(variant_paths.paths_of, selection=self._selection)
        return Documents(self._selection).paths_of

    def limit_admission(self, may_be_admitted: Callable[[], bool], admitted: Callable[[], bool]) -> None:
        """Collect paths only if ``admitted`` returns true; it is called once, when documents are first seen.

        ``may_be_admitted`` is called before texts are sampled and changes nothing.
        """
        self._may_be_admitted, self._admitted = may_be_admitted, admitted

    def update(self, array: pa.Array) -> None:
        """Add the documents of one batch.

        NULLs are not counted: they are the difference to the number of rows.
        """
        found: Paths | None = None
        if self._wanted is None and array.null_count < len(array):
            self._wanted, found = self._sample_texts(array)
        if self._wanted and self._admitted is not None:
            self._wanted, self._admitted = self._admitted(), None
        if not self._wanted or isinstance(self._state, GaveUp):
            return
        found = found or self._read(array)
        if found[ROOT].kinds & STRANGE:
            self._state = GAVE_UP
        else:
            self._state = self._selection.fold_objects(combine_paths(self._state, found) if self._state else found)

    def _sample_texts(self, array: pa.Array) -> tuple[bool, Paths | None]:
        """Return whether to collect the paths of these texts, and the paths if they were read to decide that.

        Few texts are read without parsing a sample first: if all are objects, so are those of a sample.
        """
        if self._may_be_admitted is not None and not self._may_be_admitted():
            return False, None
        if not document_samples.may_look_like_objects(array):
            return False, None
        if len(array) > FEW:
            return document_samples.looks_like_objects(array), None
        found = self._read(array)
        objects = found[ROOT].kinds & ~(INCOMPLETE | TRIMMED) == MAP and found[ROOT].nulls == 0
        return objects or document_samples.looks_like_objects(array), found

    def finish(self) -> Paths:
        """Return the paths with truncated text bounds.

        Empty if paths are not collected; only the root if the collector gave up.
        """
        if isinstance(self._state, GaveUp):
            return text_paths.no_paths()
        for found in self._state.values():
            if found.kinds & STRING:
                low, high = found.string
                found.string = (low and cut_text(low, upper=False), high and cut_text(high, upper=True))
        return self._state
