"""Reads the footers of a source's Parquet files: their schemas, rows and statistics. No data page is read."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq

from tamis.errors import CorruptData, InvalidInput, NotFound
from tamis.storage.object_store import Store
from tamis.storage.object_store.parallel_requests import gather_requests
from tamis.storage.object_store.store import Entry

TAIL = 32 * 2**10
"""Bytes fetched from the end of a file, usually enough to contain the footer."""
SIGNATURE = 28
"""Bytes that follow the metadata in a footer that is signed: one in plain text, of a file with encrypted columns."""


@dataclass(frozen=True, slots=True)
class SourceFooter:
    """The footer of one file."""

    path: str
    metadata: pq.FileMetaData = field(repr=False)
    checksum: int
    """CRC-32 of the footer, its length and the magic."""
    schema: pa.Schema = field(repr=False)
    """The file's columns as Arrow decodes them, with field ids."""

    @property
    def blocks(self) -> list[int]:
        """Rows of each row group."""
        return [self.metadata.row_group(i).num_rows for i in range(self.metadata.num_row_groups)]


def read_footers(store: Store, entries: Iterable[Entry]) -> list[SourceFooter]:
    """Return the footers of files of a source, in order, read in parallel.

    Raises ``InvalidInput`` for a file that is no Parquet file (``NOT_PARQUET``) or encrypted (``ENCRYPTED_FILE``),
    ``CorruptData`` (``SOURCE_CHANGED``) for one that is gone or was cut since it was listed.
    """
    return gather_requests(store, lambda entry: _read(store, entry), entries)


def _read(store: Store, entry: Entry) -> SourceFooter:
    try:
        tail = _tail(store, entry, min(TAIL, entry.size))
        length = int.from_bytes(tail[-8:-4], "little") + 8 if len(tail) >= 12 else 0
        if tail[-4:] == b"PARE":
            raise _encrypted(entry.path)
        if tail[-4:] != b"PAR1" or not 12 <= length <= entry.size:
            raise InvalidInput(
                f"The file {entry.path} is not a Parquet file.",
                code="NOT_PARQUET",
                name=entry.path,
                remedy="Adopt a folder that holds nothing but Parquet files; hide others by a name that begins with _.",
            )
        if length > len(tail):
            tail = _tail(store, entry, length)
    except NotFound as error:
        raise source_changed_error(entry.path, "is gone") from error
    except CorruptData as error:
        raise source_changed_error(entry.path, "is not as it was listed") from error
    try:
        metadata = pq.read_metadata(pa.BufferReader(tail))
        if length - 8 - metadata.serialized_size == SIGNATURE:  # Arrow ends the process where it needs a key
            raise _encrypted(entry.path)
        schema = metadata.schema.to_arrow_schema()
    except (pa.ArrowException, OSError) as error:
        if "encrypt" in str(error).lower() or "crypt" in str(error).lower():
            raise _encrypted(entry.path) from error
        raise InvalidInput(
            f"The file {entry.path} has a footer that cannot be read: {error}",
            code="NOT_PARQUET",
            name=entry.path,
            remedy="Repair or remove the file.",
        ) from error
    return SourceFooter(entry.path, metadata, zlib.crc32(tail[len(tail) - length :]), schema)


def _tail(store: Store, entry: Entry, length: int) -> bytes:
    return bytes(store.views(entry.path, [(entry.size - length, length)], etag=entry.etag)[0])


def _encrypted(path: str) -> InvalidInput:
    return InvalidInput(
        f"The file {path} is encrypted.",
        code="ENCRYPTED_FILE",
        name=path,
        remedy="Read it with its keys, and append the rows; Tamis reads no encrypted Parquet.",
    )


def source_changed_error(path: str, how: str) -> CorruptData:
    """Return the error for a source that was written while it was adopted."""
    return CorruptData(
        f"The file {path} {how}: the source was changed while it was adopted.",
        code="SOURCE_CHANGED",
        name=path,
        remedy="Nothing was written. Adopt it again when no writer is at work.",
    )


def check_unchanged(store: Store, entries: Sequence[Entry]) -> None:
    """Raise ``CorruptData`` (``SOURCE_CHANGED``) naming the first of these files that is no longer as it was listed."""
    now = {entry.path: entry for entry in store.list()}
    for entry in entries:
        if entry.path not in now:
            raise source_changed_error(entry.path, "is gone")
        if now[entry.path] != entry:
            raise source_changed_error(entry.path, "was written")
