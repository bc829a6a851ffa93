"""Change feed: the rows that each commit between two versions inserted and deleted.

Invariant: the rows of version ``a``, minus deletes, plus inserts, are the rows of version ``b``. The feed is
minimal: a row copied from one part to another is neither deleted nor inserted, and commits that keep the rows
(compaction, vacuum) contribute nothing. An update is a delete and an insert. Rows have the schema of ``b``
plus the customary column names of change feeds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from tamis.core.types import Schema
from tamis.core.types.arrow import to_arrow_schema
from tamis.engine.part_reader import ReadCounters, ReadSpec, read_part
from tamis.engine.scan import PartRefs
from tamis.errors import InvalidInput
from tamis.storage.commit_log import Snapshot, load
from tamis.storage.commit_log.commit_objects import read_commits
from tamis.storage.commit_log.commit_record import Commit
from tamis.storage.commit_log.deletion_vectors import bitmap, vector
from tamis.storage.files import PartRef
from tamis.storage.object_store import Store

INSERT, DELETE = "insert", "delete"
COLUMNS = (
    pa.field("_change_type", pa.string(), nullable=False),
    pa.field("_commit_version", pa.int64(), nullable=False),
    pa.field("_commit_timestamp", pa.timestamp("us", tz="UTC"), nullable=False),
)
"""Column names shared with the change feeds of other formats and of Spark."""

Ints = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, slots=True)
class Change:
    """The row changes of one commit: added parts, and removed rows by part."""

    version: int
    timestamp_micros: int
    inserted: Sequence[PartRef]
    deleted: Sequence[PartRef]


class Changes:
    """The changes after version ``first`` up to version ``last``, read lazily. An Arrow stream."""

    def __init__(self, store: Store, first: Snapshot, last: Snapshot) -> None:
        if last.version < first.version:
            raise InvalidInput(
                f"Version {last.version} is before version {first.version}.",
                code="BAD_VERSION",
                name=f"{first.version}, {last.version}",
                remedy="Give the older version first.",
            )
        self._store, self._first, self._last = store, first, last
        self.schema = feed_schema(last)

    def to_batches(self) -> pa.RecordBatchReader:
        """Stream the rows, oldest commit first, deletes before inserts within a commit."""
        return pa.RecordBatchReader.from_batches(self.schema, self._batches())

    def to_arrow(self) -> pa.Table:
        return self.to_batches().read_all()

    def to_pandas(self) -> Any:
        return self.to_arrow().to_pandas()

    def to_spark(self, spark: Any) -> Any:
        """Return the rows as a DataFrame of the session ``spark``; they are first read locally."""
        return spark.createDataFrame(self.to_arrow())

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.to_batches().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"Changes({self._store.url!r}, {self._first.version} → {self._last.version})"

    def _batches(self) -> Iterator[pa.RecordBatch]:
        spec = feed_spec(self._store, self._last)
        for found in changes_of(self._store, self._first.version + 1, self._last):
            yield from change_batches(found, spec, self.schema)


def feed_spec(store: Store, last: Snapshot) -> ReadSpec:
    """Return how the rows of a feed are read: under the schema of the version ``last``."""
    schemas = {s.schema_id: s for s in last.head.schemas}
    return ReadSpec(store.url, last.schema or Schema(()), schemas, dict(store.options), batch_rows=16_384)


def feed_schema(last: Snapshot) -> pa.Schema:
    """Return the columns of a feed that ends at the version ``last``."""
    return pa.schema([*to_arrow_schema(last.schema or Schema(())), *COLUMNS])


def changes_of(store: Store, first: int, last: Snapshot) -> Iterator[Change]:
    """Yield what the commits from version ``first`` up to ``last`` changed, from metadata alone."""
    for commit in read_commits(store, range(first, last.version + 1), last.commit.table_id):
        if commit.data_change:
            yield change(store, commit)


def change_batches(found: Change, spec: ReadSpec, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one commit, with the columns of ``schema``: deletes, then inserts.

    A commit that both removes and adds parts is held in memory, to cancel the rows that it only copied.
    """
    gone, come = _rows(found.deleted, spec), _rows(found.inserted, spec)
    if found.deleted and found.inserted:
        gone, come = net(_whole(gone, spec.schema), _whole(come, spec.schema))
    for kind, batches in ((DELETE, gone), (INSERT, come)):
        for batch in batches:
            values = (kind, found.version, found.timestamp_micros)
            added = [pa.repeat(pa.scalar(v, f.type), len(batch)) for v, f in zip(values, COLUMNS, strict=True)]
            yield pa.RecordBatch.from_arrays([*batch.columns, *added], schema=schema)


