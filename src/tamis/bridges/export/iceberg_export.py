"""Exports versions of a table as snapshots of an Iceberg table beside its data, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.bridges.export import iceberg_metadata as files
from tamis.bridges.export.export_parts import PartChange, all_added, part_change
from tamis.bridges.export.export_result import Exported, check_history, lost_history
from tamis.bridges.export.exportable import Target, check_exportable, live_schemas, refused_everywhere
from tamis.bridges.export.iceberg_avro import avro_rows, import_fastavro, list_bytes
from tamis.bridges.export.iceberg_manifests import (
    FOLDER,
    ROW_IDS,
    Manifest,
    Manifests,
    Places,
    holds_any,
    manifest_of,
    merged_span,
    snapshot_id,
    spans_of,
    with_versions,
)
from tamis.bridges.export.iceberg_schema import check_names, iceberg_default, iceberg_schema, iceberg_widens
from tamis.core.types import Schema
from tamis.errors import InvalidInput, NotFound
from tamis.storage.commit_log import Snapshot, load
from tamis.storage.commit_log.retry_policy import COMMIT_RACES, LostRace
from tamis.storage.commit_log.vacuum_marker import oldest_readable
from tamis.storage.object_store import Store
from tamis.world import new_id

ICEBERG = {
    2: Target("Iceberg", refused_everywhere, iceberg_widens, default=lambda _: False),
    3: Target("Iceberg", refused_everywhere, iceberg_widens, default=iceberg_default),
}
"""By version of the format."""
VERSIONS = (2, 3)


def export_iceberg(store: Store, snapshot: Snapshot, *, format_version: int | None = None) -> Exported:
    """Bring the Iceberg metadata beside the table's data to ``snapshot``; do nothing if it is there, or later.

    An export never goes back: if it must be written again, for example at a new place, and was ahead of
    ``snapshot``, it is written for the newest version. Each version in between becomes a snapshot. ``format_version``
    is 2 or 3; by default it stays as it is, at first 2, and becomes 3 where a column has a default in older files.

    Raises ``InvalidInput`` naming what Iceberg cannot express, and ``Conflict`` (``EXPORT_FOREIGN_COMMIT``,
    ``EXPORT_OF_LOST_HISTORY``) if another writer has committed, or the log was restored from a backup.
    """
    if format_version is not None and (type(format_version) is not int or format_version not in VERSIONS):
        raise InvalidInput(
            f"An export has no Iceberg version {format_version!r}.",
            code="EXPORT_ICEBERG_VERSION",
            name="format_version",
            remedy="Give 2 or 3.",
        )
    import_fastavro()
    return COMMIT_RACES.run(lambda _: _attempt(store, snapshot, format_version))


def _attempt(store: Store, snapshot: Snapshot, format_version: int | None) -> Exported:
    state = files.read_state(store, snapshot.head.table_id)
    if state is not None:
        check_history(snapshot, state.table_version, state.operation_id, files.FOLDER)
    number, root = 0 if state is None else state.number, files.current_location(store, state)
    wanted = _format(snapshot, state, format_version)
    oldest = oldest_readable(store, snapshot.head.table_id)
    if (
        state is not None
        and state.table_version >= snapshot.version
        and state.format_version >= wanted
        and state.location == root
        and state.is_ordered
        and all(s["snapshot-id"] > oldest for s in state.metadata["snapshots"])
    ):
        if files.read_hint(store) != number:  # its writer died before, or could not write it
            files.write_hint(store, number)
        return Exported("iceberg", state.table_version, number, False)
    exported = -1 if state is None else state.table_version
    if snapshot.version < max(exported, oldest):  # continuing would move the export back, or name removed files
        newest = load(store)
        if newest.version < exported:
            raise lost_history(newest, exported, files.FOLDER)
        return _attempt(store, newest, format_version)
    line = _Line(store, root, wanted, list(_resumable_snapshots(state, root, wanted)))
    first = _first_version(store, snapshot, state, line)
    for version in range(first, snapshot.version):
        try:
            line.advance(load(store, version))
        except (InvalidInput, NotFound):  # an older version that Iceberg cannot express, or that vacuum took meanwhile
            line.forget()
    if line.last is None or line.last.version < snapshot.version:
        line.advance(snapshot)
    kept = [s for s in line.snapshots if s["snapshot-id"] > oldest][-files.KEPT :]
    schemas = _schemas(snapshot, kept, wanted)
    metadata = files.table_metadata(snapshot, root, schemas, kept, wanted)
    if not files.write_metadata(store, number + 1, metadata):
        raise LostRace
    return Exported("iceberg", snapshot.version, number + 1, True, line.added, line.removed)


def _format(snapshot: Snapshot, state: files.IcebergState | None, given: int | None) -> int:
    """Return the format version to write: never an older one than before, and 3 where it is needed."""
    before = VERSIONS[0] if state is None else state.format_version
    found = max(before, given or VERSIONS[0])
    if found < 3 and given is None and snapshot.schema is not None:
        live = live_schemas(snapshot)
        defaults = [f for _, f in snapshot.schema.walk() if f.initial_default is not None]
        if any(f.id not in old.by_id for f in defaults for old in live):
            return 3
    return found


def _resumable_snapshots(state: files.IcebergState | None, root: str, wanted: int) -> Sequence[dict[str, Any]]:
    """Return the snapshots that the export continues.

    Empty if the table has moved, if the format version has changed, or if the snapshots are not in order.
    """
    if state is None or state.location != root or state.format_version != wanted or not state.is_ordered:
        return ()
    found: Sequence[dict[str, Any]] = state.metadata["snapshots"]
    return found


def _first_version(store: Store, snapshot: Snapshot, state: files.IcebergState | None, line: _Line) -> int:
    """Return the first version to make a snapshot of, and resume ``line`` before it."""
    oldest = max(oldest_readable(store, snapshot.head.table_id), snapshot.version + 1 - files.KEPT, 0)
    if state is not None and line.snapshots and state.table_version >= oldest:
        try:
            line.resume(load(store, state.table_version))
        except NotFound:
            line.forget()
        else:
            return state.table_version + 1
    line.forget()
    return oldest


def _schemas(snapshot: Snapshot, kept: Sequence[dict[str, Any]], format_version: int) -> list[dict[str, Any]]:
    used = {s["schema-id"] for s in kept}
    found = [s for s in snapshot.head.schemas if s.schema_id in used or s is snapshot.head.schemas[-1]]
    return [iceberg_schema(s, defaults=format_version >= 3) for s in found]


@dataclass(slots=True)
class _Line:
    """Consecutive snapshots, each made from the one before."""

    store: Store
    root: str
    format_version: int
    snapshots: list[dict[str, Any]]
    last: Snapshot | None = None
    manifests: list[Manifest] = field(default_factory=list)
    added: int = 0
    removed: int = 0

    def forget(self) -> None:
        """Start again from the next version, without earlier snapshots."""
        self.snapshots, self.last, self.manifests = [], None, []

    def resume(self, last: Snapshot) -> None:
        """Continue after the newest snapshot, which is that of the version ``last``.

        Raises ``NotFound`` if its manifests cannot be continued.
        """
        path = str(self.snapshots[-1]["manifest-list"]).removeprefix(f"{self.root}/")
        found = [manifest_of(row, self.root) for row in avro_rows(self.store.get(path))]
        self.manifests = [manifest for manifest in found if manifest is not None]
        listed = sum(m.entries for m in self.manifests if m.kind == "data")
        # the second: earlier releases could mix the manifests of two versions
        if len(self.manifests) < len(found) or listed != sum(last.segments["parts"].to_pylist()):
            raise NotFound("A manifest is not one of this export.", name=path)
        self.last = last

    def advance(self, snapshot: Snapshot) -> None:
        """Add the snapshot of a later version."""
        change = all_added(snapshot) if self.last is None else part_change(self.last, snapshot)
        schema, _ = check_exportable(snapshot, ICEBERG[self.format_version], change.added)
        check_names(schema)
        written = iceberg_schema(schema, defaults=self.format_version >= 3)
        writer = Manifests(self.store, self.root, snapshot, schema, written, self.format_version)
        self.manifests = self._merged(writer, self._changed(writer, snapshot, change))
        self.snapshots = [*self.snapshots, self._snapshot(snapshot, schema, change)]
        self.added, self.removed = self.added + len(change.added), self.removed + len(change.removed)
        self.last = snapshot

    def _changed(self, writer: Manifests, snapshot: Snapshot, change: PartChange) -> list[Manifest]:
        """Return the manifests of the version: those of spans that changed are written anew."""
        out: list[Manifest] = []
        if self.last is None or change.whole:
            for span in spans_of(snapshot):
                out += [*writer.write_data(span), *writer.write_deletes(span, (), ())]
            return [*out, *writer.write_removed(_lost_files(change))]
        files_, vectors = _changed_places(self.last, snapshot, change)
        for span in sorted({m.span for m in self.manifests if m.kind != "gone"}):
            mine = [m for m in self.manifests if m.span == span and m.kind != "gone"]
            data = writer.write_data(span) if holds_any(span, files_) else [m for m in mine if m.kind == "data"]
            deletes = [m for m in mine if m.kind == "deletes"]
            if holds_any(span, vectors):
                urls = {f"{self.root}/{path}" for path in _without(change.after, change.added)["path"].to_pylist()}
                others = writer.parts(span)["path"].to_pylist()
                touched = {f"{self.root}/{path}" for path in change.after["path"].to_pylist()}
                kept = urls | {url for path in others if (url := f"{self.root}/{path}") not in touched}
                deletes = writer.write_deletes(span, deletes, kept)
            out += [*data, *deletes]
        for span in spans_of(snapshot, self.last.version):
            out += [*writer.write_data(span), *writer.write_deletes(span, (), ())]
        return [*out, *writer.write_removed(_lost_files(change))]

    def _merged(self, writer: Manifests, manifests: list[Manifest]) -> list[Manifest]:
        """Merge the young manifests where there are many."""
        span = merged_span(manifests)
        if span is None:
            return manifests
        old = [m for m in manifests if m.kind != "gone" and m.span.first >= span.first]
        kept = {f"{self.root}/{path}" for path in writer.parts(span)["path"].to_pylist()}
        deletes = writer.write_deletes(span, [m for m in old if m.kind == "deletes"], kept)
        return [*(m for m in manifests if m not in old), *writer.write_data(span), *deletes]

    def _snapshot(self, snapshot: Snapshot, schema: Schema, change: PartChange) -> dict[str, Any]:
        """Write the list of manifests, and return the snapshot that names it."""
        number = snapshot_id(snapshot.version)
        parent = self.snapshots[-1]["snapshot-id"] if self.snapshots else None
        metadata = {
            "snapshot-id": str(number),
            "sequence-number": str(number),
            "parent-snapshot-id": str(parent or "null"),
        }
        path = f"{FOLDER}/snap-{number}-{new_id()}.avro"
        self.store.put(path, list_bytes([m.row for m in self.manifests], self.format_version, metadata))
        summary = {
            "operation": _operation(change),
            "added-data-files": str(len(_new_files(change))),
            "deleted-data-files": str(len(_lost_files(change))),
            "total-data-files": str(sum(m.entries for m in self.manifests if m.kind == "data")),
            "tamis.version": str(snapshot.version),
            "tamis.operation": snapshot.commit.operation.name,
        }
        segment = snapshot.commit.segment
        lineage = {
            "first-row-id": snapshot.version * ROW_IDS,
            "added-rows": segment.rows if segment is not None else 0,
        }
        return {
            "snapshot-id": number,
            **({"parent-snapshot-id": parent} if parent is not None else {}),
            "sequence-number": number,
            "timestamp-ms": snapshot.timestamp_micros // 1_000,
            "manifest-list": f"{self.root}/{path}",
            "summary": summary,
            "schema-id": schema.schema_id,
            **(lineage if self.format_version >= 3 else {}),
        }


def _operation(change: PartChange) -> str:
    """Return Iceberg's name of a change."""
    if not change.data_change:
        return "replace"
    lost, won = len(_lost_files(change)), len(_new_files(change))
    if not lost and len(change.removed) == 0:
        return "append"
    return "overwrite" if won else "delete"


