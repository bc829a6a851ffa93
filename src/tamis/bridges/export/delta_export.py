"""Exports a version of a table as a commit of a Delta log beside its data."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tamis.bridges.export import delta_log as log
from tamis.bridges.export.delta_actions import (
    action_line,
    add_lines,
    checkpoint_table,
    remove_lines,
    vectors_of_parts,
    write_vectors,
)
from tamis.bridges.export.delta_schema import (
    LOCAL_TIMES,
    MAPPING,
    VECTORS,
    WIDENING,
    DeltaSchema,
    delta_schema,
    physical_names,
)
from tamis.bridges.export.delta_vectors import unique_id
from tamis.bridges.export.export_parts import PartChange, all_added, exported_columns, part_change, parts_of
from tamis.bridges.export.export_result import Exported, check_history, uuid_text
from tamis.bridges.export.exportable import REWRITE, Target, check_exportable, refused_by_delta
from tamis.core.schema.widening import type_widens
from tamis.core.types import DataType, Schema, String
from tamis.errors import InvalidInput, NotFound
from tamis.storage.commit_log import Snapshot, load
from tamis.storage.commit_log.retry_policy import COMMIT_RACES, LostRace
from tamis.storage.object_store import Store

CHECKPOINT_EVERY, CHECKPOINT_SHARE = 10, 1_000
"""Commits between checkpoints: at least the first, and as many as there are parts for each of the second."""
_LARGE = 10_000
"""Parts of a first commit from which it gets a checkpoint at once."""


def _widens(old: DataType, new: DataType) -> bool:
    return (isinstance(old, String) and isinstance(new, String)) or type_widens(old, new)


DELTA = Target("Delta", refused_by_delta, _widens, default=lambda _: False)


def export_delta(store: Store, snapshot: Snapshot, *, by_id: bool = False) -> Exported:
    """Bring the Delta log beside the table's data to ``snapshot``; do nothing if it is there, or later.

    ``by_id`` allows files with columns under other names, for readers that find columns by id; it stays allowed.
    Raises ``InvalidInput`` naming what Delta cannot express, and ``Conflict`` (``EXPORT_FOREIGN_COMMIT``) if another
    writer has committed to the log.
    """
    return COMMIT_RACES.run(lambda _: _attempt(store, snapshot, by_id))


@dataclass(frozen=True, slots=True)
class _Next:
    """The commit to write."""

    snapshot: Snapshot
    change: PartChange
    schema: Schema
    delta: DeltaSchema
    protocol: dict[str, Any]
    metadata: dict[str, Any]
    head_lines: tuple[str, ...]


def _attempt(store: Store, snapshot: Snapshot, by_id: bool) -> Exported:
    state = log.read_state(store, snapshot.head.table_id)
    if state is not None:
        check_history(snapshot, state.table_version, state.operation_id, log.FOLDER)
    if state is not None and state.table_version >= snapshot.version:
        return Exported("delta", state.table_version, state.log_version, False)
    log_version = 0 if state is None else state.log_version + 1
    ready = _next(store, snapshot, state, by_id)
    change = ready.change
    metadata_version = log_version if ready.head_lines or state is None else state.metadata_version
    write_vectors(store, change.added)
    actions = [
        log.commit_note(snapshot, metadata_version),
        *ready.head_lines,
        *remove_lines(change.removed, snapshot.timestamp_micros // 1_000, data_change=change.data_change),
        *add_lines(change.added, ready.schema, ready.delta.physical, data_change=change.data_change),
    ]
    if not log.write_commit(store, log_version, actions):
        raise LostRace
    _maybe_checkpoint(store, ready, log_version, -1 if state is None else state.checkpoint_version)
    return Exported(
        "delta", snapshot.version, log_version, True, len(change.added), len(change.removed), _notes(ready.delta)
    )


def _next(store: Store, snapshot: Snapshot, state: log.DeltaState | None, by_id: bool) -> _Next:
    """Return what the next commit says; nothing is written before all of it is known to be expressible."""
    protocol: dict[str, Any] = {}
    metadata: dict[str, Any] = {}
    if state is None:
        change = all_added(snapshot)
        before: dict[int, str] = {}
    else:
        protocol, metadata = log.read_metadata(store, state)
        change = _change_since(store, snapshot, state)
        before = physical_names(json.loads(metadata["schemaString"]), _schema_at(snapshot, metadata))
        if len(change.added) == sum(snapshot.segments["parts"].to_pylist()):
            before = {}  # no file is left whose statistics are written under an older name
    schema, live = check_exportable(snapshot, DELTA, change.added)
    features = _features(protocol, change.added)
    delta = delta_schema(schema, live, before, features)
    by_id = by_id or _BY_ID in metadata.get("configuration", {})
    if delta.misnamed and not by_id:
        raise _misnamed(delta.misnamed[0])
    now_protocol, now_metadata = _protocol(delta.features), _metadata(snapshot, delta, by_id)
    lines = []
    if now_protocol != protocol:
        lines.append(action_line({"protocol": now_protocol}))
    if now_metadata != metadata:
        lines.append(action_line({"metaData": now_metadata}))
    if len(lines) == 1:  # one commit holds both, so that one request reads them
        lines = [action_line({"protocol": now_protocol}), action_line({"metaData": now_metadata})]
    return _Next(snapshot, change, schema, delta, now_protocol, now_metadata, tuple(lines))


def _change_since(store: Store, snapshot: Snapshot, state: log.DeltaState) -> PartChange:
    """Return the change since the exported version; from the log itself if vacuum has removed that version."""
    try:
        return part_change(load(store, state.table_version), snapshot)
    except NotFound:
        return _change_by_log(store, snapshot, state)


def _change_by_log(store: Store, snapshot: Snapshot, state: log.DeltaState) -> PartChange:
    """Compare all parts with the files of the log."""
    parts = parts_of(snapshot, None, exported_columns(snapshot))
    there = log.live_files(store, state)
    ids = [unique_id(vector) for vector in vectors_of_parts(parts)]
    keys = list(zip(parts["path"].to_pylist(), ids, strict=True))
    added = parts.filter(pa.array([key not in there for key in keys], pa.bool_()))
    gone = set(there) - set(keys)
    removed = _removed_files([there[key] | {"path": key[0]} for key in gone])
    return PartChange(removed, added, removed, parts, True, True)


def _removed_files(actions: list[dict[str, Any]]) -> pa.Table:
    """Return removed files of the log as parts; their vectors are identified by the log's own descriptors."""
    return pa.table(
        {
            "path": pa.array([a["path"] for a in actions], pa.string()),
            "bytes": pa.array([a["size"] for a in actions], pa.int64()),
            "descriptor": pa.array([json.dumps(a.get("deletionVector")) for a in actions], pa.string()),
        }
    )


