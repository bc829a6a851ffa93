"""Resolves the equality deletes of an Iceberg snapshot to positions, by reading the key columns of older data files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap

from tamis.bridges.sources.foreign_paths import Root
from tamis.bridges.sources.iceberg_deletes import Rows, refuse_format
from tamis.bridges.sources.iceberg_manifests import Entries
from tamis.bridges.sources.iceberg_metadata import metadata_damaged
from tamis.core.types import Field
from tamis.core.types.arrow import to_arrow_type
from tamis.core.types.defaults import initial_scalar
from tamis.core.types.float_values import with_one_nan
from tamis.errors import InvalidInput, NotFound
from tamis.storage.object_store.parallel_requests import gather_requests

_EQUALITY = 2
_FIELD_ID = b"PARQUET:field_id"
Keys = tuple[int, ...]
Codes = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, slots=True)
class KeyColumns:
    """What is needed to read key columns of files."""

    root: Root
    field_of: Callable[[int], Field | None]
    """The column with an id, in whichever schema last had it."""
    names: Mapping[int, tuple[str, ...]]
    """The names of columns in files without ids, by the name mapping; empty without one."""
    constants: Callable[[int], Mapping[int, Any]] = field(repr=False)
    """The values of columns that a data file, by its place, may lack, as Arrow scalars."""

    def read(self, file: Mapping[str, Any], ids: Keys, place: int | None = None) -> pa.Table:
        """Read the columns of a delete file, or of the data file at ``place``, in their current types."""
        name = file["file_path"]
        if file["file_format"].upper() != "PARQUET":
            raise refuse_format(file)
        store, path = self.root.opened(self.root.resolve(name, encoded=False))
        try:
            with pq.ParquetFile(pa.PythonFile(store.reader(path), mode="r")) as opened:
                found = self._found(opened.schema_arrow, ids)
                table = opened.read(columns=list(found.values()))
                rows = opened.metadata.num_rows
            return pa.table({str(i): self._column(table, i, found.get(i), rows, place) for i in ids})
        except (NotFound, InvalidInput):
            raise
        except (pa.ArrowException, OSError, ValueError, KeyError) as error:
            raise metadata_damaged(name, error) from error

    def _found(self, schema: pa.Schema, ids: Keys) -> dict[int, str]:
        names_by_id = {int((f.metadata or {}).get(_FIELD_ID, -1)): f.name for f in schema}
        if any(i >= 0 for i in names_by_id):
            return {i: names_by_id[i] for i in ids if i in names_by_id}
        named = {i: next((n for n in self._names(i) if n in schema.names), None) for i in ids}
        return {i: name for i, name in named.items() if name is not None}

    def _names(self, identifier: int) -> tuple[str, ...]:
        known = self.field_of(identifier)
        if self.names:  # what a mapping leaves out is in no file without ids
            return self.names.get(identifier, ())
        return () if known is None else (known.name,)

    def _column(self, table: pa.Table, identifier: int, name: str | None, rows: int, place: int | None) -> pa.Array:
        known = self.field_of(identifier)
        if known is None or known.type.children:
            raise InvalidInput(
                f"An equality delete is by the field {identifier}, which is nested or of no known schema.",
                code="ICEBERG_FEATURE",
                name=str(identifier),
                remedy="Compact the table there (rewrite_data_files), then adopt it.",
            )
        kind = to_arrow_type(known.type)
        if name is not None:
            column = table[name]
            return pa.concat_arrays(column.chunks).cast(kind) if column.num_chunks else pa.nulls(0, kind)
        scalar = (self.constants(place) if place is not None else {}).get(identifier, initial_scalar(known))
        return pa.repeat(scalar.cast(kind), rows)


def equality_deletes(columns: KeyColumns, data: Entries, deletes: Entries, global_specs: frozenset[int]) -> Rows:
    """Return the rows that equality deletes delete, by data file.

    ``global_specs`` are the partition specs without partition: deletes of them hold for all data files.
    """
    by_scope: dict[Any, list[int]] = {}
    for at, file in enumerate(deletes.files):
        if file["content"] == _EQUALITY:
            by_scope.setdefault(_scope(deletes, at, global_specs), []).append(at)
    if not by_scope:
        return {}
    keys = cache(lambda at, ids: columns.read(deletes.files[at], ids))

    def resolved(place: int) -> Any:
        candidates = [*by_scope.get(None, ()), *by_scope.get(_scope(data, place, global_specs) or (), ())]
        newer = [at for at in candidates if deletes.sequences[at] > data.sequences[place]]
        by_ids: dict[Keys, list[int]] = {}
        for at in newer:
            by_ids.setdefault(tuple(deletes.files[at]["equality_ids"] or ()), []).append(at)
        rows = BitMap()
        for ids, files in by_ids.items():
            gone = pa.concat_tables([keys(at, ids) for at in files])
            rows |= BitMap(matching(columns.read(data.files[place], ids, place), gone).astype(np.uint32))
        return rows

    found = gather_requests(columns.root.store, resolved, range(len(data.files)))
    return {place: rows for place, rows in enumerate(found) if len(rows)}


def _scope(entries: Entries, at: int, global_specs: frozenset[int]) -> Any:
    return None if entries.specs[at] in global_specs else entries.partition_key(at)


def matching(rows: pa.Table, gone: pa.Table) -> Codes:
    """Return the ordinals of ``rows`` that equal a row of ``gone``; NULL equals NULL, and NaN equals NaN."""
    if not gone.num_columns:
        return np.zeros(0, np.int64)
    codes = np.zeros(len(rows) + len(gone), np.int64)
    for name in rows.column_names:
        both = with_one_nan(pa.concat_arrays([chunk for t in (rows, gone) for chunk in t[name].chunks]))
        own = both.dictionary_encode(null_encoding="encode").indices.to_numpy(zero_copy_only=False).astype(np.int64)
        _, codes = np.unique(codes * (own.max(initial=0) + 1) + own, return_inverse=True)
    return np.flatnonzero(np.isin(codes[: len(rows)], codes[len(rows) :]))
