"""Tables of one meaning put under each other, whatever columns each has.

Column names of manifests: those that begin with a digit are statistics, the number is the column id; the rest are facts.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pyarrow as pa


def is_statistic(name: str) -> bool:
    return name[:1].isdigit()


def column_id(name: str) -> int:
    """The column id that a statistics column is about, -1 where the name has none."""
    number = name.partition("|")[0]
    return int(number) if number.isascii() and number.isdigit() else -1


def wanted(names: Sequence[str], facts: Collection[str], ids: Collection[int]) -> list[str]:
    """Of ``names``: the facts asked for, and the statistics of the column ids asked for."""
    return [name for name in names if (column_id(name) in ids if is_statistic(name) else name in facts)]


def stack(tables: Sequence[pa.Table]) -> pa.Table:
    """All rows, in order; a column that a table lacks is NULL there.

    A statistic that has two types is left out: unknown. Raises ``ValueError`` where a fact has.
    """
    tables = [table for table in tables if table.num_columns]
    if len(tables) == 1:
        return tables[0]
    fields: dict[str, pa.Field] = {}
    doubtful: set[str] = set()
    for table in tables:
        for field in table.schema:
            known = fields.get(field.name)
            if known is None or pa.types.is_null(known.type):
                fields[field.name] = field.with_nullable(True).remove_metadata()
            elif known.type != field.type and not pa.types.is_null(field.type):
                doubtful.add(field.name)
    if bad := [name for name in doubtful if not is_statistic(name)]:
        raise ValueError(f"column {bad[0]!r} has two types")
    schema = pa.schema([field for name, field in fields.items() if name not in doubtful])
    return pa.concat_tables([_under(table, schema) for table in tables])


def _under(table: pa.Table, schema: pa.Schema) -> pa.Table:
    have = set(table.column_names)
    columns = [table.column(f.name).cast(f.type) if f.name in have else pa.chunked_array([pa.nulls(len(table), f.type)]) for f in schema]
    return pa.table(columns, schema=schema)
