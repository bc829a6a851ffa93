"""JSON paths of several parts taken together. Law: the union admits what any part admits; a column that some part says nothing of is unknown in all."""

from __future__ import annotations

from functools import reduce

import pyarrow as pa

from tamis.core.stats.json_paths.path_rows import COLUMNS, ROOT, Paths, PathStatistics, combined, name, table_of

MOST_ROWS = 200_000
"""Rows beyond which there is no union: the parts are judged one by one."""


def union_of(table: pa.Table, parts: int) -> pa.Table | None:
    """The rows of all ``parts`` parts as rows of one; ``table`` has the rows of ``paths`` with ``part``. None where nothing is known of all."""
    if len(table) > MOST_ROWS:
        return None
    ids = sorted({int(n.partition("|")[0]) for n in table.column_names if n.endswith("|path")})
    return table_of({identifier: _united(table, identifier, parts) for identifier in ids})


def _united(table: pa.Table, identifier: int, parts: int) -> Paths:
    rows = table.filter(table[name(identifier, "path")].is_valid())
    values = {kind: rows[name(identifier, kind)].to_pylist() for kind in COLUMNS if name(identifier, kind) in rows.column_names}
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
        )
    if len(by_part) < parts or any(ROOT not in paths for paths in by_part.values()):
        return {}
    return reduce(combined, by_part.values())