def _features(protocol: dict[str, Any], added: pa.Table) -> list[str]:
    """Return the features that the log asks for already, and what new deletion vectors add."""
    found: list[str] = list(protocol.get("readerFeatures", ()))
    if VECTORS not in found and added["deletion"].null_count < len(added):
        found.append(VECTORS)
    return found


def _protocol(features: tuple[str, ...]) -> dict[str, Any]:
    """Return the protocol that asks for as little as the features need.

    Delta's own reader refuses a table with a column that is NOT NULL unless ``invariants`` is listed, which a writer of
    version 2 has without a list.
    """
    if not features:
        return {"minReaderVersion": 1, "minWriterVersion": 2}
    known = sorted(features, key=(MAPPING, VECTORS, WIDENING, LOCAL_TIMES).index)
    writers = [*known, "invariants"]
    return {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": known, "writerFeatures": writers}


_SCHEMA_ID, _BY_ID = "tamis.schema_id", "tamis.by_id"


def _misnamed(name: str) -> InvalidInput:
    return InvalidInput(
        f"Some files have column {name!r} under another name, or another column under its name. Readers of Delta that "
        "find columns by name would read NULL, or the other column.",
        code="EXPORT_RENAMED",
        name=name,
        remedy=f"{REWRITE} Or pass by_id=True, if all readers find columns by the ids in the files.",
    )


def _metadata(snapshot: Snapshot, delta: DeltaSchema, by_id: bool) -> dict[str, Any]:
    head = snapshot.head
    named = {"name": head.name} if head.name else {}
    described = {"description": head.comment} if head.comment else {}
    assert head.schema is not None
    configuration = {**delta.configuration(head.highest_column_id), _SCHEMA_ID: str(head.schema.schema_id)}
    configuration |= {_BY_ID: "true"} if by_id else {}
    return {
        "id": uuid_text(head.table_id),
        **named,
        **described,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": delta.text,
        "partitionColumns": [],
        "configuration": configuration,
        "createdTime": head.created_micros // 1_000,
    }


def _schema_at(snapshot: Snapshot, metadata: dict[str, Any]) -> Schema | None:
    """Return the schema that an earlier export wrote."""
    wanted = metadata["configuration"].get(_SCHEMA_ID)
    return next((s for s in snapshot.head.schemas if str(s.schema_id) == wanted), None)


def _maybe_checkpoint(store: Store, ready: _Next, log_version: int, last: int) -> None:
    """Write a checkpoint where it pays: its cost is that of the table, and is spread over the commits between."""
    count = sum(ready.snapshot.segments["parts"].to_pylist())
    due = log_version - max(last, 0) >= max(CHECKPOINT_EVERY, count // CHECKPOINT_SHARE)
    if due or (last < 0 and log_version == 0 and count >= _LARGE):
        parts = parts_of(ready.snapshot, None, exported_columns(ready.snapshot))
        table = checkpoint_table(parts, ready.schema, ready.delta.physical, ready.protocol, ready.metadata)
        log.write_checkpoint(store, log_version, table)


def _notes(delta: DeltaSchema) -> tuple[str, ...]:
    return tuple(
        f"Some files have column {name!r} under another name: readers that do not find columns by id read it wrongly."
        for name in delta.misnamed
    )
