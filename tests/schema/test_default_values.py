"""Defaults that later writes fill in: NULL for a required column, casts, and columns that the same change adds."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tamis
from tamis.engine.operations.schema.alter import Alteration
from tamis.errors import InvalidInput, NotFound, SchemaMismatch


@pytest.mark.parametrize("data_format", ["parquet", "orc", "vortex"])
@pytest.mark.parametrize("default", ["NULL", "nullif(1, 1)"])
def test_a_default_of_null_is_not_stored_in_a_required_column(tmp_path: Path, data_format: str, default: str) -> None:
    if data_format == "vortex":
        pytest.importorskip("vortex")
    schema = pa.schema([("a", pa.int32()), pa.field("b", pa.int32(), nullable=False)])
    table = tamis.create(tmp_path / "t", schema, format=data_format)
    table.alter().set_default("b", default).commit()
    for verb in (table.append, table.overwrite):
        with pytest.raises(SchemaMismatch) as caught:
            verb(pa.table({"a": pa.array([1], pa.int32())}))
        assert (caught.value.code, caught.value.name) == ("NULL_IN_REQUIRED", "b")
    table.append(pa.table({"a": pa.array([], pa.int32())}))
    assert table.scan().count() == 0


@pytest.mark.parametrize(
    ("kind", "default", "stored"),
    [
        ("DATE", "'2020-01-01'", dt.date(2020, 1, 1)),
        ("TIMESTAMP_NTZ", "'2020-01-01 03:00'", dt.datetime(2020, 1, 1, 3)),  # without a zone
        ("INT", "'5'", 5),
        ("VARCHAR(5)", "'abc'", "abc"),
        ("CHAR(5)", "'abc'", "abc  "),
        ("STRING", "NULL", None),
        ("ARRAY<STRING>", "NULL", None),
        ("STRUCT<a: INT>", "NULL", None),
        ("TIME(3)", "NULL", None),
    ],
)
def test_upsert_casts_defaults_as_append_does(tmp_path: Path, kind: str, default: str, stored: Any) -> None:
    table = tamis.create(tmp_path / "t", f"id BIGINT, d {kind}")
    change = Alteration(table.store, table.snapshot)  # as by Spark, which casts texts in ALTER COLUMN … SET DEFAULT
    change.set_default(("d",), default)
    change.commit()
    table.refresh().append(pa.table({"id": [1]}))
    table.upsert(pa.table({"id": [1, 2]}), on="id")
    merge = table.merge(pa.table({"k": [3]}), "target.id = source.k")
    merge.when_not_matched_insert({"id": "source.k"}).execute()
    assert table.scan().to_arrow()["d"].to_pylist() == [stored] * 3


def test_a_default_is_tested_against_the_column_that_the_change_makes(tmp_path: Path) -> None:
    table = tamis.create(tmp_path / "t", "a INT, b DATE, n INT")
    table.append(pa.table({"a": pa.array([0], pa.int32()), "b": [dt.date(2020, 1, 1)], "n": pa.array([0], pa.int32())}))
    table.alter().add_column("c", "INT").set_default("c", 5).widen("n", "BIGINT").set_default(
        "n", 3_000_000_000
    ).commit()
    table.append(pa.table({"a": pa.array([1], pa.int32())}))
    found = table.scan().to_arrow()
    assert (found["c"].to_pylist(), found["n"].to_pylist()) == ([None, 5], [0, 3_000_000_000])
    change = table.alter().rename_column("a", "x").rename_column("b", "a")
    with pytest.raises(InvalidInput) as caught:
        change.set_default("a", 5)
    assert caught.value.code == "BAD_DEFAULT"
    with pytest.raises(NotFound):
        change.set_default("nothing", 5)
    with pytest.raises(InvalidInput):
        table.alter().set_default("b", 5)
    table.alter().rename_column("a", "y").set_default("y", 9).commit()
    assert table.schema.names == ["y", "b", "n", "c"]


def test_steps_of_identity_columns_fit_their_numbers(tmp_path: Path) -> None:
    for rule in ("START WITH 1 INCREMENT BY 10000000000000000000", "START WITH 1 INCREMENT BY -9223372036854775809"):
        with pytest.raises(InvalidInput) as caught:
            tamis.create(tmp_path / "t", f"id BIGINT GENERATED ALWAYS AS IDENTITY ({rule}), n INT")
        assert caught.value.code == "IDENTITY_COLUMN"


def test_a_time_that_is_none_is_refused(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    table = tamis.create(tmp_path / "t", "id BIGINT")
    with pytest.raises(InvalidInput) as caught:
        table.scan(timestamp=pandas.NaT)
    assert caught.value.code == "BAD_TIMESTAMP"
