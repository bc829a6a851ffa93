"""DELETE by a filter that Spark can pass on.

The funnel selects the parts, executors read their leaders, and one commit removes the matching rows.
"""

from __future__ import annotations

import functools
import pickle
from collections.abc import Iterator
from typing import Any

from tamis.core.expr import Expr, is_supported
from tamis.engine.operations.result import Result
from tamis.engine.operations.rows.delete import delete_found, matching_parts, position_bitmap
from tamis.engine.operations.tracked_read import TrackedRead
from tamis.engine.part_reader import ReadCounters, ReadSpec, read_part
from tamis.engine.scan import PartRefs
from tamis.errors import TamisError
from tamis.sizes import SIZES
from tamis.spark.catalog.loaded_table import LoadedTable
from tamis.spark.executors.executor_function import executor_function
from tamis.spark.write.insert import translate_predicate
from tamis.spark.write.session_frames import write_switches
from tamis.spark.write.spark_job import spark_job
from tamis.storage.commit_log.deletion_vectors import read_bitmap, serialize_vector
from tamis.storage.files import PartRef

LOCAL_PARTS = SIZES.local_delete_parts
"""Maximum number of parts that the driver reads itself: a Spark job would cost more."""


def can_delete(table: LoadedTable, predicates: Any) -> bool:
    """Whether we can evaluate the whole filter. Spark runs any other DELETE as row changes."""
    try:
        return all(is_supported(c) for c in _conjuncts(table, predicates))
    except Exception:  # noqa: BLE001  # Spark runs what cannot be translated
        return False


def delete_where(table: LoadedTable, predicates: Any, given: dict[str, str]) -> None:
    """Run the DELETE. Raises our own errors, and stores them in ``table.failure``."""
    from pyspark.sql import SparkSession

    session = table.bridge.active_session() or SparkSession.active()
    options = write_switches(session, table.bridge, given, table.head)
    try:
        conjuncts = _conjuncts(table, predicates)
        found = matching_parts(table.store, table.snapshot, conjuncts, options)
        if found is None:
            table.result = Result(table.snapshot.version)
            return
        partial = found.parts.where(~found.parts.all_match)
        tracked = TrackedRead(found)
        if len(partial) <= LOCAL_PARTS:
            gone = {ref.part_id: position_bitmap(tracked.rows(ref)) for ref in partial}
        else:
            gone = _find_on_executors(session, partial, tracked)
        table.result = delete_found(table.store, table.snapshot, conjuncts, options, tracked, gone)[1]
    except TamisError as error:
        table.failure = error
        raise


def _conjuncts(table: LoadedTable, predicates: Any) -> tuple[Expr, ...]:
    return tuple(c for p in predicates for c in translate_predicate(table, p))


def _find_on_executors(session: Any, parts: PartRefs, tracked: TrackedRead) -> dict[str, Any]:
    context = session.sparkContext
    count = min(len(parts), max(context.defaultParallelism, len(parts) // 4))
    work = [pickle.dumps([parts[i] for i in range(at, len(parts), count)]) for at in range(count)]
    spec = tracked.found.spec
    with spark_job(session, "find rows to delete in", spec.url):
        look = executor_function(session, functools.partial(_find_rows, spec=spec))
        done = context.parallelize(work, count).flatMap(look).collect()
    for part, _, counters in done:
        tracked.record_cost(part, counters)
    return {part: read_bitmap(rows, part) for part, rows, _ in done if rows is not None}


def _find_rows(pickled: bytes, spec: ReadSpec) -> Iterator[tuple[str, bytes | None, ReadCounters]]:
    """Yield the id of each part, the deletion vector of its matching rows, and its read counters."""
    refs: list[PartRef] = pickle.loads(pickled)  # noqa: S301  # made by our own driver
    for ref in refs:
        counters = ReadCounters()
        rows = position_bitmap(read_part(ref, spec, counters))
        yield ref.part_id, serialize_vector(rows) if rows else None, counters
