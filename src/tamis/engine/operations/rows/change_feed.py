"""Change feed: the rows that each commit between two versions inserted, deleted and updated.

Invariant: the rows of version ``a``, minus deletes and preimages, plus inserts and postimages, are the rows of
version ``b``. The feed is minimal: a row copied from one part to another is not in it, and commits that keep the
rows (compaction, vacuum) contribute nothing. Without keys, an update is a delete and an insert
(``change_images``). Rows have the schema of ``b`` plus the customary column names of change feeds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from tamis.core.types import Schema
from tamis.core.types.arrow import to_arrow_schema
from tamis.engine.operations.rows.change_images import DELETE, INSERT, image_rows, key_columns
from tamis.engine.operations.rows.feed_columns import COLUMNS, feed_schema
from tamis.engine.operations.rows.row_codes import occurrence_numbers, row_codes
from tamis.engine.part_reader import ReadCounters, ReadSpec, read_part
from tamis.engine.scan import PartRefs
from tamis.errors import InvalidInput
from tamis.storage.commit_log import Snapshot, load
from tamis.storage.commit_log.commit_objects import read_commits
from tamis.storage.commit_log.commit_record import Commit
from tamis.storage.commit_log.deletion_vectors import read_bitmap, serialize_vector
from tamis.storage.files import PartRef
from tamis.storage.object_store import Store


@dataclass(frozen=True, slots=True)
class FeedForm:
    """What a feed reports: images of updates if ``keys`` are given; the net changes of all commits if ``net``."""

    keys: tuple[str, ...] = ()
    net: bool = False


PLAIN = FeedForm()


@dataclass(frozen=True, slots=True)
class Change:
    """The row changes of one commit: added parts, and removed rows by part."""

    version: int
    timestamp_micros: int
    inserted: Sequence[PartRef]
    deleted: Sequence[PartRef]


class Changes:
    """The changes after version ``first`` up to version ``last``, read lazily. An Arrow stream."""

    def __init__(self, store: Store, first: Snapshot, last: Snapshot, form: FeedForm = PLAIN) -> None:
        if last.version < first.version:
            raise InvalidInput(
                f"Version {last.version} is before version {first.version}.",
                code="BAD_VERSION",
                name=f"{first.version}, {last.version}",
                remedy="Give the older version first.",
            )
        self._store, self._first, self._last, self._form = store, first, last, form
        self.schema = feed_schema(store, first.version, last)
        key_columns(last.schema or Schema(()), form.keys)

    def to_batches(self) -> pa.RecordBatchReader:
        """Stream the rows, oldest commit first; within a commit deletes, images before and after, inserts."""
        return pa.RecordBatchReader.from_batches(self.schema, self._batches())

    def to_arrow(self) -> pa.Table:
        return self.to_batches().read_all()

    def to_pandas(self) -> Any:
        return self.to_arrow().to_pandas()

    def to_spark(self, spark: Any) -> Any:
        """Return the rows as a DataFrame of the session ``spark``; they are first read locally."""
        from pyspark.sql.pandas.types import from_arrow_schema

        # Without a schema, PySpark takes local times for instants of the session's zone.
        return spark.createDataFrame(self.to_arrow(), from_arrow_schema(self.schema, prefer_timestamp_ntz=True))

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.to_batches().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"Changes({self._store.url!r}, {self._first.version} → {self._last.version})"

    def _batches(self) -> Iterator[pa.RecordBatch]:
        spec = feed_spec(self._store, self._last)
        for found in changes_of(self._store, self._first.version + 1, self._last, self._form):
            yield from change_batches(found, spec, self.schema, self._form.keys)


def feed_spec(store: Store, last: Snapshot) -> ReadSpec:
    """Return how the rows of a feed are read: under the schema of the version ``last``."""
    schemas = {s.schema_id: s for s in last.head.schemas}
    options, sources = dict(store.options), last.head.sources
    return ReadSpec(store.url, last.schema or Schema(()), schemas, options, batch_rows=16_384, sources=sources)


def changes_of(store: Store, first: int, last: Snapshot, form: FeedForm = PLAIN) -> Iterator[Change]:
    """Yield what the commits from version ``first`` up to ``last`` changed, from metadata alone.

    A net feed has one change, from the version before ``first`` to ``last``.
    """
    if form.net:
        before = None if first == 0 else load(store, first - 1)
        if before is None or before.version < last.version:
            yield change_between(before, last)
        return
    for commit in read_commits(store, range(first, last.version + 1), last.commit.table_id):
        if commit.touches_rows:
            yield change_of_commit(store, commit)


def change_batches(
    found: Change, spec: ReadSpec, schema: pa.Schema, keys: Sequence[str] = ()
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one commit, with the columns of ``schema``: deletes, images of updates, inserts.

    A commit that both removes and adds parts is held in memory, to cancel the rows that it only copied.
    Raises ``InvalidInput`` (``DUPLICATE_KEYS``) if ``keys`` do not identify the rows that it updated.
    """
    for kind, batches in _kinds(found, spec, keys):
        for batch in batches:
            values = (kind, found.version, found.timestamp_micros)
            added = [pa.repeat(pa.scalar(v, f.type), len(batch)) for v, f in zip(values, COLUMNS, strict=True)]
            yield pa.RecordBatch.from_arrays([*batch.columns, *added], schema=schema)


