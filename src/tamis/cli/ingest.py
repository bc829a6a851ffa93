"""Ingestion of a folder: Spark appends its new files, each exactly once.

Invariant: a commit holds the rows of some files and the list of those files, so that both are visible or
neither is. Which files are new is read from the log alone; a call killed at any moment has ingested whole
commits, and the next call continues. Concurrent calls share a sequence of epochs, one per batch: the later
call finds its epoch taken, and re-reads the log.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tamis
from tamis.bridges.sources.hive_partitions import partitions_of
from tamis.cli.ingest_batch import Batch, check_read_options
from tamis.cli.ingest_files import commit_batches, file_kind
from tamis.cli.ingest_load import load_files
from tamis.cli.progress import progress_bar
from tamis.cli.session import spark_session
from tamis.cli.source_folders import File, check_linked_files, list_files
from tamis.errors import AlreadyExists, Conflict, InvalidInput, NotFound
from tamis.storage.commit_log import Operation, StreamEpoch, history
from tamis.table import Table
from tamis.world import new_id


@dataclass(frozen=True, slots=True)
class Ledger:
    """The log's record of one folder: ingested files, the last epoch, and the owner of each epoch."""

    known: frozenset[str]
    epoch: int
    owners: Mapping[int, str]


def ingest_folder(
    path: str,
    folder: str,
    *,
    file_format: str | None = None,
    cluster_by: Sequence[str] = (),
    read_options: Mapping[str, str] | None = None,
    batch_bytes: int = 1 << 30,
    storage_options: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Append the files of ``folder`` that the table at ``path`` lacks, creating it if needed; return counts.

    Raises ``NotFound`` for a folder that does not exist or has no such files, ``SchemaMismatch`` for a file
    that does not fit the table, ``InvalidInput`` for a clustering that differs from the table's, and for an option of
    Spark's reader that leaves out files.
    """
    check_read_options(read_options or {})
    source = Path(folder).expanduser().resolve()
    chosen, files = file_kind(source, list_files(source), file_format)
    check_linked_files(source, files)
    partitions = partitions_of([file.name for file in files]).names
    table = _table(path, cluster_by, dict(storage_options or {}))
    query = f"ingest:{source}"
    new = _new(files, _ledger(table, query))
    done: dict[str, Any] = {
        "path": table.path,
        "files": 0,
        "rows": 0,
        "commits": 0,
        "known": len(files) - len(new),
        "version": table.version,
    }
    if not new:
        return done
    with (
        spark_session() as spark,
        progress_bar(f"Ingesting {len(new):,} files by Spark", sum(f.size for f in new)) as advance,
    ):
        # Spark took seconds to start, in which another call may have committed.
        while new := _new(files, ledger := _ledger(table, query)):
            batch = Batch(source, chosen, next(commit_batches(new, batch_bytes)), partitions, read_options or {})
            rows = _append(spark, table, query, batch, ledger.epoch + 1)
            if rows is not None:
                done["files"] += len(batch.files)
                done["rows"] += rows
                done["commits"] += 1
                advance(sum(f.size for f in batch.files), f"{done['files']:,} files, {done['rows']:,} rows")
    return {**done, "known": len(files) - done["files"], "version": table.refresh().version}


def _append(spark: Any, table: Table, query: str, batch: Batch, epoch: int) -> int | None:
    """Commit one batch; return its number of rows, or None if another call committed in its place.

    ``epoch`` is the one after those of the ledger in which the batch's files were missing.
    """
    from tamis.spark.write.insert_by_path import append

    mine = new_id()
    names = [f.name for f in batch.files]
    parameters = {"source": str(batch.folder), "format": batch.file_format, "files": names, "batch": mine}
    rows = load_files(spark, table.refresh(), batch)
    try:
        result = append(table, rows, Operation("append", parameters, stream=StreamEpoch(query, epoch)))
    except Conflict:  # another call set the table's first schema
        return None
    table.refresh()
    return result.rows_inserted if _ledger(table, query).owners.get(epoch) == mine else None


def _ledger(table: Table, query: str) -> Ledger:
    log = history(table.store).select(["stream_query", "stream_epoch", "parameters"]).to_pylist()
    commits = [(row["stream_epoch"], json.loads(row["parameters"])) for row in log if row["stream_query"] == query]
    return Ledger(
        known=frozenset(name for _, parameters in commits for name in parameters.get("files", ())),
        epoch=max((epoch for epoch, _ in commits), default=-1),
        owners={epoch: parameters.get("batch", "") for epoch, parameters in commits},
    )


def _new(files: Sequence[File], ledger: Ledger) -> list[File]:
    return [f for f in files if f.name not in ledger.known]


def _table(path: str, cluster_by: Sequence[str], storage_options: dict[str, str]) -> Table:
    """Open the table at ``path``, creating it if needed."""
    try:
        table = tamis.open(path, storage_options=storage_options)
    except NotFound as error:
        if error.code != "TABLE_NOT_FOUND":
            raise
        try:
            return tamis.create(path, cluster_by=cluster_by, storage_options=storage_options)
        except AlreadyExists:  # another call created it first
            table = tamis.open(path, storage_options=storage_options)
    clustering = table.detail()["clustering_columns"][0].as_py()
    if cluster_by and [name.lower() for name in cluster_by] != [name.lower() for name in clustering]:
        raise InvalidInput(
            f"The table is clustered by {', '.join(clustering) or 'nothing'}, not by {', '.join(cluster_by)}.",
            code="CLUSTERING_DIFFERS",
            name=table.path,
            remedy="Leave --cluster-by out.",
        )
    return table
