"""Statistics of many foreign files from their footers, and from the source's metadata, as columns over all files.

A source's metadata are often computed from the same footers, by readers that take a row group without bounds, or
without a number of NULLs, for one that has no values, or no NULLs, and that believe NaN and dates of the old calendar.
So bounds of the metadata do not count where a footer has bounds of the column, unless the type is one of which the
file's writer is not known to keep the order; then they do not where only some row groups with values have bounds.
Numbers of NULLs do not count where a footer has any statistics of the column.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.bridges.sources.source_footers import SourceFooter
from tamis.core.stats.columns.bounds import LIMIT, cut_high, cut_low
from tamis.core.stats.statistics_columns import BOUNDS, bound_name, count_name, has_bounds, parse_name
from tamis.core.types import Schema
from tamis.core.types.arrow import sortable_array
from tamis.storage.commit_log import Source
from tamis.storage.files.constant_columns import constant_columns, constant_statistics
from tamis.storage.files.parquet.foreign_columns import ForeignLayout, file_kind, foreign_names
from tamis.storage.files.parquet.foreign_statistics import BoundedLeaf, Raw, bounded_leaves, bounds_of, raw_statistics
from tamis.storage.files.parquet.legacy_calendar import file_calendar

Ints = np.ndarray[tuple[int], np.dtype[np.int64]]


@dataclass(slots=True)
class _Column:
    """What the footers say of one column in files of one stored type."""

    leaf: BoundedLeaf
    raw: list[Raw] = field(default_factory=list)
    files: list[int] = field(default_factory=list)
    """The file of each value of ``raw``, ascending."""


@dataclass(frozen=True, slots=True)
class FooterStatistics:
    """Statistics columns, one row per file."""

    columns: Mapping[str, pa.Array]
    """What no footer vouches for is NULL."""
    fillable: Mapping[str, pa.BooleanArray]
    """By the name of a statistics column: the files for which the source's metadata count."""

    def with_metadata(self, metadata: Mapping[str, pa.Array], schema: Schema) -> dict[str, pa.Array]:
        """Return the statistics together with those of the source's ``metadata``, where these count."""
        merged = dict(self.columns)
        for name, values in metadata.items():
            parsed = parse_name(name)
            field = None if parsed is None else schema.by_id.get(parsed.id)
            if parsed is None or field is None:
                continue
            allowed = values
            if parsed.kind != "nans" and has_bounds(field.type):  # what footers may say
                if name not in self.fillable:
                    continue
                allowed = pc.if_else(self.fillable[name], values, pa.scalar(None, values.type))
            mine = merged.get(name)
            if mine is None or mine.type == allowed.type:
                merged[name] = allowed if mine is None else pc.coalesce(mine, allowed)
        return merged


def footer_statistics(
    footers: Sequence[SourceFooter],
    schema: Schema,
    source: Source,
    constants: Sequence[str | None],
    ids: frozenset[int],
) -> FooterStatistics:
    """Return the statistics of the columns ``ids``."""
    columns: dict[tuple[object, ...], _Column] = {}
    lacking: dict[int, list[int]] = {}
    layouts: dict[bytes, ForeignLayout] = {}
    kinds: dict[tuple[object, ...], list[BoundedLeaf]] = {}
    given = [frozenset(constant_columns(text, schema)) for text in constants]
    for at, footer in enumerate(footers):
        bare = footer.schema.remove_metadata()
        columns_of_file = file_kind(bare)
        layout = layouts.get(columns_of_file)
        if layout is None:
            layout = layouts[columns_of_file] = ForeignLayout(bare, schema, foreign_names(source, schema, bare))
        calendar = file_calendar(source.kind, footer.metadata.metadata)
        kind = (columns_of_file, footer.metadata.created_by, calendar, tuple(_physical(footer)))
        leaves = kinds.get(kind)
        if leaves is None:
            leaves = kinds[kind] = bounded_leaves(footer.metadata, layout, schema, calendar, ids)
        leaves = [leaf for leaf in leaves if leaf.column_id not in given[at]]
        for leaf, raw in zip(leaves, raw_statistics(footer.metadata, leaves), strict=True):
            key = (leaf.column_id, leaf.stored, leaf.vouched, leaf.legacy, leaf.hides, leaf.never_filled)
            column = columns.setdefault(key, _Column(leaf))
            column.raw += raw
            column.files += [at] * len(raw)
        for top in schema:
            if top.id in ids and top.id not in layout.held and top.id not in given[at]:
                lacking.setdefault(top.id, []).append(at)
    rows = np.array([footer.metadata.num_rows for footer in footers], dtype=np.int64)
    found = _Pieces(len(footers))
    for column in columns.values():
        found.add_column(column)
    for column_id, files in lacking.items():
        if schema.by_id[column_id].initial_default is None:
            found.add(count_name(column_id, "nulls"), np.array(files), pa.array(rows[files]))
    for at, text in enumerate(constants):
        if text:
            constant = constant_statistics(constant_columns(text, schema), schema, [int(rows[at])], ids | given[at])
            for name, values in constant.items():
                found.add(name, np.array([at]), values)
    return FooterStatistics(found.columns(), found.fillable())