def _kinds(found: Change, spec: ReadSpec, keys: Sequence[str]) -> Iterator[tuple[str, Iterable[pa.RecordBatch]]]:
    """Yield the kinds of changes of one commit in their order, with their rows."""
    gone, come = _rows(found.deleted, spec), _rows(found.inserted, spec)
    if not (found.deleted and found.inserted):
        yield from ((DELETE, gone), (INSERT, come))
        return
    left, right = cancel_copied_rows(_whole(gone, spec.schema), _whole(come, spec.schema))
    if not keys:
        yield from ((DELETE, left.to_batches()), (INSERT, right.to_batches()))
        return
    yield from image_rows(left, right, key_columns(spec.schema, keys), f"Version {found.version} of {spec.url}")


def changes(store: Store, a: int, b: int | None = None, form: FeedForm = PLAIN) -> Changes:
    """Return the changes after version ``a`` up to version ``b`` (None: the newest).

    Raises ``NotFound`` for versions that do not exist (any more), and for keys that are no columns; and the errors of
    ``feed_schema``.
    """
    return Changes(store, load(store, a), load(store, b), form)


def change_of_commit(store: Store, commit: Commit) -> Change:
    """Derive the changes of ``commit`` from metadata alone."""
    after = Snapshot.at(store, commit)
    if commit.version == 0:
        return Change(0, commit.timestamp_micros, _refs(after.parts(None)), ())
    if commit.blind_append and commit.segment is not None:
        mine = np.asarray(pc.equal(after.segments["segment_id"], commit.segment.segment_id).to_numpy(), dtype=np.bool_)
        return Change(commit.version, commit.timestamp_micros, _refs(after.parts(mine)), ())
    return change_between(Snapshot.at(store, read_commits(store, [commit.version - 1], commit.table_id)[0]), after)


def change_between(earlier: Snapshot | None, later: Snapshot) -> Change:
    """Derive the row changes between two versions from metadata alone; None is a table without rows."""
    version, instant, now = later.version, later.commit.timestamp_micros, later.parts(None)
    if earlier is None:
        return Change(version, instant, _refs(now), ())
    before = earlier.parts(None)
    come = now.filter(pc.invert(pc.is_in(now["part_id"], value_set=before["part_id"].combine_chunks())))
    gone = before.filter(pc.invert(pc.is_in(before["part_id"], value_set=now["part_id"].combine_chunks())))
    return Change(version, instant, _refs(come), [*_refs(gone), *_thinned(before, now)])


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
        lost = read_bitmap(later, ref.part_id) - (read_bitmap(earlier, ref.part_id) if earlier else BitMap())
        if lost:
            kept = BitMap(range(ref.rows)) - lost
            found.append(replace(ref, deletion=serialize_vector(kept) if kept else None))
    return found


def _rows(refs: Sequence[PartRef], spec: ReadSpec) -> Iterator[pa.RecordBatch]:
    for ref in refs:
        yield from read_part(ref, spec, ReadCounters())


def _whole(batches: Iterator[pa.RecordBatch], schema: Schema) -> pa.Table:
    return pa.Table.from_batches(batches, to_arrow_schema(schema))


def cancel_copied_rows(gone: pa.Table, come: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Remove rows that are in both tables, by multiplicity, because they were only copied to new parts."""
    keys = row_codes(pa.concat_tables([gone, come]))
    left, right = keys[: len(gone)], keys[len(gone) :]
    size = int(keys.max(initial=-1)) + 1
    both = np.minimum(np.bincount(left, minlength=size), np.bincount(right, minlength=size))
    gone, come = (t.filter(pa.array(occurrence_numbers(k) >= both[k])) for t, k in ((gone, left), (come, right)))
    return gone, come
