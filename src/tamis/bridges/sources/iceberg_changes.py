"""The snapshots of an Iceberg table after one that is known, each as a change.

Of an append, only the manifests that it added are read. After any other change all live files are compared, because
deletes may hold for any older file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tamis.bridges.sources.iceberg_columns import KnownColumns
from tamis.bridges.sources.iceberg_manifests import Entries, added_entries
from tamis.bridges.sources.iceberg_metadata import IcebergMetadata, IcebergOptions, read_metadata
from tamis.bridges.sources.iceberg_source import entries_source, snapshot_source
from tamis.bridges.sources.source_changes import SourceChange, history_gone, source_replaced
from tamis.bridges.sources.source_table import SourceTable
from tamis.errors import NotFound


@dataclass(frozen=True, slots=True)
class IcebergPosition:
    """What is remembered of the last snapshot that was taken; ``snapshot`` is None for a table without rows."""

    table_id: str | None
    snapshot: int | None
    ref: str | None
    """The branch or the tag that is followed; None: the current snapshot."""

    def to_json(self) -> dict[str, Any]:
        return {"table_id": self.table_id, "snapshot": self.snapshot, "ref": self.ref}

    def check_same_table(self, newer: IcebergPosition, place: str) -> None:
        """Raise ``CorruptData`` (``SOURCE_REPLACED``) if the position is of another table."""
        if newer.table_id != self.table_id:
            raise source_replaced(place, "its id is another one")

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> IcebergPosition:
        return IcebergPosition(value["table_id"], value["snapshot"], value["ref"])


def adopted_iceberg(
    source: str, options: IcebergOptions, *, ref: str | None = None
) -> tuple[SourceTable, IcebergPosition]:
    """Return the current snapshot, or that of a branch or a tag, and the position from which it can be followed."""
    metadata = read_metadata(source, options).seen_at(ref=ref)
    snapshot = metadata.snapshot(ref=ref)
    identifier = None if snapshot is None else int(snapshot["snapshot-id"])
    table = snapshot_source(metadata, snapshot)
    return table, IcebergPosition(metadata.content.get("table-uuid"), identifier, ref)


def iceberg_changes(
    source: str, options: IcebergOptions, position: IcebergPosition, known: KnownColumns
) -> Iterator[tuple[SourceChange, IcebergPosition]]:
    """Yield the snapshots after ``position``, oldest first, each with the position after it.

    All are seen in the table's current schema, or in that of the tag's snapshot; a change of the schema alone is a
    change, too. If files that the table has may hold columns otherwise than before, the first change is the snapshot of
    ``position`` again.

    Raises ``CorruptData`` (``SOURCE_HISTORY_GONE``, ``SOURCE_REPLACED``).
    """
    metadata = read_metadata(source, options)
    if metadata.content.get("table-uuid") != position.table_id:
        raise source_replaced(source, "its id is another one")
    metadata = metadata.seen_at(ref=position.ref)
    newer, schema = _lineage(metadata, position, source), known.schema
    columns = entries_source(metadata, None, Entries())
    if position.snapshot is not None and known.is_stale(columns):
        again = snapshot_source(metadata, _last_taken(metadata, position, source))
        yield whole_change(again, known), position
        schema = again.schema
    for snapshot in newer:
        identifier = int(snapshot["snapshot-id"])
        change = _change(metadata, snapshot)
        schema, position = change.table.schema, IcebergPosition(position.table_id, identifier, position.ref)
        yield change, position
    last = metadata.snapshot(position.snapshot)
    now = entries_source(metadata, last, Entries())
    if now.schema.fields != schema.fields:
        yield SourceChange(now), position


def whole_change(table: SourceTable, known: KnownColumns) -> SourceChange:
    """Return a version with all of its files, and what they may hold that the table does not know.

    If an older release did not record what the files hold, all of them are read again.
    """
    returned, moved = known.returned_ids(table.schema), not known.is_recorded or known.names_moved(table)
    return SourceChange(table, whole=True, may_restore=True, returned=returned, names_moved=moved)


def _last_taken(metadata: IcebergMetadata, position: IcebergPosition, source: str) -> dict[str, Any] | None:
    """Return the snapshot of ``position``. Raises ``CorruptData`` (``SOURCE_HISTORY_GONE``) if it expired."""
    try:
        return metadata.snapshot(position.snapshot)
    except NotFound as error:
        why = "it expired, and older files may hold other columns now"
        raise history_gone(source, str(position.snapshot), why) from error


def _lineage(metadata: IcebergMetadata, position: IcebergPosition, source: str) -> list[dict[str, Any]]:
    """Return the snapshots from the one after ``position`` to the newest."""
    found: list[dict[str, Any]] = []
    snapshot = metadata.snapshot(ref=position.ref)
    known = {s["snapshot-id"]: s for s in metadata.content.get("snapshots") or ()}
    while snapshot is not None and snapshot["snapshot-id"] != position.snapshot:
        found.append(snapshot)
        parent = snapshot.get("parent-snapshot-id")
        if parent is not None and parent == position.snapshot:  # it may have expired
            return found[::-1]
        if parent is None or parent not in known or len(found) > len(known):
            if parent is None and position.snapshot is None:
                return found[::-1]
            raise history_gone(source, str(position.snapshot), "its snapshots expired, or it was rolled back")
        snapshot = known[parent]
    if snapshot is None and position.snapshot is not None:
        raise history_gone(source, str(position.snapshot), "it has no snapshot any more")
    return found[::-1]


def _change(metadata: IcebergMetadata, snapshot: Mapping[str, Any]) -> SourceChange:
    added = added_entries(metadata.root, snapshot)
    if added is None:
        rearranges = (snapshot.get("summary") or {}).get("operation") == "replace"
        table = snapshot_source(metadata, snapshot)
        return SourceChange(table, whole=True, rearranges=rearranges, may_restore=True)
    return SourceChange(entries_source(metadata, snapshot, added), may_restore=True)
