"""Collects the statistics of a part while it is written, with a few whole-column kernels per batch and leaf.

Invariant: NULL is counted where a field *reads* as NULL, including because of a NULL parent. Elements of
lists, and keys and values of maps, are counted once each; those of NULL lists are not counted. The bounds of
arrays and maps are those of their sizes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.core.stats.collection_limits import CollectionLimits
from tamis.core.stats.columns.bounds import LIMIT
from tamis.core.stats.columns.placed_statistics import PlacedStatistics, has_places
from tamis.core.stats.columns.tally import Extremes, Tally
from tamis.core.stats.columns.value_sets import ValueSetCollector, is_listable
from tamis.core.stats.json_paths.path_collector import PathCollector, collects_paths
from tamis.core.stats.json_paths.path_rows import Paths, table_of
from tamis.core.stats.statistics_columns import (
    COUNTS,
    VALUES,
    Figure,
    bound_name,
    count_name,
    has_bounds,
)
from tamis.core.types import INTEGER, Array, DataType, Field, Map, Schema, Struct
from tamis.core.types.arrow import to_arrow_type

KeptByColumn = Mapping[int, tuple[list[str], list[str]]]
"""Kept and recently used paths, by column id."""


class Collector:
    """Collects one row of statistics columns from the batches of one part.

    Unless ``bounds_only``, it also collects the value sets of columns that have few values, and the paths of JSON
    documents. ``keep`` and ``recent`` are such paths, by column id, that are collected however many others there are
    (see ``PathSelection``). Of columns beyond ``limits`` nothing is collected.

    The file's writer finds the extremes of columns with ids in ``measured``; ``resolve`` adds them when it is done.
    Texts and binaries that may be cut are not left to it, because a writer may cut them elsewhere.
    """

    def __init__(
        self,
        schema: Schema,
        *,
        bounds_only: bool = False,
        keep: Iterable[tuple[int, str]] = (),
        recent: Iterable[tuple[int, str]] = (),
        limits: CollectionLimits | None = None,
        measured: Collection[int] = (),
    ) -> None:
        self._measured, self._batches = frozenset(measured), 0
        kept: dict[int, tuple[list[str], list[str]]] = {}
        for at, places in enumerate((keep, recent)):
            for identifier, path in places:
                kept.setdefault(identifier, ([], []))[at].append(path)
        self._places = [at for at, field in enumerate(schema.fields) if limits is None or field.id in limits.fields]
        self._nodes = [
            _Node(schema.fields[at], repeated=False, bounds_only=bounds_only, kept=kept) for at in self._places
        ]
        self.uncollected_fields = len(schema.fields) - len(self._places)
        """The number of columns of which nothing is collected."""
        for node in (node for top in self._nodes for node in top.walk() if limits is not None):
            if node.paths is not None and limits is not None:
                node.paths.limit_admission(
                    partial(limits.may_admit_documents, node.id), partial(limits.admits_documents, node.id)
                )
            if node.placed is not None and limits is not None and not limits.admits_places(node.id):
                node.placed = None

    def update(self, batch: pa.RecordBatch) -> None:
        """Add a batch whose columns are those of the schema, in order, in their Arrow types."""
        for at, node in zip(self._places, self._nodes, strict=True):
            node.update(batch.column(at), self._measured, self._batches)
        self._batches += len(batch) > 0  # no file has a block without rows

    def resolve(self, extremes: Extremes) -> None:
        """Add the extremes of all batches so far that the file's writer found."""
        for node in (node for top in self._nodes for node in top.walk()):
            if node.id in self._measured and node.id in extremes:
                node.tally.resolve(*extremes[node.id])

    def finish(self) -> pa.Table:
        """Return one row; bounds are NULL if there are no values or no usable bound."""
        columns = {name: pa.array([value], kind) for name, kind, value in self.figures()}
        return pa.table(columns) if columns else pa.table({"_": [None]}).select([])

    def figures(self) -> Iterator[Figure]:
        """Yield the names, types and values of the columns that ``finish`` returns."""
        return (figure for node in self._nodes for figure in node.figures())

    def documents(self) -> dict[int, Paths]:
        """Return the paths of JSON documents, by column id."""
        return {node.id: node.paths.finish() for top in self._nodes for node in top.walk() if node.paths is not None}

    def paths(self) -> pa.Table | None:
        """Return ``documents`` as rows (see ``path_rows``), or None if there are none."""
        return table_of(self.documents())

    def nans(self) -> dict[int, int]:
        """Return the number of NaNs so far in each floating-point leaf, by column id."""
        return {n.id: n.tally.nans for top in self._nodes for n in top.walk() if n.tally.floating}


