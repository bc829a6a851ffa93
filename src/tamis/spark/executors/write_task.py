"""What executors run when rows are written. Loaded in Spark's Python workers; knows nothing of the driver."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tamis.engine.operations.rows.overwrite import survivors_of
from tamis.engine.operations.rows.replace_filter import within
from tamis.engine.part_writer import WriteSpec, conform, write_parts
from tamis.errors import InvalidInput

if TYPE_CHECKING:
    from tamis.core.expr import Expr

RESULT = "manifest binary"
"""The schema of what a writing task hands to the driver: manifest rows as Arrow IPC, nothing before the part is durable."""


def write_rows(
    batches: Iterator[pa.RecordBatch], spec: WriteSpec, conjuncts: tuple[Expr, ...] = (), now_micros: int | None = None
) -> Iterator[pa.RecordBatch]:
    """Writes one partition of a DataFrame; for ``mapInArrow``. Only what is yielded by a task that succeeds is ever committed.

    A row that ``conjuncts`` do not match is no failure of the task, which would be tried again: its error is what the task yields last.
    """
    rows = within(conform(batches, spec.schema), spec.schema, conjuncts, now_micros=now_micros) if conjuncts else batches
    try:
        for manifest in write_parts(rows, spec):
            yield _told(to_ipc(manifest))
    except InvalidInput as error:
        if not conjuncts:
            raise
        yield _told(_REFUSED + pickle.dumps(error))


def _told(data: bytes) -> pa.RecordBatch:
    return pa.record_batch([pa.array([data], pa.binary())], ["manifest"])


_REFUSED = b"refused"


def refusal(told: bytes) -> InvalidInput | None:
    """The error that a task told instead of a manifest."""
    if not told.startswith(_REFUSED):
        return None
    error = pickle.loads(told.removeprefix(_REFUSED))  # noqa: S301  # made by our own task
    assert isinstance(error, InvalidInput)
    return error


def renamed(batches: Iterator[pa.RecordBatch], names: list[str], function: Callable[[Iterator[pa.RecordBatch]], Any]) -> Any:
    """What ``function`` makes of the batches with their columns under ``names``."""
    return function(batch.rename_columns(names) for batch in batches)


def rewrite(pickled: bytes) -> list[bytes]:
    """Writes anew the rows of some parts that a filter does not match: ``(refs, read spec, conjuncts, write spec)``. Manifests as IPC."""
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
