"""Synchronization: each new version of a followed source becomes a commit.

Invariant: the head names the version of the source that its rows are those of. Both change in one commit, so two
synchronizations at once, or one that was killed, take no version twice and leave none out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from tamis.bridges.adoption.external_manifest import ExternalParts, external_parts
from tamis.bridges.adoption.reused_names import (
    EXTRA_NAMES,
    added_names,
    check_extra_names,
    reused_name_error,
    reused_schemas,
    schemas_without_returned,
)
from tamis.bridges.sources.iceberg_columns import known_names
from tamis.bridges.sources.iceberg_metadata import metadata_damaged
from tamis.bridges.sources.source_changes import SourceChange
from tamis.bridges.sources.source_kinds import DELTA, ICEBERG
from tamis.core.schema.carried_defaults import carry_defaults
from tamis.core.types import NULL, Schema
from tamis.core.types.char_values import char_length
from tamis.errors import InvalidInput
from tamis.storage.commit_log import Head, Operation, Proposal, Snapshot, Source, commit, next_schema
from tamis.storage.commit_log.deletion_vectors import read_bitmap, serialize_vector
from tamis.storage.commit_log.following import follows_source
from tamis.storage.commit_log.model import MAY_RESTORE
from tamis.storage.files.parquet.foreign_part import source_store
from tamis.world import world

Bools = np.ndarray[Any, np.dtype[np.bool_]]

POSITION = "position"
"""The property of a followed source that says which version was taken last."""

SOURCE_VERSION = "source_version"
"""The property of a source that names the version of it that the table's rows are those of."""

REMOVED_UNTIL = "removed_until"
"""The property of a followed source that says when the newest file was written that the table lost, wholly or in part.

In microseconds, by the clock of the source's store; 0: it lost none. A file that was written later was in no version
of the table before.
"""

Changes = Callable[[Source, Head], Iterator[tuple[SourceChange, Mapping[str, Any]]]]
"""Given the source, with its position, and the table's head: the versions since, with the position after each."""


@dataclass(frozen=True, slots=True)
class Synchronization:
    """What a synchronization did."""

    source: str
    commits: int
    """Versions of the source that were taken, one commit each."""
    source_version: str | None
    """The version of the source that the table's rows are those of now."""
    version: int
    files_added: int
    files_removed: int

    def as_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


def followed_source(head: Head, url: str) -> Source:
    """Return the source that a table follows. Raises ``InvalidInput`` (``NOT_FOLLOWING``)."""
    found = [source for source in head.sources if POSITION in source.properties]
    if not follows_source(head) or not found:
        raise InvalidInput(
            f"The table {url} follows no source.",
            code="NOT_FOLLOWING",
            name=url,
            remedy="Adopt the source with follow=True.",
        )
    return found[-1]


def take_changes(snapshot: Snapshot, changes: Changes) -> tuple[Snapshot, Synchronization]:
    """Commit the versions of the followed source since the last one that was taken, one by one.

    Raises ``Conflict`` if another synchronization took one of them meanwhile: begin again from the newest version.
    """
    source = followed_source(snapshot.head, snapshot.store.url)
    version: str | None = source.properties.get(SOURCE_VERSION)
    commits = added = removed = 0
    live = _LivePaths()
    for change, position in changes(source, snapshot.head):
        snapshot, figures = _taken(snapshot, live, change, position, first=not commits)
        version = change.table.version
        commits, added, removed = commits + 1, added + figures[0], removed + figures[1]
    if not commits:  # an older release may have taken what is refused now
        _check_live_names(snapshot, source.column_names, (), snapshot.head)
        _check_returned(snapshot, source)
    return snapshot, Synchronization(source.root, commits, version, snapshot.version, added, removed)


class _LivePaths:
    """The paths of the files that the table has, read once and kept up to date while files are only added."""

    def __init__(self) -> None:
        self._known: set[str] | None = None

    def overlap(self, snapshot: Snapshot, files: pa.Table) -> set[str]:
        """Return the paths of ``files`` that the table has."""
        if self._known is None:
            self._known = set(snapshot.parts()["path"].to_pylist()) if len(files) else None
        return self._known.intersection(files["path"].to_pylist()) if self._known else set()

    def update(self, effect: _Effect) -> None:
        if effect.removed or effect.deleted:
            self._known = None
        elif self._known is not None and effect.parts:
            self._known.update(effect.parts.manifest["path"].to_pylist())


