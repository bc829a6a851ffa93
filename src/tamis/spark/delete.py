"""DELETE whose filter Spark can hand over: the funnel decides what is read, executors read it, leaders only, and one commit says what is gone."""

from __future__ import annotations

import functools
import pickle
from typing import Any

from tamis.errors import TamisError
from tamis.expr import Expr, supported
from tamis.files import PartRef
from tamis.maintain.delete import delete_found, matching, rows_of
from tamis.maintain.result import Result
from tamis.read import ReadSpec
from tamis.scan import PartRefs
from tamis.spark.insert import predicate, switches
from tamis.spark.table import SparkTable
from tamis.state.deletions import bitmap, vector

LOCAL_PARTS = 4
"""So few parts are looked at here: a Spark job costs more."""


def can_delete(table: SparkTable, predicates: Any) -> bool:
    """Whether the filter is one that we know whole; any other DELETE is row changes for Spark."""
    try:
        return all(supported(c) for c in _conjuncts(table, predicates))
    except Exception:  # noqa: BLE001  # whatever cannot be translated is Spark's to run
        return False


def delete_where(table: SparkTable, predicates: Any, given: dict[str, str]) -> None:
    """Runs the DELETE. Raises our own errors, as a write does."""
    from pyspark.sql import SparkSession

    session = table.bridge.active_session() or SparkSession.active()
    options = switches(session, table.bridge, given, table.head.properties)
    try:
        conjuncts = _conjuncts(table, predicates)
        found = matching(table.store, table.snapshot, conjuncts, options)
        if found is None:
            table.result = Result(table.snapshot.version)
            return
        partial = found.parts.where(~found.parts.all_match)
        gone = rows_of(partial, found.spec) if len(partial) <= LOCAL_PARTS else _by_executors(session, partial, found.spec)
        table.result = delete_found(table.store, table.snapshot, conjuncts, options, found, gone)[1]
    except TamisError as error:
        table.failure = error
        raise


def _conjuncts(table: SparkTable, predicates: Any) -> tuple[Expr, ...]:
    return tuple(c for p in predicates for c in predicate(table, p))


def _by_executors(session: Any, parts: PartRefs, spec: ReadSpec) -> dict[str, Any]:
    context = session.sparkContext
    count = min(len(parts), max(context.defaultParallelism, len(parts) // 4))
    work = [pickle.dumps([parts[i] for i in range(at, len(parts), count)]) for at in range(count)]
    done = context.parallelize(work, count).map(functools.partial(_look, spec=spec)).collect()
    return {part: bitmap(rows, part) for found in done for part, rows in found.items()}


def _look(pickled: bytes, spec: ReadSpec) -> dict[str, bytes]:
    refs: list[PartRef] = pickle.loads(pickled)  # noqa: S301  # made by our own driver
    return {part: vector(rows) for part, rows in rows_of(refs, spec).items()}
