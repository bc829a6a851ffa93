"""Reads the deletion vectors of Delta files, inline or in files, as our bitmaps of row ordinals."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from tamis.bridges.sources.foreign_paths import Root
from tamis.bridges.sources.roaring_arrays import portable_rows
from tamis.errors import CorruptData
from tamis.storage.commit_log.deletion_vectors import serialize_vector
from tamis.storage.object_store.parallel_requests import gather_requests

MAGIC, NATIVE_MAGIC = 1681511377, 1681511376
"""Of the portable serialization, in little-endian numbers, and of the older native one, in big-endian numbers."""
_Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_TO_B85 = bytes.maketrans(_Z85, _B85)
_UUID_CHARACTERS = 20


def deletion_bitmaps(root: Root, descriptors: pa.Array, rows: pa.Array) -> pa.Array:
    """Return the bitmap of each file, NULL for those without a vector; ``rows`` are physical rows, NULL if unknown.

    Raises ``CorruptData`` (``DELTA_VECTOR_DAMAGED``) naming what is damaged.
    """
    wanted = np.flatnonzero(np.asarray(descriptors.is_valid())).tolist()
    if not wanted:
        return pa.nulls(len(descriptors), pa.binary())
    by_row = dict(zip(wanted, descriptors.take(pa.array(wanted, pa.int64())).to_pylist(), strict=True))
    raw: dict[int, bytes] = {}
    by_file: dict[str, list[int]] = {}
    for at, descriptor in by_row.items():
        if descriptor["storageType"] == "i":
            raw[at] = _inline(descriptor)
        else:
            by_file.setdefault(_place(root, descriptor), []).append(at)
    places = list(by_file)
    for found in gather_requests(
        root.store, lambda place: _stored(root, place, {a: by_row[a] for a in by_file[place]}), places
    ):
        raw |= found
    limits = rows.take(pa.array(wanted, pa.int64())).to_pylist()
    bitmaps = [_bitmap(raw[at], by_row[at], limit) for at, limit in zip(wanted, limits, strict=True)]
    order = np.full(len(descriptors), len(wanted))
    order[wanted] = np.arange(len(wanted))
    return pa.array([*bitmaps, None], pa.binary()).take(pa.array(order))


def z85_decoded(text: str) -> bytes:
    """Return the bytes of a text in Z85. Raises ``ValueError``."""
    if len(text) % 5 or not set(text.encode()) <= set(_Z85):
        raise ValueError("no Z85 text")
    return base64.b85decode(text.encode().translate(_TO_B85))


def _inline(descriptor: Mapping[str, Any]) -> bytes:
    try:
        data = z85_decoded(descriptor["pathOrInlineDv"])
    except ValueError as error:
        raise _damaged("inline", str(error)) from error
    size = descriptor["sizeInBytes"]
    if size is None or not 0 <= size <= len(data):
        raise _damaged("inline", f"it has {len(data)} bytes instead of {size}")
    return data[:size]


def _place(root: Root, descriptor: Mapping[str, Any]) -> str:
    """Return the path below the root of a vector's file, or its URL."""
    kind, text = descriptor["storageType"], descriptor["pathOrInlineDv"]
    if kind == "p":
        return root.resolve(text)
    try:
        if kind != "u":
            raise ValueError(f"its storage is {kind!r}")
        prefix, name = text[:-_UUID_CHARACTERS], text[-_UUID_CHARACTERS:]
        digits = z85_decoded(name).hex()
        groups = (digits[start:end] for start, end in pairwise((0, 8, 12, 16, 20, 32)))
        file = f"deletion_vector_{'-'.join(groups)}.bin"
    except ValueError as error:
        raise _damaged(str(text), str(error)) from error
    return root.resolve(f"{prefix}/{file}" if prefix else file)


def _stored(root: Root, place: str, wanted: Mapping[int, Mapping[str, Any]]) -> dict[int, bytes]:
    """Read the vectors that lie in one file, and check each one's length and checksum."""
    store, path = root.opened(place)
    spans = [(d["offset"] or 0, 8 + _size(d, place)) for d in wanted.values()]
    first, *chunks = store.get_ranges(path, [(0, 1), *spans])
    if first != b"\x01":
        raise _damaged(store.name(path), "it is of another version than 1")
    out = {}
    for at, chunk in zip(wanted, chunks, strict=True):
        size, data, checksum = chunk[:4], chunk[4:-4], chunk[-4:]
        if struct.unpack(">i", size)[0] != len(data) or struct.unpack(">I", checksum)[0] != zlib.crc32(data):
            raise _damaged(store.name(path), "its length or its checksum is another one")
        out[at] = data
    return out


def _size(descriptor: Mapping[str, Any], place: str) -> int:
    size, offset = descriptor["sizeInBytes"], descriptor["offset"]
    if not isinstance(size, int) or not 0 <= size < 2**31 or (offset or 0) < 0:
        raise _damaged(place, f"it has {size} bytes at {offset}")
    return size


def _bitmap(data: bytes, descriptor: Mapping[str, Any], rows: int | None) -> bytes:
    name = descriptor["pathOrInlineDv"]
    try:
        if struct.unpack("<i", data[:4])[0] == MAGIC:
            found = portable_rows(data[4:])
        elif struct.unpack(">i", data[:4])[0] == NATIVE_MAGIC:
            found = _native_bits(data[4:])
        else:
            raise ValueError("it is of an unknown kind")
    except (ValueError, IndexError, struct.error) as error:
        raise _damaged(name, str(error)) from error
    if len(found) != descriptor["cardinality"]:
        raise _damaged(name, f"it has {len(found)} rows instead of {descriptor['cardinality']}")
    if len(found) and rows is not None and found.max() >= rows:
        raise _damaged(name, f"it deletes row {found.max()} of a file of {rows} rows")
    return serialize_vector(found)


def _native_bits(data: bytes) -> Any:
    """Decode bitmaps that follow their lengths; the first has the rows below 2^32."""
    buckets, size = struct.unpack(">ii", data[:8]) if len(data) > 4 else (0, 0)
    if buckets == 0:
        return BitMap()
    if buckets > 1 or size != len(data) - 8:
        raise ValueError("it has rows beyond 2^32, or another length")
    return BitMap.deserialize(data[8:])


def _damaged(name: str, why: str) -> CorruptData:
    return CorruptData(
        f"The deletion vector {name[:200]} cannot be read: {why}.",
        code="DELTA_VECTOR_DAMAGED",
        name=name[:200],
        remedy="Restore the Delta table from a backup; without the vector, deleted rows would come back.",
    )
