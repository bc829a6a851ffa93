"""A version of a table, read lazily.

Invariant: a snapshot never changes, and reads the same from rollups as from commits. Its segments are in the
order of their versions, its parts in (segment, part) order. Only the statistics of the requested columns are
read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.stats.statistics_columns import DROPPED
from tamis.core.types import Schema
from tamis.errors import CorruptData
from tamis.storage.commit_log.commit_objects import head_commit
from tamis.storage.commit_log.commit_record import Commit
from tamis.storage.commit_log.deletion_vectors import chosen_vectors
from tamis.storage.commit_log.external_sources import EXTERNAL_COLUMNS, NO_EXTERNAL
from tamis.storage.commit_log.features import check_reader
from tamis.storage.commit_log.model import PART_COLUMNS, Head
from tamis.storage.commit_log.rollups import Tile, covering_tiles, load_deltas, retry_damaged
from tamis.storage.commit_log.vacuum_marker import check_released
from tamis.storage.commit_log.version_changes import CHANGES, Bools, Delta, Live, files_of, live_parts
from tamis.storage.object_store.metadata_union import is_statistic, stack_tables, wanted_columns
from tamis.storage.object_store.object_cache import CACHE
from tamis.storage.object_store.parallel_requests import gather_requests
from tamis.storage.object_store.store import Io, Store

T = TypeVar("T")

SEGMENT_COLUMNS = (
    "segment_id",
    "version",
    "timestamp_micros",
    "rows",
    "bytes",
    "parts",
    "schema_id",
    "physical_rows",
    "physical_parts",
)
"""Columns of ``Snapshot.segments``.

