"""Reads sources that have a log, Delta and Iceberg, for an adoption and for the synchronizations after it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from tamis.bridges.adoption.source_sync import POSITION, REMOVED_UNTIL, SOURCE_VERSION
from tamis.bridges.sources.delta_changes import DeltaPosition, adopted_delta, delta_changes
from tamis.bridges.sources.delta_source import DeltaOptions, read_delta
from tamis.bridges.sources.iceberg_changes import IcebergPosition, adopted_iceberg, iceberg_changes, whole_change
from tamis.bridges.sources.iceberg_columns import KnownColumns
from tamis.bridges.sources.iceberg_metadata import IcebergOptions
from tamis.bridges.sources.iceberg_source import read_iceberg
from tamis.bridges.sources.source_changes import SourceChange, history_gone
from tamis.bridges.sources.source_kinds import DELTA, ICEBERG
from tamis.bridges.sources.source_table import SourceTable
from tamis.errors import InvalidInput, NotFound, TamisError
from tamis.storage.commit_log import Head, Source

OPTIONS = {
    DELTA: ("version", "timestamp", "zone"),
    ICEBERG: ("version", "ref", "catalog"),
}
"""The options of each kind of source; ``timestamp`` in microseconds. Properties of a catalog follow ``catalog.``."""
_POINTS = ("version", "timestamp")
_PROPERTY = "catalog."
_PLACE, _READING = "place", "reading"


def read_log_source(
    kind: str, place: str, storage: Mapping[str, Any], given: Mapping[str, Any], *, follow: bool
) -> SourceTable:
    """Return the table of ``kind`` at ``place``; with ``follow``, with what a synchronization needs.

    Raises ``InvalidInput`` (``BAD_OPTION``) for an option that the kind does not have, and the errors of its reader.
    """
    check_options(kind, given, follow=follow)
    table, position = _read(kind, place, storage, given, follow=follow)
    if position is None:
        return table
    reading = {name: value for name, value in given.items() if not name.startswith(_PROPERTY)}
    kept = {_PLACE: place, _READING: reading, SOURCE_VERSION: table.version, POSITION: position, REMOVED_UNTIL: 0}
    return replace(table, properties={**table.properties, **kept})


def check_options(kind: str, given: Mapping[str, Any], *, follow: bool) -> None:
    """Raise ``InvalidInput`` (``BAD_OPTION``) for an option that a source of ``kind`` does not have."""
    for name in given:
        known = name in OPTIONS.get(kind, ()) or (kind == ICEBERG and name.startswith(_PROPERTY))
        if not known or (follow and name in _POINTS):
            why = "is followed from its newest version" if known else f"has no option {name!r}"
            raise InvalidInput(
                f"A source of the kind {kind!r} {why}.",
                code="BAD_OPTION",
                name=name,
                remedy=f"Options are: {', '.join(OPTIONS.get(kind, ())) or '(none)'}.",
            )


def _read(
    kind: str, place: str, storage: Mapping[str, Any], given: Mapping[str, Any], *, follow: bool
) -> tuple[SourceTable, Mapping[str, Any] | None]:
    version = given.get("version")
    if kind == DELTA:
        delta = _delta_options(storage, given)
        if follow:
            table, at = adopted_delta(place, delta)
            return table, at.to_json()
        return read_delta(place, delta, version=_whole(version), timestamp_micros=given.get("timestamp")), None
    iceberg = _iceberg_options(storage, given)
    if follow:
        if place.endswith(".metadata.json"):
            raise InvalidInput(
                f"The metadata file {place} never changes, so nothing can be followed in it.",
                code="SOURCE_FIXED",
                name=place,
                remedy="Give a catalog and the table's name, or the folder of a table with a version hint.",
            )
        found, position = adopted_iceberg(place, iceberg, ref=given.get("ref"))
        return found, position.to_json()
    return read_iceberg(place, iceberg, snapshot=_whole(version), ref=given.get("ref")), None


def source_changes(
    source: Source, head: Head, storage: Mapping[str, Any], given: Mapping[str, Any]
) -> Iterator[tuple[SourceChange, Mapping[str, Any]]]:
    """Yield the versions of a followed source after the last one that was taken, with the position after each.

    Raises the errors of its readers, and ``CorruptData`` (``SOURCE_HISTORY_GONE``) if a version before the newest lost
    metadata that the newest does without.
    """
    version = source.properties.get(SOURCE_VERSION)
    try:
        for change, position in _source_changes(source, head, storage, given):
            version = change.table.version
            yield change, position
    except NotFound as error:
        if error.code == "OBJECT_NOT_FOUND":  # a vector of deletions, a manifest or a commit
            source = replace(source, properties={**source.properties, SOURCE_VERSION: version})
            check_history(error, source, head, storage, given)
        raise


def check_history(
    error: TamisError, source: Source, head: Head, storage: Mapping[str, Any], given: Mapping[str, Any]
) -> None:
    """Raise ``CorruptData`` (``SOURCE_HISTORY_GONE``) if the newest version does without the file that ``error`` names.

    The file belongs to a version before, whose files the source's own clean-up removes.
    """
    try:
        change, _ = newest_version(source, head, storage, given)
    except TamisError:  # it cannot be read either
        return
    live = change.table.files["path"].to_pylist()
    if not any(error.name == path or error.name.endswith(f"/{path}") for path in live):
        why = f"the file {error.name}, which its newest version does without, is gone or was changed"
        raise history_gone(source.properties[_PLACE], str(source.properties.get(SOURCE_VERSION)), why) from error


def _source_changes(
    source: Source, head: Head, storage: Mapping[str, Any], given: Mapping[str, Any]
) -> Iterator[tuple[SourceChange, Mapping[str, Any]]]:
    schema = head.schema
    assert schema is not None
    reading = {**source.properties[_READING], **given}
    place, position = source.properties[_PLACE], source.properties[POSITION]
    if source.kind == DELTA:
        delta, at_first = _delta_options(storage, reading), DeltaPosition.from_json(position)
        found = delta_changes(place, delta, at_first, schema, head.highest_column_id)
        yield from ((change, at.to_json()) for change, at in found)
    else:
        options = _iceberg_options(storage, reading)
        known = KnownColumns.of(source, head)
        changes = iceberg_changes(place, options, IcebergPosition.from_json(position), known)
        yield from ((change, at.to_json()) for change, at in changes)


def newest_version(
    source: Source, head: Head, storage: Mapping[str, Any], given: Mapping[str, Any]
) -> tuple[SourceChange, Mapping[str, Any]]:
    """Return the newest version of a followed source as one change, whatever lies between."""
    reading = {**source.properties[_READING], **given}
    place = source.properties[_PLACE]
    if source.kind == DELTA:
        table, at = adopted_delta(
            place, _delta_options(storage, reading), previous=head.schema, highest=head.highest_column_id
        )
        before = DeltaPosition.from_json(source.properties[POSITION])
        before.check_same_table(at, place)
        return SourceChange(table, whole=True, may_restore=True), at.to_json()
    found, position = adopted_iceberg(place, _iceberg_options(storage, reading), ref=reading.get("ref"))
    IcebergPosition.from_json(source.properties[POSITION]).check_same_table(position, place)
    return whole_change(found, KnownColumns.of(source, head)), position.to_json()


def _delta_options(storage: Mapping[str, Any], given: Mapping[str, Any]) -> DeltaOptions:
    return DeltaOptions(storage, zone=given.get("zone"))


def _iceberg_options(storage: Mapping[str, Any], given: Mapping[str, Any]) -> IcebergOptions:
    properties = {name[len(_PROPERTY) :]: str(v) for name, v in given.items() if name.startswith(_PROPERTY)}
    return IcebergOptions(storage, catalog=given.get("catalog"), catalog_properties=properties)


def _whole(version: Any) -> int | None:
    if version is None or (isinstance(version, int) and not isinstance(version, bool)):
        return version
    if isinstance(version, str) and version.isdecimal():
        return int(version)
    raise InvalidInput(
        f"The version of a source cannot be {version!r}.",
        code="BAD_OPTION",
        name="version",
        remedy="Give the number of a Delta version, or the id of an Iceberg snapshot.",
    )
