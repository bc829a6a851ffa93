"""The exports that a table has, how far each is behind, and what keeps it there.

What an export after a commit failed with is noted beside the log until a later one succeeds; the next export
writes all that is missing.
"""

from __future__ import annotations

import json

import pyarrow as pa

from tamis.bridges.export import delta_log, iceberg_metadata
from tamis.bridges.export.export_property import FORMATS, kept_formats
from tamis.bridges.export.exporting import export_table
from tamis.errors import NotFound, TamisError
from tamis.storage.commit_log import Snapshot, load
from tamis.storage.commit_log.commit_objects import ROOT
from tamis.storage.object_store import Store

EXPORTS = pa.schema(
    [
        ("format", pa.string()),
        ("version", pa.int64()),  # the table's version that the export is at; NULL: there is none
        ("behind", pa.int64()),  # how many versions the table has beyond it
        ("problem", pa.string()),  # why it is behind, or NULL
    ]
)
"""The columns of ``exports``."""


def export_noting_failure(store: Store, snapshot: Snapshot, name: str) -> None:
    """Export ``snapshot`` in the format ``name``; note what it fails with, and raise nothing."""
    try:
        export_table(store.with_new_counters(), snapshot, name)
    except Exception as error:  # noqa: BLE001  # the commit stands, whatever an export meets
        _write_note(store, name, snapshot.version, error)


def exported_formats(store: Store) -> tuple[str, ...]:
    """Return the formats that have metadata beside the table's data, whoever wrote it."""
    folders = {"delta": delta_log.FOLDER, "iceberg": iceberg_metadata.FOLDER}
    return tuple(
        name
        for name in FORMATS
        if any(entry.path.endswith((".json", ".parquet")) for entry in store.list_folder(folders[name])[1])
    )


def follow_vacuum(store: Store) -> None:
    """Bring all exports to the newest version, so that they need nothing that vacuum is about to remove."""
    for name in exported_formats(store):
        export_table(store, load(store), name)


def exports(store: Store, snapshot: Snapshot) -> pa.Table:
    """Return one row for each format that is exported, or that the table's properties name, as ``EXPORTS``."""
    named = {*kept_formats(snapshot.head.properties), *exported_formats(store)}
    return pa.Table.from_pylist([_row(store, snapshot, name) for name in FORMATS if name in named], schema=EXPORTS)


def _row(store: Store, snapshot: Snapshot, name: str) -> dict[str, object]:
    version: int | None = None
    problem: str | None = None
    try:
        read = delta_log.read_state if name == "delta" else iceberg_metadata.read_state
        state = read(store, snapshot.head.table_id)
        version = None if state is None else state.table_version
        problem = _iceberg_problem(store, state) if isinstance(state, iceberg_metadata.IcebergState) else None
    except TamisError as error:
        problem = str(error)
    behind = max(0, snapshot.version - (-1 if version is None else version))
    if problem is None and behind:
        problem = _read_note(store, name)
    return {"format": name, "version": version, "behind": behind, "problem": problem}


def _iceberg_problem(store: Store, state: iceberg_metadata.IcebergState) -> str | None:
    """Return why readers of Iceberg cannot read the version that ``state`` describes, or None."""
    if state.location != iceberg_metadata.current_location(store, state):
        return f"[EXPORT_LOCATION] Files are named below {state.location}. If the table has moved, export again."
    if iceberg_metadata.read_hint(store) != state.number:
        return f"[EXPORT_HINT] {iceberg_metadata.HINT} does not name the newest metadata file. Export again."
    return None


def _write_note(store: Store, name: str, version: int, error: Exception) -> None:
    message = str(error) if isinstance(error, TamisError) else f"{type(error).__name__}: {error}"
    try:
        store.put(_note_path(name), json.dumps({"version": version, "problem": message}).encode())
    except TamisError:
        return


def _read_note(store: Store, name: str) -> str | None:
    try:
        found = json.loads(store.get(_note_path(name)))["problem"]
    except (NotFound, ValueError, KeyError, TypeError):
        return None
    return str(found)


def _note_path(name: str) -> str:
    return f"{ROOT}/export-{name}.json"
