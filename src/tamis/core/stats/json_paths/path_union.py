"""The union of the JSON paths of several parts.

Invariant: the union admits what any part admits; a column without paths in some part is unknown in the union.
"""

from __future__ import annotations

from functools import reduce

import pyarrow as pa

from tamis.core.expr.json_codec.iso_times import Times
from tamis.core.stats.json_paths.path_rows import (
    COLUMNS,
    ROOT,
    Paths,
    PathStatistics,
    combine_paths,
    path_column,
    table_of,
)

MOST_ROWS = 200_000
"""Paths of all columns beyond which no union is built; the parts are then judged one by one."""


def union_of(table: pa.Table, parts: int) -> pa.Table | None:
    """Merge the rows of all ``parts`` parts into rows of one; None if no column is known in all of them.

    ``table`` has the rows of ``paths`` with ``part``.
    """
    paths = [n for n in table.column_names if n.endswith("|path")]
    if sum(len(table) - table[n].null_count for n in paths) > MOST_ROWS:
        return None
    ids = sorted({int(n.partition("|")[0]) for n in paths})
    return table_of({identifier: _united(table, identifier, parts) for identifier in ids})


def _united(table: pa.Table, identifier: int, parts: int) -> Paths:
    places = {kind: table.schema.get_field_index(path_column(identifier, kind)) for kind in COLUMNS}
    mine = table.select([table.schema.get_field_index("part"), *(at for at in places.values() if at >= 0)])
    rows = mine.filter(mine[path_column(identifier, "path")].is_valid())
    values = {kind: rows[path_column(identifier, kind)].to_pylist() for kind, at in places.items() if at >= 0}
    walks = values.get("walk", [None] * len(rows))
    by_part: dict[int, Paths] = {}
    for at, part in enumerate(rows["part"].to_pylist()):
        v = {kind: column[at] for kind, column in values.items()}
        by_part.setdefault(part, {})[v["path"]] = PathStatistics(
            v["kinds"],
            v["present"],
            v["nulls"],
            (v["long.lo"], v["long.hi"]),
            (v["real.lo"], v["real.hi"]),
            (v["string.lo"], v["string.hi"]),
            walks[at] or 0,
            Times(v["time.form"], v["time.lo"], v["time.hi"]) if v.get("time.form") is not None else None,
        )
    if len(by_part) < parts or any(ROOT not in paths for paths in by_part.values()):
        return {}
    return reduce(combine_paths, by_part.values())
