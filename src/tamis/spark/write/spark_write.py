"""Writing by Spark: rows are arranged by the clustering columns, written in one pass, and committed.

Invariant: exactly the results of the tasks that Spark counts as successful become visible, all or nothing. A
task that is retried, or run twice by speculation, leaves a file that no commit references.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from tamis.core.expr import Expr, columns, to_sql
from tamis.core.types import Schema
from tamis.engine.operations.layout.index_operations import commit_indexed
from tamis.engine.operations.result import Result, written
from tamis.engine.operations.rows.append import discard, write_spec
from tamis.engine.operations.rows.overwrite import find, snapshot_parts
from tamis.engine.scan import Options
from tamis.engine.secondary_index import run_here
from tamis.errors import InvalidInput, SchemaMismatch
from tamis.spark.executors import write_task as task
from tamis.spark.jvm_bridge.spark_errors import offending_column
from tamis.spark.write.spark_index import by_spark
from tamis.storage.commit_log import Head, Operation, Proposal, ReadSet, Snapshot
from tamis.storage.object_store import Store
from tamis.world import new_id, world

MOST_PARTITIONS = 4_096
"""Maximum partitions of a shuffle without adaptive execution.

Spark's size estimate for a join may be wrong by any factor.
"""


def write_rows(df: Any, store: Store, head: Head, options: Options, conjuncts: tuple[Expr, ...] | None = None) -> list[pa.Table]:
    """Write the rows of ``df`` (columns as in the table) as parts by a Spark job; return their manifest rows.

    Commits nothing. Raises ``InvalidInput`` (``OUTSIDE_FILTER``) for a row that ``conjuncts`` do not match if
    ``options.write_outside`` is ``refuse``.
    """
    assert head.schema is not None
    spec = write_spec(store, head, head.schema, options)
    asked = conjuncts if conjuncts and options.write_outside == "refuse" else ()
    run = functools.partial(task.write_rows, spec=spec, conjuncts=asked, now_micros=world().now_micros())
    told = [bytes(row[0]) for row in map_rows(arranged(df, head, options), run, task.RESULT).collect()]
    refused = next((error for data in told if (error := task.refusal(data)) is not None), None)
    manifests = [task.from_ipc(data) for data in told if task.refusal(data) is None]
    if refused is not None:
        discard(store, manifests)
        raise refused
    return manifests


def map_rows(df: Any, function: Callable[[Any], Any], result: str) -> Any:
    """``df.mapInArrow(function, result)``, also for column names with dots or backquotes.

    PySpark takes a dot in a name for a path to a field, so such columns are renamed on the way.
    """
    if not any("." in name or "`" in name for name in df.columns):
        return df.mapInArrow(function, result)
    return df.toDF(*(f"c{i}" for i in range(len(df.columns)))).mapInArrow(
        functools.partial(task.renamed, names=df.columns, function=function), result
    )


def arranged(df: Any, head: Head, options: Options) -> Any:
    """``df`` range-partitioned and sorted by the clustering columns; unchanged if there are none."""
    from pyspark.sql import functions as f

    if not head.cluster_by or head.schema is None:
        return df
    keys = [f.col(".".join(f"`{name.replace('`', '``')}`" for name in _names(head.schema, ids))) for ids in head.cluster_by]
    if df.sparkSession.conf.get("spark.sql.adaptive.enabled") == "true":
        # Without a number, so that Spark coalesces small partitions by their real sizes.
        ranged = df.repartitionByRange(*keys)
    else:
        ranged = df.repartitionByRange(_partitions(df, options.write_part_bytes), *keys)
    return ranged.sortWithinPartitions(*keys)


def commit_rows(
    store: Store,
    snapshot: Snapshot,
    head: Head,
    manifests: Sequence[pa.Table],
    parameters: dict[str, Any],
    stream: tuple[str, int] | None = None,
    *,
    spark: Any = None,
    options: Options | None = None,
) -> Result:
    """Commit written parts as one segment. Commits nothing without parts, stream epoch or new head."""
    rows, parts, size = written(list(manifests))
    if not parts and head == snapshot.head and stream is None:
        return Result(snapshot.version)
    result = Result(-1, rows_inserted=rows, parts_added=parts, bytes_written=size)
    operation = Operation("append", parameters, stream=stream)
    proposal = Proposal(operation, snapshot.version, None, True, None, manifests)
    return _commit(store, snapshot, head, result, proposal, spark, options)


def overwrite_rows(
    spark: Any,
    store: Store,
    snapshot: Snapshot,
    head: Head,
    manifests: list[pa.Table],
    conjuncts: tuple[Expr, ...] | None,
    options: Options,
) -> Result:
    """Replace the rows that match ``conjuncts`` (None: all) by written parts, in one commit.

    Parts that match completely are removed by metadata. Parts that match partially are read on the executors,
    which rewrite their other rows. A row for which the filter is NULL stays.
    """
    assert head.schema is not None
    inserted, _, _ = written(manifests)
    if conjuncts is None:
        doomed, survivors, rewritten = snapshot_parts(snapshot), [], 0
    else:
        found = find(store, snapshot, head.schema, conjuncts, options)
        doomed, partial = found.parts, found.parts.where(~found.parts.all_match)
        survivors, rewritten = _rewrite(spark, store, head, partial, found.spec, conjuncts, options), len(partial)
    kept, _, _ = written(survivors)
    _, parts, size = written([*manifests, *survivors])
    gone = int(doomed.live_rows.sum()) - kept
    if not (inserted or gone) and head == snapshot.head:
        discard(store, survivors)
        return Result(snapshot.version)
    result = Result(
        -1,
        rows_inserted=inserted,
        rows_deleted=gone,
        parts_added=parts,
        parts_removed=len(doomed),
        parts_rewritten=rewritten,
        bytes_written=size,
    )
    text = None if conjuncts is None else " AND ".join(f"({to_sql(c)})" for c in conjuncts)
    reads = ReadSet(text, None if conjuncts is None else tuple(path for c in conjuncts for path in columns(c)))
    proposal = Proposal(
        operation=Operation("overwrite", {} if text is None else {"filter": text}),
        read_version=snapshot.version,
        reads=reads,
        conjuncts=conjuncts,
        blind_append=False,
        head=None,
        add=[*manifests, *survivors],
        remove_parts=() if conjuncts is None else doomed.table["part_id"].to_pylist(),
        replace_all=conjuncts is None,
    )
    return _commit(store, snapshot, head, result, proposal, spark, options)


def _commit(
    store: Store, snapshot: Snapshot, head: Head, result: Result, proposal: Proposal, spark: Any, options: Options | None
) -> Result:
    """Build index segments for the added parts on the executors, then commit both together."""
    operation = replace(proposal.operation, metrics=result.metrics())
    changed = head if head != snapshot.head else None
    proposal = replace(proposal, operation=operation, head=changed, operation_id=new_id(), table_id=snapshot.head.table_id)
    after = commit_indexed(store, head, proposal, options.index_build if options else "", run_here if spark is None else by_spark(spark))
    return replace(result, version=after.version)


def _rewrite(
    spark: Any, store: Store, head: Head, parts: Sequence[Any], read: Any, conjuncts: tuple[Expr, ...], options: Options
) -> list[pa.Table]:
    if not len(parts):
        return []
    assert head.schema is not None
    spec = write_spec(store, head, head.schema, options)
    context = spark.sparkContext
    count = min(len(parts), max(context.defaultParallelism, len(parts) // 4))
    work = [task.rewriting([parts[i] for i in range(at, len(parts), count)], read, conjuncts, spec) for at in range(count)]
    return [task.from_ipc(m) for done in context.parallelize(work, count).map(task.rewrite).collect() for m in done]


def _partitions(df: Any, part_bytes: int) -> int:
    """Number of range partitions for a shuffle without adaptive execution.

    One per part of the target size, but enough to keep all cores busy.
    """
    size = int(str(df._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))
    cores: int = df.sparkSession.sparkContext.defaultParallelism
    return max(1, min(-(-size // part_bytes), MOST_PARTITIONS), min(cores, -(-size // 2**23)))


def _names(schema: Schema, ids: tuple[int, ...]) -> list[str]:
    return [schema.by_id[i].name for i in ids]


# --- a table opened by path (tamis.open): the same statements as SQL, with Spark's checks and casts ---


def append(table: Any, df: Any, operation: Operation | None = None, *, merge_schema: bool = False) -> Result:
    """Implement ``table.append(df)``: columns by name, cast as INSERT casts.

    ``operation`` describes the commit. ``merge_schema`` first adds the columns that only ``df`` has. Raises
    ``SchemaMismatch`` naming the column, with Spark's reason.
    """
    if merge_schema:
        from tamis.spark.jvm_bridge.spark_types import from_spark

        table.merge_columns(from_spark(df._jdf.schema().json()))
    return _statement(table, df, None, operation)


def overwrite(table: Any, df: Any, row_filter: str | Expr | None = None, *, allow_outside: bool = False) -> Result:
    """Implement ``table.overwrite(df, row_filter)``: append, and remove the rows that the filter matches.

    None matches all rows. New rows that the filter does not match are rejected unless ``allow_outside``.
    """
    from tamis.core.expr import TRUE, conjuncts
    from tamis.table.scan_request import parse_filter

    if row_filter is None:
        return _statement(table, df, (TRUE,))
    head = table.snapshot.head
    found = parse_filter(row_filter, head.schema, Options.resolve(None, None, head.properties))[0]
    return _statement(table, df, tuple(c for part in found for c in conjuncts(part)), allow_outside=allow_outside)


def _statement(
    table: Any, df: Any, conjuncts: tuple[Expr, ...] | None, operation: Operation | None = None, *, allow_outside: bool = False
) -> Result:
    from pyspark.errors import AnalysisException

    from tamis.spark.catalog.spark_table import SparkTable
    from tamis.spark.jvm_bridge.adapter import bridge
    from tamis.spark.session import is_connect
    from tamis.spark.write.insert import run_insert

    if is_connect(df):
        raise InvalidInput(
            "A DataFrame of Spark Connect cannot be written.",
            code="SPARK_CONNECT",
            name="data",
            remedy="Use df.toArrow(), or a classic session.",
        )
    handle = SparkTable.held(bridge(df.sparkSession), table.store, table.write_snapshot(df.columns), df)
    handle.operation = operation or handle.operation
    try:
        return run_insert(handle, df, conjuncts, allow_outside=allow_outside)
    except AnalysisException as error:
        condition = error.getCondition() or ""
        if condition.startswith(
            ("INCOMPATIBLE_DATA_FOR_TABLE", "INSERT_COLUMN_ARITY_MISMATCH", "AMBIGUOUS_REFERENCE", "COLUMN_ALREADY_EXISTS")
        ):
            raise SchemaMismatch(
                str(error).strip(),
                name=offending_column(error.getMessageParameters() or {}) or table.path,
                remedy="Rename, cast or add columns so that the data fits the table.",
                code="DATA_MISMATCH",
            ) from error
        raise
