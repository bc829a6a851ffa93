"""The changes made by a range of versions.

Deltas compose: the delta of a range is made of those of its pieces, and a snapshot is the delta of [0, V]. A
delta is a table of changes, one row each (a segment added, a segment or a part removed, an index segment
added or removed), and the inline tables of the added segments. What is both added and removed within the
range appears in neither.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.errors import CorruptData
from tamis.storage.commit_log.commit_record import Commit
from tamis.storage.object_store.metadata_files import Chooser, Columns, Inline, Stored, columns_from_json
from tamis.storage.object_store.metadata_union import is_statistic, stack_tables
from tamis.storage.object_store.parallel_requests import gather_requests
from tamis.storage.object_store.store import Store

Bools = np.ndarray[Any, np.dtype[np.bool_]]

SEGMENT, SEGMENT_GONE, PART_GONE, INDEX, INDEX_GONE, DELETED = range(6)
"""Kinds of change.

For a part that lost rows (``DELETED``), ``rows`` is their number, and the vector is in ``deletion`` or in a
file. A segment that loses its last part is gone without a row of its own.
"""

CHANGES = pa.schema(
    [
        ("kind", pa.int8()),
        ("segment_id", pa.string()),
        ("part_id", pa.string()),
        ("version", pa.int64()),
        ("timestamp_micros", pa.int64()),
        ("rows", pa.int64()),
        ("bytes", pa.int64()),
        ("parts", pa.int64()),
        ("schema_id", pa.int32()),
        ("tables", pa.string()),  # JSON: the stored tables that are files of their own, by name
        ("detail", pa.string()),  # JSON: the entry of an index segment
    ]
)
"""The columns of a table of changes, apart from the statistics of added segments."""


@dataclass(frozen=True, slots=True)
class Delta:
    """The changes of a range of versions.

    ``reset`` means that everything from before the range is gone. ``tables`` holds, by name, the rows of
    inline tables with their ``segment_id`` and ``part`` (the ordinal in the segment).
    """

    reset: bool
    changes: Columns
    tables: Mapping[str, Columns]
    operation_id: str
    """That of the last commit of the range."""
    parent: str | None
    """The ``operation_id`` of the commit before the range; None if there is none or it is unknown."""
    source: object = None
    """The rollup that the delta was loaded from, if any."""

    @property
    def nbytes(self) -> int:
        """Bytes that it takes in storage."""
        return self.changes.nbytes + sum(table.nbytes for table in self.tables.values())

    def read(self, store: Store, columns: Columns, choose: Chooser, *, remember: bool = True) -> pa.Table:
        """Read chosen columns of ``changes`` or of one of ``tables``.

        Raises ``DamagedLayer`` if the delta's rollup is unreadable.
        """
        with self._damaged_layer_errors():
            return columns.read(store, choose, remember=remember)

    def schema(self, store: Store, columns: Columns) -> pa.Schema:
        """Return the schema of ``changes`` or of one of ``tables``; raises as ``read`` does."""
        with self._damaged_layer_errors():
            return columns.schema(store)

    @contextmanager
    def _damaged_layer_errors(self) -> Iterator[None]:
        try:
            yield
        except CorruptData as error:
            if self.source is None:
                raise
            raise DamagedLayer(self.source, error) from error


class DamagedLayer(CorruptData):
    """A rollup that was found but cannot be read; its content can be rebuilt from the level below."""

    def __init__(self, source: object, error: CorruptData) -> None:
        super().__init__(error.message, code=error.code, name=error.name, remedy=error.remedy)
        self.source = source


@dataclass(frozen=True, slots=True)
class Live:
    """The result of applying a sequence of deltas.

    ``changes`` has the columns of ``CHANGES`` plus ``layer`` and ``row``, the place of each change, and is
    sorted by both. ``segments``, ``removed``, ``index`` and ``deleted`` are its rows of added segments,
    removed parts, index segments and deletion vectors in force; ``kept`` are all rows that a delta of the
    whole range needs.
    """

    layers: Sequence[Delta]
    reset: bool
    changes: pa.Table
    segments: np.ndarray[Any, np.dtype[np.int64]]
    removed: np.ndarray[Any, np.dtype[np.int64]]
    index: np.ndarray[Any, np.dtype[np.int64]]
    deleted: np.ndarray[Any, np.dtype[np.int64]]
    kept: np.ndarray[Any, np.dtype[np.int64]]


def commit_delta(store: Store, commit: Commit) -> Delta:
    """Return the delta of one version; reads nothing except the facts of a file of deletion vectors."""
    rows: list[dict[str, Any]] = []
    tables: dict[str, Columns] = {}
    when = {"version": commit.version, "timestamp_micros": commit.timestamp_micros}
    segment = commit.segment
    if segment is not None:
        files = {name: table.to_json() for name, table in segment.tables.items() if isinstance(table, Stored)}
        rows.append(
            {
                "kind": SEGMENT,
                "segment_id": segment.segment_id,
                "rows": segment.rows,
                "bytes": segment.bytes,
                "parts": segment.parts,
                "schema_id": segment.schema_id,
                "tables": json.dumps(files) if files else None,
                **when,
            }
        )
        tables = {
            name: _keyed(table, segment.segment_id)
            for name, table in segment.tables.items()
            if isinstance(table, Inline)
        }
    rows += ({"kind": SEGMENT_GONE, "segment_id": gone, **when} for gone in commit.remove_segments)
    rows += (
        {"kind": PART_GONE, "segment_id": p.segment_id, "part_id": p.part_id, "rows": p.rows, "bytes": p.bytes, **when}
        for p in commit.remove_parts
    )
    rows += (
        {"kind": INDEX, "segment_id": entry["segment_id"], "detail": json.dumps(entry), **when}
        for entry in commit.add_index
    )
    rows += ({"kind": INDEX_GONE, "segment_id": gone, **when} for gone in commit.remove_index)
    changes = pa.Table.from_pylist(rows, schema=CHANGES)
    size = segment.statistics.nbytes if segment and segment.statistics else 0
    if commit.deletions is not None:
        changes = stack_tables([changes, _deleted(store, commit.deletions, when)])
        size += commit.deletions.nbytes if isinstance(commit.deletions, Inline) else 0
    if segment is not None and segment.statistics is not None:
        changes = _beside(changes, segment.statistics.table)
    return Delta(commit.remove_all, Memory(changes, size), tables, commit.operation_id, commit.parent)


def _deleted(store: Store, deletions: Columns, when: dict[str, Any]) -> pa.Table:
    """Return rows of kind ``DELETED``, with inline vectors or else the file that holds them."""
    inline = isinstance(deletions, Inline)
    found = deletions.read(store, lambda _: ["segment_id", "part_id", "rows", *(["vector"] if inline else [])])
    count = len(found)
    columns = {
        "kind": pa.array([DELETED] * count, pa.int8()),
        **{name: found[name] for name in ("segment_id", "part_id", "rows")},
        **{name: pa.array([value] * count, pa.int64()) for name, value in when.items()},
    }
    if inline:
        return pa.table(columns | {"deletion": found["vector"]})
    return pa.table(
        columns | {"tables": pa.array([json.dumps({"deletions": deletions.to_json()})] * count, pa.string())}
    )


def _beside(changes: pa.Table, union: pa.Table) -> pa.Table:
    """Append the statistics of a commit's segment to the first row of its changes."""
    statistics = union.select([at for at, name in enumerate(union.schema.names) if is_statistic(name)])
    if len(changes) > 1:
        rest = pa.table({"rest": pa.nulls(len(changes) - 1)})
        statistics = pa.concat_tables([statistics, rest], promote_options="default").drop_columns(["rest"])
    names = [*changes.column_names, *statistics.schema.names]
    return pa.Table.from_arrays([*changes.columns, *statistics.columns], names=names)