``rows``, ``bytes`` and ``parts`` count what is live; the physical counts include removed parts and deleted
rows.
"""


class Snapshot:
    """The table as of one commit, which loads segments and parts once, on demand.

    Give it a ``store`` of its own (``Store.with_new_counters``): the store's counters are the snapshot's.
    """

    def __init__(self, store: Store, commit: Commit, head: Head) -> None:
        check_reader(head.reader_features, store.url)
        self.store = store
        self.commit = commit
        self.head = head
        self._avoid: set[Tile] = set()

    @staticmethod
    def at(store: Store, commit: Commit) -> Snapshot:
        """Return the snapshot that ``commit`` made."""
        head = head_commit(store, commit).head
        assert head is not None
        return Snapshot(store, commit, head)

    @property
    def version(self) -> int:
        return self.commit.version

    @property
    def timestamp_micros(self) -> int:
        return self.commit.timestamp_micros

    @property
    def schema(self) -> Schema | None:
        return self.head.schema

    @property
    def io(self) -> Io:
        """Cost of reading this snapshot's metadata so far."""
        return self.store.io

    @cached_property
    def segments(self) -> pa.Table:
        """One row per live segment, with ``SEGMENT_COLUMNS``."""
        return self._whole(lambda: self.cached_result("segments", self._segments, lambda table: table.nbytes))

    def segment_evidence(self, ids: Collection[int]) -> pa.Table:
        """Return ``rows`` (physical), ``schema_id`` and statistics of the columns ``ids`` per live segment.

        The statistics are the union of those of its parts.
        """
        chosen = frozenset(ids)
        return self._whole(
            lambda: self.cached_result(("evidence", chosen), lambda: self._evidence(chosen), lambda table: table.nbytes)
        )

    def parts(self, mask: Bools | None = None, ids: Collection[int] = ()) -> pa.Table:
        """Return the live parts of the segments that ``mask`` selects (None: all), in order.

        Columns: ``segment`` (int32, row of ``segments``), ``part`` (int32, ordinal in its segment),
        ``PART_COLUMNS``, ``EXTERNAL_COLUMNS`` if the table has sources, the statistics of the columns ``ids``,
        ``deleted`` (int64, the number of deleted rows) and ``deletion`` (binary, the deletion vector, or NULL).
        """
        chosen = frozenset(ids)
        if mask is not None:
            return self._whole(lambda: self._parts(mask, chosen))
        return self._whole(
            lambda: self.cached_result(
                ("parts", chosen), lambda: _together(self._parts(None, chosen)), lambda table: table.nbytes
            )
        )

    def table(
        self, name: str, facts: Collection[str], mask: Bools | None = None, ids: Collection[int] = ()
    ) -> pa.Table:
        """Read the columns ``facts`` and the statistics of ``ids`` of any segment table, like ``parts``."""
        return self._whole(lambda: self._table(name, facts, mask, frozenset(ids)))

    @cached_property
    def removed_parts(self) -> pa.Table:
        """``segment_id`` and ``part_id`` of removed parts whose segment has other parts left."""
        return self._whole(
            lambda: self._live.changes.take(pa.array(self._live.removed)).select(["segment_id", "part_id"])
        )

    @cached_property
    def named_tables(self) -> list[str]:
        """JSON of the file-backed tables of live segments and of deletion vectors in force."""

        def read() -> list[str]:
            rows = np.concatenate([self._live.segments, self._live.deleted])
            found: list[str] = pc.unique(self._live.changes["tables"].take(pa.array(rows))).drop_null().to_pylist()
            return found

        return self._whole(read)

    @cached_property
    def in_log(self) -> bool:
        """Whether the parts of all live segments are described in the log itself, and not in files of their own."""

        def read() -> bool:
            tables = self._live.changes["tables"].take(pa.array(self._live.segments))
            same: bool = tables.null_count == len(tables)
            return same

        return self._whole(read)

    @cached_property
    def index_segments(self) -> pa.Table:
        """``segment_id``, ``version`` and ``detail`` (JSON) of each index segment."""
        return self._whole(
            lambda: self._live.changes.take(pa.array(self._live.index)).select(["segment_id", "version", "detail"])
        )

    def __repr__(self) -> str:
        return f"Snapshot({self.store.url!r}, version={self.version})"

    @cached_property
    def _live(self) -> Live:
        def read() -> Live:
            cover, last = covering_tiles(self.version + 1), self.commit.operation_id
            return live_parts(self.store, load_deltas(self.store, self.commit.table_id, cover, last, self._avoid))

        return self.cached_result(
            "live", read, lambda found: found.changes.nbytes + sum(layer.nbytes for layer in found.layers)
        )

    @property
    def identity(self) -> tuple[str, str, int, str]:
        """A key that no other version has, not even one of the same number in a log restored from a backup."""
        return self.store.url, self.commit.table_id, self.version, self.commit.operation_id

    def cached_result(self, what: Hashable, read: Callable[[], T], size: Callable[[T], int | None]) -> T:
        """Return the cached result of ``read``; a version of a table never changes.

        ``what`` names the result within this version. ``size`` estimates its bytes; None: do not cache it. The cache is
        bypassed once a rollup turned out damaged.
        """
        if self._avoid:
            return read()
        key = (*self.identity, what)
        found: T | None = CACHE.get(key)
        if found is None:
            found = read()
            taken = size(found)
            if taken is not None and not self._avoid:
                CACHE.put(key, found, taken + 1024)
        return found

    def _whole(self, read: Callable[[], T]) -> T:
        """Return ``read()``, repeated without the rollups that turn out damaged.

        Raises ``NotFound`` (``VERSION_NOT_FOUND``) if vacuum has removed what this version needs.
        """
        before = len(self._avoid)

        def attempt() -> T:
            if len(self._avoid) > before:
                self.__dict__.pop("_live", None)
            return read()

        try:
            return retry_damaged(self._avoid, attempt)
        except CorruptData as error:
            check_released(self.store, self.commit.table_id, self.version, error)
            raise

    def _segments(self) -> pa.Table:
        state = self._live
        found = state.changes.take(pa.array(state.segments)).combine_chunks()
        removed = state.changes.take(pa.array(state.removed))
        gone_of = pc.index_in(removed["segment_id"], value_set=found["segment_id"].combine_chunks()).to_numpy()
        out = {name: found[name] for name in ("segment_id", "version", "timestamp_micros")}
        for name in ("rows", "bytes"):
            gone = np.bincount(gone_of, weights=pc.fill_null(removed[name], 0).to_numpy(), minlength=len(found)).astype(
                np.int64
            )
            out[name] = pc.subtract(found[name], pa.array(gone))
        deleted = state.changes.take(pa.array(state.deleted))
        places = pc.index_in(deleted["segment_id"], value_set=found["segment_id"].combine_chunks()).to_numpy()
        lost = np.bincount(places, weights=deleted["rows"].to_numpy(), minlength=len(found)).astype(np.int64)
        out["rows"] = pc.subtract(out["rows"], pa.array(lost))
        out["parts"] = pc.subtract(
            found["parts"], pa.array(np.bincount(gone_of, minlength=len(found)).astype(np.int64))
        )
        out |= {"schema_id": found["schema_id"], "physical_rows": found["rows"], "physical_parts": found["parts"]}
        return pa.table({name: out[name] for name in SEGMENT_COLUMNS})

    def _evidence(self, ids: frozenset[int]) -> pa.Table:
        state = self._live
        chosen = state.changes.select(["layer", "row"]).take(pa.array(state.segments))
        layer_of, row_of = chosen["layer"].to_numpy(), chosen["row"].to_numpy()

        def read(at: int) -> pa.Table:
            rows = pa.array(row_of[layer_of == at])
            layer = state.layers[at]
            return layer.read(
                self.store, layer.changes, lambda names: wanted_columns(names, ("rows", "schema_id"), ids)
            ).take(rows)

        used = np.unique(layer_of)
        empty = CHANGES.empty_table().select(["rows", "schema_id"])
        return stack_tables([empty, *gather_requests(self.store, read, used.tolist())])

    def _parts(self, mask: Bools | None, ids: frozenset[int]) -> pa.Table:
        external = EXTERNAL_COLUMNS if self.head.sources else ()
        table = self._table("parts", (*PART_COLUMNS, DROPPED, *external), mask, ids)
        state = self._live
        if not len(state.deleted):
            zeros, none = pa.array(np.zeros(len(table), dtype=np.int64)), pa.nulls(len(table), pa.binary())
            return table.append_column("deleted", zeros).append_column("deletion", none)
        found = state.changes.select(["part_id", "rows", "layer", "row", "tables"]).take(pa.array(state.deleted))
        at = pc.index_in(table["part_id"].combine_chunks(), value_set=found["part_id"].combine_chunks())
        used = pc.unique(at.drop_null())
        found = found.take(used)
        at = pc.index_in(at, value_set=used)
        deleted = pc.fill_null(found["rows"].combine_chunks().take(at), 0)
        deletion = chosen_vectors(self.store, state.layers, found).take(at)
        return table.append_column("deleted", deleted).append_column("deletion", deletion)

    def _table(self, name: str, facts: Collection[str], mask: Bools | None, ids: frozenset[int]) -> pa.Table:
        segments = self.segments  # must come first: it may find a rollup damaged and so replace ``_live``
        state = self._live
        chosen = np.arange(len(segments)) if mask is None else np.flatnonzero(mask)
        described = state.changes.select(["layer", "tables"]).take(pa.array(state.segments[chosen]))
        has_files = described["tables"].is_valid().to_numpy()
        files = [
            (int(at), files_of(text))
            for at, text in zip(
                chosen[has_files], described["tables"].filter(pa.array(has_files)).to_pylist(), strict=True
            )
        ]
        own = gather_requests(self.store, lambda f: self._file(f[0], f[1], name, facts, ids), files)
        layers = np.unique(described["layer"].to_numpy())
        shared = gather_requests(
            self.store, lambda at: self._rows(state.layers[at], name, facts, chosen, ids), layers.tolist()
        )
        empty = NO_PARTS.select(["segment", "part", *(c for c in facts if name == "parts" and c in _FACTS)])
        table = _ordered(stack_tables([empty, *(t for t in (*own, *shared) if t is not None)]))
        if "part_id" in table.column_names and len(state.removed):
            gone = state.changes["part_id"].take(pa.array(state.removed))
            table = table.filter(pc.invert(pc.is_in(table["part_id"], value_set=gone.combine_chunks())))
        order = [
            "segment",
            "part",
            *(c for c in facts if c in table.column_names),
            *filter(is_statistic, table.column_names),
        ]
        return table.select(order)

    def _file(
        self, at: int, tables: dict[str, Any], name: str, facts: Collection[str], ids: frozenset[int]
    ) -> pa.Table | None:
        """Read the rows of one segment that has its own file.

        Unreadable statistics become unknown; unreadable facts are an error.
        """
        if name not in tables:
            return None
        columns = tables[name]
        known = {"part", "part_id", *facts}
        try:
            table = columns.read(self.store, lambda names: wanted_columns(names, known, ids))
        except CorruptData:
            table = columns.read(self.store, lambda names: wanted_columns(names, known, ()))
        if "part" not in table.column_names:
            table = table.append_column("part", pa.array(np.arange(len(table), dtype=np.int32)))
        return table.append_column("segment", pa.array(np.full(len(table), at, dtype=np.int32)))

    def _rows(
        self, layer: Delta, name: str, facts: Collection[str], chosen: np.ndarray[Any, Any], ids: frozenset[int]
    ) -> pa.Table | None:
        """Read the rows of the chosen segments from the tables of one layer."""
        known = {"segment_id", "part", "part_id", *facts}
        if name not in layer.tables:
            return None
        table = layer.read(self.store, layer.tables[name], lambda names: wanted_columns(names, known, ids))
        places = pc.index_in(
            table["segment_id"], value_set=self.segments["segment_id"].take(pa.array(chosen)).combine_chunks()
        )
        table = table.drop_columns(["segment_id"])
        if places.null_count:
            table, places = table.filter(places.is_valid()), places.drop_null()
        return table.append_column("segment", pa.array(chosen[places.to_numpy()].astype(np.int32)))


