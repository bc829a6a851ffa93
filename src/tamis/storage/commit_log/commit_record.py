"""A commit, one object of the log, and its JSON form (specified in ``docs/format.md``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tamis.storage.commit_log.head_json import head_from_json, head_to_json
from tamis.storage.commit_log.model import Head, Operation, ReadSet, StreamEpoch
from tamis.storage.object_store.metadata_files import Columns, Inline, columns_from_json


@dataclass(frozen=True, slots=True)
class Segment:
    """The parts that one commit adds, in order, with their stored tables by name.

    ``parts`` is always among ``tables``; there may be others.
    """

    segment_id: str
    parts: int
    rows: int
    bytes: int
    schema_id: int | None
    """The schema of all its parts, or None if they differ."""
    tables: dict[str, Columns]
    statistics: Inline | None = None
    """One row: the union of its parts' statistics; None if unknown."""


@dataclass(frozen=True, slots=True)
class RemovedPart:
    """A part removed from the table while other parts of its segment stay."""

    segment_id: str
    part_id: str
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Commit:
    """The content of a commit.

    Invariant: what a commit says stays true for ever; a later commit can only add to it.
    """

    version: int
    table_id: str
    operation_id: str
    timestamp_micros: int
    operation: Operation
    schema_id: int | None
    head_version: int
    """The version whose commit holds the head in force here."""
    head: Head | None = None
    """The head, if this commit changes it; then ``head_version`` is ``version``."""
    read_version: int | None = None
    reads: ReadSet | None = None
    blind_append: bool = False
    data_change: bool = True
    """False if the rows are the same before and after (compaction)."""
    segment: Segment | None = None
    remove_all: bool = False
    """Whether the commit removes everything that was there before it."""
    remove_segments: tuple[str, ...] = ()
    remove_parts: tuple[RemovedPart, ...] = ()
    deletions: Columns | None = None
    """Deletion vectors of parts that stay (see ``deletion_vectors``), each replacing the previous one."""
    add_index: tuple[dict[str, Any], ...] = ()
    """Index segments, each with a ``segment_id``; the other keys belong to the index."""
    remove_index: tuple[str, ...] = ()
    streams_version: int | None = None
    """The version whose commit holds ``streams`` in their current state."""
    streams: tuple[StreamEpoch, ...] = field(default=())
    """The last epoch of each streaming query, latest to commit last; only in commits of streams."""
    vacuum: tuple[int, int] | None = None
    """Set by a vacuum: (version, microseconds).

    Versions before the first may vanish, as may objects that no version names and that were made before the
    second.
    """
    reader_features: tuple[str, ...] = ()
    """The reader features of the head in force, repeated here to be checked before anything else is parsed.
    """
    parent: str | None = None
    """The ``operation_id`` of the commit before; None at version 0, and where an earlier writer did not record it."""

    @property
    def removes_parts(self) -> bool:
        """Whether parts of the version before are gone, or replaced by others."""
        return self.remove_all or bool(self.remove_segments or self.remove_parts)

    @property
    def touches_rows(self) -> bool:
        """Whether the rows may differ from those before: a change of the head alone leaves them as they are."""
        return self.data_change and (self.segment is not None or self.removes_parts or self.deletions is not None)

    def follows(self, before: Commit) -> bool:
        """Whether this commit is of the same table as ``before`` and names it as its parent, or names none."""
        return self.table_id == before.table_id and self.parent in (None, before.operation_id)


def commit_to_json(commit: Commit) -> dict[str, Any]:
    """Encode a commit; absent keys mean empty, false or none, which keeps a plain append short."""
    operation = commit.operation
    optional: dict[str, Any] = {
        "parent": commit.parent,
        "stream": [x for x in operation.stream if x is not None] if operation.stream else None,
        "read_version": commit.read_version,
        "reads": _reads_to_json(commit.reads) if commit.reads else None,
        "blind_append": commit.blind_append or None,
        "data_change": None if commit.data_change else False,
        "head": head_to_json(commit.head) if commit.head else None,
        "add": [_segment_to_json(commit.segment)] if commit.segment else None,
        "remove_all": commit.remove_all or None,
        "remove_segments": list(commit.remove_segments) or None,
        "remove_parts": [[p.segment_id, p.part_id, p.rows, p.bytes] for p in commit.remove_parts] or None,
        "deletions": commit.deletions.to_json() if commit.deletions else None,
        "add_index": list(commit.add_index) or None,
        "remove_index": list(commit.remove_index) or None,
        "streams_version": commit.streams_version,
        "streams": [[one.query, one.epoch] for one in commit.streams] or None,
        "stream_batches": [one.batch_millis for one in commit.streams] if _knows_batches(commit) else None,
        "vacuum": list(commit.vacuum) if commit.vacuum else None,
    }
    return {
        "reader_features": list(commit.reader_features),
        "version": commit.version,
        "table_id": commit.table_id,
        "operation_id": commit.operation_id,
        "timestamp_micros": commit.timestamp_micros,
        "operation": {"name": operation.name, "parameters": operation.parameters, "metrics": operation.metrics},
        "schema_id": commit.schema_id,
        "head_version": commit.head_version,
        **{key: value for key, value in optional.items() if value is not None},
    }


