"""Rows built from an index alone are those of the base, where only Spark can test a value and no Spark tests it again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tamis
from tamis.errors import InvalidInput

LOOKUP = {"tamis.index.use": "lookup"}
DOUBLES, TEXTS = pa.float64(), pa.string()
CASES: list[tuple[pa.DataType, list[Any], str]] = [
    (DOUBLES, [1e20, 2.0], "CAST(c AS STRING) = 'abc'"),
    (DOUBLES, [1e20, 2.0, 2.5], "CAST(c AS STRING) LIKE '2%'"),
    (DOUBLES, [1e20, 2.0], "try_cast(c AS DECIMAL(5,1)) = 5"),
    (DOUBLES, [1e20, 5.0, 5.0], "try_cast(c AS DECIMAL(5,1)) = 5"),
    (DOUBLES, [1e20, 2.0], "concat(c, 'x') = '2.0x'"),
    (pa.float32(), [1e20, 2.0], "CAST(c AS STRING) IN ('2.0', '3.0')"),
    (TEXTS, ["\ua7d3x", "a"], "upper(c) = 'A'"),  # letters that are newer than some Java's Unicode
    (TEXTS, ["\U00010d50x", "a"], "lower(c) = 'a'"),
    (TEXTS, ["2024-01-01 10:00:00 Europe/Paris", "2024-01-01"], "try_cast(c AS TIMESTAMP) = TIMESTAMP'2024-01-01'"),
    (TEXTS, ['{"a":1.5e20}', '{"a":"x"}'], "get_json_object(c, '$.a') = 'x'"),
    (TEXTS, ['{"a":1e400}', '{"a":"x"}'], "get_json_object(c, '$.a') = 'x'"),
]


def made(folder: Path, kind: pa.DataType, values: list[Any], parts: int = 1) -> tamis.Table:
    table = tamis.create(folder, pa.schema([("id", pa.int64()), ("c", kind)]))
    for _ in range(parts):
        table.append(pa.table({"id": range(len(values)), "c": pa.array(values, kind)}))
    return table


@pytest.mark.parametrize(("kind", "values", "text"), CASES, ids=[text for _, _, text in CASES])
@pytest.mark.parametrize("parts", [1, 3])
def test_an_index_changes_no_answer(
    tmp_path: Path, kind: pa.DataType, values: list[Any], text: str, parts: int
) -> None:
    table = made(tmp_path / "t", kind, values, parts)
    expected = sorted(table.scan(text, ["c"]).to_arrow()["c"].to_pylist())
    table.create_index("by_c", "c")
    scan = table.scan(text, ["c"], options=LOOKUP)
    assert sorted(scan.to_arrow()["c"].to_pylist()) == expected
    assert scan.report is not None
    assert "rows come from by_c alone" in (scan.report.index_reason or "")
    assert table.scan(text, options=LOOKUP).count() == len(expected)
    assert table.scan(text, options=LOOKUP).exists() == bool(expected)


def test_a_large_table_uses_the_index_by_itself(tmp_path: Path) -> None:
    values = ["\u0138x", *(f"k{n:06}" for n in range(100_000))]
    table = made(tmp_path / "t", TEXTS, values)
    table.create_index("by_c", "c")
    scan = table.scan("upper(c) = 'K000077'", ["c"])
    assert scan.to_arrow()["c"].to_pylist() == ["k000077"]
    assert scan.report is not None
    assert "rows come from by_c alone" in (scan.report.index_reason or "")


def test_a_row_that_fails_is_an_error_with_an_index_too(tmp_path: Path) -> None:
    malformed = pa.array([b"caf\xe9", b"cafe"], pa.binary()).cast(TEXTS, safe=False)
    table = tamis.create(tmp_path / "t", pa.schema([("c", TEXTS)]))
    table.append(pa.table({"c": malformed}))
    table.create_index("by_c", "c")
    for text in ("length(c) = 4", "upper(c) = 'CAFE'"):
        with pytest.raises(InvalidInput, match="MALFORMED_TEXT"):
            table.scan(text, options=LOOKUP).count()
    assert table.scan("c = 'cafe'", options=LOOKUP).count() == 1


def test_a_deleted_row_that_only_spark_can_test_costs_nothing_but_the_base(tmp_path: Path) -> None:
    """The index is neither damaged nor to be repaired: the rows come from the base."""
    texts = pa.array([b"caf\xe9", *(b"k%06d" % n for n in range(1000))], pa.binary()).cast(TEXTS, safe=False)
    table = tamis.create(tmp_path / "t", pa.schema([("k", pa.int64()), ("c", TEXTS)]))
    table.append(pa.table({"k": range(1001), "c": texts}))
    table.create_index("by_c", "c")
    table.delete("k = 0")
    for use in ("lookup", "plan", "auto"):
        scan = table.scan("upper(c) = 'K000077'", ["c"], options={"tamis.index.use": use})
        assert scan.to_arrow()["c"].to_pylist() == ["k000077"]
        assert scan.report is not None
        assert "repair" not in str(scan.report), use
