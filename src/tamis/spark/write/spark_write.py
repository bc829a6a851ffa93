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

from tamis.core.expr import Expr
from tamis.core.types import Schema
from tamis.core.types.identifiers import backquote_path
from tamis.engine.operations.layout.index_commits import commit_indexed
from tamis.engine.operations.result import Result, written_counts
from tamis.engine.operations.rows.append import discard_parts, write_spec
from tamis.engine.operations.rows.overwrite import Replacement, commit_overwrite, find_matching, snapshot_parts
from tamis.engine.part_writer.identity_values import Numbering
from tamis.engine.scan import Options
from tamis.engine.secondary_index import run_here
from tamis.spark.executors import write_task as task
from tamis.spark.executors.executor_function import executor_function
from tamis.spark.write.generated_rows import compute_sort_columns
from tamis.spark.write.narrow_rows import mark_wide_rows, write_without_byte_limit
from tamis.spark.write.own_reads import OwnReads
from tamis.spark.write.spark_index import spark_index_builder
from tamis.spark.write.spark_job import spark_job
from tamis.storage.commit_log import Head, Operation, Proposal, Snapshot
from tamis.storage.object_store import Store
from tamis.world import new_id, world

MOST_PARTITIONS = 4_096
"""Maximum partitions of a shuffle without adaptive execution."""
_UNKNOWN_SIZE = 2**62
"""Spark's estimate for rows of which it knows nothing, such as those of an RDD, is 2^63 − 1."""


def write_rows(
    df: Any, store: Store, head: Head, options: Options, conjuncts: tuple[Expr, ...] | None = None
) -> list[pa.Table]:
    """Write the rows of ``df`` (columns as in the table) as parts by a Spark job; return their manifest rows.

    Commits nothing. Raises ``InvalidInput`` (``OUTSIDE_FILTER``) for a row that ``conjuncts`` do not match if
    ``options.write_outside`` is ``refuse``.
    """
    assert head.schema is not None
    numbering = Numbering(head.table_id, strict=True)
    spec = replace(write_spec(store, head, head.schema, options), numbering=numbering)
    asked = conjuncts if conjuncts and options.write_outside == "refuse" else ()
    run = functools.partial(task.write_rows, spec=spec, conjuncts=asked, now_micros=world().now_micros())

    def write(rows: Any, narrow: bool) -> list[pa.Table]:
        arranged = arrange_rows(compute_sort_columns(rows, head), head, options)
        with spark_job(rows.sparkSession, "write rows to", store.url):
            results = [bytes(row[0]) for row in map_rows(arranged, run, task.RESULT, narrow=narrow).collect()]
        manifests = [task.from_ipc(data) for data in results if not task.is_refusal(data)]
        if (refused := task.returned_refusal(results)) is not None:
            discard_parts(store, manifests)
            raise refused
        return manifests

    return write_without_byte_limit(df, store.url, head, options, write)


def map_rows(df: Any, function: Callable[[Any], Any], result: str, *, narrow: bool = False) -> Any:
    """``df.mapInArrow(function, result)``, also for column names with dots or backquotes.

    PySpark takes a dot in a name for a path to a field, so such columns are renamed on the way. ``narrow``: the batches
    carry a mark for wide rows, and a marked row raises ``WideRow``.
    """
    if narrow:
        marked, checked = mark_wide_rows(df, function)
        return marked.mapInArrow(executor_function(df.sparkSession, checked), result)
    if not any("." in name or "`" in name for name in df.columns):
        return df.mapInArrow(executor_function(df.sparkSession, function), result)
    named = functools.partial(task.call_with_names, names=df.columns, function=function)
    return df.toDF(*(f"c{i}" for i in range(len(df.columns)))).mapInArrow(
        executor_function(df.sparkSession, named), result
    )


def arrange_rows(df: Any, head: Head, options: Options) -> Any:
    """``df`` range-partitioned and sorted by the clustering columns; unchanged if there are none."""
    from pyspark.sql import functions as f

    if not head.cluster_by or head.schema is None:
        return df
    keys = [f.col(backquote_path(_names(head.schema, ids))) for ids in head.cluster_by]
    if df.sparkSession.conf.get("spark.sql.adaptive.enabled") == "true":
        ranged = df.repartitionByRange(
            *keys
        )  # Without a number, so that Spark coalesces small partitions by their real sizes.
    else:
        ranged = df.repartitionByRange(_partitions(df, options.write_part_bytes), *keys)
    return ranged.sortWithinPartitions(*keys)


