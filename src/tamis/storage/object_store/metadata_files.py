"""Immutable, checksummed tables in storage, read by column.

A small table is stored inside the object that names it (``Inline``: zstd over Arrow IPC, in base64). A larger
one is a file of its own (``Stored``, see ``checked_parquet``), from which two requests read any columns.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, Protocol

import pyarrow as pa

from tamis.core.types.bounded_decoding import MOST_ROWS, MOST_UNPACKED, bounded_integer, read_stream, unpacked_zstd
from tamis.errors import CorruptData, NotFound, TamisError
from tamis.sizes import SIZES
from tamis.storage.object_store import checked_parquet
from tamis.storage.object_store.object_cache import CACHE
from tamis.storage.object_store.relative_paths import check_inside
from tamis.storage.object_store.store import Store

INLINE_BYTES = SIZES.table_inline_bytes
"""Largest inline table in compressed bytes.

An object store returns that much in about the time of an empty response. Of a table of more than
``INLINE_COLUMNS`` columns it is the limit for as many columns: the end of a file takes more bytes than that, and all of
them to read any column.
"""

INLINE_COLUMNS = 256
MOST_INLINE = 2**20
"""Limit on the compressed bytes of an inline table, however many columns it has."""

MOST_FILE = 16 * 2**30
"""Largest table file in bytes; reading makes an image of it, whose untouched pages cost nothing."""

Chooser = Callable[[Sequence[str]], Sequence[str]]
"""Given the names of all of a table's columns, returns the wanted ones."""


class Columns(Protocol):
    """A table whose columns are read on demand."""

    @property
    def rows(self) -> int: ...

    @property
    def nbytes(self) -> int:
        """Bytes that the whole table takes in storage."""
        ...

    def schema(self, store: Store) -> pa.Schema:
        """Return the names and Arrow types of all columns. Raises ``CorruptData`` naming the object."""
        ...

    def read(self, store: Store, choose: Chooser, *, remember: bool = True) -> pa.Table:
        """Read the chosen columns of all rows; raises as ``schema`` does.

        The columns stay in the cache, within its limit, unless ``remember`` is false.
        """
        ...

    def to_json(self) -> dict[str, Any]: ...


class Inline:
    """A table inside another object; ``size`` is the size of its Arrow IPC stream before compression."""

    def __init__(self, rows: int, size: int, packed: bytes, table: pa.Table | None = None) -> None:
        self.rows, self.size, self.packed = rows, size, packed
        if table is not None:
            self.table = table

    @property
    def nbytes(self) -> int:
        return len(self.packed)

    @cached_property
    def table(self) -> pa.Table:
        with metadata_decoding_errors("inline table"):
            table = read_stream(unpacked_zstd(self.packed, self.size))
            return _of_length(_without_duplicates(table), self.rows)

    def schema(self, store: Store) -> pa.Schema:  # noqa: ARG002  # one interface for both kinds
        return self.table.schema

    def read(self, store: Store, choose: Chooser, *, remember: bool = True) -> pa.Table:  # noqa: ARG002  # as above
        return self.table.select(list(choose(self.table.column_names)))

    def to_json(self) -> dict[str, Any]:
        return {"rows": self.rows, "size": self.size, "zstd": base64.b64encode(self.packed).decode()}


@dataclass(frozen=True, slots=True)
class Stored:
    """A table in the file ``path`` of ``nbytes`` bytes; ``crc32`` covers its last ``footer`` bytes."""

    rows: int
    path: str
    nbytes: int
    footer: int
    crc32: int

    def schema(self, store: Store) -> pa.Schema:
        return self._end(store).schema

    def read(self, store: Store, choose: Chooser, *, remember: bool = True) -> pa.Table:
        end = self._end(store)
        wanted = list(choose(end.names))
        found = {name: CACHE.get((store.url, self.path, name)) for name in wanted}
        missing = [name for name, column in found.items() if column is None]
        if missing:
            table = self._fetch(store, end, missing)
            for name, column in zip(missing, table.columns, strict=True):
                found[name] = column
                if remember:
                    CACHE.put((store.url, self.path, name), column, column.nbytes + 256)
        return pa.table([found[name] for name in wanted], names=wanted)

    def to_json(self) -> dict[str, Any]:
        return {
            "rows": self.rows,
            "path": self.path,
            "bytes": self.nbytes,
            "footer": self.footer,
            "crc32": f"{self.crc32:08x}",
        }

    def _end(self, store: Store) -> checked_parquet.Footer:
        """Return the footer; its bytes are cached, since they take a tenth of the decoded size."""
        key = (store.url, self.path, self.crc32)
        tail: bytes | None = CACHE.get(key)
        if tail is None:
            tail = self._bytes(store, [(self.nbytes - self.footer, self.footer, self.crc32)])[0]
            CACHE.put(key, tail, len(tail))
        with metadata_decoding_errors(store.name(self.path)):
            return checked_parquet.footer(tail)

    def _fetch(self, store: Store, end: checked_parquet.Footer, names: Sequence[str]) -> pa.Table:
        places = [(offset, length, crc) for name in names for offset, length, crc in end.chunks[name]]
        chunks = dict(zip((offset for offset, _, _ in places), self._bytes(store, places), strict=True))
        with metadata_decoding_errors(store.name(self.path)):
            if end.metadata.num_rows != self.rows:
                raise ValueError(f"{end.metadata.num_rows} rows instead of {self.rows}")
            table = checked_parquet.decode(end, self.nbytes, names, chunks)
            return _of_length(_without_duplicates(table), self.rows).select(list(names))

    def _bytes(self, store: Store, places: Sequence[tuple[int, int, int]]) -> list[bytes]:
        """Read the bytes at each (offset, length, CRC-32) and check them."""
        check_inside(self.path, store.url)
        name = store.name(self.path)
        try:
            chunks = store.get_ranges(self.path, [(offset, length) for offset, length, _ in places])
        except NotFound as error:
            raise CorruptData(
                f"{name} is missing.", code="MISSING_OBJECT", name=name, remedy="Restore it from a backup."
            ) from error
        if any(zlib.crc32(chunk) != crc for chunk, (_, _, crc) in zip(chunks, places, strict=True)):
            raise CorruptData(f"{name} is corrupt.", code="BAD_CHECKSUM", name=name, remedy="Restore it from a backup.")
        return chunks


