"""Through Spark SQL: CHAR columns, arrays and maps skip parts, and the rows are those of a plain table."""

from __future__ import annotations

import pytest
from tests.spark.capabilities import has_time_type
from tests.spark.conftest import Lake

import tamis

SCHEMA = "id BIGINT, c CHAR(6), arr ARRAY<INT>, mp MAP<STRING, INT>, lines ARRAY<STRUCT<sku: STRING, qty: INT>>, ms MAP<STRING, STRUCT<v: INT>>"
LINE = "named_struct('sku', '{}', 'qty', {})"
PARTS = [
    f"(1, 'ab', array(1, 2), map('k', 1), array({LINE.format('a1', 1)}, {LINE.format('a2', 2)}), map('k', named_struct('v', 1))), (2, 'ac', array(3), map('k', 2), array({LINE.format('a3', 3)}), map('k', named_struct('v', 2)))",
    f"(3, 'xy', array(10, NULL), map('z', 7), array({LINE.format('b1', 11)}), map('z', named_struct('v', 7))), (4, 'xz', array(11, 12), map('z', 8), array(NULL, {LINE.format('b2', 12)}), map('k', NULL))",
    "(5, 'mm', array(), map(), array(), map()), (6, NULL, NULL, NULL, NULL, NULL)",
]
FILTERS = {
    "c = 'ab'": 2, "c IN ('xy', 'mm')": 1, "c >= 'x'": 2, "size(arr) = 0": 2, "mp['z'] = 7": 2, "mp['z'] > 100": 3, "mp['none'] = 1": 3,
    "array_contains(arr, 11)": 2, "exists(arr, x -> x > 11)": 2, "try_element_at(arr, 1) = 3": 2, "cardinality(mp) = 1": 1,
    "get(lines, 0).sku = 'a3'": 2, "try_element_at(lines, 1).sku LIKE 'b%'": 2, "array_contains(lines.sku, 'b2')": 2, "try_element_at(lines, 2).qty > 5": 2,
    "array_contains(transform(lines, l -> l.sku), 'a1')": 2, "ms['z'].v = 7": 2, "ms['k'].v > 1": 2, "exists(lines, l -> l.qty > 11)": 2, "get(lines, 0).qty IS NULL": 1,
    "get(arr, 0) = 3": 2, "get(arr, 1) = 3": 3, "try_element_at(arr, 2) IS NOT NULL": 1, "mp['k'] = 2": 2, "mp.k = 2": 2, "element_at(mp, 'k') = 7": 3, "try_element_at(mp, 'z') = 8": 2,
    "mp['k'] IS NOT NULL": 2, "get(lines.sku, 0) = 'a2'": 2,
    "hash(id) = 3 AND id > 100": 3, "id & 1 = 1 AND id < 3": 2,
}  # fmt: skip
"""And how many of the three parts are skipped."""


def test_parts_are_skipped(lake: Lake) -> None:
    if not has_time_type(lake.spark):
        pytest.skip("Spark 4.0 cannot plan an INSERT of a CHAR and a map of structs behind a hint")
    lake.sql(f"CREATE TABLE lake.db.t ({SCHEMA}) USING tamis")
    lake.sql(f"CREATE TABLE plain_nested ({SCHEMA}) USING parquet")
    for values in PARTS:
        for name in ("lake.db.t", "plain_nested"):
            lake.sql(
                f"INSERT INTO {name} SELECT /*+ COALESCE(1) */ * FROM VALUES {values} AS v(id, c, arr, mp, lines, ms)"
            )
    found = {}
    held = tamis.open(lake.folder / "db" / "t")
    for text, skipped in FILTERS.items():
        rows = sorted(lake.rows(f"SELECT id, c FROM lake.db.t WHERE {text}"))
        parts = tamis.reports(1)[0].as_dict()["parts"]
        found[text] = parts["skipped_stats"] + parts["skipped_segment"]
        assert rows == sorted(lake.rows(f"SELECT id, c FROM plain_nested WHERE {text}")), text
        if "hash(" not in text and "&" not in text:
            embedded = held.scan(text, ["id", "c"])
            assert sorted((r["id"], r["c"]) for r in embedded.to_arrow().to_pylist()) == rows, text
            assert embedded.plan().report.parts["kept"] == len(PARTS) - skipped, text
    lake.sql("DROP TABLE plain_nested")
    assert found == FILTERS
