"""The checksum of a file's page indexes, which stands in its footer, which has a checksum itself.

Page indexes say which pages a filter cannot match, and no checksum of Parquet covers them. They are written together with the footer, after
its notes are fixed: so a note of the right length is written first, and its value is put in before the bytes leave the writer.
"""

from __future__ import annotations

import zlib
from typing import NamedTuple

INDEX_CHECKSUM = "tamis.index_crc32"
"""Key of the footer's note: eight hexadecimal digits of the CRC-32 of the bytes before the footer, eight of how many bytes these are."""

UNKNOWN_INDEX = "-" * 16
_VALUE = INDEX_CHECKSUM.encode() + bytes((0x18, len(UNKNOWN_INDEX)))
"""What stands before the value: the key, and in Thrift's compact protocol the header of the next field, of bytes, and their number."""


class IndexChecksum(NamedTuple):
    """CRC-32 and number of the bytes of page indexes, which end where the footer begins."""

    crc32: int
    length: int


def sealed_end(end: bytes) -> tuple[bytes, bytes]:
    """Returns the page indexes and the footer that ``end`` consists of; the footer holds the checksum of the former."""
    start = len(end) - 8 - int.from_bytes(end[-8:-4], "little")
    index, footer = end[:start], end[start:]
    at = footer.rindex(_VALUE + UNKNOWN_INDEX.encode()) + len(_VALUE)
    note = f"{zlib.crc32(index):08x}{len(index):08x}".encode()
    return index, footer[:at] + note + footer[at + len(note) :]


def index_checksum(footer: bytes) -> IndexChecksum | None:
    """Returns what a footer, which is checked already, says of the page indexes; None where it says nothing."""
    at = footer.rfind(_VALUE)
    if at < 0:
        return None
    note = footer[at + len(_VALUE) :][: len(UNKNOWN_INDEX)]
    try:
        return IndexChecksum(int(note[:8], 16), int(note[8:], 16))
    except ValueError:
        return None