def _lost_files(change: PartChange) -> pa.Table:
    """Return the removed parts whose files the new version does not have."""
    return _without(change.removed, change.added)


def _new_files(change: PartChange) -> pa.Table:
    return _without(change.added, change.removed)


def _without(parts: pa.Table, others: pa.Table) -> pa.Table:
    gone = set(others["path"].to_pylist())
    return parts.filter(pa.array([path not in gone for path in parts["path"].to_pylist()], pa.bool_()))


def _changed_places(old: Snapshot, new: Snapshot, change: PartChange) -> tuple[Places, Places]:
    """Return the places (version, ordinal) of parts that came or went, and of those whose deleted rows changed too."""

    def places(snapshot: Snapshot, parts: pa.Table) -> dict[tuple[int, int], tuple[str, bytes | None]]:
        found = with_versions(snapshot, parts)
        columns = (found[n].to_pylist() for n in ("version", "part", "path", "deletion"))
        return {(version, part): (path, vector) for version, part, path, vector in zip(*columns, strict=True)}

    before, after = places(old, change.before), places(new, change.after)
    files_ = set(before) ^ set(after)
    vectors = files_ | {at for at, part in after.items() if at in before and before[at] != part}
    return _array(files_), _array(vectors)


def _array(places: set[tuple[int, int]]) -> Places:
    return np.array(list(places), dtype=np.int64).reshape(len(places), 2)
