"""Row changes on the driver: a job writes new rows and collects positions; one commit publishes both."""

from __future__ import annotations

import functools
import pickle
from dataclasses import replace
from typing import Any

from tamis.engine.operations.result import Result
from tamis.engine.operations.rows.append import discard_parts, write_spec
from tamis.engine.operations.rows.row_change import RowChange, read_set
from tamis.engine.part_writer.identity_values import Numbering
from tamis.engine.scan import Options
from tamis.engine.secondary_index import Run
from tamis.errors import InvalidInput
from tamis.spark.executors import row_change_task as task
from tamis.spark.executors.row_metadata import METADATA
from tamis.spark.executors.write_task import is_refusal, returned_refusal
from tamis.spark.write.generated_rows import compute_sort_columns
from tamis.spark.write.narrow_rows import write_without_byte_limit
from tamis.spark.write.spark_job import spark_job
from tamis.spark.write.spark_write import arrange_rows, map_rows

_VERBS = {"delete": "delete rows of", "update": "update rows of", "merge": "merge rows into"}


def collect_changes(df: Any, table: Any, verb: str, options: Options) -> task.Changes:
    """Run the changes in ``df``: write new rows, commit nothing, and return what is to be committed.

    ``df`` has Spark's operation code, the table's columns, part and position.
    """
    head = table.head
    assert head.schema is not None
    if METADATA in df.columns and METADATA not in head.schema.names:  # the statement's condition names it
        df = df.drop(METADATA)
    numbering = Numbering(head.table_id, strict=False)
    spec = replace(write_spec(table.store, head, head.schema, options), numbering=numbering)
    run = functools.partial(task.change, spec=spec)

    def change(rows: Any, narrow: bool) -> task.Changes:
        arranged = arrange_rows(compute_sort_columns(rows, head), head, options) if verb != "delete" else rows
        with spark_job(rows.sparkSession, _VERBS.get(verb, verb), table.store.url):
            results = [bytes(row[0]) for row in map_rows(arranged, run, task.RESULT, narrow=narrow).collect()]
        done = [pickle.loads(data) for data in results if not is_refusal(data)]  # noqa: S301  # from our workers
        found = task.Changes.merged(done)
        if (refused := returned_refusal(results)) is not None:
            discard_parts(table.store, found.tables)
            raise refused
        return found

    found = write_without_byte_limit(df, table.store.url, head, options, change)
    if found.doubled:
        raise InvalidInput(
            f"A row of {table.name()} would change twice.",
            code="MERGE_CARDINALITY_VIOLATION",
            name=table.name(),
            remedy="Make the source's keys unique.",
        )
    return found


def planned_change(verb: str, scans: list[Any], options: Options, *, exact: bool, reads_all: bool = False) -> RowChange:
    """Return the change that a statement is about to make to the rows that ``scans`` read.

    ``exact``: of the rows read, the statement depends only on those that it removes (``Proposal.exact``).
    ``reads_all``: it may depend on any row, beside the scans.
    """
    conjuncts = scans[0].filters.conjuncts if len(scans) == 1 and not reads_all else ()
    change = RowChange(verb, read_set(conjuncts, options), options, conjuncts or None, exact=exact)
    change.read = sum(len(scan.plan.parts) for scan in scans)
    change.bytes_read = sum(scan.bytes_read for scan in scans)
    return change


def commit_changes(found: task.Changes, table: Any, change: RowChange, index_builder: Run) -> Result:
    """Commit ``change`` with the rows that its job has ``found``. Commits nothing if nothing changes."""
    change.manifests = found.tables
    change.gone = found.removed
    change.inserted, change.updated, change.deleted = found.inserted, found.updated, found.deleted
    return change.commit(table.store, table.snapshot, index_builder)[1]
