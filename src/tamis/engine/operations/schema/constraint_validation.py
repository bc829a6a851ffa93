"""Tests the rows that a table has already by new CHECK constraints, reading only parts that may hold a wrong row.

Invariant: a part is not read only if its statistics prove that the constraint is false for none of its rows and
fails on none. Rows never change within a part, so a part is tested once however often the commit is tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np

from tamis.core.expr import Expr, make_call
from tamis.core.expr import column_paths as columns_of
from tamis.core.types import Schema
from tamis.engine.operations.rows.overwrite import find_matching
from tamis.engine.operations.rows.row_change import read_set
from tamis.engine.operations.tracked_read import TrackedRead
from tamis.engine.part_writer.row_checks import failed_check, violated_check
from tamis.engine.scan import Options
from tamis.errors import InvalidInput
from tamis.storage.commit_log import Constraint, Head, Snapshot
from tamis.storage.commit_log.constraint_columns import check_tree
from tamis.storage.commit_log.table_constraints import enforced_constraints
from tamis.storage.object_store import Store


@dataclass(slots=True)
class Validation:
    """The test of existing rows by the constraints that a change of the head brings."""

    store: Store
    _tested: set[str] = field(default_factory=set)
    """Ids of the parts that passed."""
    _schema: Schema | None = None
    """The schema under which they passed."""

    def run(self, base: Snapshot, head: Head) -> dict[str, Any]:
        """Test the rows of ``base``; return what the proposal of ``head`` says that it read.

        Raises ``SchemaMismatch`` (``CHECK_VIOLATION``, ``CHECK_FAILED``) for the first wrong row.
        """
        known = {one.constraint_id for one in base.head.constraints}
        checks = [one for one in enforced_constraints(head.constraints) if one.constraint_id not in known]
        if not checks or head.schema is None:
            return {}
        if self._schema is not None and self._schema.fields != head.schema.fields:
            self._tested.clear()
        self._schema = head.schema
        check_rows(self.store, Snapshot(self.store, base.commit, head), checks, self._tested)
        self._tested |= set(base.parts()["part_id"].to_pylist())
        wrong = reduce(lambda a, b: make_call("or", a, b), [_false(one, head.schema) for one in checks])
        reads = read_set((wrong,), _options(head))
        return {"reads": reads, "conjuncts": (wrong,), "exact": True}


def check_rows(
    store: Store, snapshot: Snapshot, checks: Sequence[Constraint], without: set[str] | frozenset[str] = frozenset()
) -> None:
    """Test the rows of ``snapshot``, except those of the parts ``without``, by each of ``checks``."""
    schema = snapshot.schema
    assert schema is not None
    options = _options(snapshot.head)
    for check in checks:
        tree = check_tree(check, schema)
        named = {ids[0] for ids in columns_of(tree)}
        selected = Schema(tuple(f for f in schema if f.id in named) or schema.fields[:1], schema.schema_id)
        found = find_matching(store, snapshot, selected, (_false(check, schema),), options)
        parts = found.parts.where(~np.isin(found.parts.table["part_id"].to_pylist(), list(without)))
        tracked = TrackedRead(found, parts=parts)
        try:
            for ref in parts:
                for batch in tracked.rows(ref):
                    if len(batch):
                        arrays = {f.id: batch.column(at) for at, f in enumerate(selected)}
                        raise violated_check(check, tree, arrays, 0)
        except InvalidInput as error:
            if error.code != "FILTER_FAILED":
                raise
            raise failed_check(check, tree, {}, None, error.message.rpartition(": ")[2]) from error
        finally:
            tracked.finish()


def _options(head: Head) -> Options:
    return Options.resolve(None, None, head.properties)


def _false(check: Constraint, schema: Schema) -> Expr:
    """Return the filter of the rows for which the constraint is false."""
    return make_call("not", check_tree(check, schema))
