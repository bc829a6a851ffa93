"""The checksum of a file's page indexes, stored in its footer, which has its own checksum.

Page indexes tell which pages a filter cannot match, and no Parquet checksum covers them. They are written
together with the footer, after its notes are fixed. The writer therefore first writes notes with the value
``UNFILLED``, and fills in what is known of the indexes before the bytes leave the writer.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import NamedTuple

from tamis.storage.files.parquet.compact_thrift import thrift_varint

INDEX_CHECKSUM = "tamis.index_crc32"
"""Key of the footer's note.

Its value has eight hexadecimal digits for the CRC-32 of the page indexes and eight for their length in bytes.
"""

UNFILLED = "-" * 16
"""The value of a note that is filled in later."""
_BINARY = b"\x18"
"""The header of the next field in Thrift's compact protocol, if it holds bytes, whose number follows."""
_VALUE = INDEX_CHECKSUM.encode() + _BINARY + thrift_varint(len(UNFILLED))
"""The bytes before the note's value."""


class IndexChecksum(NamedTuple):
    """CRC-32 and length in bytes of the page indexes, which end where the footer begins."""

    crc32: int
    length: int


def split_end(end: bytes) -> tuple[bytes, bytes]:
    """Split the bytes behind a file's last page into page indexes and footer."""
    start = len(end) - 8 - int.from_bytes(end[-8:-4], "little")
    return end[:start], end[start:]


def checksum_note(index: bytes) -> str:
    """Return the value of the note ``INDEX_CHECKSUM``."""
    return f"{zlib.crc32(index):08x}{len(index):08x}"


def filled_footer(footer: bytes, notes: Mapping[str, str]) -> bytes:
    """Return the footer with these values of its notes in the place of ``UNFILLED``."""
    for key, value in notes.items():
        unfilled = thrift_varint(len(UNFILLED)) + UNFILLED.encode()
        at = footer.rindex(key.encode() + _BINARY + unfilled) + len(key.encode() + _BINARY)
        footer = footer[:at] + thrift_varint(len(value)) + value.encode() + footer[at + len(unfilled) :]
    return footer[:-8] + (len(footer) - 8).to_bytes(4, "little") + footer[-4:]


def index_checksum(footer: bytes) -> IndexChecksum | None:
    """Return the checksum of the page indexes from a verified footer, or None if it has none."""
    at = footer.rfind(_VALUE)
    if at < 0:
        return None
    note = footer[at + len(_VALUE) :][: len(UNFILLED)]
    try:
        return IndexChecksum(int(note[:8], 16), int(note[8:], 16))
    except ValueError:
        return None
