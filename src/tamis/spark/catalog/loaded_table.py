"""One snapshot of a table as Spark holds it: compared by value, so that caches and exchange reuse hit.

Builders of scans and writes take a ``LoadedTable``. ``SparkTable`` adds the methods by which Spark asks for builders.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

from tamis.core.expr import Expr
from tamis.core.schema.additions import columns_of_data
from tamis.core.types import Schema
from tamis.engine.operations import Result
from tamis.errors import TamisError
from tamis.spark.catalog.analyzed_schema import check_folded_columns
from tamis.spark.catalog.generated_properties import generated_properties
from tamis.spark.catalog.spark_constraints import java_constraints
from tamis.spark.catalog.table_capabilities import table_capabilities
from tamis.spark.jvm_bridge.adapter import Bridge
from tamis.spark.jvm_bridge.spark_types import from_spark, to_spark
from tamis.spark.scan.scan_metrics import Opening
from tamis.spark.write.spark_index import Indexed
from tamis.storage.commit_log import Head, Operation, Snapshot
from tamis.storage.object_store import Store
from tamis.table.table_definition import PENDING, checked_columns, with_columns

_CATALOG = "org.apache.spark.sql.connector.catalog."
_MIXINS = (
    "SupportsRead",
    "SupportsWrite",
    "index.SupportsIndex",
    "SupportsMetadataColumns",
    "SupportsDeleteV2",
    "SupportsRowLevelOperations",
)
INTERFACES = tuple(_CATALOG + name for name in _MIXINS)


class LoadedTable(Indexed):
    """A table at one version, with what scans and writes need.

    ``head`` differs from the snapshot's head if a write brings the first schema. ``operation`` describes an append
    in the log. After a write, ``result`` holds its result, or ``failure`` our own error. ``opening`` is the cost of
    loading the table. ``captured`` holds the ids of the schemas under which its plans were analyzed.
    """

    java_arity: ClassVar = {"deleteWhere": (1, 2)}
    java_when_refreshed: ClassVar = ("columns",)
    java_constant: ClassVar = dict.fromkeys(
        ["name", "id", "version", "schema", "capabilities", "partitioning", "constraints", "metadataColumns"], ""
    )

    def __init__(
        self, bridge: Bridge, store: Store, snapshot: Snapshot, names: Sequence[str], *, head: Head | None = None
    ) -> None:
        self.bridge = bridge
        self.store = store
        self.snapshot = snapshot
        self.names = tuple(names)
        self.head = head or snapshot.head
        self.result: Result | None = None
        self.operation = Operation("append")
        self.failure: TamisError | None = None
        self.opening = Opening()
        self.captured: set[int] = set()
        self.pending_write: PendingWrite | None = None
        self.pinned = False
        """Whether a version or time was asked for."""
        self.source_reads_table = False
        """Whether the rows to write were computed from the table's own, which a plan over held rows does not say."""

    @classmethod
    def opened_by_path(cls, bridge: Bridge, store: Store, snapshot: Snapshot, df: Any) -> Self:
        """Return a table opened by path for writing ``df``, whose columns become the schema if there is none."""
        head = (
            snapshot.head
            if snapshot.head.schema
            else with_columns(snapshot.head, checked_columns(columns_of_data(from_spark(df._jdf.schema().json()))))
        )
        return cls(bridge, store, snapshot, (store.url,), head=head)

    @property
    def logical_schema(self) -> Schema:
        return self.head.schema or Schema(())

    @property
    def by_path(self) -> bool:
        """Whether this is no table of a catalog: its name is its path."""
        return self.names == (self.store.url,)

    def java(self, planning: Sequence[Any] | None = None) -> Any:
        """A Java table. ``planning``, if any, is what ``Bridge.install_strategy`` installs first."""
        return self.bridge.implement([*INTERFACES, *self._evolution_interfaces], self, self._answers_key, planning)

    @property
    def _answers_key(self) -> str | None:
        """Key under which Java caches constant answers, or None. Each query loads its tables twice."""
        return (
            "\0".join([type(self).__name__, *map(str, self._value()[1:]), self.store.url, *self.names])
            if self.head is self.snapshot.head
            else None
        )

    @property
    def _evolution_interfaces(self) -> list[str]:
        """Interfaces for schema evolution, if this Spark has them."""
        name = _CATALOG + "SupportsSchemaEvolution"
        return [name] if self.bridge.is_java_class(name) else []

    @property
    def _keeps_ids(self) -> bool:
        """Whether this Spark loads the tables of a plan again to run it, and so needs the ids of columns."""
        found: bool = self.bridge.has_class("org.apache.spark.sql.execution.datasources.v2.V2TableRefreshUtil")
        return found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LoadedTable) and self._value() == other._value()

    def __hash__(self) -> int:
        return hash(self._value())

    @property
    def java_identity(self) -> str | None:
        """What ``__eq__`` compares, as text. None if options, which may be secret, are part of it.

        Spark compares hundreds of pairs of tables to plan a query of ten.
        """
        if self.store.options:
            return None
        return "\0".join(["table", self.store.url, *map(str, self._value()[1:])])

    def _value(self) -> tuple[object, ...]:
        return self.store, *self.snapshot.identity[1:]

    def __str__(self) -> str:
        return self.name()

    # --- what Spark asks ---

    def name(self) -> str:
        return ".".join(self.names)

    def id(self) -> str:
        return self.head.table_id

    def version(self) -> str | None:
        return str(self.snapshot.version)

    def schema(self) -> Any:
        return self._struct

    def columns(self, analysed: str) -> None:
        """Note the schema of the table whose key in the bridge is ``analysed``, under which the plan was analyzed.

        Java answers Spark with no columns, so that Spark skips its stale-schema check, which refuses renames, too: the
        scan validates the columns that it reads. Raises ``SchemaFenced`` if a type or a NOT NULL has changed since, by
        which Spark may have simplified the plan.
        """
        before = self.bridge.target_of_key(analysed)
        if (
            isinstance(before, LoadedTable)
            and before.head.table_id == self.head.table_id
            and before.head.schema is not None
        ):
            check_folded_columns(self.head, before.head.schema)
            self.captured.add(before.head.schema.schema_id)

    @cached_property
    def _struct(self) -> Any:
        """The schema with column ids.

        When Spark reloads the table for a plan analyzed earlier, ids keep it from taking a new column for a dropped
        one of the same name.
        """
        return self.bridge.struct_type(to_spark(self.logical_schema, ids=self._keeps_ids))

    def capabilities(self) -> list[Any]:
        return table_capabilities(self.bridge, evolving=bool(self._evolution_interfaces))

    def properties(self) -> dict[str, str]:
        shown = {k: v for k, v in self.head.properties.items() if k != PENDING}
        shown |= {
            "provider": "tamis",
            "location": self.store.url,
            "is_managed_location": "true",
            "tamis.format": self.head.format,
        } | generated_properties(self.logical_schema)
        if self.head.comment is not None:
            shown["comment"] = self.head.comment
        return shown

    def supportsColumnChange(self, change: Any) -> bool:  # noqa: N802  # Spark's name
        """WITH SCHEMA EVOLUTION adds what the data brings; types change only where that is asked for by name."""
        return str(change.getClass().getSimpleName()) == "AddColumn"

    def partitioning(self) -> list[Any]:
        """The clustering, as DESCRIBE and SHOW CREATE TABLE print it."""
        by_id = self.logical_schema.by_id
        columns = [
            self.bridge.list([by_id[i].name for i in ids])
            for ids in self.head.cluster_by
            if all(i in by_id for i in ids)
        ]
        return [clustering(self.bridge, columns)] if columns else []

    def constraints(self) -> list[Any]:
        """The constraints, as DESCRIBE and SHOW CREATE TABLE print them, and as Spark enforces them beside us."""
        return java_constraints(self.bridge, self.head.constraints, self.logical_schema)

    def for_write(self, write: PendingWrite) -> Self:
        """Return a copy of this table for one write that replaces the rows in ``write``."""
        made = type(self)(self.bridge, self.store, self.snapshot, self.names, head=self.head)
        made.operation, made.pending_write = self.operation, write
        return made

    def streaming_write(self) -> Any:
        """Return a Java ``StreamingWrite`` into this table for the session of the query."""
        raise NotImplementedError


@dataclass(frozen=True)
class PendingWrite:
    """The rows that the next write replaces, by a filter of ours that Spark does not see.

    New rows are checked against the filter too. Spark's own statements accept any row unless
    ``tamis.write.outside_filter`` is set.
    """

    replaced: tuple[Expr, ...] | None
    allow_outside: bool


def clustering(bridge: Bridge, columns: Sequence[Any]) -> Any:
    """A CLUSTER BY transform of column paths (Java lists of names)."""
    package = "org.apache.spark.sql.connector.expressions."
    to_seq = bridge.static("org.apache.spark.api.python.PythonUtils", "toSeq")
    references = [bridge.new(package + "FieldReference", to_seq(path)) for path in columns]
    return bridge.new(package + "ClusterByTransform", bridge.seq(references))
