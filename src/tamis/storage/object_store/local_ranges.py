"""Ranges of a local file, read in this thread: a store's threads cost a millisecond for each call, which is more than most ranges are worth."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

LARGEST = 2**30
"""Bytes of a range up to which one read gives them all."""

_PLAIN = re.compile(r"[A-Za-z0-9_=-][A-Za-z0-9._=-]*(?:/[A-Za-z0-9_=-][A-Za-z0-9._=-]*)*")
"""Keys that are the file's name as they stand, such as we make; how a store writes others is its own business."""


def readable_here(key: str, spans: Sequence[tuple[int, int]]) -> bool:
    """Whether ``read_here`` gives what the store would."""
    return hasattr(os, "pread") and _PLAIN.fullmatch(key) is not None and all(length <= LARGEST for _, length in spans)


def read_here(path: str, spans: Sequence[tuple[int, int]]) -> list[memoryview]:
    """The bytes of each (offset, length), fewer where the file ends before. Raises ``OSError``."""
    file = os.open(path, os.O_RDONLY)
    try:
        return [memoryview(os.pread(file, length, offset)) for offset, length in spans]
    finally:
        os.close(file)
