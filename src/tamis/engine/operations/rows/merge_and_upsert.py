"""Local runs of ``Table.merge`` and ``Table.upsert``: spool the data, bind to the newest schema."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pyarrow as pa

from tamis.core.types import DataType, Struct
from tamis.core.types.arrow import to_arrow_type
from tamis.core.types.char_values import without_lengths
from tamis.engine.operations.result import Progress, Result
from tamis.engine.operations.retry import retry_conflicts
from tamis.engine.operations.rows.merge import merge
from tamis.engine.operations.rows.merge_plan import MergeClause, MergePlan, merge_plan
from tamis.engine.part_writer.arrow_casts import fit_array
from tamis.engine.part_writer.stream_spool import spool_rows
from tamis.engine.scan import Options
from tamis.errors import InvalidInput
from tamis.storage.commit_log import Snapshot
from tamis.storage.object_store import Store


def merge_rows(
    store: Store,
    latest: Callable[[], Snapshot],
    data: pa.RecordBatchReader,
    on: str,
    clauses: Sequence[MergeClause],
    options: Options,
    *,
    keys: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> tuple[Snapshot, Result]:
    """Merge into the newest version, retrying after conflicts.

    ``keys`` make it an upsert and must be unique.
    """
    with spool_rows(data) as source:
        each_once = None if keys is None else _found(source, keys)

        def run(snapshot: Snapshot) -> tuple[Snapshot, Result]:
            return merge_once(store, snapshot, source, on, clauses, options, each_once, progress)

        return retry_conflicts(latest, run)


def merge_once(
    store: Store,
    snapshot: Snapshot,
    source: pa.Table,
    on: str,
    clauses: Sequence[MergeClause],
    options: Options,
    each_once: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> tuple[Snapshot, Result]:
    """Merge into ``snapshot``. Raises ``Conflict`` if another commit gets in the way."""
    head = snapshot.head
    if head.schema is None:
        raise InvalidInput(
            "The table has no columns yet.",
            code="NO_COLUMNS",
            name=store.url,
            remedy="Append rows first: they bring the schema.",
        )
    plan = merge_plan(head.schema, source.schema, on, clauses, head.highest_column_id, options)
    return merge(store, snapshot, _as_declared(source, plan), plan, options, each_once, progress)


def _as_declared(source: pa.Table, plan: MergePlan) -> pa.Table:
    """Return the data with the columns that ``plan`` names in the types of ``plan.source``, as an append stores them.

    Ids that the data brings for the fields of structs are replaced by those of ``plan``, which may be another's there.
    Of a struct of which only fields are named, the values stay as they are. Raises ``SchemaMismatch``
    (``VALUE_MISMATCH``) if a value does not fit, as a time of nanoseconds, and ``InvalidInput`` (``TOO_LONG``).
    """
    named, whole = plan.named, plan.named_whole
    for at, f in enumerate(plan.source):
        column, target = source.column(at), to_arrow_type(f.type)
        if f.id not in named or (column.type == target and not _needs_fitting(f.type)):
            continue
        if f.id in whole:
            declared = replace(f, nullable=True)  # NULLs are the target's to refuse
            chunks = [fit_array(chunk, declared, f.name) for chunk in column.chunks]
        else:
            chunks = [with_field_ids(chunk, target) for chunk in column.chunks]
        kind = chunks[0].type if chunks else target
        source = source.set_column(at, source.field(at).name, pa.chunked_array(chunks, kind))
    return source


def _needs_fitting(kind: DataType) -> bool:
    """Whether values of Arrow's type for ``kind`` may differ from stored ones: in ids, lengths or times."""
    return (
        isinstance(kind, Struct) or without_lengths(kind) != kind or any(_needs_fitting(f.type) for f in kind.children)
    )


def with_field_ids(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Return a struct with the ids of the fields of ``target``, found by name, at every depth. Copies no values."""
    if not pa.types.is_struct(array.type) or not pa.types.is_struct(target):
        return array
    fields, children = [], []
    for at, held in enumerate(array.type):
        place = target.get_field_index(held.name)
        child, known = array.field(at), target.field(place) if place >= 0 else held
        child = with_field_ids(child, known.type)
        children.append(child)
        fields.append(pa.field(held.name, child.type, True, known.metadata))
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(children, fields=fields, mask=mask)


def _found(source: pa.Table, keys: Sequence[str]) -> list[str]:
    """Return the keys as the source spells them. Raises ``InvalidInput`` (``BAD_COLUMN``)."""
    folded = {name.lower(): name for name in source.column_names}
    if missing := [key for key in keys if key.lower() not in folded]:
        raise InvalidInput(
            f"The data has no column {missing[0]!r}.",
            code="BAD_COLUMN",
            name=missing[0],
            remedy="Choose key columns that exist in the data.",
        )
    return [folded[key.lower()] for key in keys]
