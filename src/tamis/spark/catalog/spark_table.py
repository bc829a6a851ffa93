"""The table that Spark sees: a loaded snapshot, and the builders of its scans and writes."""

from __future__ import annotations

from typing import Any, ClassVar

from tamis.spark.catalog.loaded_table import LoadedTable
from tamis.spark.options.source_options import Use, read_options
from tamis.spark.scan.scan_builder import collect_in_java, planned_scan, scan_builder
from tamis.spark.streaming.stream_sink import streaming_write
from tamis.spark.write.insert import WriteBuilder
from tamis.spark.write.row_level_operations import metadata_columns, operation_builder
from tamis.spark.write.spark_delete import can_delete, delete_where


class SparkTable(LoadedTable):
    """A table at one version, with the methods by which Spark asks for scans and writes."""

    java_made: ClassVar = ("newScanBuilder",)

    def metadataColumns(self) -> list[Any]:  # noqa: N802  # Spark's name
        return metadata_columns(self)

    def newRowLevelOperationBuilder(self, info: Any) -> Any:  # noqa: N802  # Spark's name
        return operation_builder(self, info)

    def canDeleteWhere(self, predicates: Any) -> bool:  # noqa: N802  # Spark's name
        return can_delete(self, predicates)

    def deleteWhere(self, predicates: Any, options: Any = None) -> None:  # noqa: N802  # Spark's name
        given = {} if options is None else self.bridge.dict(options.asCaseSensitiveMap())
        read_options(given, (), by_path=self.by_path)
        delete_where(self, predicates, given)

    def truncateTable(self, options: Any = None) -> bool:  # noqa: N802  # Spark's name; later lines of Spark pass options
        self.deleteWhere([], options)
        return True

    def newScanBuilder(self, options: Any) -> Any:  # noqa: N802  # Spark's name
        collect_in_java(self.bridge)
        return scan_builder(self.bridge, self, options)

    def plannedScan(self, collected: str, required: Any) -> Any:  # noqa: N802  # called by ScanBuilders.java
        return planned_scan(self.bridge, self, collected, required)

    def newWriteBuilder(self, info: Any) -> Any:  # noqa: N802  # Spark's name
        options = self.bridge.dict(info.options().asCaseSensitiveMap())
        read_options(options, {Use.WRITE_TABLE, Use.WRITE_STREAM}, by_path=self.by_path)
        replaced = self.pending_write.replaced if self.pending_write is not None else None
        return WriteBuilder(self, options, replaced).java()

    def streaming_write(self) -> Any:
        return streaming_write(self)
