"""Tables of other formats with as many files as wanted, made of metadata alone: 15 columns with bounds, one of them rising from file to file."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

COLUMNS = 15
ROWS = 1_000
"""Rows of each file; column c1 of file i holds i * 1,000 to i * 1,000 + 999."""


def delta(folder: Path, files: int) -> Path:
    """A Delta table of one commit."""
    log = folder / "_delta_log"
    log.mkdir(parents=True)
    fields = [{"name": f"c{i}", "type": _kind(i), "nullable": True, "metadata": {}} for i in range(1, COLUMNS + 1)]
    metadata = {
        "id": str(uuid.uuid4()),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [],
        "configuration": {},
        "createdTime": 0,
    }
    with (log / f"{0:020}.json").open("w") as out:
        out.write(json.dumps({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}) + "\n")
        out.write(json.dumps({"metaData": metadata}) + "\n")
        for i in range(files):
            lo, hi = _bounds(i)
            stats = {"numRecords": ROWS, "minValues": lo, "maxValues": hi, "nullCount": dict.fromkeys(lo, 0)}
            add = {
                "path": f"{i:08}.parquet",
                "partitionValues": {},
                "size": 55_000,
                "modificationTime": 0,
                "dataChange": True,
            }
            out.write(json.dumps({"add": {**add, "stats": json.dumps(stats)}}) + "\n")
    return folder


def iceberg(folder: Path, files: int, per_manifest: int = 10_000) -> Path:
    """An Iceberg table of one snapshot; the path of its metadata file."""
    from pyiceberg.conversions import to_bytes
    from pyiceberg.io.pyarrow import PyArrowFileIO
    from pyiceberg.manifest import (
        DataFile,
        DataFileContent,
        FileFormat,
        ManifestEntry,
        ManifestEntryStatus,
        write_manifest,
        write_manifest_list,
    )
    from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
    from pyiceberg.schema import Schema
    from pyiceberg.typedef import Record
    from pyiceberg.types import LongType, NestedField, StringType

    types = {i: LongType() if _kind(i) == "long" else StringType() for i in range(1, COLUMNS + 1)}
    schema = Schema(*(NestedField(i, f"c{i}", kind, required=False) for i, kind in types.items()))
    io, snapshot = PyArrowFileIO(), 1
    (folder / "metadata").mkdir(parents=True)
    manifests = []
    for first in range(0, files, per_manifest):
        target = io.new_output(str(folder / "metadata" / f"manifest-{first}.avro"))
        with write_manifest(2, UNPARTITIONED_PARTITION_SPEC, schema, target, snapshot, "zstandard") as writer:
            for i in range(first, min(first + per_manifest, files)):
                lo, hi = _bounds(i)
                data = DataFile.from_args(
                    content=DataFileContent.DATA,
                    file_path=f"{folder}/data/{i:08}.parquet",
                    file_format=FileFormat.PARQUET,
                    partition=Record(),
                    record_count=ROWS,
                    file_size_in_bytes=55_000,
                    column_sizes={},
                    value_counts=dict.fromkeys(types, ROWS),
                    null_value_counts=dict.fromkeys(types, 0),
                    nan_value_counts={},
                    lower_bounds={k: to_bytes(types[k], lo[f"c{k}"]) for k in types},
                    upper_bounds={k: to_bytes(types[k], hi[f"c{k}"]) for k in types},
                )
                writer.add_entry(
                    ManifestEntry.from_args(
                        status=ManifestEntryStatus.ADDED, snapshot_id=snapshot, sequence_number=1, data_file=data
                    )
                )
        manifests.append(writer.to_manifest_file())
    listing = folder / "metadata" / "snap-1.avro"
    with write_manifest_list(2, io.new_output(str(listing)), snapshot, None, 1, "zstandard") as writer:
        writer.add_manifests(manifests)
    return _iceberg_metadata(folder, schema, listing)


def _iceberg_metadata(folder: Path, schema: Any, listing: Path) -> Path:
    metadata = {
        "format-version": 2,
        "table-uuid": str(uuid.uuid4()),
        "location": str(folder),
        "last-sequence-number": 1,
        "last-updated-ms": 1,
        "last-column-id": COLUMNS,
        "schemas": [json.loads(schema.model_dump_json())],
        "current-schema-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "default-spec-id": 0,
        "last-partition-id": 999,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "properties": {},
        "current-snapshot-id": 1,
        "snapshots": [
            {
                "snapshot-id": 1,
                "sequence-number": 1,
                "timestamp-ms": 1,
                "manifest-list": str(listing),
                "summary": {"operation": "append"},
                "schema-id": 0,
            }
        ],
    }
    path = folder / "metadata" / "v1.metadata.json"
    path.write_text(json.dumps(metadata))
    return path


def _kind(column: int) -> str:
    return "string" if column % 3 == 2 else "long"


def _bounds(file: int) -> tuple[dict[str, Any], dict[str, Any]]:
    lo: dict[str, Any] = {"c1": ROWS * file}
    hi: dict[str, Any] = {"c1": ROWS * file + ROWS - 1}
    for i in range(2, COLUMNS + 1):
        low, high = (
            (f"aa{file % 997:04}", f"zz{file % 991:04}") if _kind(i) == "string" else (file % 997, 10**6 + file % 991)
        )
        lo[f"c{i}"], hi[f"c{i}"] = low, high
    return lo, hi
