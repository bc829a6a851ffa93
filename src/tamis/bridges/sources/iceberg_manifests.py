"""Reads the manifests of an Iceberg snapshot: its data files and delete files, with sequence numbers inherited."""

from __future__ import annotations

import importlib
import io
import math
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tamis.bridges.sources.foreign_paths import Root
from tamis.bridges.sources.iceberg_metadata import encryption_error, metadata_damaged
from tamis.errors import InvalidInput, TamisError
from tamis.storage.object_store.parallel_requests import gather_requests

_ADDED, _DELETED = 1, 2
"""The status of an entry whose file is new, or gone."""
_DELETES = 1
"""The content of a manifest that lists delete files."""
_FIRST_SPEC = 0


class _Avro(NamedTuple):
    """An Avro file: what its header says, its schema and its records."""

    header: Mapping[str, Any]
    schema: Mapping[str, Any]
    records: list[dict[str, Any]]


@dataclass(slots=True)
class Entries:
    """Live entries: the file of each, its sequence number, its partition spec and its partition by field id."""

    files: list[dict[str, Any]] = field(default_factory=list)
    sequences: list[int] = field(default_factory=list)
    specs: list[int] = field(default_factory=list)
    partitions: list[dict[int, Any]] = field(default_factory=list)

    def partition_key(self, at: int) -> tuple[Any, ...]:
        """Return the partition of an entry, with its spec, as a key.

        As in Java, NaN equals NaN, and -0.0 does not equal 0.0.
        """
        values = sorted(self.partitions[at].items())
        return (self.specs[at], *((i, _float_key(v) if isinstance(v, float) else v) for i, v in values))

    def extend(self, other: Entries) -> None:
        self.files += other.files
        self.sequences += other.sequences
        self.specs += other.specs
        self.partitions += other.partitions


def _float_key(value: float) -> bytes:
    return b"NaN" if math.isnan(value) else struct.pack(">d", value)


def read_entries(root: Root, snapshot: Mapping[str, Any]) -> tuple[Entries, Entries]:
    """Return the live data files and the live delete files of a snapshot.

    Raises ``CorruptData`` (``ICEBERG_METADATA_DAMAGED``) naming a manifest that cannot be read.
    """
    manifests = _manifests(root, snapshot)
    data, deletes = Entries(), Entries()
    for manifest, found in zip(
        manifests, gather_requests(root.store, lambda m: _entries(root, m), manifests), strict=True
    ):
        (deletes if manifest.get("content", 0) == _DELETES else data).extend(found)
    return data, deletes


def added_entries(root: Root, snapshot: Mapping[str, Any]) -> Entries | None:
    """Return the data files that a snapshot added, if it did nothing else; None: all files must be compared.

    Deletes of older snapshots do not hold for new files, whose sequence number is higher.
    """
    if (snapshot.get("summary") or {}).get("operation") != "append" or "manifest-list" not in snapshot:
        return None
    manifests = _manifests(root, snapshot)
    if any(m.get("added_snapshot_id") is None for m in manifests):  # format 1 need not say which are new
        return None
    own = [m for m in manifests if m["added_snapshot_id"] == snapshot["snapshot-id"]]
    found = Entries()
    for manifest in own:
        read = _avro(root, manifest["manifest_path"])
        records = read.records
        if manifest.get("content", 0) == _DELETES or any(r["status"] == _DELETED for r in records):
            return None
        added = [r for r in records if r["status"] == _ADDED and r["snapshot_id"] in (None, snapshot["snapshot-id"])]
        found.extend(_understood(manifest, read._replace(records=added)))
    said = (snapshot.get("summary") or {}).get("added-data-files")
    return found if said is None or str(said) == str(len(found.files)) else None


def _manifests(root: Root, snapshot: Mapping[str, Any]) -> list[dict[str, Any]]:
    if "manifest-list" in snapshot:
        return _avro(root, snapshot["manifest-list"]).records
    # format 1 may have the paths alone
    return [{"manifest_path": path} for path in snapshot["manifests"]]


def _entries(root: Root, manifest: Mapping[str, Any]) -> Entries:
    return _understood(manifest, _avro(root, manifest["manifest_path"]))


def _understood(manifest: Mapping[str, Any], read: _Avro) -> Entries:
    """Return the live ones of a manifest's entries, with what they inherit from it.

    A manifest that no list describes says itself by which spec its files are partitioned.
    """
    name = manifest["manifest_path"]
    found = Entries()
    inherited = manifest.get("sequence_number") or 0
    try:
        ids = _partition_ids(read.schema)
        spec = manifest.get("partition_spec_id")
        if spec is None:
            spec = int(read.header.get("partition-spec-id", _FIRST_SPEC))
        for record in read.records:
            if record["status"] == _DELETED:
                continue
            file, sequence = record["data_file"], record.get("sequence_number")
            if file.get("key_metadata"):
                raise encryption_error(file["file_path"])
            found.files.append(file)
            found.sequences.append(inherited if sequence is None else sequence)
            found.specs.append(spec)
            found.partitions.append({i: file["partition"].get(n) for n, i in ids.items()})
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise metadata_damaged(name, repr(error)) from error
    return found


def _avro(root: Root, name: str) -> _Avro:
    try:
        reader = importlib.import_module("fastavro").reader
    except ImportError as error:
        raise InvalidInput(
            "Iceberg's manifests are read through fastavro, which is not installed.",
            code="MISSING_PACKAGE",
            name="fastavro",
            remedy="Install it: pip install 'tamis[iceberg]'.",
        ) from error
    store, path = root.opened(root.resolve(name, encoded=False))
    data = store.get(path)
    try:
        found = reader(io.BytesIO(data))
        return _Avro(found.metadata, found.writer_schema, list(found))
    except TamisError:
        raise
    except Exception as error:  # whatever a decoder of damaged bytes raises
        codec = _missing_codec(error)
        if codec is not None:
            raise InvalidInput(
                f"{name} of an Iceberg table is compressed by {codec}, for which a package is not installed.",
                code="MISSING_PACKAGE",
                name=codec,
                remedy=f"Install it: pip install 'fastavro[{codec}]'.",
            ) from error
        raise metadata_damaged(name, f"{type(error).__name__}: {error}") from error


def _missing_codec(error: Exception) -> str | None:
    """Return the codec that fastavro supports but lacks a package for, or None."""
    found = re.match(r"(\w+) codec is supported but you need to install", str(error))
    return found[1] if found else None


def _partition_ids(schema: Mapping[str, Any]) -> dict[str, int]:
    """Return the ids of the partition's fields by the names that the manifest has for them."""
    entry = next(f for f in schema["fields"] if f["name"] == "data_file")
    partition = next(f for f in entry["type"]["fields"] if f["name"] == "partition")
    return {f["name"]: int(f["field-id"]) for f in partition["type"]["fields"]}
