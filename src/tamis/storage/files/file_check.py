"""Checks the size and the checksum of a part's file, without decoding it."""

from __future__ import annotations

import zlib
from collections.abc import Mapping

from tamis.storage.files.protocol import PartRef
from tamis.storage.object_store import Store

CHUNK = 8 * 2**20
"""Bytes of a file held at once while computing its checksum."""

Problem = tuple[str, str, str]
"""Code, object, sentence."""


def size_problem(ref: PartRef, listed: Mapping[str, int]) -> Problem | None:
    """Return what is wrong with a file's presence and size; ``listed`` maps the stored paths to sizes."""
    if ref.path not in listed:
        return "MISSING_OBJECT", ref.path, "The log names it, and it is not there."
    if listed[ref.path] != ref.bytes:
        return "WRONG_SIZE", ref.path, f"It has {listed[ref.path]} bytes and should have {ref.bytes}."
    return None


def checksum_problem(store: Store, ref: PartRef) -> Problem | None:
    """Return what is wrong with a file's bytes; reads all of them. Raises read errors."""
    crc = 0
    for start in range(0, ref.bytes, CHUNK):
        crc = zlib.crc32(store.get_range(ref.path, start, min(CHUNK, ref.bytes - start)), crc)
    if ref.checksum is not None and crc != ref.checksum:
        return "BAD_CHECKSUM", ref.path, "Its bytes are not those that were written."
    return None
