"""Streams over tables with CHAR and VARCHAR columns: the rows of a batch query, of which Spark makes STRING itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.spark.conftest import Lake

import tamis

COLUMNS = "id INT, c CHAR(5), v VARCHAR(9), s STRUCT<c: CHAR(3), n: INT>, a ARRAY<VARCHAR(4)>"
SHAPES: dict[str, Callable[[Any], Any]] = {
    "all": lambda df: df,
    "unpadded constant": lambda df: df.where("c = 'ab'"),
    "padded constant": lambda df: df.where("c = 'ab   '").select("id"),
    "two columns": lambda df: df.where("c = v OR v = 'zz'").select("v", "a"),
    "field of a struct": lambda df: df.where("s.c = 'q  ' AND length(c) = 5").select("s"),
}


@pytest.fixture
def texts(lake: Lake) -> Lake:
    """Rows that Spark inserted, and a row that was appended embedded; both are padded when they are written."""
    lake.sql(f"CREATE TABLE lake.db.t ({COLUMNS}) USING tamis")
    lake.sql(
        "INSERT INTO lake.db.t VALUES (1, 'ab', 'x', named_struct('c', 'q', 'n', 1), array('k')),"
        " (2, 'abc', 'abc', NULL, NULL), (3, NULL, NULL, NULL, array(NULL))"
    )
    held = tamis.open(lake.folder / "db" / "t")
    row = {"id": 4, "c": "ab", "v": "zz", "s": {"c": "q", "n": 2}, "a": ["l"]}
    kinds = [
        pa.int32(),
        pa.string(),
        pa.string(),
        pa.struct([("c", pa.string()), ("n", pa.int32())]),
        pa.list_(pa.string()),
    ]
    held.append(pa.Table.from_pylist([row], pa.schema(list(zip(row, kinds, strict=True)))))
    return lake


def streamed(df: Any, checkpoint: Path) -> list[str]:
    found: list[str] = []

    def take(batch: Any, epoch: int) -> None:
        found.extend(str(row) for row in batch.collect())

    query = df.writeStream.foreachBatch(take).option("checkpointLocation", str(checkpoint))
    query.trigger(availableNow=True).start().awaitTermination()
    return sorted(found)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("by", ["name", "path"])
@pytest.mark.push_cases(4)
def test_a_stream_has_the_rows_of_a_batch_query(texts: Lake, tmp_path: Path, by: str, shape: str) -> None:
    table = f"{texts.name}.db.t"
    wanted = sorted(str(row) for row in SHAPES[shape](texts.spark.table(table)).collect())
    assert wanted
    reader = texts.spark.readStream
    df = reader.table(table) if by == "name" else reader.format("tamis").load(str(texts.folder / "db" / "t"))
    assert df.schema.simpleString() == texts.spark.table(table).schema.simpleString()
    assert streamed(SHAPES[shape](df), tmp_path / "c") == wanted


def test_a_stream_from_texts_to_texts(texts: Lake, tmp_path: Path) -> None:
    texts.sql(f"CREATE TABLE lake.db.u ({COLUMNS}) USING tamis")
    query = texts.spark.readStream.table(f"{texts.name}.db.t").writeStream
    query = query.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True)
    query.toTable(f"{texts.name}.db.u").awaitTermination()
    rows = [sorted(str(row) for row in texts.spark.table(f"{texts.name}.db.{t}").collect()) for t in ("t", "u")]
    assert rows[0] == rows[1]
    shown = texts.spark.sql(f"DESCRIBE {texts.name}.db.u").collect()
    assert {row["col_name"]: row["data_type"] for row in shown}["c"] == "char(5)"


def test_a_filter_on_char_prunes_a_stream(texts: Lake, tmp_path: Path) -> None:
    texts.sql("INSERT INTO lake.db.t VALUES (5, 'zebra', 'z', NULL, NULL)")
    df = texts.spark.readStream.table(f"{texts.name}.db.t").where("c = 'zebra'").select("id")
    assert streamed(df, tmp_path / "c") == ["Row(id=5)"]
    parts = tamis.reports(1)[0].parts
    assert parts.kept == 1 < parts.total
