"""Tests the rows that a table has by new CHECK constraints, and dates that become TIMESTAMP_NTZ.

Only parts that may hold a wrong row are read.

Invariant: a part is not read only if its statistics prove that it holds no wrong row, and no row on which a constraint
fails. Rows never change within a part, so a part is tested once however often the commit is tried.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.core.expr import Expr, column_paths, make_call
from tamis.core.expr.unfit_dates import unfit_dates
from tamis.core.types import Schema
from tamis.engine.operations.rows.overwrite import find_matching
from tamis.engine.operations.rows.row_change import read_set
from tamis.engine.operations.tracked_read import TrackedRead
from tamis.engine.part_writer.row_checks import failed_check, violated_check
from tamis.engine.scan import Options
from tamis.errors import IncompatibleSchema, InvalidInput
from tamis.storage.commit_log import Constraint, Head, Snapshot
from tamis.storage.commit_log.constraint_columns import bind_check
from tamis.storage.commit_log.table_constraints import enforced_constraints
from tamis.storage.files.column_conversion import Names, convert_array
from tamis.storage.object_store import Store

PartIds = set[str] | frozenset[str]


@dataclass(slots=True)
class Validation:
    """The test of existing rows by the constraints and types that a change of the head brings."""

    store: Store
    _tested: set[str] = field(default_factory=set)
    """Ids of the parts that passed."""
    _schema: Schema | None = None
    """The schema under which they passed."""

    def run(self, base: Snapshot, head: Head) -> dict[str, Any]:
        """Test the rows of ``base``; return what the proposal of ``head`` says that it read.

        Raises ``SchemaMismatch`` (``CHECK_VIOLATION``, ``CHECK_FAILED``) for the first wrong row, and the errors of
        ``check_dates``.
        """
        schema = head.schema
        known = {one.constraint_id for one in base.head.constraints}
        checks = [one for one in enforced_constraints(head.constraints) if one.constraint_id not in known]
        dates = unfit_dates(base.schema, schema) if base.schema and schema else []
        if schema is None or not (dates or checks):
            return {}
        if self._schema is not None and self._schema.fields != schema.fields:
            self._tested.clear()
        self._schema = schema
        check_dates(self.store, base, schema, self._tested)  # first: the checks read dates in their new type
        check_rows(self.store, Snapshot(self.store, base.commit, head), checks, self._tested)
        self._tested |= set(base.parts()["part_id"].to_pylist())
        either = reduce(lambda a, b: make_call("or", a, b), [*dates, *(_false(one, schema) for one in checks)])
        return {"reads": read_set((either,), _options(head)), "conjuncts": (either,), "exact": True}


def check_dates(store: Store, snapshot: Snapshot, after: Schema, without: PartIds = frozenset()) -> None:
    """Test the dates of ``snapshot`` that are TIMESTAMP_NTZ in ``after``, except in the parts ``without``.

    Raises ``IncompatibleSchema`` (``MIGRATION_TYPE_CHANGE``) naming a column with a date that does not fit.
    """
    before = snapshot.schema
    if before is None:
        return
    for wrong in unfit_dates(before, after):
        column = before.by_id[column_paths(wrong)[0][0]]
        with closing(_rows(store, snapshot, Schema((column,), before.schema_id), wrong, without)) as batches:
            for batch in batches:
                try:
                    convert_array(batch.column(0), after.by_id[column.id], Names(before))
                except pa.ArrowInvalid as error:
                    raise IncompatibleSchema(
                        f"Column {column.name!r} has a date that does not fit TIMESTAMP_NTZ, "
                        "which ends in the year 294247.",
                        code="MIGRATION_TYPE_CHANGE",
                        name=column.name,
                        remedy="Correct such dates or delete their rows first.",
                    ) from error


def check_rows(store: Store, snapshot: Snapshot, checks: Sequence[Constraint], without: PartIds = frozenset()) -> None:
    """Test the rows of ``snapshot``, except those of the parts ``without``, by each of ``checks``."""
    schema = snapshot.schema
    assert schema is not None
    for check in checks:
        tree = bind_check(check, schema)
        named = {ids[0] for ids in column_paths(tree)}
        selected = Schema(tuple(f for f in schema if f.id in named) or schema.fields[:1], schema.schema_id)
        try:
            with closing(_rows(store, snapshot, selected, _false(check, schema), without)) as batches:
                if (batch := next(batches, None)) is not None:
                    arrays = {f.id: batch.column(at) for at, f in enumerate(selected)}
                    raise violated_check(check, tree, arrays, 0)
        except InvalidInput as error:
            if error.code != "FILTER_FAILED":
                raise
            raise failed_check(check, tree, {}, None, error.message.rpartition(": ")[2]) from error


def _rows(
    store: Store, snapshot: Snapshot, selected: Schema, wrong: Expr, without: PartIds
) -> Generator[pa.RecordBatch, None, None]:
    """Yield the rows for which ``wrong`` is true."""
    found = find_matching(store, snapshot, selected, (wrong,), _options(snapshot.head))
    parts = found.parts.where(~np.isin(found.parts.table["part_id"].to_pylist(), list(without)))
    tracked = TrackedRead(found, parts=parts)
    try:
        for ref in parts:
            yield from (batch for batch in tracked.rows(ref) if len(batch))
    finally:
        tracked.finish()


def _options(head: Head) -> Options:
    return Options.resolve(None, None, head.properties)


def _false(check: Constraint, schema: Schema) -> Expr:
    """Return the filter of the rows for which the constraint is false."""
    return make_call("not", bind_check(check, schema))
