"""Finds the metadata of an Iceberg table, by a folder, a metadata file or a catalog, and chooses a snapshot in it."""

from __future__ import annotations

import gzip
import importlib
import io
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tamis.bridges.sources.foreign_paths import Root, source_root
from tamis.bridges.sources.iceberg_shape import check_shape
from tamis.errors import CorruptData, InvalidInput, NotFound, TamisError
from tamis.storage.object_store.store import MOST_OBJECT, open_store

NEWEST_FORMAT = 3
_SUFFIX = ".metadata.json"
_HINT = "metadata/version-hint.text"
_PIECE = 2**20
_LONGEST_VERSION = 18
"""Digits of a version in a hint; more are a name."""


@dataclass(frozen=True, slots=True)
class IcebergOptions:
    """How an Iceberg table is found and read.

    ``catalog``: the name of a catalog that PyIceberg knows, with ``catalog_properties``; the source is then the name
    of a table in it. ``outside``: files outside the table's location are allowed.
    """

    storage_options: Mapping[str, Any] | None = None
    outside: bool = False
    catalog: str | None = None
    catalog_properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class IcebergMetadata:
    """The content of a metadata file, and the root of the table that it describes."""

    location: str
    """Where the metadata file lies."""
    root: Root
    content: dict[str, Any] = field(repr=False)

    def snapshot(self, snapshot: int | None = None, ref: str | None = None) -> dict[str, Any] | None:
        """Return the snapshot with this id, or that a branch or tag names, or the current one; None: no rows yet.

        Raises ``NotFound`` (``ICEBERG_SNAPSHOT_NOT_FOUND``).
        """
        if ref is not None:
            refs = self.content.get("refs") or {}
            if ref not in refs:
                raise _no_snapshot(self.location, ref, f"Branches and tags: {', '.join(sorted(refs)) or '(none)'}.")
            snapshot = refs[ref]["snapshot-id"]
        wanted = self.content.get("current-snapshot-id", -1) if snapshot is None else snapshot
        if snapshot is None and wanted in (-1, None):
            return None
        found = next((s for s in self.content.get("snapshots") or () if s["snapshot-id"] == wanted), None)
        if found is None:
            raise _no_snapshot(self.location, str(wanted), "It may have expired.")
        return dict(found)

    def seen_at(self, snapshot: int | None = None, ref: str | None = None) -> IcebergMetadata:
        """Return the metadata with the schema in which rows are seen as the current one.

        The rows of an id or a tag are seen in the schema of their snapshot, if it names one; those of a branch, as
        those of the current snapshot, in the table's. Raises ``NotFound`` (``ICEBERG_SNAPSHOT_NOT_FOUND``).
        """
        refs = self.content.get("refs") or {}
        if snapshot is None and (ref is None or refs.get(ref, {}).get("type") != "tag"):
            return self
        wanted = (self.snapshot(snapshot, ref) or {}).get("schema-id")
        return self if wanted is None else replace(self, content={**self.content, "current-schema-id": wanted})

    def schema(self) -> dict[str, Any]:
        """Return the current schema."""
        schemas = self.content.get("schemas") or [self.content["schema"]]
        wanted = self.content.get("current-schema-id", schemas[-1].get("schema-id"))
        found = next((s for s in schemas if s.get("schema-id") == wanted), None)
        if found is None:
            raise metadata_damaged(self.location, f"there is no schema {wanted}")
        return dict(found)

    def specs(self) -> dict[int, list[dict[str, Any]]]:
        """Return the fields of each partition spec by its id."""
        if specs := self.content.get("partition-specs"):
            return {spec["spec-id"]: spec["fields"] for spec in specs}
        return {0: self.content.get("partition-spec") or []}


def read_metadata(source: str, options: IcebergOptions) -> IcebergMetadata:
    """Read the metadata of the table that ``source`` names.

    Raises ``NotFound`` (``ICEBERG_NOT_FOUND``), ``InvalidInput`` (``ICEBERG_FEATURE``, ``ICEBERG_WHICH_METADATA``) and
    ``CorruptData`` (``ICEBERG_METADATA_DAMAGED``).
    """
    place = source if options.catalog is None else _catalog_location(source, options)
    if not place.endswith(_SUFFIX):
        place = _hinted(place, options)
    content = parsed_metadata(place, _get(place, options))
    version = content.get("format-version")
    if not isinstance(version, int) or not 1 <= version <= NEWEST_FORMAT:
        raise InvalidInput(
            f"The Iceberg table {place} has format version {version}; Tamis reads 1 to {NEWEST_FORMAT}.",
            code="ICEBERG_FEATURE",
            name=place,
            remedy="Upgrade Tamis, or copy the rows with Spark.",
        )
    if content.get("encryption-keys"):
        raise encryption_error(place)
    return IcebergMetadata(
        place, source_root(content["location"], options.storage_options, outside=options.outside), content
    )


