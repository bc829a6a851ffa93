"""Columns of a schema as nodes of the filter language."""

from __future__ import annotations

from tamis.core.expr.tree import Column
from tamis.core.types import Schema
from tamis.core.types.identifiers import dotted_path


def column_by_ids(schema: Schema, ids: tuple[int, ...]) -> Column:
    """Return the column with this id path, named as in SQL."""
    fields = [schema.by_id[i] for i in ids]
    return Column(fields[-1].type, ids, dotted_path(f.name for f in fields), any(f.nullable for f in fields))