def commit_rows(
    store: Store,
    snapshot: Snapshot,
    head: Head,
    manifests: Sequence[pa.Table],
    operation: Operation,
    *,
    spark: Any = None,
    options: Options | None = None,
    own: OwnReads | None = None,
) -> Result:
    """Commit written parts as one segment. Commits nothing without parts, stream epoch or new head.

    ``operation`` describes the commit, but for its metrics. ``own``: what the rows depend on in the table itself.
    Raises ``Conflict`` if another commit changed it.
    """
    rows, parts, size = written_counts(list(manifests))
    if not parts and head == snapshot.head and operation.stream is None:
        return Result(snapshot.version)
    result = Result(-1, rows_inserted=rows, parts_added=parts, bytes_written=size)
    proposal = Proposal(
        operation=replace(operation, metrics=result.metrics()),
        table_id=snapshot.head.table_id,
        read_version=snapshot.version,
        read_operation_id=snapshot.commit.operation_id,
        reads=None if own is None else own.reads,
        conjuncts=None if own is None else own.conjuncts,
        blind_append=own is None,
        head=head if head != snapshot.head else None,
        add=manifests,
        operation_id=new_id(),
    )
    build, catch_up = (options.index_build, options.index_catch_up) if options else ("", None)
    run = run_here if spark is None else spark_index_builder(spark)
    after = commit_indexed(store, head, proposal, build, run, catch_up=catch_up)
    return replace(result, version=after.version)


def overwrite_rows(
    spark: Any,
    store: Store,
    snapshot: Snapshot,
    head: Head,
    manifests: list[pa.Table],
    conjuncts: tuple[Expr, ...] | None,
    options: Options,
    *,
    reads_all: bool = False,
) -> Result:
    """Replace the rows that match ``conjuncts`` (None: all) by written parts, in one commit.

    Parts that match completely are removed by metadata. Parts that match partially are read on the executors,
    which rewrite their other rows; a part without a row that matches stays. A row for which the filter is NULL
    stays. ``reads_all``: the written rows depend on rows of the table, which may be others than those that match.
    """
    assert head.schema is not None
    if conjuncts is None:
        change = Replacement(None, snapshot_parts(snapshot), manifests)  # depends on all rows in any case
    else:
        found = find_matching(store, snapshot, head.schema, conjuncts, options)
        partial = found.parts.where(~found.parts.all_match)
        untouched, survivors = _rewrite(spark, store, head, partial, found.spec, conjuncts, options)
        change = Replacement(
            conjuncts,
            found.parts.exclude(untouched),
            manifests,
            survivors,
            rewritten=len(partial) - len(untouched),
            parts_read=len(partial),
            reads_all=reads_all,
        )
    return commit_overwrite(store, snapshot, head, change, options, spark_index_builder(spark))[1]


def _rewrite(
    spark: Any, store: Store, head: Head, parts: Sequence[Any], read: Any, conjuncts: tuple[Expr, ...], options: Options
) -> tuple[list[str], list[pa.Table]]:
    """Return the ids of the parts without a row that matches, and the manifests of the other parts' remaining rows."""
    if not len(parts):
        return [], []
    assert head.schema is not None
    spec = replace(write_spec(store, head, head.schema, options), generate=False)  # rows of the table
    context = spark.sparkContext
    count = min(len(parts), max(context.defaultParallelism, len(parts) // 4))
    work = [
        task.pack_rewrite([parts[i] for i in range(at, len(parts), count)], read, conjuncts, spec)
        for at in range(count)
    ]
    with spark_job(spark, "rewrite partly replaced parts of", store.url):
        done = context.parallelize(work, count).map(executor_function(spark, task.rewrite)).collect()
    return [part for kept, _ in done for part in kept], [task.from_ipc(m) for _, made in done for m in made]


def _partitions(df: Any, part_bytes: int) -> int:
    """Number of range partitions for a shuffle without adaptive execution.

    One per part of the target size, but enough to keep all cores busy. The rows are taken to be no larger than all
    that the plan reads: Spark's own estimate for a join is the product of both sides.
    """
    plan = df._jdf.queryExecution().optimizedPlan()
    leaves = plan.collectLeaves()
    size = min(_size(plan), sum(_size(leaves.apply(at)) for at in range(leaves.size())))
    if size >= _UNKNOWN_SIZE:
        return int(df.sparkSession.conf.get("spark.sql.shuffle.partitions"))
    cores: int = df.sparkSession.sparkContext.defaultParallelism
    return max(1, min(-(-size // part_bytes), MOST_PARTITIONS), min(cores, -(-size // 2**23)))


def _size(plan: Any) -> int:
    """Return Spark's estimate of the bytes of a logical plan's rows."""
    return int(str(plan.stats().sizeInBytes()))


def _names(schema: Schema, ids: tuple[int, ...]) -> list[str]:
    return [schema.by_id[i].name for i in ids]
