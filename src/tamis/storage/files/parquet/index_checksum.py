"""The checksum of a file's page indexes, stored in its footer, which has its own checksum.

Page indexes tell which pages a filter cannot match, and no Parquet checksum covers them. They are written
together with the footer, after its notes are fixed. The writer therefore first writes a note of the right
length, and fills in its value before the bytes leave the writer.
"""

from __future__ import annotations

import zlib
from typing import NamedTuple

INDEX_CHECKSUM = "tamis.index_crc32"
"""Key of the footer's note.

Its value has eight hexadecimal digits for the CRC-32 of the page indexes and eight for their length in bytes.
"""

UNKNOWN_INDEX = "-" * 16
_VALUE = INDEX_CHECKSUM.encode() + bytes((0x18, len(UNKNOWN_INDEX)))
"""The bytes before the note's value.

These are the key, then the header and length of the next field in Thrift's compact protocol.
"""


class IndexChecksum(NamedTuple):
    """CRC-32 and length in bytes of the page indexes, which end where the footer begins."""

    crc32: int
    length: int


def sealed_end(end: bytes) -> tuple[bytes, bytes]:
    """Split ``end`` into page indexes and footer, and store the checksum of the former in the latter."""
    start = len(end) - 8 - int.from_bytes(end[-8:-4], "little")
    index, footer = end[:start], end[start:]
    at = footer.rindex(_VALUE + UNKNOWN_INDEX.encode()) + len(_VALUE)
    note = f"{zlib.crc32(index):08x}{len(index):08x}".encode()
    return index, footer[:at] + note + footer[at + len(note) :]


def index_checksum(footer: bytes) -> IndexChecksum | None:
    """Return the checksum of the page indexes from a verified footer, or None if it has none."""
    at = footer.rfind(_VALUE)
    if at < 0:
        return None
    note = footer[at + len(_VALUE) :][: len(UNKNOWN_INDEX)]
    try:
        return IndexChecksum(int(note[:8], 16), int(note[8:], 16))
    except ValueError:
        return None
