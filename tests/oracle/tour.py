"""A fixed walk with which each run begins: every reader, with a filter that the scan owns and with one that Spark tests again."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal

from tests.oracle import history as h
from tests.oracle.query import EXACT, ORDERED, SOME, Query
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
FILTERS = ("a >= 0", "a >= 37", "b = 3", "a = 40 AND b > 2", "k BETWEEN 60 AND 140", "k IN (3, 70, 150)", "a > 1000")
"""True of every row, of whole blocks and more, of some rows of each block, of few, of one part and some rows of its neighbours, of a row of each part, of none."""
RISKY = ("100 / b > 30", "CAST(s AS INT) = 10", "CAST(a * 10 AS TINYINT) > 5")
"""Filters that fail on some rows in ANSI mode."""
UNKNOWN = ("a >= 37 AND soundex(s) <> 'K000'", "b > 2 AND exp(b) > 20")
"""Filters that a scan cannot own: the embedded evaluator does not decide them alone."""
BEST = "ORDER BY b DESC, k DESC LIMIT 8"
"""Its rows lie in all parts: a look at the best part finds eight rows, and not the eight best."""
TASKS = {"spark.sql.files.openCostInBytes": "1", "spark.sql.files.maxPartitionBytes": "1b"}
"""One task per part, or per block."""


ADOPTED: tuple[h.History, ...] = tuple(
    (
        h.Adopt(
            {"k": "bigint", "s": "string", "b": "double", "c": "char", "d": "decimal38", "a": "int"},
            source=source,
            values={
                "k": [*range(2 * ROWS)],
                "s": [f"k{k % 9:03}" for k in range(2 * ROWS)],
                "b": [math.nan if k % 50 == 7 else k * 7 % 10 / 2 for k in range(2 * ROWS)],
                "c": [f"c{k % 9:03}" for k in range(2 * ROWS)],
                "d": [Decimal(k * 10**16 + 7) for k in range(2 * ROWS)],  # as a double, less than it is
                "a": [k // 50 for k in range(2 * ROWS)],
            },
            files=2,
            partition=partition,
            deleted=deleted,
            options={"deletes": "vectors", "page_index": "true", "page_rows": "4"},
        ),
    )
    for source, partition, deleted in (
        ("folder", None, ()),
        ("hive", "a", ()),
        ("delta", "a", (0, 5, 127)),
        ("iceberg", None, (0, 5, 127)),
    )
)
"""A table of each source."""
OVER_ADOPTED = (
    ("SELECT count(*), min(k), max(k), max(b) FROM oracle_t0", EXACT),
    ("SELECT k, s FROM oracle_t0 WHERE k >= 3 AND k < 9", EXACT),
    ("SELECT s, b, a FROM oracle_t0 WHERE k IN (17, 65)", EXACT),
    ("SELECT k FROM oracle_t0 WHERE c = 'c008'", EXACT),
    ("SELECT k, d FROM oracle_t0 WHERE d IN (490000000000000007, 630000000000000007)", EXACT),
    ("SELECT a, count(*) FROM oracle_t0 WHERE b > 3 GROUP BY a", EXACT),
    ("SELECT k FROM oracle_t0 ORDER BY k DESC LIMIT 3", ORDERED),
    ("SELECT count(*) FROM oracle_t0", EXACT),
    ("SELECT s FROM oracle_t0 WHERE k > 1000", EXACT),
)

FEW = ("b = 3 AND k > 60", "c = 'c008'", "s = 'k003' AND k < 20", "k = 17", "k IN (17, 65)")
"""Filters of a few rows of adopted tables, for embedded scans."""
LAZILY = {"tamis.read.lazy": "on", "timezone": "UTC", "ansi": True}


PLACED: h.History = (
    h.Create({"k": "bigint", "ar": "array", "ma": "map"}),
    *(
        h.Append(
            {
                "k": [*rows],
                "ar": [[k // ROWS, 9 - k // ROWS][: 1 + k % 2] + [7] * 8 * (k % 5 == 0) for k in rows],
                "ma": [
                    [("low", k // ROWS), (f"rare{k % 3}", k // ROWS), ("high", 9 - k // ROWS)][: 2 + k % 2]
                    for k in rows
                ],
            }
        )
        for rows in (range(at * ROWS, at * ROWS + ROWS) for at in range(3))
    ),
)
"""Arrays and maps whose positions and keys have other values in each part; some have more than have statistics (of keys, at the small scale)."""
OVER_PLACED = (
    "ar[0] = 1",
    "get(ar, 1) = 7",
    "get(ar, 8) = 7",
    "try_element_at(ar, 2) IS NOT NULL AND ar[0] > 1",
    "element_at(ar, 1) > 5",
    "ma['low'] = 2",
    "ma.high BETWEEN 8 AND 9",
    "element_at(ma, 'high') IS NULL AND ma['low'] < 1",
    "try_element_at(ma, 'none') = 1",
    "ma['rare2'] = 1",
    "ma['rare1'] IS NOT NULL",
)


def over_placed() -> Iterator[tuple[Settings, Query]]:
    """Settings and queries for the table of ``PLACED``."""
    for lazy in ("on", "native"):
        for text in OVER_PLACED:
            yield USUAL | {"tamis.read.lazy": lazy}, Query(f"SELECT k FROM oracle_t0 WHERE {text}", EXACT, "tour")


def over_adopted() -> Iterator[tuple[Settings, Query]]:
    """Settings and queries for tables of ``ADOPTED``."""
    for lazy in ("on", "off"):
        for text, judge in OVER_ADOPTED:
            yield USUAL | {"tamis.read.lazy": lazy}, Query(text, judge, "tour")


MERGED_SUBQUERIES = (
    "SELECT (SELECT sum(k) FROM oracle_t0 WHERE k > 20), (SELECT sum(hash(s)) FROM oracle_t0 WHERE k > 20)"
)


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
        yield settings | TASKS, Query(f"SELECT k, b FROM oracle_t0 {BEST}", ORDERED, "tour")
        yield settings, Query(MERGED_SUBQUERIES, EXACT, "tour")
        for text in UNKNOWN:
            yield settings, Query(f"SELECT count(*), max(a) FROM oracle_t0 WHERE {text}", EXACT, "tour")
            yield settings, Query(f"SELECT s FROM oracle_t0 WHERE {text} LIMIT 500", EXACT, "tour")
        for text in RISKY:
            yield settings, Query(f"SELECT s FROM oracle_t0 WHERE {text}", EXACT, "tour")
