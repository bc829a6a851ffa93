"""Through Spark SQL: CHAR columns, arrays and maps skip parts, and the rows are those of a plain table."""

from __future__ import annotations

from tests.spark.conftest import Lake

import tamis

SCHEMA = "id BIGINT, c CHAR(6), arr ARRAY<INT>, mp MAP<STRING, INT>"
PARTS = [
    "(1, 'ab', array(1, 2), map('k', 1)), (2, 'ac', array(3), map('k', 2))",
    "(3, 'xy', array(10, NULL), map('z', 7)), (4, 'xz', array(11, 12), map('z', 8))",
    "(5, 'mm', array(), map()), (6, NULL, NULL, NULL)",
]
FILTERS = {
    "c = 'ab'": 2, "c IN ('xy', 'mm')": 1, "c >= 'x'": 2, "size(arr) = 0": 2, "mp['z'] = 7": 2, "mp['z'] > 100": 3, "mp['none'] = 1": 3,
    "array_contains(arr, 11)": 2, "exists(arr, x -> x > 11)": 2, "try_element_at(arr, 1) = 3": 2, "cardinality(mp) = 1": 1,
    "hash(id) = 3 AND id > 100": 3, "id & 1 = 1 AND id < 3": 2,
}  # fmt: skip
"""And how many of the three parts are skipped."""


def test_parts_are_skipped(lake: Lake) -> None:
    lake.sql(f"CREATE TABLE lake.db.t ({SCHEMA}) USING tamis")
    lake.sql(f"CREATE TABLE plain_nested ({SCHEMA}) USING parquet")
    for values in PARTS:
        for name in ("lake.db.t", "plain_nested"):
            lake.sql(f"INSERT INTO {name} SELECT /*+ COALESCE(1) */ * FROM VALUES {values} AS v(id, c, arr, mp)")
    found = {}
    for text in FILTERS:
        rows = sorted(lake.rows(f"SELECT id, c FROM lake.db.t WHERE {text}"))
        assert rows == sorted(lake.rows(f"SELECT id, c FROM plain_nested WHERE {text}")), text
        parts = tamis.reports(1)[0].as_dict()["parts"]
        found[text] = parts["skipped_stats"] + parts["skipped_segment"]
    lake.sql("DROP TABLE plain_nested")
    assert found == FILTERS
