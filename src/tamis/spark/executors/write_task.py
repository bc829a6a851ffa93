"""Write tasks on executors, loaded in Spark's Python workers. Independent of the driver."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from itertools import compress
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from tamis.engine.operations.rows.overwrite import unmatched_rows
from tamis.engine.operations.rows.replace_filter import check_rows_match
from tamis.engine.operations.tracked_read import has_match
from tamis.engine.part_reader import ReadCounters
from tamis.engine.part_writer import WriteSpec, conform_batches, write_parts
from tamis.errors import InvalidInput, SchemaMismatch, TamisError

if TYPE_CHECKING:
    from tamis.core.expr import Expr

RESULT = "manifest binary"
"""Result schema of a write task: manifest rows as Arrow IPC.

A row is returned only after its part is durable.
"""


class WideRow(Exception):
    """A row is too wide for a job without a limit on the bytes of a batch."""


def write_rows(
    batches: Iterator[pa.RecordBatch], spec: WriteSpec, conjuncts: tuple[Expr, ...] = (), now_micros: int | None = None
) -> Iterator[pa.RecordBatch]:
    """Write one partition of a DataFrame, for ``mapInArrow``.

    Only the results of successful tasks are committed.

    A row that ``conjuncts`` do not match, that violates a constraint or gives a value that is computed, does not fail
    the task, because Spark would retry it. The task yields the error as its last result instead.
    """
    rows = (
        check_rows_match(conform_batches(batches, spec.schema), spec.schema, conjuncts, now_micros=now_micros)
        if conjuncts
        else batches
    )
    try:
        for manifest in write_parts(rows, spec):
            yield _result_batch(to_ipc(manifest))
    except (InvalidInput, SchemaMismatch, WideRow) as error:
        if not (conjuncts or spec.refuses or isinstance(error, WideRow)):
            raise
        yield _result_batch(refusal_result(error))


def _result_batch(data: bytes) -> pa.RecordBatch:
    return pa.record_batch([pa.array([data], pa.binary())], ["manifest"])


_REFUSED = b"refused"


def refusal_result(error: TamisError | WideRow) -> bytes:
    """Return what a task returns instead of a result, for an error that Spark must not try again."""
    return _REFUSED + pickle.dumps(error)


def returned_refusal(results: Iterable[bytes]) -> TamisError | WideRow | None:
    """The first error that a task returned instead of a result, or None. ``WideRow`` only if there is no other."""
    found = [pickle.loads(r.removeprefix(_REFUSED)) for r in results if is_refusal(r)]  # noqa: S301  # made by our tasks
    errors = [error for error in found if isinstance(error, TamisError | WideRow)]
    assert len(errors) == len(found)
    return min(errors, key=lambda error: isinstance(error, WideRow), default=None)


def is_refusal(result: bytes) -> bool:
    """Whether a task returned an error instead of a result."""
    return result.startswith(_REFUSED)


def call_with_names(
    batches: Iterator[pa.RecordBatch], names: list[str], function: Callable[[Iterator[pa.RecordBatch]], Any]
) -> Any:
    """Call ``function`` with the batches, their columns renamed to ``names``."""
    return function(batch.rename_columns(names) for batch in batches)


def check_row_width(
    batches: Iterator[pa.RecordBatch], names: list[str], function: Callable[[Iterator[pa.RecordBatch]], Any]
) -> Any:
    """Call ``function`` with the batches without their last column, which marks wide rows; the others get ``names``.

    Its iterator raises ``WideRow`` at the first marked row.
    """

    def narrow() -> Iterator[pa.RecordBatch]:
        for batch in batches:
            *columns, wide = batch.columns
            if pc.any(wide).as_py():
                raise WideRow
            yield pa.RecordBatch.from_arrays(columns, names=names)

    return function(narrow())


def rewrite(pickled: bytes) -> tuple[list[str], list[bytes]]:
    """Rewrite the rows of some parts that a filter does not match.

    Returns the ids of the parts without a row that matches, which are left alone, and manifests as IPC. The argument is
    made by ``pack_rewrite``.
    """
    parts, read, conjuncts, write = pickle.loads(pickled)  # noqa: S301  # made by our own driver
    matching = [has_match(ref, read, ReadCounters()) for ref in parts]
    rows = unmatched_rows(list(compress(parts, matching)), read, write.schema, conjuncts)
    manifests = [to_ipc(manifest) for manifest in write_parts(rows, write)]
    return [ref.part_id for ref, matches in zip(parts, matching, strict=True) if not matches], manifests


def pack_rewrite(parts: Iterable[Any], read: Any, conjuncts: tuple[Expr, ...], write: WriteSpec) -> bytes:
    """Pickle the argument of ``rewrite``."""
    return pickle.dumps((list(parts), read, conjuncts, write))


def to_ipc(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def from_ipc(data: bytes) -> pa.Table:
    return pa.ipc.open_stream(data).read_all()
