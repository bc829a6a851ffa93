"""The Delta log of an export: where it stands, its next commit, and its checkpoints.

Invariant: a commit is written only if it is absent, and only behind a commit of this table's export. So whatever
another writer commits ends the export (``EXPORT_FOREIGN_COMMIT``) and is never overwritten. The first line of each
of our commits says which version of the table it tells.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from tamis.bridges.export.delta_actions import action_line
from tamis.bridges.export.delta_vectors import unique_id
from tamis.bridges.export.export_result import engine_name, foreign_commit
from tamis.errors import CorruptData, NotFound, TamisError
from tamis.storage.commit_log import Snapshot
from tamis.storage.object_store import Store

FOLDER = "_delta_log"
_HINT = f"{FOLDER}/_last_checkpoint"
_COMMIT = re.compile(rf"{FOLDER}/(\d{{20}})\.json")
_PREFIX = 2**20
"""Bytes in which the lines before the first ``add`` are looked for first."""


@dataclass(frozen=True, slots=True)
class DeltaState:
    """Where an export's log stands."""

    log_version: int
    table_version: int
    metadata_version: int
    """The version of the log whose commit holds the protocol and the metadata in force."""
    checkpoint_version: int
    """The version of the log that its newest checkpoint may be at, or -1."""
    operation_id: str | None = None
    """That of the commit of ``table_version``; None if an earlier release exported it."""


def commit_name(log_version: int) -> str:
    return f"{FOLDER}/{log_version:020}.json"


def read_state(store: Store, table_id: str) -> DeltaState | None:
    """Return where the log stands, or None if there is none.

    Raises ``Conflict`` (``EXPORT_FOREIGN_COMMIT``) if its last commit is not one of this table's export.
    """
    checkpoint = _checkpoint_hint(store)
    after = None if checkpoint < 0 else commit_name(checkpoint - 1) if checkpoint else None
    found = [int(m[1]) for entry in store.list(FOLDER, after=after) if (m := _COMMIT.fullmatch(entry.path))]
    if not found:
        if checkpoint >= 0:
            raise foreign_commit(store.name(_HINT), FOLDER)
        return None
    newest = max(found)
    note = _own_note(_first_lines(store, newest))
    if note is None or note.get("tableId") != table_id:
        raise foreign_commit(store.name(commit_name(newest)), FOLDER)
    return DeltaState(newest, note["version"], note["metadataVersion"], checkpoint, note.get("operationId"))


def read_metadata(store: Store, state: DeltaState) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the protocol and the metadata in force."""
    lines = _first_lines(store, state.metadata_version)
    found = {name: action for said in lines for name, action in said.items()}
    try:
        return found["protocol"], found["metaData"]
    except KeyError:
        raise _damaged(store, state.metadata_version) from None


def write_commit(store: Store, log_version: int, actions: Sequence[str]) -> bool:
    """Write a commit unless its version is taken; return whether it was written."""
    return store.put_if_absent(commit_name(log_version), ("\n".join(actions) + "\n").encode())


def commit_note(snapshot: Snapshot, metadata_version: int) -> str:
    """Return the first line of a commit: who made it, and which version of the table it tells."""
    note: dict[str, Any] = {"tableId": snapshot.head.table_id, "version": snapshot.version}
    note |= {"metadataVersion": metadata_version, "operationId": snapshot.commit.operation_id}
    operation = snapshot.commit.operation
    return action_line(
        {
            "commitInfo": {
                "timestamp": snapshot.timestamp_micros // 1_000,
                "operation": operation.name.upper(),
                "operationParameters": {},
                "engineInfo": engine_name(),
                "tamis": note,
            }
        }
    )


def write_checkpoint(store: Store, log_version: int, table: pa.Table) -> None:
    """Write a checkpoint, and then the object that names the last one. Failures are ignored: it only saves time."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    data = sink.getvalue().to_pybytes()
    hint = {"version": log_version, "size": len(table), "sizeInBytes": len(data), "numOfAddFiles": len(table) - 2}
    try:
        if store.put_if_absent(f"{FOLDER}/{log_version:020}.checkpoint.parquet", data):
            store.put(_HINT, json.dumps(hint).encode())
    except TamisError:
        return


def live_files(store: Store, state: DeltaState) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the ``add`` of each live file by (path, id of its deletion vector), from the log alone."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    start = 0
    if state.checkpoint_version >= 0:
        name = f"{FOLDER}/{state.checkpoint_version:020}.checkpoint.parquet"
        for row in pq.read_table(pa.BufferReader(store.get(name)), columns=["add"])["add"].to_pylist():
            if row is not None:
                found[_key(row)] = row
        start = state.checkpoint_version + 1
    for log_version in range(start, state.log_version + 1):
        actions = [json.loads(text) for text in store.get(commit_name(log_version)).splitlines() if text]
        for action in actions:
            if "remove" in action:
                found.pop(_key(action["remove"]), None)
        for action in actions:
            if "add" in action:
                found[_key(action["add"])] = action["add"]
    return found


def _key(action: Mapping[str, Any]) -> tuple[str, str]:
    return unquote(action["path"]), unique_id(action.get("deletionVector"))


def _checkpoint_hint(store: Store) -> int:
    try:
        version = json.loads(store.get(_HINT))["version"]
    except NotFound:
        return -1
    except (ValueError, KeyError, TypeError):
        return -1
    return version if isinstance(version, int) and not isinstance(version, bool) and version >= 0 else -1


def _first_lines(store: Store, log_version: int) -> list[dict[str, Any]]:
    """Return the actions before the first ``add`` or ``remove`` of a commit."""
    name = commit_name(log_version)
    try:
        size = store.size(name)
        data = store.get_range(name, 0, min(size, _PREFIX))
        texts = data.splitlines()
        if size > _PREFIX and not any(text.startswith((b'{"add"', b'{"remove"')) for text in texts[:-1]):
            texts = store.get(name).splitlines()
        elif size > _PREFIX:
            texts = texts[:-1]
        out = []
        for text in texts:
            if text.startswith((b'{"add"', b'{"remove"')):
                break
            if text:
                out.append(json.loads(text))
        return [action for action in out if isinstance(action, dict)]
    except NotFound:
        raise _damaged(store, log_version) from None
    except ValueError:
        return []


def _own_note(actions: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Return what one of our commits says of itself; None for another writer's."""
    info = actions[0].get("commitInfo") if actions else None
    note = info.get("tamis") if isinstance(info, dict) else None
    if not isinstance(note, dict) or not all(isinstance(note.get(k), int) for k in ("version", "metadataVersion")):
        return None
    return note


def _damaged(store: Store, log_version: int) -> CorruptData:
    name = store.name(commit_name(log_version))
    return CorruptData(
        f"The exported log lacks {name}, or what it held.",
        code="EXPORT_DAMAGED",
        name=name,
        remedy=f"Remove the folder {FOLDER} beside the table's data, and export again.",
    )
