"""An index on times in a VARIANT finds them in every session time zone, and on the day of the query."""

from __future__ import annotations

import struct
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

import tamis
from tamis.engine.secondary_index import index_segments, indexed_paths
from tamis.errors import InvalidInput
from tamis.world import world
from tests.stats.document_paths import variants

OFF = {"tamis.index.use": "off", "tamis.stats.filter": "off"}
HOURS = [datetime(2024, 1, 10, hour, 30, tzinfo=UTC) for hour in range(24)]
DAY = 86_400_000_000


def made(folder: Path, texts: list[str], path: str) -> tamis.Table:
    table = tamis.create(folder, "id BIGINT, v VARIANT")
    table.append(pa.table({"id": range(len(texts)), "v": variants([f'{{"a":"{text}"}}' for text in texts])}))
    table.create_index("by_path", [path])
    return tamis.open(folder)


def instants(moments: list[datetime]) -> pa.Array:
    """Documents ``{"a": TIMESTAMP}``, as Spark makes them of a struct."""
    names = bytes([0x11, 1, 0, 1]) + b"a"
    bodies = [bytes([12 << 2]) + struct.pack("<q", int(moment.timestamp()) * 1_000_000) for moment in moments]
    kind = variants(["1"]).type
    values = pa.array([bytes([2, 1, 0, 0, len(body)]) + body for body in bodies], pa.binary())
    return pa.StructArray.from_arrays([values, pa.array([names] * len(bodies), pa.binary())], fields=list(kind))


@pytest.mark.parametrize("zone", ["UTC", "America/Los_Angeles", "Pacific/Kiritimati", "-12:00", "+05:45", "Etc/GMT+12"])
@pytest.mark.parametrize("kind", ["date", "timestamp", "string"])
def test_every_zone_finds_its_dates(tmp_path: Path, zone: str, kind: str) -> None:
    table = made(tmp_path / "t", [f"{hour:%Y-%m-%d %H:%M:%S}Z" for hour in HOURS], f"v:a::{kind}")
    constants = {
        "date": ["DATE'2024-01-09'", "DATE'2024-01-10'", "DATE'2024-01-11'"],
        "timestamp": ["TIMESTAMP'2024-01-10 05:30:00'", "TIMESTAMP'2024-01-09 20:30:00'"],
        "string": ["'2024-01-10 05:30:00Z'"],
    }
    for constant in constants[kind]:
        text = f"try_variant_get(v, '$.a', '{kind}') = {constant}"
        expected = table.scan(text, ["id"], options=OFF | {"timezone": zone}).to_arrow()["id"].to_pylist()
        for use in ("auto", "lookup", "plan", "by_path"):
            options = {"tamis.index.use": use, "timezone": zone}
            assert table.scan(text, ["id"], options=options).to_arrow()["id"].to_pylist() == expected, (text, use)


def test_dates_of_instants_are_those_of_the_session(tmp_path: Path) -> None:
    """VARIANT holds instants where Spark made it of a TIMESTAMP."""
    folder = tmp_path / "t"
    table = tamis.create(folder, "id BIGINT, v VARIANT")
    table.append(pa.table({"id": pa.array(range(24), pa.int64()), "v": instants(HOURS)}, schema=table.schema))
    table.create_index("by_date", ["v:a::date"])
    text = "try_variant_get(v, '$.a', 'date') = DATE'2024-01-09'"
    for zone, count in (("America/Los_Angeles", 8), ("UTC", 0), ("Pacific/Kiritimati", 0), ("-12:00", 12)):
        found = table.scan(text, options={"timezone": zone, "tamis.index.use": "lookup"})
        assert found.count() == count, zone


def test_a_time_of_day_is_one_of_the_day_of_the_query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    earlier = world().now_micros() - 6 * DAY
    with monkeypatch.context() as then:
        then.setattr(world(), "now_micros", lambda: earlier)
        table = made(tmp_path / "t", ["12:34:56Z", "2024-01-01T00:00:00Z"], "v:a::timestamp")
    text = "try_variant_get(v, '$.a', 'timestamp') >= current_date()"
    assert table.scan(text, options={"tamis.index.use": "lookup"}).count() == 1
    assert table.scan(text, options={"tamis.index.use": "plan"}).count() == 1


def test_entries_of_older_releases_are_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They have instants under their date in UTC, and are not used."""
    folder = tmp_path / "t"
    table = tamis.create(folder, "id BIGINT, v VARIANT")
    table.append(pa.table({"id": pa.array(range(24), pa.int64()), "v": instants(HOURS)}, schema=table.schema))
    with monkeypatch.context() as older:
        older.setattr(index_segments, "SCHEME", 1)
        older.setattr(indexed_paths, "_ZONES", ("UTC", "+13:37"))
        table.create_index("by_date", ["v:a::date"])
    text = "try_variant_get(v, '$.a', 'date') = DATE'2024-01-09'"
    options = {"timezone": "America/Los_Angeles", "tamis.index.use": "lookup"}
    assert table.scan(text, options=options).count() == 8
    table.repair_index("by_date")
    scan = table.scan(text, options=options)
    assert scan.count() == 8
    assert scan.report is not None
    assert [used.name for used in scan.report.indexes] == ["by_date"]


@pytest.mark.parametrize("expression", ["try_variant_get(v, '$.a', 'timestamp')", "CAST(v:a::timestamp AS DATE)"])
def test_no_column_is_generated_from_a_time_of_day(tmp_path: Path, expression: str) -> None:
    kind = "DATE" if "DATE" in expression else "TIMESTAMP"
    with pytest.raises(InvalidInput, match="time of the day") as caught:
        tamis.create(tmp_path / "t", f"id BIGINT, v VARIANT, g {kind} GENERATED ALWAYS AS ({expression})")
    assert caught.value.code == "GENERATED_COLUMN"
