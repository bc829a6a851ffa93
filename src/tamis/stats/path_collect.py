"""Collects JSON paths while a part is written: of VARIANT columns, and of strings wherever a sample of them parses as objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from tamis.stats import path_text, path_variant
from tamis.stats.bounds import cut_high, cut_low
from tamis.stats.path_alike import Documents
from tamis.stats.path_rows import ROOT, STRANGE, STRING, Paths, combined
from tamis.types import BINARY_COLLATION, VARIANT, DataType, String


def collects(data_type: DataType) -> bool:
    """Whether values of this type may be JSON documents."""
    return data_type == VARIANT or (
        isinstance(data_type, String) and data_type.kind == "string" and data_type.collation == BINARY_COLLATION
    )


class PathCollector:
    """Takes the arrays of one column of one part."""

    def __init__(self, data_type: DataType) -> None:
        self._read: Callable[[Any], Paths] = path_variant.paths_of if data_type == VARIANT else Documents().paths_of
        self._paths: Paths = {}
        self._lost = False
        """Something was met that makes the rest useless: nothing more is looked at."""
        self._wanted: bool | None = True if data_type == VARIANT else None  # None: no string was seen yet

    def update(self, array: pa.Array) -> None:
        """More values; NULLs are counted nowhere: they are what is missing from the number of rows."""
        if self._wanted is None and array.null_count < len(array):
            self._wanted = path_text.looks_like_objects(array)
        if not self._wanted or self._lost:
            return
        found = self._read(array)
        self._lost = bool(found[ROOT].kinds & STRANGE)
        self._paths = {ROOT: found[ROOT]} if self._lost else combined(self._paths, found) if self._paths else found

    def finish(self) -> Paths:
        """Its paths, bounds of text cut; none where they are not collected."""
        for found in self._paths.values():
            if found.kinds & STRING:
                found.string = (_cut(found.string[0], cut_low), _cut(found.string[1], cut_high))
        return self._paths


def _cut(value: str | None, cut: Callable[[pa.Scalar], tuple[pa.Scalar, bool]]) -> str | None:
    return None if value is None else cut(pa.scalar(value))[0].as_py()
