"""Looks up the streaming query whose micro-batch this thread runs, in Spark's JVM."""

from __future__ import annotations

from typing import Any

from tamis.spark.jvm_bridge.adapter import Bridge


def running_query(owner: Bridge) -> Any:
    """Return the Java ``StreamExecution`` of this thread's query; None if it cannot be found."""
    from py4j.protocol import Py4JError

    query = local_property("sql.streaming.queryId")
    session = owner.active_session()
    if query is None or session is None:
        return None
    try:
        queries = session._jsparkSession.sharedState().activeStreamingQueries()
        return queries.get(owner.static("java.util.UUID", "fromString")(query))
    except Py4JError:
        return None


def running_run_id(owner: Bridge) -> str | None:
    """Return the id of the run of this thread's query, which each start gives anew; None if it cannot be found."""
    running = running_query(owner)
    return None if running is None else str(running.runId().toString())


def running_batch_millis(owner: Bridge, epoch: int) -> int | None:
    """Return when Spark made this thread's micro-batch, in milliseconds since 1970; None if Spark does not tell.

    None also if ``epoch`` is not its number: a caller may count by itself. The checkpoint keeps the time
    (``OffsetSeqMetadata``), so that a batch that is repeated has that of the first attempt.
    """
    from py4j.protocol import Py4JError

    running = running_query(owner)
    try:
        execution = None if running is None else running.lastExecution()
        if execution is None or execution.currentBatchId() != epoch:
            return None
        return int(execution.offsetSeqMetadata().batchTimestampMs())
    except Py4JError:
        return None


def local_property(name: str) -> str | None:
    """Return a local property of the thread that runs the micro-batch; None without a Spark context."""
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    return None if context is None else context.getLocalProperty(name)
