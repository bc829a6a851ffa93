"""What aggregates and orders give, computed in Python over values in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from tests.oracle.judges import plain_value
from tests.oracle.kinds import rank

Row = tuple[Any, ...]


def plain_rows(table: pa.Table) -> list[Row]:
    """The rows, where values that Spark takes for one are equal."""
    columns = [[plain_value(value) for value in column.to_pylist()] for column in table.columns]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


def aggregated(rows: pa.Table, measures: Sequence[str], groups: Sequence[str]) -> Counter[Row]:
    """The rows of an aggregation; ``measures`` are ``count(*)``, ``count(x)``, ``min(x)`` and ``max(x)``."""
    keys = plain_rows(rows.select(list(groups)))
    members: dict[Row, list[int]] = {} if groups else {(): []}
    for at, key in enumerate(keys):
        members.setdefault(key, []).append(at)
    values = {name: rows[name].to_pylist() for name in {_named(m) for m in measures} - {"*"}}
    found = Counter[Row]()
    for key, places in members.items():
        found[*key, *(_measured(m, values, places) for m in measures)] += 1
    return found


def ordered(rows: pa.Table, keys: Sequence[tuple[str, bool, bool]], limit: int) -> list[Row]:
    """The keys of the first rows; each key is a column, whether it descends, and whether NULLs come first."""
    places = list(range(rows.num_rows))
    for name, descending, nulls_first in reversed(keys):
        values = rows[name].to_pylist()
        nulls = [at for at in places if values[at] is None]
        there = sorted(
            (at for at in places if values[at] is not None), key=lambda at: rank(values[at]), reverse=descending
        )
        places = nulls + there if nulls_first else there + nulls
    return plain_rows(rows.select([name for name, _, _ in keys]).take(pa.array(places[:limit], pa.int64())))


def _named(measure: str) -> str:
    return measure.partition("(")[2].rstrip(")")


def _measured(measure: str, values: dict[str, list[Any]], places: list[int]) -> Any:
    name = _named(measure)
    if name == "*":
        return len(places)
    there = [values[name][at] for at in places if values[name][at] is not None]
    if measure.startswith("count"):
        return len(there)
    if not there:
        return None
    return plain_value((min if measure.startswith("min") else max)(there, key=rank))
