"""The commits of a Delta table after one that is known, each as a change; only these commits are read."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow.compute as pc

from tamis.bridges.sources.delta_actions import Actions, check_paths_once, live_files, read_commit
from tamis.bridges.sources.delta_features import check_protocol
from tamis.bridges.sources.delta_log import LOG, DeltaSnapshot, Listing, commit_micros, list_log, read_snapshot
from tamis.bridges.sources.delta_schema import physical_partitions
from tamis.bridges.sources.delta_source import DeltaOptions, source_table
from tamis.bridges.sources.foreign_paths import Root, source_root, utf8_when_decoded
from tamis.bridges.sources.source_changes import SourceChange, history_gone, source_replaced
from tamis.bridges.sources.source_table import SourceTable
from tamis.core.types import Schema
from tamis.errors import InvalidInput
from tamis.storage.object_store.store import Entry, Store

_MODE = "delta.columnMapping.mode"
_KEPT = ("id", "schemaString", "partitionColumns")
_WRITES = {
    *("WRITE", "STREAMING UPDATE", "COPY INTO", "MERGE", "UPDATE", "DELETE", "OPTIMIZE"),
    *("CREATE TABLE AS SELECT", "REPLACE TABLE AS SELECT", "CREATE OR REPLACE TABLE AS SELECT"),
    *("APPEND", "OVERWRITE", "COMPACT"),  # of exports of Tamis
}
"""Operations that add files of their own. Others, such as RESTORE and CLONE, may name files of earlier versions."""


@dataclass(frozen=True, slots=True)
class DeltaPosition:
    """What is remembered of the last version that was taken, so that the next commit alone can be understood."""

    version: int
    crc32: int | None
    """Of the version's commit, to see whether the history was rewritten; None: it was gone by then."""
    modified_micros: int | None
    """When the commit was written, as the store says."""
    protocol: Mapping[str, Any]
    metadata: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        return {
            "version": self.version,
            "crc32": self.crc32,
            "modified_micros": self.modified_micros,
            "protocol": dict(self.protocol),
            "metadata": dict(self.metadata),
        }

    def check_same_table(self, newer: DeltaPosition, place: str) -> None:
        """Raise ``CorruptData`` (``SOURCE_REPLACED``) or ``InvalidInput`` if the position is of another table."""
        _check_metadata(self.metadata, newer.metadata, place)

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> DeltaPosition:
        return DeltaPosition(**{name: value[name] for name in DeltaPosition.__slots__})


def delta_position(store: Store, snapshot: DeltaSnapshot, listing: Listing) -> DeltaPosition:
    """Return the position at a version that was read whole."""
    entry = listing.commits.get(snapshot.version)
    crc32 = None if entry is None else zlib.crc32(store.get(entry.path))
    modified = None if entry is None else entry.modified_micros
    return DeltaPosition(snapshot.version, crc32, modified, snapshot.protocol, _metadata_identity(snapshot.metadata))


def _metadata_identity(metadata: Mapping[str, Any]) -> dict[str, Any]:
    mode = (metadata.get("configuration") or {}).get(_MODE)
    return {**{name: metadata.get(name) for name in _KEPT}, "configuration": {_MODE: mode} if mode else {}}


def adopted_delta(
    place: str, options: DeltaOptions, *, previous: Schema | None = None, highest: int = 0
) -> tuple[SourceTable, DeltaPosition]:
    """Return the newest version, and the position from which it can be followed; see ``delta_schema`` for ids."""
    root = source_root(place, options.storage_options, outside=options.outside)
    listing = list_log(root.store)
    snapshot = read_snapshot(root.store, listing=listing)
    return source_table(root, snapshot, options, previous, highest), delta_position(root.store, snapshot, listing)


