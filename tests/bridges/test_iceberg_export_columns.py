"""Columns that Iceberg can hold are exported, and others are refused by name."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

import tamis
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
