"""Merging, damage, types: what an index is made of may change, be lost or be odd; answers stay."""

from __future__ import annotations

import datetime as dt
import decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tamis
from tamis.core.types import Field, String
from tamis.engine.secondary_index.index_definition import unindexable_reason
from tests.secondary_index.tables import delete, empty_table, ids, info, key_in, rows_of, same, table_a, used


@pytest.mark.slow
def test_many_loads_become_few_index_segments(tmp_path: Path) -> None:
    table = empty_table(tmp_path / "t")
    table.create_index("ik", "k")
    for load in range(40):
        table.append(rows_of(0).slice(load * 20, 20))
    found = info(table)
    assert (len(found.covered), found.missing) == (40, {})
    assert found.index_segments < 20
    for load in (0, 7, 39):
        key = rows_of(0)["k"][load * 20 + 3].as_py()
        report = same(table, f"k = {key}")
        assert (report.rows.matched, report.parts.kept, used(report)["ik"][1]) == (1, 1, 0)


@pytest.mark.slow
def test_a_merge_leaves_dead_parts_out(tmp_path: Path) -> None:
    table = empty_table(tmp_path / "t")
    table.create_index("ik", "k")
    for load in range(12):
        table.append(rows_of(0).slice(load * 20, 20))
    table.overwrite(rows_of(1).slice(0, 20), row_filter="k < 5000", allow_outside=True)
    for load in range(20):
        table.append(rows_of(2).slice(load * 20, 20))
    found = info(table)
    assert found.missing == {}
    assert found.rows < table.scan().count() + 400
    assert same(table, f"k = {rows_of(2)['k'][3].as_py()}").rows.matched == 1


def test_an_index_built_after_a_delete_serves_the_version_before(tmp_path: Path) -> None:
    """Entries are physical: a version in which the row still lives may be answered by an index part that was built later over the same part."""
    table = table_a(tmp_path / "t", segments=2)
    key = key_in(0)
    assert delete(table, f"k = {key}") == 1
    table.create_index("ik", "k")
    assert info(table).rows == 4_000, "an entry for every physical row"
    assert same(table, f"k = {key}").rows.matched == 0
    assert same(table, f"k = {key_in(0, 6)}").rows.matched == 1


@pytest.mark.parametrize("harm", ["remove", "truncate", "garble"])
def test_damage(tmp_path: Path, harm: str) -> None:
    table_a(tmp_path / "t", ("ik", "k"), segments=2)
    for path in (tmp_path / "t" / "index").iterdir():
        raw = path.read_bytes()
        if harm == "remove":
            path.unlink()
        else:
            path.write_bytes(raw[: len(raw) // 2] if harm == "truncate" else bytes(b ^ 255 for b in raw))
    report = same(tamis.open(tmp_path / "t"), f"k = {key_in(1)}")
    assert (report.rows.matched, used(report)) == (1, {})
    assert "cannot be read" in report.index_reason


TYPES: dict[str, tuple[pa.DataType, list[Any], list[str]]] = {
    "decimal": (
        pa.decimal128(9, 2),
        [decimal.Decimal("1.50"), None, decimal.Decimal("-7.00")],
        ["= 1.5", "< 0", "IS NULL", "= 1.501"],
    ),
    "date": (
        pa.date32(),
        [dt.date(2026, 1, 2), None, dt.date(1969, 1, 1)],
        ["= DATE'2026-01-02'", "< DATE'1970-01-01'"],
    ),
    "timestamp": (
        pa.timestamp("us", tz="UTC"),
        [dt.datetime(2026, 1, 2, tzinfo=dt.UTC), None],
        ["> TIMESTAMP'2026-01-01 00:00:00'"],
    ),
    "boolean": (pa.bool_(), [True, False, None], ["", "IS NULL", "= false"]),
    "binary": (pa.binary(), [b"\xff", b"", None, b"a"], ["= X'FF'", "IS NULL", "> X'00'"]),
    "float": (
        pa.float32(),
        [float("nan"), -0.0, 0.0, None, 1.5],
        ["= 0.0", "= -0.0", "> 1", "<=> NULL", "= float('nan')"],
    ),
    "tiny": (pa.int8(), [-128, 127, 0, None], ["= 127", "< 0", "IS NULL", "= 300", "+ 1 = 128"]),
    "small": (pa.int16(), [-32768, 32767, 0, None], ["= -32768", "> 0", "IS NULL", "= 70000"]),
    "local": (
        pa.timestamp("us"),
        [dt.datetime(2026, 1, 2), None, dt.datetime(1969, 12, 31, 23, 59, 59, 999_999)],
        ["= TIMESTAMP_NTZ'2026-01-02 00:00:00'", "< TIMESTAMP_NTZ'1970-01-01 00:00:00'", "IS NULL"],
    ),
    "time": (
        pa.time64("us"),
        [dt.time(23, 59, 59, 999_999), None, dt.time(0)],
        ["= TIME'00:00:00'", "> TIME'12:00:00'", "IS NULL"],
    ),
    "interval": (
        pa.duration("us"),
        [dt.timedelta(days=2), None, dt.timedelta(seconds=-1)],
        ["= INTERVAL '2' DAY", "< INTERVAL '0' DAY", "IS NULL"],
    ),
    "long decimal": (
        pa.decimal128(38, 0),
        [decimal.Decimal(10**38 - 1), decimal.Decimal(1 - 10**38), None, decimal.Decimal(0)],
        [f"= {10**38 - 1}", "< 0", "IS NULL", f"> {10**37}"],
    ),
    "text": (pa.string(), ["", "é", None, "\U0001f600", "a" * 200], ["= ''", "LIKE 'a%'", "> 'z'", "IN ('é', 'x')"]),
}


@pytest.mark.push_cases(5)
@pytest.mark.parametrize("kind", TYPES)
def test_types(tmp_path: Path, kind: str) -> None:
    data_type, values, filters = TYPES[kind]
    table = tamis.create(tmp_path / "t", pa.schema([("x", data_type), ("i", pa.int64())]))
    table.create_index("ix", "x")
    for load in range(3):
        table.append(
            pa.table({"x": pa.array(values[load:] + values, data_type), "i": range(len(values[load:] + values))})
        )
    for row_filter in filters:
        report = same(table, f"x {row_filter}", options={"tamis.index.use": "lookup"})
        assert used(report) or report.parts.kept == 0 or report.parts.all_match


def test_collated_text_is_refused() -> None:
    assert "collation UNICODE_CI" in (unindexable_reason(Field("s", String(collation="UNICODE_CI"), id=1)) or "")


def test_planning_does_not_grow_with_index_segments_that_are_not_asked(tmp_path: Path) -> None:
    table = table_a(tmp_path / "t", ("ik", "k"), ("ig", "g"), segments=3)
    assert len(ids(table)) == 3
    assert set(used(same(table, f"k = {key_in(1)}"))) == {"ik"}
