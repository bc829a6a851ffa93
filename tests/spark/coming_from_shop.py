"""The table that the tasks of the "Coming from" pages are typed on."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from tests.spark.conftest import Lake

import tamis
from tamis.errors import TamisError

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.date32()), ("state", pa.string())])
DAYS = [dt.date(2026, 1, 1) + dt.timedelta(days=n) for n in range(3)]


class Shop(NamedTuple):
    """``lake.db.t`` has the ids 0 to 5 of two commits, three days and the state ``open``, and is clustered by day."""

    lake: Lake

    @property
    def path(self) -> str:
        return str(self.lake.folder / "db" / "t")

    @property
    def name(self) -> str:
        return f"{self.lake.name}.db.t"

    def open(self) -> Any:
        return tamis.open(self.path)

    def ids(self, table: str = "t") -> list[int]:
        return sorted(tamis.open(self.lake.folder / "db" / table).scan().to_arrow()["id"].to_pylist())

    def frame(self, *ids: int, more: bool = False) -> Any:
        columns = ["id", "DATE'2026-01-01' AS day", "'new' AS state", *(["1 AS more"] if more else [])]
        return self.lake.spark.createDataFrame([(i,) for i in ids], "id BIGINT").selectExpr(*columns)

    def writer(self, *ids: int, more: bool = False, **options: str) -> Any:
        return self.frame(*ids, more=more).write.format("tamis").options(**options)

    def stream(self, **options: Any) -> Any:
        return self.lake.spark.readStream.format("tamis").options(**options).load(self.path)

    def drained(self, source: Any, checkpoint: str = "checkpoint", **options: Any) -> Any:
        place = str(self.lake.folder / checkpoint)
        return source.writeStream.trigger(availableNow=True).option("checkpointLocation", place).options(**options)

    def fails(self, act: Callable[[], Any], says: str) -> None:
        from pyspark.errors import PySparkException

        with pytest.raises((PySparkException, TamisError)) as caught:
            act()
        assert says in str(caught.value)


def rows_of(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids), "day": [DAYS[0]] * len(ids), "state": ["new"] * len(ids)}, schema=SCHEMA)
