"""Tables that are read as streams, and what their queries leave behind."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from tests.spark.conftest import Lake

import tamis
from tamis.engine.scan import Report
from tamis.world import world

SCHEMA = pa.schema(
    [("id", pa.int64()), ("at", pa.timestamp("us", tz="UTC")), ("body", pa.string()), ("other", pa.int64())]
)


def now() -> datetime:
    return datetime.fromtimestamp(world().now_micros() / 1e6, UTC)


def some(first: int, at: datetime, size: int = 2) -> pa.Table:
    ids = range(first, first + size)
    return pa.table(
        {"id": ids, "at": [at] * size, "body": ["x" * 50] * size, "other": [i + 1_000 for i in ids]}, schema=SCHEMA
    )


def daily(lake: Lake, days: int) -> tamis.Table:
    """One part of two rows for each of the last ``days`` days."""
    made = tamis.create(lake.folder / "db" / "t", SCHEMA)
    for day in range(days):
        made.append(some(2 * day, now() - timedelta(days=days - day - 0.5)))
    return made


def drain(
    lake: Lake,
    checkpoint: Path,
    shape: Callable[[Any], Any],
    **options: Any,
) -> list[list[int]]:
    """The ids of each micro-batch of ``shape`` over the stream, until nothing is left."""
    batches: list[list[int]] = []

    def take(df: Any, epoch: int) -> None:
        batches.append(sorted(row["id"] for row in df.collect()))

    reader = lake.spark.readStream
    for key, value in options.items():
        reader = reader.option(key.replace("__", "."), value)
    stream = shape(reader.table(f"{lake.name}.db.t")).writeStream.foreachBatch(take)
    stream.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start().awaitTermination()
    return batches


def where(condition: str) -> Callable[[Any], Any]:
    return lambda frame: frame.where(condition).select("id")


def batches_of(lake: Lake) -> list[Report]:
    """The reports of the micro-batches over this catalog's table, newest first."""
    return [r for r in tamis.reports(100) if r.table == f"{lake.name}.db.t" and r.stream is not None]


def ended(checkpoint: Path) -> dict[str, Any]:
    """The position at which the last micro-batch ended."""
    last = max((p for p in (checkpoint / "offsets").iterdir() if p.name.isdigit()), key=lambda p: int(p.name))
    found: dict[str, Any] = json.loads(last.read_text().splitlines()[-1])
    return found