class _Node:
    """One field at some depth and its statistics so far."""

    def __init__(self, field: Field, *, repeated: bool, bounds_only: bool, kept: KeptByColumn) -> None:
        inside = repeated or isinstance(field.type, Array | Map)
        self.id, self.type, self.repeated = field.id, field.type, repeated
        self.children = [
            _Node(child, repeated=inside, bounds_only=bounds_only, kept=kept) for child in field.type.children
        ]
        self.sized = isinstance(field.type, Array | Map)
        measured: DataType | None = field.type if has_bounds(field.type) else None
        self.tally = Tally(INTEGER if self.sized else measured)
        """Counts and bounds; the bounds of arrays and maps are those of their sizes."""
        collected = not bounds_only and not repeated and collects_paths(field.type)
        self.paths = PathCollector(field.type, *kept.get(field.id, ())) if collected else None
        self._values = ValueSetCollector() if not (bounds_only or repeated) and is_listable(field.type) else None
        placed = self.sized and not bounds_only and not repeated
        self.placed = PlacedStatistics(field.type) if placed and has_places(field.type) else None

    def walk(self) -> Iterator[_Node]:
        yield self
        for child in self.children:
            yield from child.walk()

    def update(self, array: pa.Array, measured: frozenset[int], number: int) -> None:
        """Add the values of the batch with this number, in which the parents' NULLs are already applied."""
        measures = _sizes(array) if self.sized else array
        if self._values is not None:
            measures = self._values.update(array)  # the least and greatest of few values are found sooner
        if self.id in measured and _has_short_values(array):
            self.tally.defer(array, number)
        else:
            self.tally.update(array, measures)
        if self.paths is not None:
            self.paths.update(array)
        below = _below(self.type, array)
        if self.placed is not None:
            self.placed.update(array, below)
        for child, values in zip(self.children, below, strict=True):
            child.update(values, measured, number)

    def figures(self) -> Iterator[Figure]:
        tally = self.tally
        if tally.measured is not None:
            low, high, exact = tally.bounds()
            for kind, bound in (("lo", low), ("hi", high)):
                yield bound_name(self.id, tally.measured, kind), to_arrow_type(tally.measured), bound
            yield self._count("exact", exact)
        if self._values is not None:
            yield bound_name(self.id, self.type, VALUES), pa.list_(to_arrow_type(self.type)), self._values.finish()
        yield self._count("nulls", tally.nulls)
        if tally.floating:
            yield self._count("nans", tally.nans)
        if self.repeated:
            yield self._count("count", tally.count)
        for child in self.children:
            yield from child.figures()
        if self.placed is not None:
            yield from self.placed.figures()

    def _count(self, kind: str, value: int) -> Figure:
        return count_name(self.id, kind), COUNTS[kind], value


def _has_short_values(array: pa.Array) -> bool:
    """Return whether no text or binary of the array is so long that its bound is cut."""
    if not len(array) or not (pa.types.is_string(array.type) or pa.types.is_binary(array.type)):
        return True
    ends = np.frombuffer(array.buffers()[1], np.int32)[array.offset : array.offset + len(array) + 1]
    return int((ends[1:] - ends[:-1]).max()) <= LIMIT


def _sizes(array: pa.Array) -> pa.Array:
    """Return the number of elements or entries in each row; NULL if the array is NULL."""
    offsets = array.offsets.to_numpy(zero_copy_only=False)
    null = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
    return pa.array((offsets[1:] - offsets[:-1]).astype("int32"), mask=null)


def _below(data_type: Any, array: pa.Array) -> list[pa.Array]:
    """Return the values one level below, without those hidden by a NULL parent."""
    match data_type:
        case Struct():
            return list(array.flatten())
        case Array():
            return [array.flatten()]
        case Map():
            present = array.drop_null() if array.null_count else array
            offsets = present.offsets
            start, end = (offsets[0].as_py(), offsets[-1].as_py()) if len(offsets) else (0, 0)
            return [child.slice(start, end - start) for child in (present.keys, present.items)]
    return []
