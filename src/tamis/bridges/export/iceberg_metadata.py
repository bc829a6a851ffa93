"""The metadata files of an Iceberg export: the newest one, and the next.

Invariant: a metadata file is written only if it is absent, and only behind one of this table's export, which carries
the checksum of what it says. Whatever another writer commits, under the next number or as a file of a catalog, ends
the export (``EXPORT_FOREIGN_COMMIT``) and is never overwritten.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tamis.bridges.export.export_result import engine_name, foreign_commit, uuid_text
from tamis.bridges.export.iceberg_manifests import ROW_IDS, snapshot_id
from tamis.errors import NotFound, TamisError
from tamis.storage.commit_log import Head, Snapshot
from tamis.storage.object_store import Store

FOLDER = "metadata"
HINT = f"{FOLDER}/version-hint.text"
KEPT = 100
"""Metadata files, and snapshots, that an export keeps."""

_FILE = re.compile(rf"{FOLDER}/v(\d+)\.metadata\.json")
_CHECKSUM = "tamis.checksum"


@dataclass(frozen=True, slots=True)
class IcebergState:
    """Where an export stands: the number of its newest metadata file, and what that says."""

    number: int
    metadata: dict[str, Any]

    @property
    def table_version(self) -> int:
        return int(self.metadata["properties"]["tamis.version"])

    @property
    def operation_id(self) -> str | None:
        """That of the commit of ``table_version``; None if an earlier release exported it."""
        found: str | None = self.metadata["properties"].get("tamis.operation_id")
        return found

    @property
    def format_version(self) -> int:
        return int(self.metadata["format-version"])

    @property
    def location(self) -> str:
        """The URL of the table's folder, as it was then."""
        return str(self.metadata["location"])

    @property
    def is_ordered(self) -> bool:
        """Whether the snapshots are in order, up to that of ``table_version``: earlier releases could mix versions."""
        ids = [s["snapshot-id"] for s in self.metadata["snapshots"]]
        return ids == sorted({*ids}) and ids[-1:] == [snapshot_id(self.table_version)]


def location_of(store: Store) -> str:
    """Return the URL of the table's folder, under which Iceberg names its files."""
    return f"file://{store.url}" if store.location.scheme == "file" else store.url


def current_location(store: Store, state: IcebergState | None) -> str:
    """Return the URL under which an export names the table's files.

    An earlier URL of the same folder, such as one through a symbolic link, is kept: otherwise the users of two paths
    would rewrite it in turn.
    """
    if state is not None and store.location.scheme == "file":
        told = Path(state.location.removeprefix("file://"))
        if str(told.resolve()) == store.location.resolved_url:
            return state.location
    return location_of(store)


def metadata_name(number: int) -> str:
    return f"{FOLDER}/v{number}.metadata.json"


def read_state(store: Store, table_id: str) -> IcebergState | None:
    """Return where the export stands, or None if there is none.

    Raises ``Conflict`` (``EXPORT_FOREIGN_COMMIT``) for a metadata file that is not one of this table's export.
    """
    numbers = []
    for entry in store.list_folder(FOLDER)[1]:
        match = _FILE.fullmatch(entry.path)
        if match:
            numbers.append(int(match[1]))
        elif entry.path.endswith((".metadata.json", ".metadata.json.gz")):
            raise foreign_commit(store.name(entry.path), FOLDER)
    if not numbers:
        return None
    name = metadata_name(max(numbers))
    try:
        found = json.loads(store.get(name))
        properties = found["properties"]
        if properties["tamis.table_id"] != table_id or properties[_CHECKSUM] != _checksum(found):
            raise foreign_commit(store.name(name), FOLDER)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise foreign_commit(store.name(name), FOLDER) from None
    return IcebergState(max(numbers), found)


def write_metadata(store: Store, number: int, metadata: dict[str, Any]) -> bool:
    """Write a metadata file unless there is one of its number; return whether it was written."""
    metadata["properties"][_CHECKSUM] = _checksum(metadata)
    if not store.put_if_absent(metadata_name(number), json.dumps(metadata).encode()):
        return False
    write_hint(store, number)
    if number > KEPT:
        with suppress(TamisError):  # it goes with the folder
            store.delete(metadata_name(number - KEPT))
    return True


def write_hint(store: Store, number: int) -> None:
    """Name the newest metadata file in the hint, by which many readers find it.

    A late writer with an older number finds the next file and goes on to it: files are written before their hint. If
    it was so late that its own file is deleted, it finds the newest one in the folder.
    """
    store.put(HINT, str(number).encode())
    while _exists(store, metadata_name(number + 1)) or not _exists(store, metadata_name(number)):
        newest = max(_metadata_numbers(store), default=number)
        if newest == number:
            return
        number = newest
        store.put(HINT, str(number).encode())


def _metadata_numbers(store: Store) -> list[int]:
    found = (_FILE.fullmatch(entry.path) for entry in store.list_folder(FOLDER)[1])
    return [int(match[1]) for match in found if match]


def read_hint(store: Store) -> int | None:
    """Return the number of the metadata file that the hint names; None without a usable hint."""
    try:
        return int(store.get(HINT))
    except (NotFound, ValueError):
        return None


def _exists(store: Store, path: str) -> bool:
    try:
        store.size(path)
    except NotFound:
        return False
    return True


def table_metadata(
    snapshot: Snapshot,
    location: str,
    schemas: Sequence[Mapping[str, Any]],
    snapshots: Sequence[dict[str, Any]],
    format_version: int,
) -> dict[str, Any]:
    """Return the metadata of a version; ``snapshots`` are those that it keeps, the newest last."""
    head, current = snapshot.head, snapshots[-1]["snapshot-id"]
    assert head.schema is not None
    lineage = {"next-row-id": (snapshot.version + 1) * ROW_IDS} if format_version >= 3 else {}
    return {
        "format-version": format_version,
        "table-uuid": uuid_text(head.table_id),
        "location": location,
        "last-sequence-number": snapshot_id(snapshot.version),
        "last-updated-ms": snapshots[-1]["timestamp-ms"],
        "last-column-id": head.highest_column_id,
        "current-schema-id": head.schema.schema_id,
        "schemas": list(schemas),
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "default-spec-id": 0,
        "last-partition-id": 999,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "properties": _properties(head, snapshot),
        "current-snapshot-id": current,
        "snapshots": list(snapshots),
        "snapshot-log": [{"timestamp-ms": s["timestamp-ms"], "snapshot-id": s["snapshot-id"]} for s in snapshots],
        "metadata-log": [],
        "refs": {"main": {"snapshot-id": current, "type": "branch"}},
        **lineage,
    }


def _properties(head: Head, snapshot: Snapshot) -> dict[str, str]:
    said = {
        "tamis.table_id": head.table_id,
        "tamis.version": str(snapshot.version),
        "tamis.operation_id": snapshot.commit.operation_id,
        "tamis.engine": engine_name(),
    }
    named = {"comment": head.comment} if head.comment else {}
    return {**said, **named}


def _checksum(metadata: Mapping[str, Any]) -> str:
    properties = {k: v for k, v in metadata["properties"].items() if k != _CHECKSUM}
    text = json.dumps({**metadata, "properties": properties}, sort_keys=True)
    return f"{zlib.crc32(text.encode()):08x}"
