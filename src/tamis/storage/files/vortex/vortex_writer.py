"""Writes sealed Vortex files: one Vortex file per block, one after the other.

The library makes segments of some 100,000 rows in each file and takes no other number, so that a single row of a
single file per part would cost a large piece of every column. The seal holds a copy of each file's tail, so that a
reader needs no request to open one. The library writes to a path and runs in its own thread, fed block by block.
"""

from __future__ import annotations

import queue
import shutil
import tempfile
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from tamis.core.stats.columns.tally import Extremes
from tamis.core.types.arrow import from_arrow_schema
from tamis.errors import StoreUnavailable
from tamis.storage.files.file_seal import SealingSink, Summary
from tamis.storage.files.protocol import WriteOptions, WrittenFile
from tamis.storage.files.shredded_leaves import LEAVES
from tamis.storage.files.stored_values import as_stored, stored_schema
from tamis.storage.files.vortex.file_tail import tail_length
from tamis.storage.files.vortex.texts_as_bytes import with_malformed_as_bytes
from tamis.storage.files.vortex.vortex_library import import_vortex, vortex_storage_type

_WAITING = 2
"""Blocks that may wait for the library."""
_LEAST = 0.2
"""Assumed size of blocks that wait for the library, relative to Arrow's bytes."""


class VortexPartWriter:
    """One Vortex file. Void columns are not stored: they read as missing, which is NULL."""

    def __init__(self, target: Any, schema: pa.Schema, options: WriteOptions) -> None:
        import_vortex()
        self._sink, self._options = SealingSink(target), options
        self._summary = Summary(from_arrow_schema(schema))
        self._schema = stored_schema(schema, vortex_storage_type)
        self._kept = [at for at, f in enumerate(schema) if not pa.types.is_null(f.type)]
        self._folder = Path(tempfile.mkdtemp(prefix="tamis-vortex-"))
        self._feed = _Feed()
        self._error: BaseException | None = None
        self._fed = self._done = 0
        self._ends: list[int] = []
        self._tails: list[bytes] = []
        self._thread = threading.Thread(target=self._write, name="tamis-vortex", daemon=True)
        self._thread.start()

    measured = frozenset[int]()

    @property
    def size(self) -> int:
        return self._sink.size + int((self._fed - self._done) * _LEAST)

    def write(self, batch: pa.RecordBatch) -> None:
        if not len(batch):
            return
        columns = [as_stored(batch.column(at), f.type) for at, f in zip(self._kept, self._schema, strict=True)]
        self._summary.add(batch)
        self._summary.end()
        if columns:
            self._fed += batch.nbytes
            self._feed.put(with_malformed_as_bytes(columns, self._schema))
            self._check()

    def close(self, notes: Mapping[str, str] | None = None) -> WrittenFile:
        self._feed.end()
        self._thread.join()
        shutil.rmtree(self._folder, ignore_errors=True)
        self._check()
        leaves = (notes or {}).get(LEAVES, "")
        return self._sink.seal(self._summary, self._options, self._ends, leaves, self._tails)

    def extremes(self) -> Extremes:
        return {}

    def abort(self) -> None:
        self._feed.end()
        self._thread.join()
        shutil.rmtree(self._folder, ignore_errors=True)
        self._sink.abort()

    def _write(self) -> None:
        path = self._folder / "block.vortex"
        try:
            for batch in self._feed:
                import_vortex().io.write(pa.RecordBatchReader.from_batches(batch.schema, [batch]), str(path))
                file = path.read_bytes()
                self._sink.write(file)
                self._ends.append(self._sink.size)
                self._tails.append(file[len(file) - tail_length(file) :])
                self._done += batch.nbytes
        except BaseException as error:  # noqa: BLE001  # raised by the next write or close
            self._error = error
        finally:
            self._feed.gone()

    def _check(self) -> None:
        if self._error is not None:
            raise StoreUnavailable(
                f"The file of part {self._options.part_id} could not be written ({self._error}).",
                code="DISK_ERROR",
                name=self._options.part_id,
                remedy="Look at the free space of the temporary folder; or use the format parquet.",
            ) from self._error


class _Feed:
    """The queue of blocks for the library."""

    def __init__(self) -> None:
        self._queue: queue.Queue[pa.RecordBatch | None] = queue.Queue(_WAITING)
        self._over = threading.Event()

    def put(self, batch: pa.RecordBatch | None) -> None:
        """Wait for room in the queue, unless the consumer has ended."""
        while not self._over.is_set():
            try:
                self._queue.put(batch, timeout=0.1)
            except queue.Full:
                continue
            return

    def end(self) -> None:
        self.put(None)

    def gone(self) -> None:
        self._over.set()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        while (batch := self._queue.get()) is not None:
            yield batch
