"""Deletion vectors in Delta's form.

Invariant: the descriptor of a vector follows from the file and from the vector's bytes, so a later export can name
what an earlier one wrote. Small vectors stand in the log; others in a file each, which is named by its content and so
never holds anything else.
"""

from __future__ import annotations

import base64
import hashlib
import struct
import zlib
from typing import Any

from tamis.bridges.export.export_result import uuid_text
from tamis.storage.object_store import Store

FOLDER = "deletion_vectors"
INLINE = 256
"""Bytes of a vector up to which it stands in the log."""

_MAGIC = 1681511377
_PYTHON = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_Z85 = str.maketrans(_PYTHON, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#")


def bitmap64(vector: bytes) -> bytes:
    """Return a vector as a bitmap of 64-bit ordinals, behind the magic number of Delta and Puffin."""
    return struct.pack("<iQI", _MAGIC, 1, 0) + vector


def framed_bitmap(vector: bytes) -> bytes:
    """Return the bitmap between its length and its checksum, as it stands in files of Delta and Puffin."""
    data = bitmap64(vector)
    return struct.pack(">i", len(data)) + data + struct.pack(">I", zlib.crc32(data))


def vector_descriptor(path: str, vector: bytes, rows: int) -> dict[str, Any]:
    """Return the ``deletionVector`` of the file at ``path``, which deletes ``rows`` rows."""
    size = len(bitmap64(vector))
    if len(vector) <= INLINE:
        inline = _z85(bitmap64(vector))
        return {"storageType": "i", "pathOrInlineDv": inline, "sizeInBytes": size, "cardinality": rows}
    name = f"{FOLDER}{_z85(_identity(path, vector))}"
    return {"storageType": "u", "pathOrInlineDv": name, "offset": 1, "sizeInBytes": size, "cardinality": rows}


def unique_id(descriptor: dict[str, Any] | None) -> str:
    """Return what distinguishes a descriptor from others of the same file; empty without one."""
    if not descriptor:
        return ""
    offset = "" if descriptor.get("offset") is None else f"@{descriptor['offset']}"
    return f"{descriptor['storageType']}{descriptor['pathOrInlineDv']}{offset}"


def write_vector(store: Store, path: str, vector: bytes) -> None:
    """Write the file that ``vector_descriptor`` names, if it names one. It may exist already, with the same bytes."""
    if len(vector) > INLINE:
        name = f"{FOLDER}/deletion_vector_{uuid_text(_identity(path, vector).hex())}.bin"
        store.put(name, b"\x01" + framed_bitmap(vector))


def _identity(path: str, vector: bytes) -> bytes:
    return hashlib.sha256(path.encode() + b"\0" + vector).digest()[:16]


def _z85(data: bytes) -> str:
    padded = data + bytes(-len(data) % 4)
    return base64.b85encode(padded).decode().translate(_Z85)
