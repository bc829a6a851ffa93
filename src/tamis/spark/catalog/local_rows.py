"""Small tables whose rows the driver already has: metadata tables and results of procedures."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import pyarrow as pa

from tamis.core.types.arrow import from_arrow_schema
from tamis.spark.jvm_bridge.adapter import Bridge
from tamis.spark.jvm_bridge.spark_types import to_python_spark
from tamis.spark.options.source_options import Use, read_options, refuse_settings

_READ = "org.apache.spark.sql.connector.read."
_CATALOG = "org.apache.spark.sql.connector.catalog."


class LocalTable:
    """A read-only table over an Arrow table, which is made at first use. Equal ``value`` means equal rows."""

    def __init__(self, bridge: Bridge, name: str, value: tuple[object, ...], make: Callable[[], pa.Table]) -> None:
        self.bridge = bridge
        self._name = name
        self._value = (name, *value)
        self._make = make

    def java(self) -> Any:
        return self.bridge.implement([_CATALOG + "SupportsRead"], self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LocalTable) and self._value == other._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __str__(self) -> str:
        return self._name

    @cached_property
    def rows(self) -> pa.Table:
        return self._make()

    def name(self) -> str:
        return self._name

    def schema(self) -> Any:
        """Return Spark's schema, with STRING for CHAR and VARCHAR, which no result of a CALL may have."""
        return self.bridge.struct_type(to_python_spark(from_arrow_schema(self.rows.schema)))

    def capabilities(self) -> list[Any]:
        return [self.bridge.enum(_CATALOG + "TableCapability", "BATCH_READ")]

    def properties(self) -> dict[str, str]:
        return {"provider": "tamis"}

    def newScanBuilder(self, options: Any) -> Any:  # noqa: N802  # Spark's name
        given = self.bridge.dict(options.asCaseSensitiveMap())
        read_options(given, {Use.READ}, by_path=False)
        refuse_settings(given, "A table of metadata", "Leave it out.")
        return self.bridge.implement([_READ + "ScanBuilder"], LocalScanBuilder(self))


class LocalScanBuilder:
    def __init__(self, table: LocalTable) -> None:
        self.table = table

    def build(self) -> Any:
        return local_scan(self.table)


class LocalScan:
    def __init__(self, table: LocalTable) -> None:
        self.table = table

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LocalScan) and self.table == other.table

    def __hash__(self) -> int:
        return hash(self.table)

    def __str__(self) -> str:
        return f"tamis {self.table}"

    def readSchema(self) -> Any:  # noqa: N802  # Spark's name
        return self.table.schema()

    def description(self) -> str:
        return str(self)

    def rows(self) -> Any:
        """The Java rows, made by Spark from the Arrow table in one call."""
        from pyspark.sql.pandas.types import from_arrow_schema as from_arrow

        session = self.table.bridge.active_session()
        found = self.table.rows
        # Without a schema, PySpark takes local times for instants of the session's zone.
        schema = from_arrow(found.schema, prefer_timestamp_ntz=True)
        # PySpark cannot take columns without chunks.
        df = session.createDataFrame(found if len(found) else found.schema.empty_table(), schema)
        return df._jdf.queryExecution().executedPlan().executeCollect()


def local_scan(table: LocalTable) -> Any:
    return table.bridge.implement([_READ + "LocalScan"], LocalScan(table))
