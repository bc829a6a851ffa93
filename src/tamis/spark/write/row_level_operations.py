"""UPDATE, MERGE and DELETE by Spark, which rewrites the statement into row changes with row positions.

Invariant: exactly the rows that Spark names change. One commit deletes them by deletion vectors and adds
their new versions in new parts.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

from tamis.engine.scan import Options
from tamis.errors import TamisError
from tamis.spark.catalog.loaded_table import LoadedTable
from tamis.spark.executors.row_change_task import Changes
from tamis.spark.executors.row_metadata import METADATA, PART, POSITION, metadata_struct
from tamis.spark.jvm_bridge.adapter import Bridge
from tamis.spark.options.source_options import read_options
from tamis.spark.scan.scan_builder import scan_builder
from tamis.spark.write.generated_rows import check_numbers, null_unassigned_columns
from tamis.spark.write.merge_pruning import collect_pruned
from tamis.spark.write.node_metrics import NodeMetrics
from tamis.spark.write.own_reads import read_beside
from tamis.spark.write.row_change_job import collect_changes, commit_changes, planned_change
from tamis.spark.write.session_frames import python_frame, write_switches
from tamis.spark.write.spark_index import spark_index_builder

_WRITE = "org.apache.spark.sql.connector.write."
_CATALOG = "org.apache.spark.sql.connector.catalog."
_TYPES = "org.apache.spark.sql.types."
_COMMENTS = {
    METADATA: "The file of the row, and its place in it",
    PART: "The id of the row's part",
    POSITION: "The row's ordinal in its part",
}


def metadata_columns(table: LoadedTable) -> list[Any]:
    """The metadata columns: a row's part id, its ordinal in the part, and ``_metadata``."""
    bridge = table.bridge
    return [bridge.make_once("metadata column", name, partial(_metadata_column, bridge, name)) for name in _COMMENTS]


def _metadata_column(bridge: Bridge, name: str) -> Any:
    if name == METADATA:
        kind = bridge.struct_type(json.dumps(metadata_struct()))
    else:
        kind = bridge.scala_object(_TYPES + ("StringType" if name == PART else "LongType"))
    return bridge.implement([_CATALOG + "MetadataColumn"], MetadataColumn(name, kind))


@dataclass(eq=False)
class MetadataColumn:
    java_constant: ClassVar = {"name": "", "dataType": "", "isNullable": "", "comment": ""}
    column: str
    type: Any

    def name(self) -> str:
        return self.column

    def dataType(self) -> Any:  # noqa: N802  # Spark's name
        return self.type

    def isNullable(self) -> bool:  # noqa: N802  # Spark's name
        return False

    def comment(self) -> str:
        return _COMMENTS[self.column]


def operation_builder(table: LoadedTable, info: Any) -> Any:
    """A Java ``RowLevelOperationBuilder`` for one statement."""
    table.bridge.install_strategy("RowLevel")
    return table.bridge.implement([_WRITE + "RowLevelOperationBuilder"], OperationBuilder(table, info.command()))


@dataclass(eq=False)
class OperationBuilder:
    table: LoadedTable
    asked: Any

    def build(self) -> Any:
        return self.table.bridge.implement([_WRITE + "SupportsDelta"], RowLevelStatement(self.table, self.asked))


@dataclass(eq=False)
class RowLevelStatement:
    """One statement. ``scans`` collects the scans of its target as they are built."""

    table: LoadedTable
    asked: Any
    scans: list[Any] = field(default_factory=list)

    @property
    def verb(self) -> str:
        return str(self.asked.toString()).lower()

    def command(self) -> Any:
        return self.asked

    def description(self) -> str:
        return f"tamis {self.verb}"

    def newScanBuilder(self, options: Any) -> Any:  # noqa: N802  # Spark's name
        return scan_builder(self.table.bridge, self.table, options, self.scans)

    def rowId(self) -> list[Any]:  # noqa: N802  # Spark's name
        column = self.table.bridge.cls("org.apache.spark.sql.connector.expressions.Expressions").column
        return [column(PART), column(POSITION)]

    def representUpdateAsDeleteAndInsert(self) -> bool:  # noqa: N802  # Spark's name
        return False

    def newWriteBuilder(self, info: Any) -> Any:  # noqa: N802  # Spark's name
        options = self.table.bridge.dict(info.options().asCaseSensitiveMap())
        read_options(options, (), by_path=self.table.by_path)
        return self.table.bridge.implement([_WRITE + "DeltaWriteBuilder"], ChangeWriteBuilder(self, options))


@dataclass(eq=False)
class ChangeWriteBuilder:
    change: RowLevelStatement
    options: dict[str, str]

    def __post_init__(self) -> None:
        self.metrics = NodeMetrics(self.change.table.bridge)

    def build(self) -> Any:
        return self.change.table.bridge.implement(
            [_WRITE + "DeltaWrite", _WRITE + "V1Write"], ChangeWrite(self.change, self.options)
        )


@dataclass(eq=False)
class ChangeWrite(ChangeWriteBuilder):
    def toInsertableRelation(self) -> Any:  # noqa: N802  # Spark's name
        return self.change.table.bridge.implement(["org.apache.spark.sql.sources.InsertableRelation"], self)

    def description(self) -> str:
        return self.change.description()

    def supportedCustomMetrics(self) -> Any:  # noqa: N802  # Spark's name
        return self.metrics.declared()

    def reportDriverMetrics(self) -> Any:  # noqa: N802  # Spark's name
        return self.metrics.values()

    def insert(self, java_df: Any, overwrite: bool) -> None:  # noqa: ARG002  # Spark's signature
        table = self.change.table
        df = python_frame(table.bridge.helper("RowLevel").changesAlone(java_df))
        options = write_switches(df.sparkSession, table.bridge, self.options, table.head)
        try:
            self._run(df, options)
        except TamisError as error:
            table.failure = error
            raise

    def _run(self, df: Any, options: Options) -> None:
        """Run the changes in ``df`` and commit them."""
        change, table = self.change, self.change.table
        collect = partial(self._collect, options=options)
        exact = self._local(df)
        beside = read_beside(df, table, change.scans)
        if change.verb == "merge" and len(change.scans) == 1:
            found = collect_pruned(df, table, change.scans[0], collect)
        else:
            found = collect(df)
        scans = [*change.scans, *beside.scans]
        row_change = planned_change(change.verb, scans, options, exact=exact, reads_all=beside.others)
        builder = spark_index_builder(df.sparkSession)
        table.result = self.metrics.result = commit_changes(found, table, row_change, builder)

    def _collect(self, df: Any, options: Options) -> Changes:
        """Write the new rows in ``df``. Commits nothing."""
        change, table = self.change, self.change.table
        if change.verb != "delete":
            check_numbers(df, table, [scan.java_key for scan in change.scans])
        for scan in change.scans:
            df = null_unassigned_columns(df, table, scan.java_key)
        return collect_changes(df, table, change.verb, options)

    def _local(self, df: Any) -> bool:
        """Whether the statement depends only on the rows that it removes.

        Then a concurrent commit may remove other rows without a conflict.
        """
        if self.change.verb == "merge" or len(self.change.scans) != 1:
            return False
        return bool(self.change.table.bridge.helper("RowLevel").local(df._jdf, self.change.scans[0].java_key))
