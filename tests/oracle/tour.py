"""A fixed walk with which each run begins: every reader, with a filter that the scan owns and with one that Spark tests again."""

from __future__ import annotations

from collections.abc import Iterator

from tests.oracle import history as h
from tests.oracle.query import EXACT, SOME, Query
from tests.oracle.settings import USUAL, Settings

ROWS = 64
HISTORY: h.History = (
    h.Create({"k": "bigint", "a": "int", "b": "bigint", "s": "string"}),
    *(
        h.Append(
            {
                "k": [*rows],
                "a": [k // 2 for k in rows],
                "b": [k * 7 % 10 for k in rows],
                "s": [f"k{k % 9:03}" for k in rows],
            }
        )
        for rows in (range(at * ROWS, at * ROWS + ROWS) for at in range(3))
    ),
)
FILTERS = ("a >= 0", "a >= 37", "b = 3", "a = 40 AND b > 2", "k BETWEEN 60 AND 140", "a > 1000")
"""True of every row, of whole blocks and more, of some rows of each block, of few, of one part and some rows of its neighbours, of none."""
RISKY = ("100 / b > 30", "CAST(s AS INT) = 10", "CAST(a * 10 AS TINYINT) > 5")
"""Filters that fail on some rows in ANSI mode."""
UNKNOWN = ("a >= 37 AND soundex(s) <> 'K000'", "b > 2 AND exp(b) > 20")
"""Filters that a scan cannot own: the embedded evaluator does not decide them alone."""
TASKS = {"spark.sql.files.openCostInBytes": "1", "spark.sql.files.maxPartitionBytes": "1b"}
"""One task per part, or per block."""


def steps() -> Iterator[tuple[Settings, Query]]:
    """Settings and queries."""
    for lazy in ("on", "off", "auto", "native"):
        for text in FILTERS:
            settings = USUAL | {"tamis.read.lazy": lazy, "tamis.read.native_bytes": "0"}
            unlimited = f"SELECT s FROM oracle_t0 WHERE {text}"
            yield settings, Query(unlimited, EXACT, "tour")
            yield settings, Query(f"SELECT DISTINCT s FROM oracle_t0 WHERE {text}", EXACT, "tour")
            yield settings, Query(f"{unlimited} LIMIT 150", SOME, "tour", unlimited)
            yield settings | TASKS, Query(f"SELECT count(*), min(k), max(b) FROM oracle_t0 WHERE {text}", EXACT, "tour")
        for text in UNKNOWN:
            yield settings, Query(f"SELECT count(*), max(a) FROM oracle_t0 WHERE {text}", EXACT, "tour")
            yield settings, Query(f"SELECT s FROM oracle_t0 WHERE {text} LIMIT 500", EXACT, "tour")
        for text in RISKY:
            yield settings, Query(f"SELECT s FROM oracle_t0 WHERE {text}", EXACT, "tour")
