"""Delta logs that are written by hand, for what deltalake does not write."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64

from tamis.world import new_id

PROTOCOL = {"minReaderVersion": 1, "minWriterVersion": 2}
_B85 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def field(name: str, kind: Any, **metadata: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": True, "metadata": metadata}


def metadata(
    fields: Sequence[Mapping[str, Any]], partitions: Sequence[str] = (), **configuration: str
) -> dict[str, Any]:
    return {
        "id": "0e3a38c5-8f4b-4a8e-8a31-6cf8a3a8f0a1",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": list(fields)}),
        "partitionColumns": list(partitions),
        "configuration": configuration,
        "createdTime": 1,
    }


def protocol(*features: str) -> dict[str, Any]:
    return {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": list(features),
        "writerFeatures": list(features),
    }


def add(folder: Path, name: str, data: pa.Table, stats: Any = None, **more: Any) -> dict[str, Any]:
    """Write a data file; return its action."""
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(data, folder / name)
    stats_json = stats if isinstance(stats, str | None) else json.dumps({"numRecords": len(data), **stats})
    return {
        "add": {
            "path": name,
            "partitionValues": {},
            "size": (folder / name).stat().st_size,
            "modificationTime": 1,
            "dataChange": True,
            "stats": stats_json,
            **more,
        }
    }


def remove(path: str, **more: Any) -> dict[str, Any]:
    return {"remove": {"path": path, "deletionTimestamp": 1, "dataChange": True, **more}}


def commit(folder: Path, version: int, actions: Sequence[Mapping[str, Any]]) -> Path:
    log = folder / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    path = log / f"{version:020}.json"
    path.write_text("".join(json.dumps(a) + "\n" for a in actions))
    return path


def create(folder: Path, fields: Sequence[Mapping[str, Any]], actions: Sequence[Mapping[str, Any]]) -> None:
    commit(folder, 0, [{"protocol": PROTOCOL}, {"metaData": metadata(fields)}, *actions])


def z85(data: bytes) -> str:
    padded = data + b"\0" * (-len(data) % 4)
    return base64.b85encode(padded).translate(bytes.maketrans(_B85, _Z85)).decode()


def bitmap_array(rows: Sequence[int]) -> bytes:
    """The rows as a deletion vector without its frame."""
    return struct.pack("<i", 1681511377) + bytes(BitMap64(rows).serialize())


def inline_vector(rows: Sequence[int]) -> dict[str, Any]:
    data = bitmap_array(rows)
    return {"storageType": "i", "pathOrInlineDv": z85(data), "sizeInBytes": len(data), "cardinality": len(rows)}


def stored_vectors(
    folder: Path, *all_rows: Sequence[int], prefix: str = "", absolute: bool = False
) -> list[dict[str, Any]]:
    """Write vectors into one file; return their descriptors."""
    digits = new_id()
    identifier = "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
    path = folder / prefix / f"deletion_vector_{identifier}.bin"
    path.parent.mkdir(parents=True, exist_ok=True)
    whole, out = b"\x01", []
    for rows in all_rows:
        data = bitmap_array(rows)
        place = {"storageType": "u", "pathOrInlineDv": prefix + z85(bytes.fromhex(digits))}
        if absolute:
            place = {"storageType": "p", "pathOrInlineDv": path.absolute().as_uri()}
        out.append({**place, "offset": len(whole), "sizeInBytes": len(data), "cardinality": len(rows)})
        whole += struct.pack(">i", len(data)) + data + struct.pack(">I", zlib.crc32(data))
    path.write_bytes(whole)
    return out