def _taken(
    snapshot: Snapshot, live: _LivePaths, change: SourceChange, position: Mapping[str, Any], *, first: bool
) -> tuple[Snapshot, tuple[int, int]]:
    """Commit one version of the source; return the snapshot, and how many files came and went.

    ``first`` says that it is the first one of this synchronization.
    """
    before = followed_source(snapshot.head, snapshot.store.url)
    if first and not change.whole:
        _check_returned(snapshot, before)
    head = _evolved(snapshot.head, change.table.schema, before.root)
    names = dict(change.table.column_names)
    if not change.names_moved:  # older files keep the names under which they were taken
        names = {i: name for i, name in before.column_names.items() if name} | names
    source = replace(before, column_names=names)
    effect = _effect(snapshot, live, source, change, head)
    if first or head is not snapshot.head:
        _check_live_names(snapshot, names, effect.removed, head)
    removed_until = int(before.properties.get(REMOVED_UNTIL, world().now_micros()))
    progress = {
        SOURCE_VERSION: change.table.version,
        POSITION: dict(position),
        REMOVED_UNTIL: max(removed_until, effect.removed_until),
        **_known_names(snapshot, source, change, effect, head),
    }
    source = replace(source, properties={**before.properties, **progress})
    head = replace(
        head,
        sources=tuple(source if s.source_id == source.source_id else s for s in head.sources),
        highest_column_id=max(head.highest_column_id, change.table.highest_column_id),
    )
    counts = {
        "parts_added": len(effect.parts.manifest) if effect.parts else 0,
        "parts_removed": len(effect.removed),
        "parts_with_deletions": len(effect.deleted),
    }
    parameters: dict[str, Any] = {"source": source.root, "kind": source.kind, "source_version": change.table.version}
    if change.may_restore and effect.brings_back(removed_until):
        parameters[MAY_RESTORE] = True
    if change.table.timestamp_micros is not None:
        parameters["source_timestamp_micros"] = change.table.timestamp_micros
    proposal = Proposal(
        Operation("sync", parameters, counts),
        read_version=snapshot.version,
        read_operation_id=snapshot.commit.operation_id,
        head=head,
        add=[effect.parts.manifest] if effect.parts and len(effect.parts.manifest) else (),
        remove_parts=effect.removed,
        delete_rows=effect.deleted,
        add_deletions=effect.parts.deletions if effect.parts else {},
        data_change=not change.rearranges,
        follows=True,
        table_id=snapshot.head.table_id,
    )
    live.update(effect)
    return commit(snapshot.store, proposal), (counts["parts_added"], counts["parts_removed"])


def _known_names(
    snapshot: Snapshot, source: Source, change: SourceChange, effect: _Effect, head: Head
) -> dict[str, Any]:
    """Return the properties that say which names the files hold. Raises ``InvalidInput`` (``SOURCE_LAYOUT``)."""
    before = source.properties
    if source.kind != DELTA:
        bare_names = effect.parts.bare_names if effect.parts else None
        return known_names(before, bare_names, change.table, all_read=change.names_moved)
    assert snapshot.head.schema is not None
    assert head.schema is not None
    extra = before.get(EXTRA_NAMES, ())
    if extra and len(effect.removed) == len(snapshot.parts()):  # no file that was known stays
        extra = ()
    check_extra_names(snapshot.head.schema, head.schema, source.column_names, extra, source.root)
    return {EXTRA_NAMES: added_names(extra, effect.parts.extra_names if effect.parts else ())}


def _check_padding(before: Schema, after: Schema, root: str) -> None:
    """Raise ``InvalidInput`` (``SOURCE_LAYOUT``) if a column becomes or stops being CHAR, or changes its CHAR length.

    Readers would pad its older values differently, while indexes and analyzed statistics hold them as they were.
    """
    names = {_names(before, path): f for path, f in before.walk()}
    for path, f in after.walk():
        old = before.by_id.get(f.id) or names.get(_names(after, path), f)
        if old.type not in (f.type, NULL) and char_length(old.type) != char_length(f.type):
            name = ".".join(_names(after, path))
            raise InvalidInput(
                f"Column {name!r} of the source {root} changed from {old.type} to {f.type}, "
                "which pads its older values differently.",
                code="SOURCE_LAYOUT",
                name=root,
                remedy="Adopt it again, as a new table.",
            )


def _check_live_names(snapshot: Snapshot, names: Mapping[int, str], removed: Sequence[str], head: Head) -> None:
    """Raise ``InvalidInput`` (``SOURCE_LAYOUT``) if a part that stays holds a column's name under another id."""
    source = followed_source(head, snapshot.store.url)
    if source.kind != DELTA or head.schema is None or not head.dropped:
        return
    reused = reused_schemas(head.schema, head.schemas[:-1], names)
    if not reused:
        return
    parts = snapshot.parts()
    stays = pc.invert(pc.is_in(parts["part_id"], value_set=pa.array(removed, pa.string())))
    live = set(pc.unique(parts["schema_id"].filter(stays)).to_pylist())
    for schema_id, name in reused.items():
        if schema_id in live:
            raise reused_name_error(name, source.root)


def _check_returned(snapshot: Snapshot, source: Source) -> None:
    """Raise ``InvalidInput`` (``SOURCE_LAYOUT``) if parts lack a column of Iceberg that was dropped and came back."""
    if source.kind != ICEBERG:
        return
    stale = schemas_without_returned(snapshot.head.schemas, frozenset())
    if stale and not set(stale).isdisjoint(pc.unique(snapshot.parts()["schema_id"]).to_pylist()):
        raise InvalidInput(
            f"A dropped column of the source {source.root} came back, and older files were not read again.",
            code="SOURCE_LAYOUT",
            name=source.root,
            remedy="Read them again: sync(skip_history=True).",
        )


