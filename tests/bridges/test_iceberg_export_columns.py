"""Columns that Iceberg can hold are exported, and others are refused by name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tamis
from tamis.bridges.export.iceberg_schema import iceberg_default
from tamis.core.types import INTEGER, STRING, Array, DataType, Field, Map, Struct
from tamis.errors import InvalidInput
from tests.bridges.exported_tables import expected, made
from tests.bridges.foreign_readers import iceberg_by_pyiceberg, metadata_file, opened


def test_defaults_of_older_files_need_version_3(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    table.export("iceberg")
    add = table.alter().add_column("more", "BIGINT", default="7").add_column("day2", "DATE", default="DATE'2020-01-02'")
    add.add_column("price", "DECIMAL(10,2)", default="1.50").add_column("word", "STRING", default="'a'").commit()
    table.refresh()
    with pytest.raises(InvalidInput, match="'more'") as error:
        table.export("iceberg", format_version=2)
    assert error.value.code == "EXPORT_DEFAULT"
    assert opened(table.path).metadata.format_version == 2
    table.export("iceberg")
    found = opened(table.path)
    assert found.metadata.format_version == 3
    defaults = {f.name: f.initial_default for f in found.schema().fields if f.initial_default is not None}
    assert {name: str(value) for name, value in defaults.items()} == {
        "more": "7",
        "day2": "2020-01-02",
        "price": "1.50",
        "word": "a",
    }
    table.append(pa.table({"id": [100]}))
    table.export("iceberg")
    assert opened(table.path).metadata.format_version == 3


@pytest.mark.parametrize("default", ["double('NaN')", "double('-Infinity')"])
def test_defaults_that_json_lacks_are_refused_until_they_are_rewritten(tmp_path: Path, default: str) -> None:
    table = made(tmp_path / "t")
    table.alter().add_column("x", "DOUBLE", default=default).commit()
    with pytest.raises(InvalidInput, match="'x'") as error:
        table.refresh().export("iceberg")
    assert error.value.code == "EXPORT_DEFAULT"
    table.compact(cluster_by=["id", "day"])
    table.export("iceberg", format_version=3)
    text = Path(metadata_file(table.path)).read_text()
    assert not {"NaN", "Infinity"} & set(re.findall(r"\w+", text))
    assert iceberg_by_pyiceberg(table.path) == expected(table)


NESTED = [
    (Array(Field("element", INTEGER, id=2)), [1, 2]),
    (Map(Field("key", STRING, False, id=2), Field("value", INTEGER, id=3)), [["a", 1]]),
    (Struct((Field("a", INTEGER, id=2),)), {"2": 1}),
]


@pytest.mark.parametrize(("data_type", "default"), NESTED)
def test_nested_defaults_are_none_of_icebergs(data_type: DataType, default: Any) -> None:
    """PyIceberg and Iceberg's own library read no table with one."""
    assert iceberg_default(Field("x", INTEGER, id=1, initial_default=7))
    assert not iceberg_default(Field("x", data_type, id=1, initial_default=default))
    assert iceberg_default(Field("x", data_type, id=1))


def test_bounds_are_values_that_occur(tmp_path: Path) -> None:
    """Iceberg's reader in Spark answers min and max by them; those of texts it knows to be cut."""
    table = tamis.create(tmp_path / "t", "b BINARY, d DOUBLE, n BIGINT, s STRING, e DOUBLE")
    row = {"b": [b"a" * 100, b"z" * 100], "d": [0.0, 5.0], "n": [0, 5], "s": ["a" * 100, "z" * 100], "e": [-1.0, -0.0]}
    table.append(pa.table(row))
    table.export("iceberg")
    (task,) = opened(table.path).scan().plan_files()
    assert task.file.lower_bounds.keys() == {3, 4, 5}
    assert task.file.upper_bounds.keys() == {2, 3, 4}


@pytest.mark.parametrize(
    ("columns", "name"),
    [
        ("`a.b` INT, a STRUCT<b: INT>", "a.b"),
        ("a ARRAY<INT>, `a.element` INT", "a.element"),
        ("a MAP<STRING, STRUCT<x: INT>>, `a.value.x` INT", "a.value.x"),
    ],
)
def test_two_columns_of_one_name_in_iceberg_are_refused(tmp_path: Path, columns: str, name: str) -> None:
    table = tamis.create(tmp_path / "t", f"id BIGINT, {columns}")
    with pytest.raises(InvalidInput, match=name) as error:
        table.export("iceberg")
    assert error.value.code == "EXPORT_NAME"


REFUSED = {"INTERVAL": "x INTERVAL DAY TO SECOND", "VARIANT": "x VARIANT", "nested": "x MAP<STRING, VARIANT>"}


@pytest.mark.parametrize("kind", REFUSED)
def test_types_that_iceberg_lacks_are_refused_by_name(tmp_path: Path, kind: str) -> None:
    table = tamis.create(tmp_path / "t", f"id BIGINT, {REFUSED[kind]}")
    with pytest.raises(InvalidInput, match=r"'x") as error:
        table.export("iceberg")
    assert error.value.code == "EXPORT_TYPE"
    assert not (tmp_path / "t" / "metadata").exists()


def test_times_of_day_are_read(tmp_path: Path) -> None:
    table = tamis.create(tmp_path / "t", "id BIGINT, at TIME, small TINYINT, local TIMESTAMP_NTZ, code CHAR(3)")
    at = pa.table(
        [
            [1],
            pa.array([3_600_000_000], pa.time64("us")),
            pa.array([-3], pa.int8()),
            pa.array([5], pa.timestamp("us")),
            ["ab"],
        ],
        names=table.schema.names,
    )
    table.append(at)
    table.export("iceberg")
    assert iceberg_by_pyiceberg(table.path) == expected(table)


@pytest.mark.parametrize(("name", "kind"), [("amount", "DECIMAL(14,4)"), ("day", "TIMESTAMP_NTZ")])
def test_widening_that_iceberg_lacks_is_refused_while_files_hold_the_old_type(
    tmp_path: Path, name: str, kind: str
) -> None:
    table = made(tmp_path / "t")
    table.alter().widen(name, kind).commit()
    with pytest.raises(InvalidInput, match=name) as error:
        table.export("iceberg")
    assert error.value.code == "EXPORT_WIDENING"
    table.refresh().compact(cluster_by=["id", "day"])
    table.export("iceberg")
    assert iceberg_by_pyiceberg(table.path) == expected(table)
    assert len(opened(table.path).snapshots()) == 1  # earlier versions cannot be exported
