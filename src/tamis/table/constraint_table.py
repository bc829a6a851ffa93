"""The metadata table ``constraints``: one row per constraint of a table."""

from __future__ import annotations

import pyarrow as pa

from tamis.core.types import Schema
from tamis.storage.commit_log import Snapshot
from tamis.storage.commit_log.table_constraints import KINDS, column_names

_SCHEMA = pa.schema(
    [
        *[("name", pa.string()), ("kind", pa.string()), ("columns", pa.list_(pa.string()))],
        *[("expression", pa.string()), ("enforced", pa.bool_()), ("definition", pa.string())],
    ]
)


def constraint_rows(snapshot: Snapshot) -> pa.Table:
    """Return name, kind, columns, expression of a CHECK, whether it is enforced, and the definition as SQL."""
    schema = snapshot.schema or Schema(())
    rows = [
        {
            "name": one.name,
            "kind": KINDS[one.kind],
            "columns": column_names(one, schema),
            "expression": one.expression or None,
            "enforced": one.enforced,
            "definition": one.definition(schema),
        }
        for one in snapshot.head.constraints
    ]
    return pa.Table.from_pylist(rows, schema=_SCHEMA)