def _names(schema: Schema, path: tuple[int, ...]) -> tuple[str, ...]:
    return tuple(schema.by_id[i].name for i in path)


def _evolved(head: Head, schema: Schema, root: str) -> Head:
    assert head.schema is not None
    _check_padding(head.schema, schema, root)
    # Defaults in the head have the form of its newest types; those of the source keep the form of their first schema.
    same = carry_defaults(head.schema, schema).fields == head.schema.fields
    return head if same else next_schema(head, schema)


@dataclass(frozen=True, slots=True)
class _Effect:
    """What a version does to the parts."""

    parts: ExternalParts | None
    removed: tuple[str, ...] = ()
    deleted: Mapping[str, bytes] = field(default_factory=dict)
    removed_until: int = 0
    """When the newest file was written that is gone or lost rows; 0: there is none."""

    def brings_back(self, removed_until: int) -> bool:
        """Return whether rows may be added that the table had before, if it lost files written until then."""
        entries = self.parts.entries if self.parts else ()
        return any(entry.modified_micros <= removed_until for entry in entries)


def _effect(snapshot: Snapshot, live: _LivePaths, source: Source, change: SourceChange, head: Head) -> _Effect:
    if change.whole or change.removed:
        return _compared(snapshot, source, change, head)
    again = live.overlap(snapshot, change.table.files)
    if not again:
        return _Effect(_added(snapshot, source, change, head, change.table.files))
    if change.table.kind == ICEBERG:
        raise metadata_damaged(source.root, f"the data file {min(again)} is listed twice")
    return _compared(snapshot, source, change, head)


def _compared(snapshot: Snapshot, source: Source, change: SourceChange, head: Head) -> _Effect:
    """Compare the files of a version with the parts that the table has."""
    files, live = change.table.files, snapshot.parts()
    at = pc.index_in(_whole(files["path"]), value_set=_whole(live["path"]))
    known = np.asarray(at.is_valid())
    places = np.asarray(at.fill_null(0), np.int64)[known]
    old, new = live["deletion"].take(pa.array(places)), files["deletion"].filter(pa.array(known))
    differ = ~np.asarray(pc.fill_null(pc.equal(_whole(old), _whole(new)), False)) & ~(
        np.asarray(old.is_null()) & np.asarray(new.is_null())
    )
    parts = live.take(pa.array(places))
    moved = _other_constants(change, parts, files.filter(pa.array(known)))
    if change.table.kind == ICEBERG:
        stale = schemas_without_returned(head.schemas, change.returned)
        moved |= change.names_moved | np.isin(parts["schema_id"].to_numpy(), np.array(stale, np.int64))
    deleted: dict[str, bytes] = {}
    again = np.zeros(len(known), np.bool_)
    replaced: list[int] = []
    rows = np.flatnonzero(known)
    for n in np.flatnonzero(differ | moved).tolist():
        place = int(places[n])
        path = files["path"][int(rows[n])].as_py()
        before, after = (read_bitmap(v, path) if v else BitMap() for v in (old[n].as_py(), new[n].as_py()))
        if before < after and not moved[n]:
            deleted[live["part_id"][place].as_py()] = serialize_vector(after - before)
        elif before != after or moved[n]:  # rows came back, or have other values, which no vector can say
            again[rows[n]] = True
            replaced.append(place)
    if change.whole:
        gone = np.asarray(pc.invert(pc.is_in(_whole(live["path"]), value_set=_whole(files["path"]))))
    else:
        gone = np.asarray(pc.is_in(_whole(live["path"]), value_set=pa.array(change.removed, pa.string())))
    removed = np.union1d(np.flatnonzero(gone), np.array(replaced, np.int64))
    fresh = files.filter(pa.array(~known | again))
    lost = live.take(pa.array(removed))
    cut = live.filter(pc.is_in(live["part_id"], value_set=pa.array(deleted, pa.string())))
    return _Effect(
        _added(snapshot, source, change, head, fresh),
        tuple(lost["part_id"].to_pylist()),
        deleted,
        max(pc.max(one["modified_micros"]).as_py() or 0 for one in (lost, cut)),
    )


def _other_constants(change: SourceChange, live: pa.Table, files: pa.Table) -> Bools:
    """Return which files have other partition values than their parts.

    Iceberg's cannot change, and are seen in another schema than that of the parts.
    """
    if change.table.kind != DELTA or "constants" not in live.column_names:
        return np.zeros(len(files), np.bool_)
    old, new = (pc.fill_null(_whole(t["constants"]), "") for t in (live, files))
    return np.asarray(pc.not_equal(old, new))


def _added(
    snapshot: Snapshot, source: Source, change: SourceChange, head: Head, files: pa.Table
) -> ExternalParts | None:
    if not len(files):
        return None
    assert head.schema is not None
    place = source_store(snapshot.store, source)
    return external_parts(place, replace(change.table, files=files), source, head.schema)


def _whole(column: Any) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        return pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)
    return column
