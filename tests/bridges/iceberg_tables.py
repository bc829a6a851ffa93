"""Iceberg tables of PyIceberg in a local catalog, and snapshots with deletes that are written by hand."""

from __future__ import annotations

import copy
import io
import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table
from pyroaring import BitMap64

from tamis.world import new_id


def catalog(folder: Path) -> SqlCatalog:
    found = SqlCatalog("local", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/warehouse")
    found.create_namespace_if_not_exists("n")
    return found


def local(url: str) -> Path:
    return Path(url.removeprefix("file://"))


def metadata_of(table: Table) -> Path:
    return local(table.metadata_location)


def data_paths(table: Table) -> list[str]:
    """The data files of the current snapshot in the order in which they were added."""
    files = table.inspect.data_files().to_pylist()
    return [f["file_path"] for f in sorted(files, key=lambda f: local(f["file_path"]).stat().st_mtime_ns)]


def position_file(table: Table, rows: Sequence[tuple[str, int]]) -> dict[str, Any]:
    """Write a position delete file; return its entry."""
    schema = pa.schema(
        [
            pa.field("file_path", pa.string(), nullable=False, metadata={"PARQUET:field_id": "2147483546"}),
            pa.field("pos", pa.int64(), nullable=False, metadata={"PARQUET:field_id": "2147483545"}),
        ]
    )
    columns = list(zip(*rows, strict=True))
    data = pa.table([pa.array(columns[0], pa.string()), pa.array(columns[1], pa.int64())], schema=schema)
    return _written(table, data, {"content": 1})


def equality_file(table: Table, data: pa.Table, ids: Mapping[str, int]) -> dict[str, Any]:
    """Write an equality delete file of rows of key columns; return its entry."""
    fields = [f.with_metadata({"PARQUET:field_id": str(ids[f.name])}) for f in data.schema]
    return _written(table, data.cast(pa.schema(fields)), {"content": 2, "equality_ids": list(ids.values())})


def _written(table: Table, data: pa.Table, more: Mapping[str, Any]) -> dict[str, Any]:
    path = local(table.location()) / "data" / f"{new_id()}.parquet"
    path.parent.mkdir(exist_ok=True)
    pq.write_table(data, path)
    return {
        "file_path": path.as_uri(),
        "file_format": "PARQUET",
        "record_count": len(data),
        "file_size_in_bytes": path.stat().st_size,
        **more,
    }


def vector_files(table: Table, rows: Mapping[str, Sequence[int]]) -> list[dict[str, Any]]:
    """Write deletion vectors of data files into one Puffin file; return their entries."""
    path = local(table.location()) / "data" / f"{new_id()}.puffin"
    content, blobs, entries = b"PFA1", [], []
    for data_file, gone in rows.items():
        body = b"\xd1\xd3\x39\x64" + bytes(BitMap64(gone).serialize())
        blob = struct.pack(">i", len(body)) + body + struct.pack(">I", zlib.crc32(body))
        blobs.append(
            {
                "type": "deletion-vector-v1",
                "fields": [2147483645],
                "snapshot-id": -1,
                "sequence-number": -1,
                "offset": len(content),
                "length": len(blob),
                "properties": {"referenced-data-file": data_file, "cardinality": str(len(gone))},
            }
        )
        entries.append(
            {
                "content": 1,
                "file_path": path.as_uri(),
                "file_format": "PUFFIN",
                "record_count": len(gone),
                "referenced_data_file": data_file,
                "content_offset": len(content),
                "content_size_in_bytes": len(blob),
            }
        )
        content += blob
    footer = json.dumps({"blobs": blobs, "properties": {}}).encode()
    content += b"PFA1" + footer + struct.pack("<i", len(footer)) + b"\0\0\0\0" + b"PFA1"
    path.write_bytes(content)
    return [{**e, "file_size_in_bytes": len(content)} for e in entries]


_MORE_FIELDS = [
    {"name": "referenced_data_file", "type": ["null", "string"], "default": None, "field-id": 143},
    {"name": "content_offset", "type": ["null", "long"], "default": None, "field-id": 144},
    {"name": "content_size_in_bytes", "type": ["null", "long"], "default": None, "field-id": 145},
]


def commit_deletes(
    metadata: Path,
    entries: Sequence[Mapping[str, Any]],
    *,
    spec: int = 0,
    partition: Mapping[str, Any] | None = None,
    version: int = 2,
) -> Path:
    """Write a snapshot that adds delete files to that of a metadata file; return the new metadata file."""
    table_metadata = json.loads(metadata.read_text())
    snapshot = next(s for s in table_metadata["snapshots"] if s["snapshot-id"] == table_metadata["current-snapshot-id"])
    with local(snapshot["manifest-list"]).open("rb") as file:
        reader = fastavro.reader(file)
        list_schema, manifests = reader.writer_schema, list(reader)
    of_spec = next(m for m in manifests if m["partition_spec_id"] == spec)
    with local(of_spec["manifest_path"]).open("rb") as file:
        reader = fastavro.reader(file)
        schema, about = copy.deepcopy(reader.writer_schema), dict(reader.metadata)
    data_file = next(f for f in schema["fields"] if f["name"] == "data_file")["type"]
    names = {f["name"] for f in data_file["fields"]}
    data_file["fields"] += [f for f in _MORE_FIELDS if f["name"] not in names]
    schema = {key: value for key, value in schema.items() if not key.startswith("__")}
    new, sequence = table_metadata["current-snapshot-id"] + 1, table_metadata["last-sequence-number"] + 1
    blank = {f["name"]: None for f in data_file["fields"]}
    records = [
        {"status": 1, "snapshot_id": new, "data_file": {**blank, "partition": dict(partition or {}), **e}}
        for e in entries
    ]
    path = metadata.parent / f"{new_id()}-deletes.avro"
    kept = {k: v for k, v in about.items() if not k.startswith("avro.")}
    _write(path, schema, records, {**kept, "content": "deletes"})
    added = {
        "manifest_path": path.as_uri(),
        "manifest_length": path.stat().st_size,
        "partition_spec_id": spec,
        "content": 1,
        "sequence_number": sequence,
        "min_sequence_number": sequence,
        "added_snapshot_id": new,
        "added_files_count": len(entries),
        "existing_files_count": 0,
        "deleted_files_count": 0,
        "added_rows_count": sum(e["record_count"] for e in entries),
        "existing_rows_count": 0,
        "deleted_rows_count": 0,
        "partitions": None,
        "key_metadata": None,
    }
    listed = metadata.parent / f"snap-{new}-{new_id()}.avro"
    plain = {key: value for key, value in list_schema.items() if not key.startswith("__")}
    _write(listed, plain, [*manifests, added], {"format-version": str(version)})
    parent = table_metadata["current-snapshot-id"]
    stamp = table_metadata["last-updated-ms"] + 1
    table_metadata["snapshots"].append(
        {
            "snapshot-id": new,
            "parent-snapshot-id": parent,
            "sequence-number": sequence,
            "timestamp-ms": stamp,
            "manifest-list": listed.as_uri(),
            "summary": {"operation": "delete"},
            "schema-id": table_metadata["current-schema-id"],
        }
    )
    table_metadata |= {"current-snapshot-id": new, "last-sequence-number": sequence, "last-updated-ms": stamp}
    table_metadata["refs"]["main"] = {"snapshot-id": new, "type": "branch"}
    table_metadata["snapshot-log"].append({"snapshot-id": new, "timestamp-ms": stamp})
    if version == 3:
        table_metadata |= {"format-version": 3, "next-row-id": 10**6}
        for s in table_metadata["snapshots"]:
            s |= {"first-row-id": 0, "added-rows": 0}
    out = metadata.parent / f"99999-{new_id()}.metadata.json"
    out.write_text(json.dumps(table_metadata))
    return out


def _write(
    path: Path, schema: Mapping[str, Any], records: Sequence[Mapping[str, Any]], about: Mapping[str, Any]
) -> None:
    buffer = io.BytesIO()
    fastavro.writer(buffer, schema, records, metadata={k: str(v) for k, v in about.items()})
    path.write_bytes(buffer.getvalue())