def _without_duplicates(table: pa.Table) -> pa.Table:
    """Return ``table`` with the last of the columns that have one name.

    ``analyze`` once wrote manifests that have two.
    """
    last = {name: at for at, name in enumerate(table.column_names)}
    return table if len(last) == table.num_columns else table.select(sorted(last.values()))


def columns_from_json(value: dict[str, Any]) -> Columns:
    """Decode the output of ``Columns.to_json``."""
    if "zstd" in value:
        size = bounded_integer(value["size"], MOST_UNPACKED, "the unpacked size")
        return Inline(
            bounded_integer(value["rows"], MOST_ROWS, "the number of rows"),
            size,
            base64.b64decode(value["zstd"], validate=True),
        )
    size = bounded_integer(value["bytes"], MOST_FILE, "the size of a file")
    footer = bounded_integer(value["footer"], size, "the size of a footer")
    return Stored(
        bounded_integer(value["rows"], MOST_ROWS, "the number of rows"),
        value["path"],
        size,
        footer,
        int(value["crc32"], 16),
    )


def inline_table(table: pa.Table) -> Inline:
    """Encode ``table`` as one stored inside another object."""
    table = table.combine_chunks()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    raw = sink.getvalue()
    return Inline(len(table), raw.size, pa.compress(raw, codec="zstd", asbytes=True), table)


def store_rows(
    store: Store, tables: Iterable[pa.Table], schema: pa.Schema, path: str, *, limit: int = INLINE_BYTES
) -> Columns:
    """Store the rows of ``tables``, all with ``schema``; return the inline table or the file.

    The table is inline if that takes at most ``limit`` bytes for every ``INLINE_COLUMNS`` columns, else it is the
    file ``path``, which is written before this returns. For a file, memory holds one row group and the compressed
    bytes.
    """
    pieces = iter(tables)
    held: list[pa.Table] = []
    limit = max(limit, min(MOST_INLINE, limit * len(schema) // INLINE_COLUMNS))
    room = 16 * limit  # bounds and ids do not compress better than this factor
    for piece in pieces:
        held.append(piece)
        room -= sum(map(pa.ipc.get_record_batch_size, piece.to_batches()))  # ``nbytes`` takes ten times as long
        if room < 0:
            break
    if room >= 0:
        small = inline_table(held[0] if len(held) == 1 else pa.concat_tables(held or [schema.empty_table()]))
        if small.nbytes <= limit and small.size <= MOST_UNPACKED:
            return small
    encoder = checked_parquet.Encoder(schema)
    for piece in chain(held, pieces):
        encoder.add(piece)
    data, footer, rows = encoder.finish()
    store.put(path, data)
    return Stored(rows, path, len(data), footer, zlib.crc32(data[-footer:]))


@contextmanager
def metadata_decoding_errors(name: str) -> Iterator[None]:
    """Convert decoding errors into ``CorruptData`` naming the object."""
    try:
        yield
    except TamisError:
        raise
    except (pa.ArrowException, OSError, LookupError, TypeError, ValueError, OverflowError) as error:
        raise CorruptData(
            f"{name} cannot be decoded: {error}",
            code="BAD_CONTENT",
            name=name,
            remedy="Restore it from a backup, or upgrade tamis.",
        ) from error


def _of_length(table: pa.Table, rows: int) -> pa.Table:
    if len(table) != rows:
        raise ValueError(f"{len(table)} rows instead of {rows}")
    return table
