"""An embedded scan read by Spark's executors gives the scan's own rows, and a report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tamis

pytestmark = pytest.mark.spark


def test_the_rows_are_the_scans_own(spark: Any, tmp_path: Path) -> None:
    table = tamis.create(tmp_path / "t", pa.schema({"id": pa.int64(), "s": pa.string()}))
    for n in range(3):
        table.append(pa.table({"id": pa.array(range(n * 10, n * 10 + 10)), "s": [f"v{i}" for i in range(10)]}))
    scan = table.scan("id >= 15", ("s", "id"))
    found = scan.to_spark(spark)
    assert found.columns == ["s", "id"]
    assert [tuple(r) for r in found.collect()] == [tuple(r.values()) for r in scan.to_arrow().to_pylist()]
    assert table.scan("id >= 15", limit=3).to_spark(spark).count() == 3
    assert table.scan("id > 99").to_spark(spark).collect() == []


def test_its_execution_is_reported(spark: Any, tmp_path: Path) -> None:
    table = tamis.create(tmp_path / "t", pa.schema({"id": pa.int64()}))
    table.append(pa.table({"id": pa.array(range(10))}))
    table.append(pa.table({"id": pa.array(range(10, 20))}))
    table.scan("id >= 15").to_spark(spark).collect()
    (report,) = tamis.reports()
    assert (report.parts["kept"], report.parts["total"], report.rows["matched"]) == (1, 2, 5)


def test_an_error_of_the_filter_is_raised(spark: Any, tmp_path: Path) -> None:
    table = tamis.create(tmp_path / "t", pa.schema({"s": pa.string()}))
    table.append(pa.table({"s": ["1", "x"]}))
    with pytest.raises(Exception, match="FILTER_FAILED"):
        table.scan("cast(s AS INT) = 1").to_spark(spark).collect()
    with pytest.raises(tamis.InvalidInput, match=r"UNKNOWN_FUNCTION.*tamis\.attach\(spark"):
        table.scan("soundex(s) = 'x'").to_spark(spark)