NO_PARTS = pa.Table.from_batches(
    [],
    pa.schema(
        [
            ("segment", pa.int32()),
            ("part", pa.int32()),
            ("part_id", pa.string()),
            ("path", pa.string()),
            ("format", pa.string()),
            ("schema_id", pa.int32()),
            ("rows", pa.int64()),
            ("bytes", pa.int64()),
            ("checksum", pa.int64()),
            ("footer_checksum", pa.int64()),
            ("run_id", pa.string()),
            ("ordered", pa.bool_()),
            ("blocks", pa.list_(pa.int32())),
            *NO_EXTERNAL,
        ]
    ),
)
"""``Snapshot.parts`` of a table without parts, and with sources."""
_FACTS = frozenset(NO_PARTS.column_names)


def _together(table: pa.Table) -> pa.Table:
    """Join the chunks of a table that has few rows in each: every later operation visits chunks one by one."""
    chunks = table.column(0).num_chunks
    return table.combine_chunks() if chunks > 1 and len(table) <= chunks * _FEW_ROWS else table


_FEW_ROWS = 1_000


def _ordered(table: pa.Table) -> pa.Table:
    """Sort rows by (segment, part); mostly they already are."""
    key = table["segment"].to_numpy().astype(np.int64) << 32 | table["part"].to_numpy().astype(np.int64)
    if (key[1:] >= key[:-1]).all():
        return table
    return table.take(pa.array(np.argsort(key, kind="stable")))
