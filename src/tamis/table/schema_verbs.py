"""The verbs that change a table's schema, each in one metadata commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from tamis.core.expr.generated_columns import added_column
from tamis.core.schema import fence_reader, rows_fit
from tamis.core.schema.schema_sequence import Evolution, check_next, is_identical, resolve_ids
from tamis.core.types import Field, Schema
from tamis.core.types.arrow import to_arrow_schema
from tamis.errors import InvalidInput, SchemaFenced, SchemaMismatch
from tamis.lazy_imports import lazy_module
from tamis.storage.commit_log import Head, Snapshot, next_schema
from tamis.storage.object_store import Store
from tamis.table.constraint_table import constraint_rows
from tamis.table.scan_request import checked_flag
from tamis.table.table_definition import checked_schema, logical_schema, with_schema
from tamis.world import new_id

if TYPE_CHECKING:
    from tamis.engine.operations.schema import alter, evolve
    from tamis.engine.part_writer import conformed_batches
    from tamis.table import alter_builder
    from tamis.table.alter_builder import Alter
else:
    alter = lazy_module("tamis.engine.operations.schema.alter")
    evolve = lazy_module("tamis.engine.operations.schema.evolve")
    conformed_batches = lazy_module("tamis.engine.part_writer.conformed_batches")
    alter_builder = lazy_module("tamis.table.alter_builder")


class SchemaVerbs:
    """The schema part of ``Table``."""

    _store: Store
    _schema: Schema | None
    _snapshot: Snapshot
    _held: Snapshot
    """The version whose schema this object holds."""

    if TYPE_CHECKING:

        def _writable(self) -> None: ...
        def _newest(self) -> Snapshot: ...

    def alter(self) -> Alter:
        """Start a set of column and property changes that commit together.

        For example ``table.alter().add_column("c", "BIGINT").drop_column("b").commit()``.
        """
        self._writable()
        snapshot = self._newest()
        return alter_builder.Alter(alter.Alteration(self._store, snapshot, self._schema), snapshot, self._adopt)

    def constraints(self) -> pa.Table:
        """List the constraints: name, kind, columns, expression, whether it is enforced, and the definition as SQL."""
        return constraint_rows(self._newest())

    def compare_and_evolve_schema(
        self, expected_schema_id: int | None, new_schema: pa.Schema, *, dry_run: bool = False
    ) -> int | Evolution | None:
        """Append ``new_schema`` if the latest schema is ``expected_schema_id`` (None: no schema yet).

        Returns its id, also if the table has adopted that schema since then, so that a call whose answer was
        lost can be repeated. Fields match by ``PARQUET:field_id`` in their metadata, else by name; a
        field without an id that has the name of a dropped one is refused. ``dry_run`` reports what would
        change and whom it would fence.

        Raises ``SchemaMismatch`` (with ``current_id`` and ``schema``) if the latest schema is another one,
        ``IncompatibleSchema`` naming the rule and the field.
        """
        self._writable()
        if expected_schema_id is not None and (
            isinstance(expected_schema_id, bool) or not isinstance(expected_schema_id, int)
        ):
            raise InvalidInput(
                f"{expected_schema_id!r} is not a schema id.",
                code="BAD_SCHEMA",
                name=repr(expected_schema_id),
                remedy="Give a whole number, such as table.schema_id; None where the table has no schema yet.",
            )
        asked = checked_schema(new_schema, keep_ids=True)
        snapshot = self._newest()
        _check_definitions(snapshot.schema, asked)

        def plan(head: Head) -> Head:
            return (
                head
                if _known_schema_id(head, expected_schema_id, asked) is not None
                else _next_head(head, expected_schema_id, asked, new_schema)
            )

        if checked_flag("dry_run", dry_run):
            return evolve.describe_outcome(snapshot.head, plan(snapshot.head))
        after = evolve.commit_schema(self._store, snapshot, plan, operation_id=new_id())
        known = _known_schema_id(after.head, expected_schema_id, asked)
        if known is None or known == len(after.head.schemas) - 1:
            self._adopt(after)
        return len(after.head.schemas) - 1 if known is None else known

    def _adopt(self, snapshot: Snapshot) -> None:
        self._snapshot = self._held = snapshot
        self._schema = snapshot.head.schema

    def merge_columns(self, brought: Schema) -> None:
        """Add the columns of ``brought`` that the table lacks, and widen those that it has with a wider type.

        This object then holds the new schema. Raises ``SchemaMismatch`` (``SCHEMA_CHANGED``) if a column that it holds
        has another name in the table, or is gone. All columns count, not only those of ``brought``: a later append
        would put the values of such a column into another one, or create it again.
        """

        def check(current: Schema) -> None:
            held = self._schema
            if held is not None and not same_columns(held, current, [f.name for f in held]):
                raise self._schema_changed("columns were renamed or dropped", current)

        snapshot = self._newest()
        if snapshot.schema is not None:
            self._adopt(alter.merge_schema(self._store, snapshot, brought, check))

    def write_snapshot(self, names: list[str]) -> Snapshot:
        """Return the version from which a Spark write of the columns ``names`` starts.

        This is the newest version, or the one whose schema this object holds if the names have changed
        meaning.
        """
        latest = self._newest()
        held, current = self._schema, latest.schema
        if held is None or current is None or same_columns(held, current, names) or held.schema_id == current.schema_id:
            return latest
        return self._held

    def _adapt_to_current(self, rows: pa.RecordBatchReader, head: Head) -> pa.RecordBatchReader:
        """Return ``rows`` under the table's current schema.

        They are read by the schema that this object holds if one of their names has since changed meaning or
        is gone.
        """
        held, current = self._schema, head.schema
        assert current is not None
        if held is None or same_columns(held, current, rows.schema.names):
            return rows
        why = rows_fit(held, current)
        if why is not None:
            raise self._schema_changed(why, current)
        return pa.RecordBatchReader.from_batches(
            to_arrow_schema(current),
            conformed_batches.migrate_batches(conformed_batches.conform_batches(rows, held), held, current),
        )

    def _schema_changed(self, why: str, current: Schema) -> SchemaMismatch:
        return SchemaMismatch(
            f"The table's schema has changed since it was opened: {why}.",
            code="SCHEMA_CHANGED",
            name=self._store.url,
            remedy="Refresh the table and write again.",
            current_id=current.schema_id,
            schema=current,
        )


def check_same_table(snapshot: Snapshot, table_id: str, held: Schema | None) -> None:
    """Raise ``SchemaFenced`` (``TABLE_REPLACED``) unless ``snapshot`` is of the table with that id and schema.

    ``held``: a schema that the table had before ``snapshot`` was loaded, or None if that may be an older version.

    A table restored from a backup keeps its id, and gives the ids of lost columns to others.
    """
    head, url = snapshot.head, snapshot.store.url
    problem = None
    if head.table_id != table_id:
        problem = f"Another table lies at {url} now: the one that was opened is gone."
    elif held is not None and (held.schema_id >= len(head.schemas) or head.schemas[held.schema_id] != held):
        problem = (
            f"The table at {url} was restored from a backup: it no longer has the schema {held.schema_id} with "
            "which it was opened."
        )
    if problem is not None:
        raise SchemaFenced(
            problem,
            code="TABLE_REPLACED",
            name=url,
            remedy="Open it again, or call refresh(), to go on with the table that is there now.",
        )


def check_names(snapshot: Snapshot, held: Schema | None) -> None:
    """Check that ``held`` can read ``snapshot`` and names the same columns.

    Raises ``SchemaFenced`` if ``held`` is not a valid reader schema, ``SchemaMismatch`` (``SCHEMA_CHANGED``)
    if one of its names refers to another column.
    """
    current = snapshot.schema
    if held is None or current is None or held.fields == current.fields:
        return
    fence_reader(current, snapshot.head.dropped, held)
    if not same_columns(held, current, list(held.names)):
        raise SchemaMismatch(
            "Columns were renamed since the table was opened.",
            code="SCHEMA_CHANGED",
            name=snapshot.store.url,
            remedy="Refresh the table and name the columns as they are called now.",
            current_id=current.schema_id,
            schema=current,
        )


def same_columns(held: Schema, current: Schema, names: list[str]) -> bool:
    """Test whether those ``names`` that ``held`` has refer to the same columns in both, at every depth."""
    if held.fields == current.fields:
        return True
    now = {f.name.lower(): f for f in current}
    wanted = {name.lower() for name in names}
    return all(_same_column(f, now.get(f.name.lower())) for f in held if f.name.lower() in wanted)


def _same_column(held: Field, now: Field | None) -> bool:
    if now is None or held.id != now.id:
        return False
    below = {f.name.lower(): f for f in now.type.children}
    return all(_same_column(f, below.get(f.name.lower())) for f in held.type.children)


def _check_definitions(current: Schema | None, asked: Schema) -> None:
    """Raise ``InvalidInput`` if ``asked`` makes a plain column of the table a generated or identity column."""
    held = {} if current is None else {f.name.lower(): f for f in current}
    for field in asked:
        now = held.get(field.name.lower())
        defined = (field.generated, field.identity)
        if now is not None and defined not in {(None, None), (now.generated, now.identity)}:
            raise added_column(field)


def _known_schema_id(head: Head, expected: int | None, asked: Schema) -> int | None:
    """Return the id of ``asked`` if it is the expected schema or a later one of the table, else None."""
    since = head.schemas[0 if expected is None else max(expected, 0) :]
    return next((s.schema_id for s in reversed(since) if is_identical(asked, s)), None)


def _next_head(head: Head, expected: int | None, asked: Schema, given: pa.Schema) -> Head:
    current = head.schema
    current_id = None if current is None else current.schema_id
    if current_id != expected:
        raise SchemaMismatch(
            f"Expected schema id {'none' if expected is None else expected}, "
            f"but the current id is {'none' if current_id is None else current_id}.",
            code="EXPECTED_MISMATCH",
            name=str(expected),
            remedy="Look at the current schema, and call again with its id.",
            current_id=current_id,
            schema=None if current is None else to_arrow_schema(current),
        )
    if current is None:
        return with_schema(head, given)
    new = resolve_ids(asked, current, head.dropped, head.highest_column_id)
    check_next(current, head.dropped, new, widen=False, presented=True)
    return next_schema(head, new)


__all__ = ["SchemaVerbs", "logical_schema", "same_columns"]