class Memory(Inline):
    """A table that is already in memory; in storage it took ``nbytes``."""

    def __init__(self, table: pa.Table, nbytes: int) -> None:
        super().__init__(len(table), 0, b"", table)
        self._nbytes = nbytes

    @property
    def nbytes(self) -> int:
        return self._nbytes


def live_parts(store: Store, deltas: Sequence[Delta]) -> Live:
    """Apply ``deltas``, in the order of their ranges; reads the facts of changes, no statistics."""
    start = max((at for at, delta in enumerate(deltas) if delta.reset), default=0)
    layers = deltas[start:]
    facts = gather_requests(store, lambda delta: delta.read(store, delta.changes, lambda _: CHANGES.names), layers)
    table = stack_tables([_placed(table, layer) for layer, table in enumerate(facts)])
    kind = table["kind"].to_numpy()
    ids = table["segment_id"].combine_chunks()
    gone = _among(ids, ids.filter(pa.array(kind == SEGMENT_GONE)))
    added = kind == SEGMENT
    emptied = _emptied(table, ids, kind)
    alive = added & ~gone & ~emptied
    known = _among(ids, ids.filter(pa.array(added)))
    holds = _among(ids, ids.filter(pa.array(alive)))
    part_gone = (kind == PART_GONE) & ~gone & (holds | ~known)
    parts = table["part_id"].combine_chunks()
    deleted = (kind == DELETED) & ~gone & (holds | ~known) & ~_among(parts, parts.filter(pa.array(kind == PART_GONE)))
    deleted = _latest(parts, deleted)
    index = (kind == INDEX) & ~_among(ids, ids.filter(pa.array(kind == INDEX_GONE)))
    outside = (kind == SEGMENT_GONE) & ~known | (kind == INDEX_GONE) & ~_among(ids, ids.filter(pa.array(kind == INDEX)))
    return Live(
        layers=layers,
        reset=any(delta.reset for delta in deltas),
        changes=table,
        segments=np.flatnonzero(alive),
        removed=np.flatnonzero(part_gone & holds),
        index=np.flatnonzero(index),
        deleted=np.flatnonzero(deleted & holds),
        kept=np.flatnonzero(alive | part_gone | index | deleted | outside),
    )


