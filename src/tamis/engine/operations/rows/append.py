"""Append: new rows become parts of one segment, in one commit. Never conflicts with another append."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa

from tamis.core.stats import kept_statistics
from tamis.core.types import Schema
from tamis.engine.operations.layout.index_commits import commit_indexed
from tamis.engine.operations.result import Result, written_counts
from tamis.engine.part_writer import WriteSpec, conform_batches, sorted_batches, write_parts
from tamis.engine.part_writer.identity_values import Numbering, number_rows
from tamis.engine.scan import Options
from tamis.errors import Conflict, TamisError
from tamis.storage.commit_log import Head, Operation, Proposal, Snapshot, commit, create, load
from tamis.storage.commit_log.newest_commit import find_latest
from tamis.storage.commit_log.path_checks import already_exists_error, check_free, check_store
from tamis.storage.commit_log.table_constraints import enforced_constraints
from tamis.storage.object_store import Store
from tamis.world import new_id

SORT_MEMORY = 256 * 2**20
"""Bytes that a local sort may hold before it spills."""


def append(
    store: Store, snapshot: Snapshot, head: Head, data: pa.RecordBatchReader, options: Options
) -> tuple[Snapshot, Result]:
    """Append the rows of ``data``; a changed ``head`` (the first schema) is committed with them.

    Commits nothing without rows and head change; a failure leaves nothing visible. Raises ``SchemaMismatch``
    naming the column that does not fit.
    """
    assert head.schema is not None
    manifests = list(write_rows(store, head, new_rows(store, head, data), options, complete=True))
    rows, parts, size = written_counts(manifests)
    changed = head != snapshot.head
    if not parts and not changed:
        return snapshot, Result(snapshot.version)
    result = Result(-1, rows_inserted=rows, parts_added=parts, bytes_written=size)
    proposal = Proposal(
        operation=Operation("append", metrics=result.metrics()),
        table_id=snapshot.head.table_id,
        read_version=snapshot.version,
        read_operation_id=snapshot.commit.operation_id,
        blind_append=True,
        head=head if changed else None,
        add=manifests,
        operation_id=new_id(),
    )
    try:
        after = commit_indexed(store, head, proposal, options.index_build, catch_up=options.index_catch_up)
    except Conflict:
        after = _commit_second(store, proposal, head)
    return after, replace(result, version=after.version)


def create_with_rows(store: Store, head: Head, data: pa.RecordBatchReader, options: Options) -> Snapshot:
    """Create a table that holds the rows of ``data``, in one commit; a failure leaves no table.

    Raises ``AlreadyExists`` if there is a table, ``InvalidInput`` if there is something else, and ``SchemaMismatch``
    naming the column that does not fit.
    """
    if find_latest(store.with_new_counters()) is not None:
        raise already_exists_error(store)
    check_free(store)
    check_store(store)
    manifests: list[pa.Table] = []
    try:
        manifests.extend(write_rows(store, head, new_rows(store, head, data), options, complete=True))
    except BaseException:
        discard_parts(store, manifests)
        raise
    try:
        return create_with_parts(store, head, manifests)
    except TamisError as error:
        if error.code != "COMMIT_UNKNOWN":
            discard_parts(store, manifests)
        raise


def create_with_parts(store: Store, head: Head, manifests: list[pa.Table]) -> Snapshot:
    """Create a table that holds the parts of ``manifests``; raises as ``create`` does."""
    rows, parts, size = written_counts(manifests)
    metrics = {"rows_inserted": rows, "parts_added": parts, "bytes_written": size}
    return create(store, head, Operation("create", metrics=metrics), add=manifests)


def _commit_second(store: Store, proposal: Proposal, head: Head) -> Snapshot:
    """Commit after another first append has set the schema, if it is identical, so that the ids agree.

    Otherwise reraises the ``Conflict``.
    """
    latest = load(store)
    if proposal.head is None or (latest.head.schema, latest.head.cluster_by) != (head.schema, head.cluster_by):
        raise  # noqa: PLE0704  # called while the conflict is handled
    # It still starts from the version it read: a vacuum since then may have removed the new files.
    return commit(store, replace(proposal, head=None, operation_id=new_id()))


def write_rows(
    store: Store,
    head: Head,
    batches: Iterable[pa.RecordBatch],
    options: Options,
    *,
    ordered: bool = False,
    complete: bool = False,
) -> Iterable[pa.Table]:
    """Write ``batches`` (in the table's Arrow schema), sorted by the clustering columns unless ``ordered``.

    ``complete``: generated and identity columns have their values, as rows of the table do. Yields one
    manifest row per part.
    """
    schema = head.schema
    assert schema is not None
    spec = replace(write_spec(store, head, schema, options), generate=False)
    if not complete:
        batches = number_rows(conform_batches(batches, schema), schema, store, Numbering(head.table_id, strict=False))
    if head.cluster_by and not ordered:
        batches = sorted_batches(batches, schema, head.cluster_by, SORT_MEMORY)
    return write_parts(batches, spec)


def new_rows(store: Store, head: Head, data: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    """Return ``data`` as rows of the table, with the values that it does not give. Raises as ``conform`` does."""
    assert head.schema is not None
    return number_rows(conform_batches(data, head.schema), head.schema, store, Numbering(head.table_id, strict=True))


def discard_parts(store: Store, manifests: Sequence[pa.Table]) -> None:
    """Delete files of uncommitted parts; failures are left to vacuum."""
    for path in (path for manifest in manifests for path in manifest["path"].to_pylist()):
        with suppress(TamisError):
            store.delete(path)


def write_spec(store: Store, head: Head, schema: Schema, options: Options) -> WriteSpec:
    return WriteSpec(
        url=store.url,
        schema=schema,
        storage_options=dict(store.options),
        format=head.format,
        part_bytes=options.write_part_bytes,
        collect=options.stats_collect,
        stats_bytes=options.stats_budget_bytes,
        keep=kept_statistics.resolve_names(options.stats_keep, schema),
        recent=kept_statistics.recent_places(store.url),
        shred=kept_statistics.resolve_paths(options.write_shred, schema),
        cluster_by=head.cluster_by,
        run_id=new_id(),
        checks=enforced_constraints(head.constraints),
    )
