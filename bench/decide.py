"""Deciding: what a filter costs over many parts whose statistics are in memory, and whether time grows in step with parts, nodes and lists.

``tamis`` decides for all parts at once; nothing is read. Times are CPU seconds, the best of a few runs: one core does it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from bench.report import Figure, quick, record
from tamis.core import expr
from tamis.core.pruning import decide
from tamis.core.stats import TableEvidence
from tamis.core.stats.json_paths import path_rows
from tamis.core.stats.json_paths.path_evidence import PathTable
from tamis.core.types import INTEGER, LONG, STRING, TIMESTAMP, Field, Schema

SCHEMA = Schema(
    (
        Field("ts", TIMESTAMP, True, 1),
        Field("code", INTEGER, True, 2),
        Field("user", LONG, True, 3),
        Field("name", STRING, True, 4),
    )
)
START = 1_704_067_200_000_000
HOUR = 3_600_000_000
CODES = ", ".join(str(c) for c in range(0, 400, 20))
TEN = (
    f"date_trunc('DAY', ts) + INTERVAL 1 DAY > TIMESTAMP'2025-01-10 00:00:00' AND cast(user AS INT) > 5 AND "
    f"(code IN ({CODES}) OR user < 100 AND code > 7)"
)
"""About ten nodes: date_trunc, an interval, a cast, an IN of 20, AND and OR."""


def parts(count: int) -> TableEvidence:
    """Statistics of so many parts of an hour each, with codes and users that lie anywhere."""
    rng = np.random.default_rng(1)
    first = START + np.arange(count, dtype=np.int64) * (HOUR // max(1, count // 10_000))
    code, user = rng.integers(0, 1_000, count).astype(np.int32), rng.integers(0, 10**6, count)
    instant = pa.timestamp("us", tz="UTC")
    columns: dict[str, Any] = {"rows": np.full(count, 1_000)}
    for column_id, kind, low, high, arrow in (
        (1, "timestamp", first, first + HOUR, instant),
        (2, "integer", code, code + np.int32(9), pa.int32()),
        (3, "long", user, user + 500, pa.int64()),
    ):
        columns[f"{column_id}|{kind}|lo"] = pa.array(low).cast(arrow)
        columns[f"{column_id}|{kind}|hi"] = pa.array(high).cast(arrow)
        columns[f"{column_id}|nulls"] = np.zeros(count, np.int64)
    return TableEvidence(pa.table(columns), SCHEMA)


def best(run: Callable[[], Any], times: int = 5) -> float:
    """CPU seconds of the fastest of a few runs."""
    taken = []
    for _ in range(times):
        start = time.process_time()
        run()
        taken.append(time.process_time() - start)
    return min(taken)


def deciding(text: str, evidence: TableEvidence, zone: str = "UTC") -> float:
    conjuncts = expr.conjuncts_of(expr.parse_predicate(text, SCHEMA, zone=zone))
    return best(lambda: decide(conjuncts, evidence, now=(START, START)))


def listed(count: int) -> str:
    return f"user IN ({', '.join(str(i * 7) for i in range(count))})"


def with_documents(count: int, keys: int) -> TableEvidence:
    """As ``parts``, each with JSON text of so many keys that hold integers, ``a0`` rising with the part."""
    kinds, rows = ["$", *(f"$.a{k}" for k in range(keys))], np.arange(count * (keys + 1))
    part, at = rows // (keys + 1), rows % (keys + 1)
    low = np.where(at == 1, part * 10, 0)
    columns = {
        "segment": np.zeros(len(rows), np.int32), "part": part.astype(np.int32), "path": pa.array(kinds).take(pa.array(at)),
        "kinds": np.where(at == 0, path_rows.MAP, path_rows.LONG).astype(np.int32), "present": np.full(len(rows), 1_000), "nulls": np.zeros(len(rows), np.int64),
        "long.lo": pa.array(low, mask=at == 0), "long.hi": pa.array(low + 9, mask=at == 0),
    }  # fmt: skip
    names = {name: name if name in {"segment", "part"} else path_rows.path_column(4, name) for name in columns}
    table = pa.table({names[name]: column for name, column in columns.items()})
    for name, kind in path_rows.COLUMNS.items():
        if path_rows.path_column(4, name) not in table.column_names:
            table = table.append_column(path_rows.path_column(4, name), pa.nulls(len(rows), kind))
    held = pa.table(
        {"segment": np.zeros(count, np.int32), "part": np.arange(count, dtype=np.int32), "rows": np.full(count, 1_000)}
    )
    return TableEvidence(held, SCHEMA, PathTable.of_parts(table, held))


def by_path(count: int, keys: int) -> float:
    """A number in the documents of so many parts, of which all but one are skipped."""
    conjuncts = expr.conjuncts_of(expr.parse_predicate("cast(get_json_object(name, '$.a0') AS BIGINT) = 55", SCHEMA))
    evidence = with_documents(count, keys)
    assert int((~decide(conjuncts, evidence).none).sum()) == 1
    return best(lambda: decide(conjuncts, evidence), 3)


def main() -> None:
    count = 20_000 if quick() else 1_000_000
    evidence, tenth = parts(count), parts(count // 10)
    ten, berlin = deciding(TEN, evidence), deciding(TEN, evidence, "Europe/Berlin")
    small = deciding(TEN, tenth)
    nodes = {n: deciding(" OR ".join(f"user + {i} < {i}" for i in range(n)), tenth) for n in (4, 40)}
    lists = {n: deciding(listed(n), tenth) for n in (4, 1_000, 100_000)}
    text = listed(100_000)
    from_text = best(lambda: decide(expr.conjuncts_of(expr.parse_predicate(text, SCHEMA)), tenth), 3)
    values = pa.array(np.random.default_rng(2).integers(0, 10**6, 2 * count))
    members = {
        n: best(lambda n=n: expr.evaluate(expr.parse_predicate(listed(n), SCHEMA), {3: values}, len(values)))
        for n in (4, 1_000)
    }  # type: ignore[misc]
    paths = {
        f"{n:,} parts, {keys} paths": by_path(n, keys) for n, keys in ((count // 10, 2), (count, 2), (count // 10, 20))
    }
    figures = [
        Figure(f"ten nodes, {count:,} parts", ten, "CPU s", 0.3),
        Figure(f"ten nodes, {count:,} parts, Europe/Berlin", berlin, "CPU s", 0.3),
        Figure("time of ten times the parts", ten / small, "×", 12),
        Figure("time of ten times the nodes", nodes[40] / nodes[4], "×", 12),
        Figure(f"IN of 100,000 against {count // 10:,} parts", lists[100_000], "CPU s", 0.5),
        Figure("the same with reading its text", from_text, "CPU s", 0.5),
        Figure("IN of 1,000 against IN of 4, parts", lists[1_000] / lists[4], "×", 2),
        Figure("IN of 1,000 against IN of 4, rows", members[1_000] / members[4], "×", 2),
        *(Figure(f"a number in JSON text, {name}", value, "CPU s") for name, value in paths.items()),
    ]
    record(
        "decide",
        figures,
        {"lists": {str(k): v for k, v in lists.items()}, "nodes": {str(k): v for k, v in nodes.items()}},
    )


if __name__ == "__main__":
    main()