def delta_changes(
    place: str, options: DeltaOptions, position: DeltaPosition, schema: Schema, highest: int
) -> Iterator[tuple[SourceChange, DeltaPosition]]:
    """Yield the commits after ``position``, oldest first, each with the position after it.

    ``schema`` is ours at ``position``; the ids of its columns are kept, and new ones are above ``highest``.
    Raises ``CorruptData`` (``SOURCE_HISTORY_GONE``, ``SOURCE_REPLACED``).
    """
    root = source_root(place, options.storage_options, outside=options.outside)
    found = root.store.list(LOG, after=f"{LOG}/{position.version:020}")
    commits = {int(e.path[len(LOG) + 1 : -5]): e for e in found if _is_commit(e.path)}
    newest = max(commits, default=-1)
    current = commits.get(position.version)
    if current is None or newest < position.version:
        raise history_gone(place, str(position.version), "its log no longer has that commit")
    if current.modified_micros != position.modified_micros:
        _check_same(root.store, current.path, position, place)
    for version in range(position.version + 1, newest + 1):
        if version not in commits:
            raise history_gone(place, str(position.version), f"its log has no commit {version}")
        data = root.store.get(commits[version].path)
        actions = read_commit(root.store, commits[version].path, data)
        snapshot, position = _next(root, actions, position, commits[version])
        table = source_table(root, snapshot, options, schema, highest)
        change = _change(root, actions, table)
        position = replace(position, crc32=zlib.crc32(data))
        schema, highest = table.schema, max(highest, table.schema.highest_id())
        yield change, position


def _is_commit(path: str) -> bool:
    name = path[len(LOG) + 1 :]
    return len(name) == 25 and name.endswith(".json") and name[:20].isdecimal()


def _check_same(store: Store, path: str, position: DeltaPosition, place: str) -> None:
    if zlib.crc32(store.get(path)) != position.crc32:
        raise source_replaced(place, f"its commit {position.version} is another one now")


def _next(root: Root, actions: Actions, position: DeltaPosition, entry: Entry) -> tuple[DeltaSnapshot, DeltaPosition]:
    """Return what a commit added, under the metadata in force, and the position after it."""
    metadata = position.metadata if actions.metadata is None else _metadata_identity(actions.metadata)
    protocol = position.protocol if actions.protocol is None else actions.protocol
    _check_metadata(position.metadata, metadata, root.store.url)
    check_protocol(dict(protocol), root.store.url)
    version = position.version + 1
    added = live_files([actions], root)
    check_paths_once(added, root)
    snapshot = DeltaSnapshot(version, commit_micros(actions, entry), dict(protocol), dict(metadata), added)
    return snapshot, DeltaPosition(version, None, entry.modified_micros, protocol, metadata)


def _change(root: Root, actions: Actions, table: SourceTable) -> SourceChange:
    named = pc.unique(actions.removed["path"])
    gone = root.resolve_all(named.filter(utf8_when_decoded(named)), encoded=True)
    removed = gone.filter(pc.invert(pc.is_in(gone, value_set=table.files["path"].combine_chunks())))
    flags = [*actions.added["dataChange"].to_pylist(), *actions.removed["dataChange"].to_pylist()]
    return SourceChange(
        table,
        tuple(removed.to_pylist()),
        rearranges=bool(flags) and not any(flag is not False for flag in flags),
        may_restore=str(actions.info.get("operation")) not in _WRITES,
    )


def _check_metadata(before: Mapping[str, Any], after: Mapping[str, Any], url: str) -> None:
    if before["id"] != after["id"]:
        raise source_replaced(url, "its id is another one")
    if before["configuration"].get(_MODE, "none") != after["configuration"].get(_MODE, "none"):
        raise _changed_layout(url, "its column mapping was changed, so its columns have other ids")
    if physical_partitions(before) != physical_partitions(after):
        raise _changed_layout(url, "its partition columns were changed")


def _changed_layout(url: str, why: str) -> InvalidInput:
    return InvalidInput(
        f"The Delta table {url} cannot be followed on: {why}.",
        code="SOURCE_LAYOUT",
        name=url,
        remedy="Adopt it again, as a new table.",
    )