def _knows_batches(commit: Commit) -> bool:
    return any(one.batch_millis is not None for one in commit.streams)


def _stream_from_json(value: Sequence[Any] | None) -> StreamEpoch | None:
    return StreamEpoch(*value[:3]) if value else None


def _streams_from_json(value: dict[str, Any]) -> tuple[StreamEpoch, ...]:
    streams = value.get("streams", ())
    batches = value.get("stream_batches", [None] * len(streams))  # earlier releases record none
    return tuple(StreamEpoch(query, epoch, at) for (query, epoch), at in zip(streams, batches, strict=True))


def commit_from_json(value: dict[str, Any]) -> Commit:
    """Decode the output of ``commit_to_json``.

    Unknown keys are ignored; what must not be ignored is a feature.
    """
    operation, added, stream = value["operation"], value.get("add", ()), value.get("stream")
    if len(added) > 1:
        raise ValueError(f"{len(added)} segments in one commit")
    return Commit(
        version=value["version"],
        table_id=value["table_id"],
        operation_id=value["operation_id"],
        timestamp_micros=value["timestamp_micros"],
        operation=Operation(
            operation["name"], operation["parameters"], operation["metrics"], _stream_from_json(stream)
        ),
        schema_id=value["schema_id"],
        head_version=value["head_version"],
        head=head_from_json(value["head"]) if "head" in value else None,
        read_version=value.get("read_version"),
        reads=_reads_from_json(value["reads"]) if "reads" in value else None,
        blind_append=value.get("blind_append", False),
        data_change=value.get("data_change", True),
        segment=_segment_from_json(added[0]) if added else None,
        remove_all=value.get("remove_all", False),
        remove_segments=tuple(value.get("remove_segments", ())),
        remove_parts=tuple(RemovedPart(*part) for part in value.get("remove_parts", ())),
        deletions=columns_from_json(value["deletions"]) if "deletions" in value else None,
        add_index=tuple(value.get("add_index", ())),
        remove_index=tuple(value.get("remove_index", ())),
        streams_version=value.get("streams_version"),
        streams=_streams_from_json(value),
        vacuum=_pair(value.get("vacuum", value.get("lets_go"))),  # its name before the first release
        reader_features=tuple(value["reader_features"]),
        parent=value.get("parent"),
    )


def _pair(value: list[int] | None) -> tuple[int, int] | None:
    return (value[0], value[1]) if value is not None else None


def _segment_to_json(segment: Segment) -> dict[str, Any]:
    return {
        "segment_id": segment.segment_id,
        "parts": segment.parts,
        "rows": segment.rows,
        "bytes": segment.bytes,
        "schema_id": segment.schema_id,
        "tables": {name: table.to_json() for name, table in segment.tables.items()},
        "statistics": segment.statistics.to_json() if segment.statistics else None,
    }


def _segment_from_json(value: dict[str, Any]) -> Segment:
    statistics = value["statistics"]
    union = columns_from_json(statistics) if statistics else None
    return Segment(
        segment_id=value["segment_id"],
        parts=value["parts"],
        rows=value["rows"],
        bytes=value["bytes"],
        schema_id=value["schema_id"],
        tables={name: columns_from_json(table) for name, table in value["tables"].items()},
        statistics=union if isinstance(union, Inline) else None,
    )


def _reads_to_json(reads: ReadSet) -> dict[str, Any]:
    columns = None if reads.columns is None else [list(path) for path in reads.columns]
    return {"filter": reads.filter, "columns": columns, "zone": reads.zone, "ansi": reads.ansi}


def _reads_from_json(value: dict[str, Any]) -> ReadSet:
    columns = value["columns"]
    return ReadSet(
        filter=value["filter"],
        columns=None if columns is None else tuple(tuple(path) for path in columns),
        zone=value["zone"],
        ansi=value["ansi"],
    )
