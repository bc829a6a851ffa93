"""Local runs of ``Table.merge`` and ``Table.upsert``: spool the data, bind to the newest schema."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import pyarrow as pa

from tamis.core.types import DataType, Field, Struct
from tamis.core.types.arrow import to_arrow_field, to_arrow_type
from tamis.core.types.char_values import without_lengths
from tamis.engine.operations.result import Progress, Result
from tamis.engine.operations.retry import retry_conflicts
from tamis.engine.operations.rows.merge import merge
from tamis.engine.operations.rows.merge_plan import MergeClause, MergePlan, merge_plan
from tamis.engine.part_writer.arrow_casts import fit_array
from tamis.engine.part_writer.plain_arrays import to_plain
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
    """Return the data with what ``plan`` names in the types of ``plan.source``, as an append stores them.

    Ids that the data brings for the fields of structs are replaced by those of ``plan``, which may be another's there;
    fields that are not named are left out. Raises ``SchemaMismatch`` (``VALUE_MISMATCH``) if a value does not fit, as a
    time of nanoseconds, and ``InvalidInput`` (``TOO_LONG``).
    """
    named = _paths_below(plan.named_paths)
    for at, f in enumerate(plan.source):
        column, target = source.column(at), to_arrow_type(f.type)
        if f.id in named and (column.type != target or _needs_fitting(f.type)):
            chunks = [_fit_named(to_plain(chunk), f, named[f.id], f.name) for chunk in column.chunks]
            kind = chunks[0].type if chunks else target
            source = source.set_column(at, source.field(at).name, pa.chunked_array(chunks, kind))
    return source


def _paths_below(paths: Iterable[tuple[int, ...]]) -> dict[int, set[tuple[int, ...]]]:
    """Return, by the first id, what follows it in the paths that begin with it."""
    found: dict[int, set[tuple[int, ...]]] = {}
    for first, *rest in paths:
        found.setdefault(first, set()).add(tuple(rest))
    return found


def _needs_fitting(kind: DataType) -> bool:
    """Whether values of Arrow's type for ``kind`` may differ from stored ones: in ids of fields, or lengths."""
    sized = without_lengths(kind) != kind
    return sized or isinstance(kind, Struct) or any(_needs_fitting(f.type) for f in kind.children)


def _fit_named(array: pa.Array, field: Field, below: set[tuple[int, ...]], path: str) -> pa.Array:
    """Return ``array`` as a column of ``field``, or as a struct of the fields to which the id paths ``below`` lead."""
    if () in below or not isinstance(field.type, Struct):
        return fit_array(array, replace(field, nullable=True), path)  # NULLs are the target's to refuse
    named = _paths_below(below)
    shown = array.flatten()  # in which fields of NULL structs are NULL, whatever lies below them
    children, fields = [], []
    for at, child in enumerate(field.type.fields):  # in the order of the data, of whose type they were made
        if child.id in named:
            children.append(_fit_named(shown[at], child, named[child.id], f"{path}.{child.name}"))
            fields.append(to_arrow_field(replace(child, nullable=True)).with_type(children[-1].type))
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
