"""What executors run when rows are written. Loaded in Spark's Python workers; knows nothing of the driver."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tamis.exec import WriteSpec, write_parts

if TYPE_CHECKING:
    from tamis.expr import Expr

RESULT = "manifest binary"
"""The schema of what a writing task hands to the driver: manifest rows as Arrow IPC, nothing before the part is durable."""


def write_rows(batches: Iterator[pa.RecordBatch], spec: WriteSpec) -> Iterator[pa.RecordBatch]:
    """Writes one partition of a DataFrame; for ``mapInArrow``. Only what is yielded by a task that succeeds is ever committed."""
    for manifest in write_parts(batches, spec):
        yield pa.record_batch([pa.array([to_ipc(manifest)], pa.binary())], ["manifest"])


def renamed(batches: Iterator[pa.RecordBatch], names: list[str], function: Callable[[Iterator[pa.RecordBatch]], Any]) -> Any:
    """What ``function`` makes of the batches with their columns under ``names``."""
    return function(batch.rename_columns(names) for batch in batches)


def rewrite(pickled: bytes) -> list[bytes]:
    """Writes anew the rows of some parts that a filter does not match: ``(refs, read spec, conjuncts, write spec)``. Manifests as IPC."""
    from tamis.maintain.overwrite import survivors_of

    parts, read, conjuncts, write = pickle.loads(pickled)  # noqa: S301  # made by our own driver
    rows = survivors_of(parts, read, write.schema, conjuncts)
    return [to_ipc(manifest) for manifest in write_parts(rows, write)]


def rewriting(parts: Iterable[Any], read: Any, conjuncts: tuple[Expr, ...], write: WriteSpec) -> bytes:
    """The argument of ``rewrite``."""
    return pickle.dumps((list(parts), read, conjuncts, write))


def to_ipc(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def from_ipc(data: bytes) -> pa.Table:
    return pa.ipc.open_stream(data).read_all()
