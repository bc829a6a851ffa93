"""Deleted rows in Iceberg's forms: deletion vectors in Puffin files (version 3), files of positions (version 2).

Each part's vector has a file of its own, named by its content: it is written once, and never holds anything else.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tamis.bridges.export.delta_vectors import FOLDER, framed_bitmap
from tamis.storage.commit_log.deletion_vectors import read_bitmap, row_ordinals
from tamis.storage.object_store import Store

PATH_ID, POSITION_ID = 2147483546, 2147483545
"""Iceberg's field ids of the two columns of a file of positions."""
_MAGIC = b"PFA1"
_POSITIONS = pa.schema(
    [
        pa.field("file_path", pa.string(), nullable=False, metadata={b"PARQUET:field_id": str(PATH_ID).encode()}),
        pa.field("pos", pa.int64(), nullable=False, metadata={b"PARQUET:field_id": str(POSITION_ID).encode()}),
    ]
)


@dataclass(frozen=True, slots=True)
class DeletedRows:
    """A part that has lost rows: the URL of its file, the vector, and how many rows those are."""

    url: str
    vector: bytes
    rows: int


def delete_file(store: Store, root: str, deleted: DeletedRows, format_version: int) -> dict[str, Any]:
    """Write the deleted rows of a part, and return the ``data_file`` that tells of them."""
    data = _puffin(deleted) if format_version >= 3 else _positions(deleted)
    kind = "puffin" if format_version >= 3 else "parquet"
    identity = hashlib.sha256(deleted.url.encode() + b"\0" + deleted.vector).hexdigest()[:32]
    path = f"{FOLDER}/{identity}.{kind}"
    written = store.put_if_absent(path, data)
    url = deleted.url.encode()
    found: dict[str, Any] = {
        "content": 1,
        "file_path": f"{root}/{path}",
        "file_format": kind.upper(),
        "partition": {},
        "record_count": deleted.rows,
        "file_size_in_bytes": len(data) if written else store.size(path),
        "referenced_data_file": deleted.url,
    }
    if format_version >= 3:
        return {**found, "content_offset": len(_MAGIC), "content_size_in_bytes": len(framed_bitmap(deleted.vector))}
    bound = [{"key": PATH_ID, "value": url}]
    return {**found, "lower_bounds": bound, "upper_bounds": bound}


def _positions(deleted: DeletedRows) -> bytes:
    rows = row_ordinals(read_bitmap(deleted.vector))
    paths = pa.DictionaryArray.from_arrays(pa.array([0] * len(rows), pa.int32()), pa.array([deleted.url]))
    table = pa.table([paths.cast(pa.string()), pa.array(rows)], schema=_POSITIONS)
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", store_schema=False)
    return bytes(sink.getvalue().to_pybytes())


def _puffin(deleted: DeletedRows) -> bytes:
    blob = framed_bitmap(deleted.vector)
    blob_metadata = {
        "type": "deletion-vector-v1",
        "fields": [],
        "snapshot-id": -1,
        "sequence-number": -1,
        "offset": len(_MAGIC),
        "length": len(blob),
        "properties": {"referenced-data-file": deleted.url, "cardinality": str(deleted.rows)},
    }
    payload = json.dumps({"blobs": [blob_metadata], "properties": {}}).encode()
    return _MAGIC + blob + _MAGIC + payload + len(payload).to_bytes(4, "little") + bytes(4) + _MAGIC
