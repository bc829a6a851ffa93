"""Texts in a file of rows are read as the types of the table's columns, as ``tamis ingest`` and Spark read them."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.cli.conftest import Run

import tamis


def upserted(run: Run, tmp_path: Path, schema: pa.Schema, name: str, text: str, on: str = "id") -> list[dict[str, Any]]:
    """The rows after two upserts of the file: the second one finds its keys."""
    place = tmp_path / "t"
    tamis.create(place, schema)
    (tmp_path / name).write_text(text)
    for _ in range(2):
        done = run("upsert", place, tmp_path / name, "--on", on)
        assert done.code == 0, done.err
    found: list[dict[str, Any]] = tamis.open(place).scan().to_arrow().to_pylist()
    return sorted(found, key=repr)


def test_only_nothing_is_null_in_csv(run: Run, tmp_path: Path) -> None:
    schema = pa.schema([("country", pa.string()), ("f", pa.float64())])
    found = upserted(run, tmp_path, schema, "a.csv", "country,f\nNA,1.5\nnull,2\nN/A,\nnan,inf\n", on="country")
    assert {row["country"]: row["f"] for row in found} == {"NA": 1.5, "null": 2.0, "N/A": None, "nan": float("inf")}


@pytest.mark.parametrize("column", ["code", "CODE"])
def test_columns_of_csv_have_their_types_in_any_case(run: Run, tmp_path: Path, column: str) -> None:
    schema = pa.schema([("id", pa.int32()), ("code", pa.string())])
    found = upserted(run, tmp_path, schema, "a.csv", f"ID,{column}\n1,007\n2,1e3\n3,00012\n")
    assert [row["code"] for row in found] == ["007", "1e3", "00012"]


@pytest.mark.parametrize("key", ["code", "Code"])
def test_keys_of_json_have_their_types_in_any_case(run: Run, tmp_path: Path, key: str) -> None:
    schema = pa.schema([("id", pa.int32()), ("code", pa.string())])
    found = upserted(run, tmp_path, schema, "a.json", f'{{"id": 1, "{key}": "2020-01-02 03:04:05Z"}}\n')
    assert [row["code"] for row in found] == ["2020-01-02 03:04:05Z"]


def test_days_and_bytes_in_json(run: Run, tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int32()), ("day", pa.date32()), ("body", pa.binary())])
    lines = '{"id": 1, "day": "2020-01-02", "body": "YQ=="}\n{"id": 2, "day": null, "body": null}\n'
    assert upserted(run, tmp_path, schema, "a.json", lines) == [
        {"id": 1, "day": dt.date(2020, 1, 2), "body": b"a"},
        {"id": 2, "day": None, "body": None},
    ]


def test_bytes_in_json_that_are_not_base64_are_refused(run: Run, tmp_path: Path) -> None:
    tamis.create(tmp_path / "t", pa.schema([("id", pa.int32()), ("body", pa.binary())]))
    (tmp_path / "a.json").write_text('{"id": 1, "body": "?"}\n')
    assert "BAD_DATA" in run("upsert", tmp_path / "t", tmp_path / "a.json", "--on", "id").err
