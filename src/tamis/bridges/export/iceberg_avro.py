"""The Avro files of Iceberg: manifests and lists of manifests."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping
from typing import Any

from tamis.errors import InvalidInput


def import_fastavro() -> Any:
    """Import fastavro. Raises ``InvalidInput`` (``MISSING_PACKAGE``) without it."""
    try:
        import fastavro as found
    except ImportError as error:
        raise InvalidInput(
            "An export to Iceberg needs fastavro.",
            code="MISSING_PACKAGE",
            name="fastavro",
            remedy="pip install 'tamis[iceberg]'.",
        ) from error
    return found


def _f(field_id: int, name: str, kind: Any, *, optional: bool = False) -> dict[str, Any]:
    if optional:
        return {"name": name, "type": ["null", kind], "default": None, "field-id": field_id}
    return {"name": name, "type": kind, "field-id": field_id}


def _map(key_id: int, value_id: int, value: str) -> dict[str, Any]:
    """Return a map with whole numbers as keys, which Avro holds as a list of pairs."""
    fields = [_f(key_id, "key", "int"), _f(value_id, "value", value)]
    item = {"type": "record", "name": f"k{key_id}_v{value_id}", "fields": fields}
    return {"type": "array", "items": item, "logicalType": "map"}


def _list(element_id: int, item: str) -> dict[str, Any]:
    return {"type": "array", "items": item, "element-id": element_id}


_DATA_FILE = [
    _f(134, "content", "int"),
    _f(100, "file_path", "string"),
    _f(101, "file_format", "string"),
    _f(102, "partition", {"type": "record", "name": "r102", "fields": []}),
    _f(103, "record_count", "long"),
    _f(104, "file_size_in_bytes", "long"),
    _f(109, "value_counts", _map(119, 120, "long"), optional=True),
    _f(110, "null_value_counts", _map(121, 122, "long"), optional=True),
    _f(137, "nan_value_counts", _map(138, 139, "long"), optional=True),
    _f(125, "lower_bounds", _map(126, 127, "bytes"), optional=True),
    _f(128, "upper_bounds", _map(129, 130, "bytes"), optional=True),
    _f(131, "key_metadata", "bytes", optional=True),
    _f(132, "split_offsets", _list(133, "long"), optional=True),
    _f(135, "equality_ids", _list(136, "int"), optional=True),
    _f(140, "sort_order_id", "int", optional=True),
    _f(143, "referenced_data_file", "string", optional=True),
]
_DATA_FILE_3 = [
    _f(142, "first_row_id", "long", optional=True),
    _f(144, "content_offset", "long", optional=True),
    _f(145, "content_size_in_bytes", "long", optional=True),
]


def _entry_schema(format_version: int) -> dict[str, Any]:
    fields = _DATA_FILE + (_DATA_FILE_3 if format_version >= 3 else [])
    return {
        "type": "record",
        "name": "manifest_entry",
        "fields": [
            _f(0, "status", "int"),
            _f(1, "snapshot_id", "long", optional=True),
            _f(3, "sequence_number", "long", optional=True),
            _f(4, "file_sequence_number", "long", optional=True),
            _f(2, "data_file", {"type": "record", "name": "r2", "fields": fields}),
        ],
    }


def _list_schema(format_version: int) -> dict[str, Any]:
    counts = [
        _f(504, "added_files_count", "int"),
        _f(505, "existing_files_count", "int"),
        _f(506, "deleted_files_count", "int"),
        _f(512, "added_rows_count", "long"),
        _f(513, "existing_rows_count", "long"),
        _f(514, "deleted_rows_count", "long"),
    ]
    lineage = [_f(520, "first_row_id", "long", optional=True)] if format_version >= 3 else []
    return {
        "type": "record",
        "name": "manifest_file",
        "fields": [
            _f(500, "manifest_path", "string"),
            _f(501, "manifest_length", "long"),
            _f(502, "partition_spec_id", "int"),
            _f(517, "content", "int"),
            _f(515, "sequence_number", "long"),
            _f(516, "min_sequence_number", "long"),
            _f(503, "added_snapshot_id", "long"),
            *counts,
            *lineage,
        ],
    }


def manifest_bytes(
    entries: Iterable[Mapping[str, Any]], schema: Mapping[str, Any], format_version: int, *, deletes: bool
) -> bytes:
    """Return a manifest of data files, or of delete files."""
    metadata = {
        "schema": json.dumps(schema),
        "schema-id": str(schema["schema-id"]),
        "partition-spec": "[]",
        "partition-spec-id": "0",
        "format-version": str(format_version),
        "content": "deletes" if deletes else "data",
    }
    return _avro(_entry_schema(format_version), entries, metadata)


def list_bytes(manifests: Iterable[Mapping[str, Any]], format_version: int, metadata: Mapping[str, str]) -> bytes:
    """Return a list of manifests."""
    return _avro(_list_schema(format_version), manifests, {**metadata, "format-version": str(format_version)})


def avro_rows(data: bytes) -> list[dict[str, Any]]:
    """Return the rows of an Avro file."""
    return list(import_fastavro().reader(io.BytesIO(data)))


def _avro(schema: dict[str, Any], rows: Iterable[Mapping[str, Any]], metadata: Mapping[str, str]) -> bytes:
    found, sink = import_fastavro(), io.BytesIO()
    parsed = found.parse_schema(schema)
    found.writer(sink, parsed, rows, codec="deflate", metadata=dict(metadata), codec_compression_level=1)
    return sink.getvalue()
