"""Sealed data files: checksums and statistics appended to a file, so that every byte can be verified.

Vortex and ORC have no checksums, no key-value notes and no statistics that Tamis's reader could use. A seal
is therefore appended to the file proper: the part id, a CRC-32 of every ``CHUNK`` bytes, row counts and
statistics of each block, and notes, then its length and a magic number. One request for the end of the file
fetches the seal and the file's own footer.

Invariant: bytes whose checksum differs from the sealed one never reach a decoder.
"""

from __future__ import annotations

import io
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.core.stats import Collector
from tamis.core.types import Schema
from tamis.core.types.bounded_decoding import MOST_ROWS, bounded_integer, read_stream, unpacked_zstd
from tamis.storage.files.checksummed_file import ChecksumSink
from tamis.storage.files.protocol import WriteOptions, WrittenFile

CHUNK = 8 * 2**10
"""Bytes per checksum; fetches are rounded to this."""
MAGIC = b"TMSEAL01"
MOST_SEAL = 2**30
"""Largest unpacked seal in bytes; for a file of a terabyte, the checksums are half of that."""
_ZSTD = 3


@dataclass(frozen=True, slots=True)
class Seal:
    """The data appended to a sealed file.

    ``size`` is the size of the file proper in bytes. ``spans`` are the ends of the blocks in it if blocks are
    contiguous, else empty. ``tails`` are copies of the ends of the files, one per block, of which the file proper
    is made; empty if it is one file.
    """

    part_id: str
    size: int
    blocks: tuple[int, ...]
    spans: tuple[int, ...]
    weights: Mapping[int, int]
    """Bytes of each top-level column, by id, as Arrow data; used to estimate its share of the file."""
    crcs: np.ndarray[Any, np.dtype[np.uint32]] = field(repr=False)
    statistics: pa.Table = field(repr=False)
    leaves: str = ""
    """The document paths that the file stores as leaves (``files.shredded_leaves``)."""
    tails: tuple[bytes, ...] = field(default=(), repr=False)
    layout: bytes = field(default=b"", repr=False)
    """Where a format's reader finds what is in the file, in a form of its own; empty if it reads that in the file."""

    def pack(self) -> bytes:
        head = json.dumps(
            {
                "part": self.part_id,
                "size": self.size,
                "chunk": CHUNK,
                "blocks": self.blocks,
                "spans": self.spans,
                "weights": {str(i): n for i, n in self.weights.items()},
                **({"leaves": self.leaves} if self.leaves else {}),
                **({"tails": [len(tail) for tail in self.tails]} if self.tails else {}),
                **({"layout": len(self.layout)} if self.layout else {}),
            }
        ).encode()
        stream = io.BytesIO()
        with pa.ipc.new_stream(stream, self.statistics.schema) as writer:
            writer.write_table(self.statistics)
        checks = self.crcs.astype("<u4").tobytes()
        body = b"".join((len(head).to_bytes(4, "little"), head, checks, *self.tails, self.layout, stream.getvalue()))
        packed = pa.Codec("zstd", _ZSTD).compress(body, asbytes=True)
        return bytes(packed) + len(body).to_bytes(4, "little") + len(packed).to_bytes(4, "little") + MAGIC

    @staticmethod
    def unpack(raw: bytes) -> Seal:
        """Decode the output of ``pack``.

        Raises ``ValueError``, ``KeyError`` or ``pa.ArrowException`` if ``raw`` is not a seal.
        """
        length = sealed_length(raw)
        if length is None or length > len(raw):
            raise ValueError("no seal")
        packed = raw[len(raw) - length : -TAIL]
        body = unpacked_zstd(packed, int.from_bytes(raw[-TAIL : -TAIL + 4], "little"), MOST_SEAL)
        start = 4 + int.from_bytes(body[:4], "little")
        head = json.loads(body[4:start])
        if head["chunk"] != CHUNK:
            raise ValueError(f"checksums of {head['chunk']} bytes")
        count = -(-bounded_integer(head["size"], CHUNK * len(body), "the size of the file") // CHUNK)
        crcs = np.frombuffer(body, "<u4", count, start)
        tails, at = list[bytes](), start + 4 * count
        for size in head.get("tails", ()):
            tails.append(body[at : at + bounded_integer(size, len(body), "the size of a tail")])
            at += size
        if len(tails) not in {0, len(head["blocks"])}:
            raise ValueError(f"{len(tails)} tails for {len(head['blocks'])} blocks")
        layout = body[at : at + bounded_integer(head.get("layout", 0), len(body) - at, "the size of a layout")]
        statistics = read_stream(body[at + len(layout) :])
        weights = {int(i): int(n) for i, n in head["weights"].items()}
        if not isinstance(head["part"], str):
            raise TypeError("the part has no name")
        return Seal(
            head["part"],
            head["size"],
            tuple(bounded_integer(rows, MOST_ROWS, "the number of rows of a block") for rows in head["blocks"]),
            tuple(head["spans"]),
            weights,
            crcs,
            statistics,
            str(head.get("leaves", "")),
            tuple(tails),
            layout,
        )


TAIL = 8 + len(MAGIC)


def sealed_length(tail: bytes) -> int | None:
    """Return the length of the seal at the end of a file, or None if there is none."""
    if len(tail) < TAIL or tail[-len(MAGIC) :] != MAGIC:
        return None
    return int.from_bytes(tail[-TAIL + 4 : -len(MAGIC)], "little") + TAIL


class SealingSink:
    """The target of a format's writer: forwards everything to ``target`` and checksums it by chunk."""

    def __init__(self, target: Any) -> None:
        self._sink = ChecksumSink(target)
        self._crcs: list[int] = []
        self._crc = self._filled = 0
        self.closed = False

    @property
    def size(self) -> int:
        return self._sink.size

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        self._sink.write(view)
        size = len(view)
        while view:
            part = view[: CHUNK - self._filled]
            self._crc, self._filled = zlib.crc32(part, self._crc), self._filled + len(part)
            if self._filled == CHUNK:
                self._crcs.append(self._crc)
                self._crc = self._filled = 0
            view = view[len(part) :]
        return size

    def tell(self) -> int:
        return self._sink.size

    def flush(self) -> None:
        """Do nothing: written data is not visible before ``seal``."""

    def close(self) -> None:
        """Only mark the file closed: libraries close it on errors as well, so ``seal`` makes it visible."""
        self.closed = True

    def seal(
        self,
        summary: Summary,
        options: WriteOptions,
        spans: Sequence[int],
        leaves: str = "",
        tails: Sequence[bytes] = (),
        layout: bytes = b"",
    ) -> WrittenFile:
        """Write the seal and make the file visible."""
        crcs = [*self._crcs, self._crc] if self._filled else self._crcs
        found = Seal(
            options.part_id,
            self.size,
            tuple(summary.blocks),
            tuple(spans),
            summary.weights,
            np.array(crcs, dtype=np.uint32),
            summary.statistics(),
            leaves,
            tuple(tails),
            layout,
        )
        packed = found.pack()
        self._sink.write(packed)
        self._sink.commit()
        return WrittenFile(self._sink.size, self._sink.checksum, zlib.crc32(packed), found.blocks)

    def abort(self) -> None:
        self._sink.abort()


class Summary:
    """The rows, widths and statistics of the blocks written so far."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self.blocks: list[int] = []
        self.weights: dict[int, int] = {f.id: 0 for f in schema}
        self._rows: list[pa.Table] = []
        self._open: Collector | None = None
        self._count = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Add rows to the open block; the columns are those of the schema, in order."""
        self._open = self._open or Collector(self._schema)
        self._open.update(batch)
        self._count += len(batch)
        for f, column in zip(self._schema, batch.columns, strict=True):
            self.weights[f.id] += column.nbytes

    def end(self) -> None:
        """Complete the open block."""
        if self._open is not None:
            self._rows.append(self._open.finish())
            self.blocks.append(self._count)
        self._open, self._count = None, 0

    def statistics(self) -> pa.Table:
        table = pa.concat_tables(self._rows, promote_options="default") if self._rows else pa.table({})
        return table.append_column("rows", pa.array(self.blocks, pa.int64()))