def _physical(footer: SourceFooter) -> Iterable[str]:
    schema = footer.metadata.schema
    return (schema.column(at).physical_type for at in range(len(schema)))


class _Pieces:
    """Statistics columns that are put together from values of some of the files."""

    def __init__(self, files: int) -> None:
        self._files = files
        self._pieces: dict[str, list[tuple[Ints, pa.Array]]] = {}
        self._fillable: dict[str, list[Ints]] = {}

    def add(self, name: str, files: Ints, values: pa.Array) -> None:
        self._pieces.setdefault(name, []).append((files, values))

    def add_column(self, column: _Column) -> None:
        """Add the bounds and the number of NULLs of the files of ``column``, each over its row groups."""
        if not column.raw:
            return
        leaf, of = column.leaf, np.array(column.files, dtype=np.int64)
        bounds = bounds_of(column.raw, leaf)
        files, starts = np.unique(of, return_index=True)
        counted = bounds.nulls.is_valid().to_numpy(zero_copy_only=False)
        nulls = np.add.reduceat(pc.fill_null(bounds.nulls, 0).to_numpy(), starts)
        self.add(
            count_name(leaf.column_id, "nulls"),
            files,
            pa.array(nulls, mask=~np.logical_and.reduceat(counted, starts)),
        )
        described = np.logical_or.reduceat(np.array([raw.described for raw in column.raw]), starts)
        self._fillable.setdefault(count_name(leaf.column_id, "nulls"), []).append(files[~described])
        bounded = np.array([raw.bounded for raw in column.raw])
        lacking = ~bounded & ~bounds.empty.to_numpy(zero_copy_only=False)
        some = np.logical_or.reduceat(bounded, starts)
        torn = some & np.logical_or.reduceat(lacking, starts)
        filled = files[~torn & leaf.may_be_filled(some, described)]
        known = pc.or_(bounds.low.is_valid(), bounds.empty).to_numpy(zero_copy_only=False)
        known = np.logical_and.reduceat(known, starts)
        for kind, values in zip(BOUNDS, (bounds.low, bounds.high), strict=True):
            best = _extreme(values, of, files, least=kind == "lo")
            name = bound_name(leaf.column_id, leaf.data_type, kind)
            none = pa.scalar(None, best.type)
            self.add(name, files, _cut(pc.if_else(pa.array(known), best, none), upper=kind == "hi"))
            self._fillable.setdefault(name, []).append(filled)

    def fillable(self) -> dict[str, pa.BooleanArray]:
        found = {}
        for name, pieces in self._fillable.items():
            mask = np.zeros(self._files, dtype=bool)
            mask[np.concatenate(pieces)] = True
            found[name] = pa.array(mask)
        return found

    def columns(self) -> dict[str, pa.Array]:
        return {name: self._whole(pieces) for name, pieces in self._pieces.items()}

    def _whole(self, pieces: list[tuple[Ints, pa.Array]]) -> pa.Array:
        place = np.full(self._files, -1, dtype=np.int64)
        of = np.concatenate([files for files, _ in pieces])
        place[of] = np.arange(len(of))
        return pa.concat_arrays([values for _, values in pieces]).take(pa.array(place, mask=place < 0))


def _extreme(values: pa.Array, of: Ints, files: Ints, *, least: bool) -> pa.Array:
    """Return the least or greatest value of each file; ``of`` is the file of each value."""
    if len(files) == len(of):
        return values
    there = values.is_valid().to_numpy(zero_copy_only=False)
    if not there.any():
        return pa.nulls(len(files), values.type)
    mine, present = of[there], values.filter(pa.array(there))
    table = pa.table({"file": mine, "value": sortable_array(present)})
    order = pc.sort_indices(table, [("file", "ascending"), ("value", "ascending" if least else "descending")])
    sorted_files = mine[order.to_numpy()]
    held, first = np.unique(sorted_files, return_index=True)
    place = np.full(len(files), -1, dtype=np.int64)
    place[np.searchsorted(files, held)] = order.to_numpy()[first]
    return present.take(pa.array(place, mask=place < 0))


def _cut(bounds: pa.Array, *, upper: bool) -> pa.Array:
    """Return bounds of texts and binaries in the length that statistics keep."""
    kind = bounds.type
    if not (pa.types.is_string(kind) or pa.types.is_binary(kind)):
        return bounds
    longest = pc.max(pc.utf8_length(bounds) if pa.types.is_string(kind) else pc.binary_length(bounds)).as_py()
    if longest is None or longest <= LIMIT:
        return bounds
    cut = cut_high if upper else cut_low
    return pa.array([cut(value)[0].as_py() for value in bounds], kind)
