"""Streams that are read more than once: small ones in memory, others in a memory-mapped temporary file."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

MEMORY = 128 * 2**20
"""Maximum size of a stream kept in memory, in bytes."""


def gather_batches(batches: Iterator[pa.RecordBatch], memory_bytes: int) -> tuple[list[pa.RecordBatch], bool]:
    """Collect batches until they exceed ``memory_bytes``; also return whether the stream has ended."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        held.append(batch)
        size += batch.nbytes
        if size > memory_bytes:
            return held, False
    return held, True


@contextmanager
def spool_rows(reader: pa.RecordBatchReader, memory_bytes: int = MEMORY) -> Iterator[pa.Table]:
    """Provide all rows of ``reader`` as a table, valid within the context."""
    held, ended = gather_batches(iter(reader), memory_bytes)
    if ended:
        yield pa.Table.from_batches(held, schema=reader.schema)
        return
    with tempfile.TemporaryDirectory(prefix="tamis-spool-") as folder:
        path = Path(folder) / "rows"
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, reader.schema) as writer:
            for batch in held:
                writer.write_batch(batch)
            held.clear()
            for batch in reader:
                writer.write_batch(batch)
        with pa.memory_map(str(path)) as source, pa.ipc.open_file(source) as found:
            yield found.read_all()
