"""Columns of a schema as nodes of the filter language."""

from __future__ import annotations

from tamis.core.expr.tree import Column
from tamis.core.types import Schema


def bound(schema: Schema, ids: tuple[int, ...]) -> Column:
    """Return the column with this id path, named as in SQL."""
    fields = [schema.by_id[i] for i in ids]
    name = ".".join("`" + f.name.replace("`", "``") + "`" if "." in f.name or "`" in f.name else f.name for f in fields)
    return Column(fields[-1].type, ids, name, any(f.nullable for f in fields))
