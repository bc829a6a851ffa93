"""Concatenates tables of the same kind that may have different columns.

In manifests, a column whose name begins with a digit is a statistic, and the number is the column id; the
other columns are facts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import pyarrow as pa


def is_statistic(name: str) -> bool:
    return name[:1].isdigit()


def wanted_columns(names: Sequence[str], facts: Collection[str], ids: Collection[int]) -> list[str]:
    """Select from ``names`` the requested facts and the statistics of the requested column ids."""
    numbers = {str(identifier) for identifier in ids}
    return [name for name in names if (name.partition("|")[0] in numbers if is_statistic(name) else name in facts)]


def stack_tables(tables: Sequence[pa.Table]) -> pa.Table:
    """Concatenate all rows in order; a column that a table lacks is NULL there.

    A statistic that has two types is dropped and thereby unknown. Raises ``ValueError`` for a fact that has
    two.
    """
    tables = [table for table in tables if table.num_columns]
    if len(tables) == 1:
        return tables[0]
    try:
        return pa.concat_tables(tables, promote_options="default")
    except pa.ArrowException:  # a name has two types
        schema = common_schema([table.schema for table in tables])
        return pa.concat_tables([cast_to_schema(table, schema) for table in tables])


def common_schema(schemas: Iterable[pa.Schema]) -> pa.Schema:
    """Return the schema of the concatenation of tables with these schemas."""
    fields: dict[str, pa.Field] = {}
    doubtful: set[str] = set()
    for field in (field for schema in schemas for field in schema):
        known = fields.get(field.name)
        if known is None or pa.types.is_null(known.type):
            fields[field.name] = pa.field(field.name, field.type)
        elif known.type != field.type and not pa.types.is_null(field.type):
            doubtful.add(field.name)
    if bad := [name for name in doubtful if not is_statistic(name)]:
        raise ValueError(f"column {bad[0]!r} has two types")
    return pa.schema([field for name, field in fields.items() if name not in doubtful])


def cast_to_schema(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Cast the table to ``schema``, which ``common_schema`` made from its own schema and others."""
    if table.schema.equals(schema):
        return table
    have = set(table.column_names)
    columns = [
        table.column(f.name).cast(f.type) if f.name in have else pa.chunked_array([pa.nulls(len(table), f.type)])
        for f in schema
    ]
    return pa.table(columns, schema=schema)
