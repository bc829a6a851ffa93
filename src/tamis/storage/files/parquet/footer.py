"""Parquet footers, read once per process and checked against what was committed.

Invariant: a file that is not the one of its ``PartRef`` (another size, id, row count or blocks, not Parquet,
missing) raises ``CorruptData`` naming part and path. So does a footer without the committed checksum:
row-group statistics may skip blocks, so they must be the ones written. A file so small that the first read
returns all of it is also checked by its own checksum.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from tamis.storage.files.corrupt_parts import corrupt_part
from tamis.storage.files.file_source import PartSource, read_twice
from tamis.storage.files.parquet.index_checksum import index_checksum
from tamis.storage.files.parquet.parquet_writer import PART_ID
from tamis.storage.files.protocol import PartRef
from tamis.storage.object_store.lru_cache import LruCache

TAIL = 64 * 2**10
"""Bytes fetched from the end of a file, usually enough to contain the footer."""
CACHE_BYTES = 32 * 2**20
"""Total size of the cached footers, as stored in files."""
_MAGIC = b"PAR1"

Footer: TypeAlias = pq.FileMetaData


@dataclass(frozen=True, slots=True)
class _Remembered:
    """A footer, the part against which it was checked, and bytes by which its file is recognized."""

    footer: Footer
    ref: PartRef
    mark: tuple[int, bytes]
    """An offset and what stands there: the part's id in the footer, which no other part's file has there."""


_cache = LruCache[_Remembered](CACHE_BYTES)


def footer_of(source: PartSource) -> Footer:
    """Return the checked footer of a part. Raises ``CorruptData``.

    If the footer is remembered, the next read of the file also reads the few bytes by which it is recognized, and
    raises ``CorruptData`` (``PART_REPLACED``) if they differ: another file has taken its place.
    """
    found = _cache.get(source.key)
    if found is None:
        footer, mark = read_twice(lambda: _read(source), source)
        _cache.put(source.key, _Remembered(footer, source.ref, mark), footer.serialized_size)
        return footer
    source.expect_mark(*found.mark)
    footer, known, ref = found.footer, found.ref, source.ref
    if (ref.part_id, ref.rows, ref.blocks) != (known.part_id, known.rows, known.blocks):
        _check(footer, source)
    return footer


def check_end(source: PartSource) -> bool:
    """Return whether the page indexes are the ones written; raise ``CorruptData`` if the footer is not.

    This is for an external decoder, which reads both by itself, so it checks the file's current bytes and
    uses no cache. Nothing is parsed if the committed checksum matches.
    """
    wanted = source.ref.footer_checksum
    footer = _footer_bytes(source)
    if wanted is None or zlib.crc32(footer) != wanted:
        read_twice(lambda: _read(source), source)
        return False
    found = index_checksum(footer)
    if found is None or found.length + len(footer) > source.ref.bytes:
        return False
    end = source.tail(found.length + len(footer))
    return zlib.crc32(end[: found.length]) == found.crc32


def _footer_bytes(source: PartSource) -> bytes:
    """Return the footer with its length and magic; for a non-Parquet file, some of its last bytes."""
    tail = source.tail(TAIL)
    length = int.from_bytes(tail[-8:-4], "little") + 8
    if len(tail) < length <= source.ref.bytes:
        tail = source.tail(length)
    return tail[max(len(tail) - length, 0) :]


def _read(source: PartSource) -> tuple[Footer, tuple[int, bytes]]:
    ref = source.ref
    tail = source.tail(TAIL)
    if len(tail) < 12 or tail[-4:] != _MAGIC:
        raise corrupt_part(ref, f"does not end as a Parquet file of {ref.bytes} bytes does")
    length = int.from_bytes(tail[-8:-4], "little") + 8
    if length > ref.bytes:
        raise corrupt_part(ref, "has a footer that is longer than the file")
    if length > len(tail):
        tail = source.tail(length)
    if len(tail) == ref.bytes and ref.checksum is not None and zlib.crc32(tail) != ref.checksum:
        raise corrupt_part(ref, "does not have the checksum that was committed", "CHECKSUM")
    try:
        footer = pq.read_metadata(pa.BufferReader(tail))
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise corrupt_part(ref, f"has an unreadable footer ({error})") from error
    _check(footer, source)  # before the checksum, because it gives a more specific error
    if ref.footer_checksum is not None and zlib.crc32(tail[len(tail) - length :]) != ref.footer_checksum:
        raise corrupt_part(ref, "does not have the footer that was committed", "CHECKSUM")
    return footer, _mark(tail[len(tail) - length :], footer, ref)


def _mark(raw: bytes, footer: Footer, ref: PartRef) -> tuple[int, bytes]:
    """Return where the part's id stands in the file, and the id; of a file without one, the end of the footer."""
    said = b"" if ref.source is not None else (footer.metadata or {}).get(PART_ID.encode(), b"")
    at = raw.find(said, raw.find(PART_ID.encode()) + len(PART_ID)) if said else -1
    mark = said if at >= 0 else raw[-TAIL:]
    return ref.bytes - len(raw) + (at if at >= 0 else len(raw) - len(mark)), bytes(mark)


def _check(footer: Footer, source: PartSource) -> None:
    ref = source.ref
    said = (footer.metadata or {}).get(PART_ID.encode())
    if said is not None and ref.source is None and said.decode("utf-8", "replace") not in source.names:
        raise corrupt_part(
            ref, f"was replaced: the file there is part {said.decode('utf-8', 'replace')}", "PART_REPLACED"
        )
    if footer.num_rows != ref.rows:
        raise corrupt_part(ref, f"has {footer.num_rows} rows instead of {ref.rows}")
    blocks = tuple(footer.row_group(i).num_rows for i in range(footer.num_row_groups))
    if (ref.blocks and blocks != ref.blocks) or sum(blocks) != ref.rows:
        raise corrupt_part(ref, "has other blocks than were committed")