def encryption_error(name: str) -> InvalidInput:
    """Return the error of an encrypted table or file."""
    return InvalidInput(
        f"{name} is encrypted, which Tamis does not read.",
        code="ICEBERG_FEATURE",
        name=name,
        remedy="Copy the rows with Spark.",
    )


def metadata_damaged(name: str, why: object) -> CorruptData:
    """Return the error of metadata ``name`` that cannot be understood."""
    return CorruptData(
        f"{name} of an Iceberg table cannot be understood: {str(why)[:200]}",
        code="ICEBERG_METADATA_DAMAGED",
        name=name,
        remedy="Restore it from a backup, or roll the table back.",
    )


def parsed_metadata(name: str, data: bytes) -> dict[str, Any]:
    """Return the content of a metadata file, which may be compressed."""
    try:
        content = json.loads(_unpacked(data) if data[:2] == b"\x1f\x8b" else data)
    except (ValueError, OSError, EOFError, zlib.error, RecursionError) as error:
        raise metadata_damaged(name, error) from error
    if not isinstance(content, dict) or not isinstance(content.get("location"), str):
        raise metadata_damaged(name, "it is no metadata of a table")
    check_shape(content, lambda why: metadata_damaged(name, why))
    return content


def _unpacked(data: bytes) -> bytes:
    """Unpack gzip. Raises ``ValueError`` for more bytes than an object may have."""
    found = bytearray()
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
        while piece := file.read(_PIECE):
            found += piece
            if len(found) > MOST_OBJECT:
                raise ValueError(f"it unpacks to more than {MOST_OBJECT} bytes")
    return bytes(found)


def _get(place: str, options: IcebergOptions) -> bytes:
    folder, _, name = place.rpartition("/")
    try:
        return open_store(folder or ".", options.storage_options).get(name)
    except NotFound as error:
        raise NotFound(
            f"There is no Iceberg metadata file {place}.",
            code="ICEBERG_NOT_FOUND",
            name=place,
            remedy="Give a metadata file, the folder of a table with a version hint, or a catalog and a table's name.",
        ) from error


def _hinted(place: str, options: IcebergOptions) -> str:
    """Return the metadata file that the hint in a table's folder names, or a newer one by the same counter."""
    store = open_store(place, options.storage_options)
    try:
        hint = store.get(_HINT).decode().strip()
    except (NotFound, UnicodeDecodeError):
        raise InvalidInput(
            f"The folder {place} has no {_HINT}, so only the table's catalog knows which metadata file is current.",
            code="ICEBERG_WHICH_METADATA",
            name=place,
            remedy="Give the catalog and the table's name, or the path of a metadata file (metadata/….metadata.json).",
        ) from None
    if not hint.isdecimal() or len(hint) > _LONGEST_VERSION:
        return f"{place}/metadata/{hint.removesuffix(_SUFFIX)}{_SUFFIX}"
    names = {entry.path.rpartition("/")[2] for entry in store.list_folder("metadata")[1]}
    version, found = int(hint), None
    while name := next((n for n in (f"v{version}{_SUFFIX}", f"v{version}.gz{_SUFFIX}") if n in names), None):
        version, found = version + 1, name
    return f"{place}/metadata/{found or f'v{hint}{_SUFFIX}'}"


def _catalog_location(table: str, options: IcebergOptions) -> str:
    """Return the metadata file that a catalog names."""
    try:
        catalogs = importlib.import_module("pyiceberg.catalog")
        exceptions = importlib.import_module("pyiceberg.exceptions")
    except ImportError as error:
        raise InvalidInput(
            "Iceberg catalogs are asked through PyIceberg, which is not installed.",
            code="MISSING_PACKAGE",
            name="pyiceberg",
            remedy="Install it: pip install 'tamis[iceberg]'.",
        ) from error
    try:
        found = catalogs.load_catalog(options.catalog, **options.catalog_properties).load_table(table)
    except (exceptions.NoSuchTableError, exceptions.NoSuchNamespaceError) as error:
        raise NotFound(
            f"The catalog {options.catalog!r} has no table {table!r}.",
            code="ICEBERG_NOT_FOUND",
            name=table,
            remedy="Give the name of a table in it, such as 'sales.orders'.",
        ) from error
    except TamisError:
        raise
    except Exception as error:  # a catalog raises whatever its client raises
        raise InvalidInput(
            f"The catalog {options.catalog!r} cannot be asked for {table!r}: {type(error).__name__}.",
            code="ICEBERG_CATALOG",
            name=str(options.catalog),
            remedy="Check its properties: catalog_properties, or .pyiceberg.yaml.",
        ) from error
    return str(found.metadata_location)


def _no_snapshot(name: str, wanted: str, why: str) -> NotFound:
    return NotFound(
        f"The Iceberg table {name} has no snapshot {wanted}. {why}",
        code="ICEBERG_SNAPSHOT_NOT_FOUND",
        name=wanted,
        remedy="Name one that it has, or leave it out for the current one.",
    )