def files_of(text: str | None) -> dict[str, Columns]:
    """Return the stored tables that a segment has as files, by name."""
    return {name: columns_from_json(value) for name, value in json.loads(text).items()} if text else {}


def _keyed(table: Inline, segment_id: str) -> Memory:
    """Return an inline table with its ``segment_id`` and ``part`` columns added."""
    rows = table.table
    for name, values in (
        ("part", pa.array(np.arange(len(rows), dtype=np.int32))),
        ("segment_id", pa.array([segment_id] * len(rows), pa.string())),
    ):
        at = rows.schema.get_field_index(name)
        rows = rows.add_column(0, name, values) if at < 0 else rows
    return Memory(rows, table.nbytes)


def _placed(table: pa.Table, layer: int) -> pa.Table:
    table = table.append_column("layer", pa.array(np.full(len(table), layer, dtype=np.int32)))
    return table.append_column("row", pa.array(np.arange(len(table), dtype=np.int64)))


def _among(ids: pa.Array, some: pa.Array) -> Bools:
    found: Bools = pc.is_in(ids, value_set=some).to_numpy(zero_copy_only=False)
    return found


def _latest(parts: pa.Array, chosen: Bools) -> Bools:
    """Return the mask of the last chosen row of each part."""
    places = np.flatnonzero(chosen)
    if not len(places):
        return chosen
    codes = parts.take(pa.array(places)).dictionary_encode().indices.to_numpy()
    last = np.zeros(len(chosen), dtype=np.bool_)
    last[places[len(places) - 1 - np.unique(codes[::-1], return_index=True)[1]]] = True
    return last


def _emptied(table: pa.Table, ids: pa.Array, kind: np.ndarray[Any, Any]) -> Bools:
    """Return the mask of added segments whose parts were all removed."""
    part_gone = kind == PART_GONE
    if not part_gone.any():
        return np.zeros(len(kind), dtype=np.bool_)
    places = pc.index_in(ids.filter(pa.array(part_gone)), value_set=ids.filter(pa.array(kind == SEGMENT)))
    where = np.flatnonzero(kind == SEGMENT)
    counts = np.bincount(pc.drop_null(places).to_numpy(), minlength=len(where))
    parts = pc.fill_null(table["parts"], 0).to_numpy()[where]
    emptied = np.zeros(len(kind), dtype=np.bool_)
    emptied[where[counts >= parts]] = True
    return emptied
