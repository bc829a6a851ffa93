"""Filters over exports find every row: no statistic of an export lets a reader skip a file that has a match."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.expressions import EqualTo, GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual
from pyiceberg.table import StaticTable

import tamis
from tests.bridges.foreign_readers import metadata_file

NAN = float("nan")
TEXTS = ("\u00e9", "\uffff", "\U0001f600", "\U00020000", "\U000e0000", "\U0010ffff", "\x01\"'\\\n")
"""A text of each length in UTF-8, and pairs of surrogates with either value of their 17th bit."""


@pytest.mark.push_cases(3)
@pytest.mark.parametrize("text", TEXTS)
def test_texts_of_any_characters_are_found(tmp_path: Path, text: str) -> None:
    """Once alone in its file, once as bounds of other texts."""
    table = tamis.create(tmp_path / "t", "id BIGINT, s STRING, `a.𠀀é` INT")
    for number, value in enumerate((text, text * 40, "a" + text, "plain")):
        table.append(pa.table({"id": [number], "s": [value], "a.𠀀é": pa.array([number], pa.int32())}))
    table.export("delta")
    table.export("iceberg")
    query = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(table.path))
    for value in (text, text * 40, "a" + text):
        literal = value.replace("'", "''")
        wanted = table.scan(f"s = {_sql(value)}").to_arrow()["id"]
        assert len(wanted) == 1
        assert (
            pa.table(query.execute(f"SELECT id FROM t WHERE s = '{literal}'"))["id"].to_pylist() == wanted.to_pylist()
        )
        found = pl.scan_delta(table.path).filter(pl.col("s") == value).collect()
        assert found["id"].to_list() == wanted.to_pylist()
        assert found.columns == table.schema.names
        opened = StaticTable.from_metadata(metadata_file(table.path))
        assert opened.scan(EqualTo("s", value)).to_arrow()["id"].to_pylist() == wanted.to_pylist()


def _sql(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def test_files_with_nan_are_planned_for_large_numbers(tmp_path: Path) -> None:
    """To Spark and others NaN is larger than any number."""
    table = tamis.create(tmp_path / "t", "id BIGINT, d DOUBLE, f FLOAT")
    rows = ([1.0, NAN], [NAN, NAN], [1.0, 2.0], [None, NAN])
    for number, values in enumerate(rows):
        table.append(pa.table({"id": [number] * 2, "d": values, "f": pa.array(values, pa.float32())}))
    table.export("iceberg")
    opened = StaticTable.from_metadata(metadata_file(table.path))
    for name in ("d", "f"):
        assert len(list(opened.scan(GreaterThan(name, 5.0)).plan_files())) == 3
        assert len(list(opened.scan(LessThan(name, 0.5)).plan_files())) == 2


HARD: dict[str, tuple[pa.DataType, list[Any]]] = {
    "n": (pa.int64(), [-(2**63), -1, 0, 2**53, 2**53 + 1, 2**63 - 1]),
    "small": (pa.int8(), [-128, -1, 0, 127]),
    "d": (pa.float64(), [-math.inf, -1.7e308, -0.0, 0.0, 5e-324, 0.1, 1 / 3, math.inf, NAN]),
    "f": (pa.float32(), [-math.inf, -0.0, 0.0, 1.401298464324817e-45, 0.10000000149011612, 16777216.0, math.inf, NAN]),
    "amount": (
        pa.decimal128(38, 10),
        [
            Decimal(t)
            for t in ("-9999999999999999999999999999.0000000000", "0.0000000000", "0.0000000001", "0.1000000000")
        ],
    ),
    "s": (pa.string(), ["", "a" * 200, "a" * 200 + "b", "\uffff" * 60, "\U00020000", "z" * 31 + "\U0010ffff" * 9]),
    "day": (pa.date32(), [date(1, 1, 1), date(999, 12, 31), date(1582, 10, 4), date(1582, 10, 15), date(9999, 12, 31)]),
    "ts": (
        pa.timestamp("us"),
        [datetime(1, 1, 1), *(datetime(2024, 1, 1, 0, 0, 0, us) for us in (1, 999, 1000, 1001))],
    ),
}
"""Values at the ends of types, and such as lie close together where bounds are rounded or cut."""
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
ICEBERG_TERMS: dict[str, Any] = {
    "=": EqualTo,
    "<": LessThan,
    "<=": LessThanOrEqual,
    ">": GreaterThan,
    ">=": GreaterThanOrEqual,
}


@pytest.fixture(scope="module")
def hard(tmp_path_factory: pytest.TempPathFactory) -> tamis.Table:
    """A table of small parts with these values, some rows of which are deleted."""
    schema = pa.schema([("id", pa.int64()), *((name, kind) for name, (kind, _) in HARD.items())])
    table = tamis.create(tmp_path_factory.mktemp("hard") / "t", schema)
    for part in range(18):
        rows = [
            {"id": part * 10 + at, **{name: pool[(part + 4 * at) % len(pool)] for name, (_, pool) in HARD.items()}}
            for at in range(1 + part % 3)
        ]
        table.append(pa.Table.from_pylist([*rows, {"id": part * 10 + 9}][: 2 + part % 2], schema=schema))
    table.delete("id % 7 = 1")
    table.export("delta")
    table.export("iceberg")
    return table


@pytest.mark.parametrize("name", HARD)
@pytest.mark.push_cases(2)
def test_a_filter_finds_what_a_full_scan_has(hard: tamis.Table, name: str) -> None:
    """Polars filters a scan of the Delta table, and all of its rows; PyIceberg plans each file that has a match."""
    values = HARD[name][1]
    everything = pl.scan_delta(hard.path).collect()
    opened = StaticTable.from_metadata(metadata_file(hard.path))
    rows: dict[str, list[Any]] = {}
    for task in opened.scan().plan_files():
        found = pq.read_table(task.file.file_path.removeprefix("file://"), columns=[name])[name]
        rows[task.file.file_path] = [value for value in found.to_pylist() if value is not None]
    for value in values:
        for word, compare in COMPARISONS.items():
            wanted = compare(pl.col(name), pl.lit(value, dtype=everything.schema[name]))
            found_ids = pl.scan_delta(hard.path).filter(wanted).collect()["id"].sort().to_list()
            assert found_ids == everything.filter(wanted)["id"].sort().to_list(), (word, value)
            if not isinstance(value, float) or math.isfinite(value):  # PyIceberg narrows others wrongly to FLOAT
                term = ICEBERG_TERMS[word](name, _iceberg(value))
                planned = {task.file.file_path for task in opened.scan(term).plan_files()}
                matching = {path for path, own in rows.items() if any(_holds(compare, v, value) for v in own)}
                assert matching <= planned, (word, value)


def _holds(compare: Callable[[Any, Any], Any], own: Any, value: Any) -> bool:
    """Compare as Spark does, to which NaN is the largest number."""
    return bool(compare(math.inf, 0) if own != own else compare(own, value))


def _iceberg(value: Any) -> Any:
    return value.isoformat() if isinstance(value, date | datetime) else value
