"""Collects the statistics of a block in a thread of its own while the block is encoded.

Most of both is done by libraries that let go of the interpreter's lock.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import pyarrow as pa

from tamis.sizes import SIZES

LEAST_BYTES = SIZES.collecting_thread_bytes
"""Arrow bytes of a block from which handing it to a thread pays."""


class CollectingThread:
    """Calls ``update`` with blocks, one after the other and in order.

    A large block is handed to a thread if Arrow may use more than one (``pyarrow.cpu_count``), as it may not in Spark's
    workers. An error of ``update`` is raised by the next call.
    """

    def __init__(self, update: Callable[[pa.RecordBatch], None]) -> None:
        self._update = update
        self._pool: ThreadPoolExecutor | None = None
        self._running: Future[None] | None = None

    def add(self, block: pa.RecordBatch) -> None:
        """Begin to collect the statistics of ``block``."""
        self.wait()
        if pa.cpu_count() < 2 or block.nbytes < LEAST_BYTES:
            self._update(block)
            return
        self._pool = self._pool or ThreadPoolExecutor(1, thread_name_prefix="tamis-statistics")
        self._running = self._pool.submit(self._update, block)

    def wait(self) -> None:
        """Wait until all blocks are collected."""
        running, self._running = self._running, None
        if running is not None:
            running.result()

    def close(self) -> None:
        """End the thread."""
        if self._pool is not None:
            self._pool.shutdown()
