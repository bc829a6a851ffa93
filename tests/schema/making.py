"""Small tables with a history of schemas."""

from __future__ import annotations

import itertools
from typing import Any

import pyarrow as pa

import tamis
from tamis import Table

_NAMES = itertools.count()
INT, BIG, TEXT = pa.int32(), pa.int64(), pa.string()


def f(name: str, kind: pa.DataType = BIG, nullable: bool = True) -> pa.Field:
    return pa.field(name, kind, nullable=nullable)


def new_table(*fields: pa.Field, rows: list[dict[str, Any]] | None = None, **options: Any) -> Table:
    """A table in memory of a name of its own, with these columns and rows."""
    table = tamis.create(f"memory://schema-{next(_NAMES)}", pa.schema(fields) if fields else None, **options)
    if rows:
        table.append(pa.Table.from_pylist(rows, schema=pa.schema(fields)))
    return table


def rows(table: Table, *arguments: Any, **scan: Any) -> list[dict[str, Any]]:
    """In order, by a fresh look at the table."""
    return list(tamis.open(table.path).scan(*arguments, **scan).to_arrow().to_pylist())