def changes(store: Store, a: int, b: int | None = None) -> Changes:
    """Return the changes after version ``a`` up to version ``b`` (None: the newest).

    Raises ``NotFound`` for versions that do not exist (any more).
    """
    return Changes(store, load(store, a), load(store, b))


def change(store: Store, commit: Commit) -> Change:
    """Derive the changes of ``commit`` from metadata alone."""
    after = Snapshot.at(store, commit)
    if commit.version == 0:
        return Change(0, commit.timestamp_micros, _refs(after.parts(None)), ())
    if commit.blind_append and commit.segment is not None:
        mine = np.asarray(pc.equal(after.segments["segment_id"], commit.segment.segment_id).to_numpy(), dtype=np.bool_)
        return Change(commit.version, commit.timestamp_micros, _refs(after.parts(mine)), ())
    before = Snapshot.at(store, read_commits(store, [commit.version - 1], commit.table_id)[0]).parts(None)
    now = after.parts(None)
    come = now.filter(pc.invert(pc.is_in(now["part_id"], value_set=before["part_id"].combine_chunks())))
    gone = before.filter(pc.invert(pc.is_in(before["part_id"], value_set=now["part_id"].combine_chunks())))
    return Change(commit.version, commit.timestamp_micros, _refs(come), [*_refs(gone), *_thinned(before, now)])


def _refs(parts: pa.Table) -> PartRefs:
    return PartRefs(parts, np.zeros(len(parts), dtype=np.bool_))


def _thinned(before: pa.Table, now: pa.Table) -> list[PartRef]:
    """Return the newly deleted rows of remaining parts, as parts in which all other rows are deleted."""
    at = pc.index_in(now["part_id"].combine_chunks(), value_set=before["part_id"].combine_chunks())
    old = dict(zip(before["part_id"].to_pylist(), before["deletion"].to_pylist(), strict=True))
    found = []
    for ref in _refs(now.filter(at.is_valid())):
        earlier, later = old[ref.part_id], ref.deletion
        if later is None or later == earlier:
            continue
        lost = bitmap(later, ref.part_id) - (bitmap(earlier, ref.part_id) if earlier else BitMap())
        if lost:
            kept = BitMap(range(ref.rows)) - lost
            found.append(replace(ref, deletion=vector(kept) if kept else None))
    return found


def _rows(refs: Sequence[PartRef], spec: ReadSpec) -> Iterator[pa.RecordBatch]:
    for ref in refs:
        yield from read_part(ref, spec, ReadCounters())


def _whole(batches: Iterator[pa.RecordBatch], schema: Schema) -> pa.Table:
    return pa.Table.from_batches(batches, to_arrow_schema(schema))


def net(gone: pa.Table, come: pa.Table) -> tuple[Iterator[pa.RecordBatch], Iterator[pa.RecordBatch]]:
    """Cancel rows that are in both, by multiplicity: they were only copied."""
    keys = _keys(pa.concat_tables([gone, come]))
    left, right = keys[: len(gone)], keys[len(gone) :]
    size = int(keys.max(initial=-1)) + 1
    both = np.minimum(np.bincount(left, minlength=size), np.bincount(right, minlength=size))
    gone, come = (t.filter(pa.array(_occurrence(k) >= both[k])) for t, k in ((gone, left), (come, right)))
    return iter(gone.to_batches()), iter(come.to_batches())


def _keys(rows: pa.Table) -> Ints:
    """Return an integer per row that is equal for equal rows."""
    keys = np.zeros(len(rows), dtype=np.int64)
    for codes in (c for column in rows.columns for c in _codes(column.combine_chunks())):
        _, keys = np.unique(keys * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)
    return keys


def _codes(column: pa.Array | pa.ChunkedArray) -> Iterator[Ints]:
    """Yield one or more arrays of integers that together distinguish a column's values."""
    array = pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_struct(array.type):
        yield array.is_valid().to_numpy(zero_copy_only=False).astype(np.int64)
        for child in array.flatten():
            yield from _codes(child)
        return
    # lists and maps as text: slow, but only for commits that add and remove parts
    if pa.types.is_nested(array.type):
        array = pa.array([None if v is None else repr(v) for v in array.to_pylist()], pa.string())
    if pa.types.is_null(array.type):
        return
    flat = array.view(pa.int64()) if pa.types.is_duration(array.type) else array
    yield flat.dictionary_encode(null_encoding="encode").indices.to_numpy(zero_copy_only=False).astype(np.int64)


def _occurrence(keys: Ints) -> Ints:
    """Return, for each row, how many equal rows precede it."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    first = np.searchsorted(ordered, ordered, side="left")
    out = np.empty(len(keys), dtype=np.int64)
    out[order] = np.arange(len(keys)) - first
    return out
