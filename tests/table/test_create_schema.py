"""The schema of a new table: DDL text, a schema, or that of rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tamis
from tamis.errors import InvalidInput

WANTED = pa.schema([("id", pa.int64()), ("name", pa.string())])
ROWS = {"id": [1, 2], "name": ["a", None]}


class Bare:
    """An object that has nothing but a schema."""

    def __arrow_c_schema__(self) -> object:
        return WANTED.__arrow_c_schema__()


@pytest.mark.parametrize(
    "given",
    [
        WANTED,
        "id BIGINT, name STRING",
        Bare(),
        pa.table(ROWS),
        pa.record_batch(ROWS),
        pa.table(ROWS).to_reader(),
        pa.table({"id": [1], "name": pa.array(["a"]).dictionary_encode()}),
        pl.DataFrame(ROWS),
        pd.DataFrame(ROWS),
        pd.DataFrame(ROWS, index=pd.Index([7, 8])),
    ],
    ids=lambda given: type(given).__name__,
)
def test_a_schema_comes_in_many_forms(given: Any, tmp_path: Path) -> None:
    """Rows are not taken: the table is empty."""
    table = tamis.create(tmp_path / "t", given)
    assert [(f.name, f.type, f.nullable) for f in table.schema] == [(f.name, f.type, True) for f in WANTED]
    assert (table.version, table.scan().count()) == (0, 0)
    table.append(pa.table(ROWS))
    assert table.to_arrow().to_pylist() == pa.table(ROWS).to_pylist()


def test_a_relation_gives_its_schema(tmp_path: Path) -> None:
    with duckdb.connect() as connection:
        table = tamis.create(tmp_path / "t", connection.from_arrow(pa.table(ROWS)))
    assert table.schema.names == WANTED.names


def test_ddl_has_the_types_of_spark(tmp_path: Path) -> None:
    table = tamis.create(
        tmp_path / "t", "`a b` CHAR(3) NOT NULL, s STRUCT<x: INT NOT NULL>, v VARIANT, ts TIMESTAMP_NTZ"
    )
    assert [f.nullable for f in table.schema] == [False, True, True, True]
    columns = table.metadata("columns").select(["name", "type"]).to_pylist()
    assert [row["type"] for row in columns if row["name"] in {"a b", "v", "ts"}] == [
        "char(3)",
        "variant",
        "timestamp_ntz",
    ]


def test_an_index_with_a_name_is_a_column(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": [1.5]}, index=pd.Index([7], name="id"))
    table = tamis.create(tmp_path / "t", frame, cluster_by=["id"])
    assert table.schema.names == ["id", "x"]
    assert table.append(frame).rows_inserted == 1


def test_a_table_gives_its_schema_without_being_read(tmp_path: Path) -> None:
    first = tamis.create(tmp_path / "a", WANTED)
    first.append(pa.table(ROWS))
    before = tamis.reports(1)
    second = tamis.create(tmp_path / "b", first)
    assert second.schema.names == WANTED.names
    assert tamis.create(tmp_path / "c", first.scan("id > 1", ["name"])).schema.names == ["name"]
    assert [id(report) for report in tamis.reports(1)] == [id(report) for report in before]


@pytest.mark.parametrize(
    ("given", "code", "message"),
    [
        ("", "BAD_SCHEMA", "''"),
        ("id", "BAD_SCHEMA", "'id'"),
        ("id BIGINT DEFAULT 3", "BAD_SCHEMA", "DEFAULT"),
        ("id WHOLE", "BAD_TYPE", "WHOLE"),
        ("id INT, ID INT", "DUPLICATE_COLUMN", "ID"),
        (3, "BAD_SCHEMA", "int"),
        ([("id", "BIGINT")], "BAD_SCHEMA", "list"),
        ({"id": "BIGINT"}, "BAD_SCHEMA", "dict"),
        (pa.int64(), "BAD_SCHEMA", "DataType"),
        (pl.Series([1, 2]), "BAD_SCHEMA", "Series"),
        (pd.Series([1, 2]), "BAD_SCHEMA", "Series"),
        (pl.LazyFrame(ROWS), "BAD_SCHEMA", "LazyFrame"),
        (pd.DataFrame({"a": [None]}), "UNSUPPORTED_TYPE", "'a'"),
        (pd.DataFrame({"a": [1, "x"]}), "BAD_SCHEMA", "column a"),
    ],
)
def test_what_has_no_schema_is_refused(given: Any, code: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as caught:
        tamis.create(tmp_path / "t", given)
    assert caught.value.code == code
    assert message in str(caught.value)
    assert not (tmp_path / "t").exists()
