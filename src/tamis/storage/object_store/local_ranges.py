"""Reads byte ranges of a local file in the calling thread.

A store's own threads cost about a millisecond per call, more than most ranges take to read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence

from tamis.storage.object_store.pooled_memory import POOLED, writable_memory

LARGEST = 2**30
"""Largest range, in bytes, that a single read returns in full."""

_PLAIN = re.compile(r"[A-Za-z0-9_=-][A-Za-z0-9._=-]*(?:/[A-Za-z0-9_=-][A-Za-z0-9._=-]*)*")
"""Keys that are file names verbatim, as Tamis writes them; a store may escape other keys."""


def can_read_locally(key: str, spans: Sequence[tuple[int, int]]) -> bool:
    """Return whether ``read_local_ranges`` returns what the store would."""
    return hasattr(os, "pread") and _PLAIN.fullmatch(key) is not None and all(length <= LARGEST for _, length in spans)


def read_local_file(path: str, key: str, most: int) -> bytes | None:
    """Return the content of the file, or None to leave it to the store, which may say what is wrong.

    None also for more than ``most`` bytes. Raises ``FileNotFoundError``.
    """
    if not can_read_locally(key, ()):
        return None
    try:
        file = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        raise
    except OSError:
        return None
    try:
        size = os.fstat(file).st_size
        data = os.pread(file, size, 0) if size <= min(most, LARGEST) else b""
        return data if len(data) == size else None
    except OSError:
        return None
    finally:
        os.close(file)


def local_state(path: str, key: str) -> tuple[int, int] | None:
    """Return the size and the time of writing (µs) of a file; None to leave it to the store."""
    if not can_read_locally(key, ()):
        return None
    try:
        found = os.stat(path)  # noqa: PTH116  # after each read of an adopted file, where a Path costs as much again
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns // 1_000


def read_local_ranges(
    path: str, spans: Sequence[tuple[int, int]], targets: Mapping[tuple[int, int], memoryview]
) -> list[memoryview]:
    """Read the bytes of each (offset, length), cut short at the end of the file. Raises ``OSError``.

    A span that has a target is read into that memory.
    """
    file = os.open(path, os.O_RDONLY)
    try:
        return [_read(file, offset, length, targets.get((offset, length))) for offset, length in spans]
    finally:
        os.close(file)


def _read(file: int, offset: int, length: int, target: memoryview | None) -> memoryview:
    if not hasattr(os, "preadv") or (target is None and length < POOLED):
        return memoryview(os.pread(file, length, offset))
    data = writable_memory(length) if target is None else target
    return data[: os.preadv(file, [data], offset)].toreadonly()
