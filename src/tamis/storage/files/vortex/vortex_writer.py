"""Writes sealed Vortex files.

The library pulls batches from one iterator and writes to a path. It therefore runs in its own thread and is
fed block by block; the complete file is then copied to the store.
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

from tamis.core.types.arrow import from_arrow_schema
from tamis.errors import StoreUnavailable
from tamis.storage.files.file_seal import SealingSink, Summary
from tamis.storage.files.protocol import WriteOptions, WrittenFile
from tamis.storage.files.shredded_leaves import LEAVES
from tamis.storage.files.stored_values import as_stored, stored_schema
from tamis.storage.files.vortex.vortex_library import keep, vortex

_WAITING = 2
"""Blocks that may wait for the library."""
_COPY = 2**20
_LEAST = 0.2
"""Assumed minimum size of the file relative to Arrow's bytes.

Used while the library still buffers most of them.
"""


class VortexPartWriter:
    """One Vortex file. Void columns are not stored: they read as missing, which is NULL."""

    def __init__(self, target: Any, schema: pa.Schema, options: WriteOptions) -> None:
        vortex()
        self._sink, self._options = SealingSink(target), options
        self._summary = Summary(from_arrow_schema(schema))
        self._schema = stored_schema(schema, keep)
        self._kept = [at for at, f in enumerate(schema) if not pa.types.is_null(f.type)]
        self._folder = Path(tempfile.mkdtemp(prefix="tamis-vortex-"))
        self._feed = _Feed()
        self._error: BaseException | None = None
        self._fed = 0
        self._thread = threading.Thread(target=self._write, name="tamis-vortex", daemon=True)
        self._thread.start()

    @property
    def size(self) -> int:
        return max(self._path.stat().st_size if self._path.exists() else 0, int(self._fed * _LEAST))

    def write(self, batch: pa.RecordBatch) -> None:
        if not len(batch):
            return
        columns = [as_stored(batch.column(at), f.type) for at, f in zip(self._kept, self._schema, strict=True)]
        self._fed += batch.nbytes
        self._summary.add(batch)
        self._summary.end()
        if columns:
            self._feed.put(pa.RecordBatch.from_arrays(columns, schema=self._schema))
            self._check()

    def close(self, notes: Mapping[str, str] | None = None) -> WrittenFile:
        self._feed.end()
        self._thread.join()
        try:
            self._check()
            with self._path.open("rb") as file:
                while piece := file.read(_COPY):
                    self._sink.write(piece)
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)
        return self._sink.seal(self._summary, self._options, (), (notes or {}).get(LEAVES, ""))

    def abort(self) -> None:
        self._feed.end()
        self._thread.join()
        shutil.rmtree(self._folder, ignore_errors=True)
        self._sink.abort()

    @property
    def _path(self) -> Path:
        return self._folder / "part.vortex"

    def _write(self) -> None:
        schema = self._schema if len(self._schema) else pa.schema([pa.field("", pa.bool_())])
        try:
            vortex().io.write(pa.RecordBatchReader.from_batches(schema, iter(self._feed)), str(self._path))
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
