"""The table that Spark sees: one snapshot, compared by value so that caches and exchange reuse hit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from tamis.errors import TamisError
from tamis.maintain import Result
from tamis.spark.adapter import Bridge
from tamis.spark.metrics import Opening
from tamis.spark.types import from_spark, to_spark
from tamis.state import Head, Operation, Snapshot, Store
from tamis.table.definition import PENDING
from tamis.types import Schema

_CATALOG = "org.apache.spark.sql.connector.catalog."
INTERFACES = (_CATALOG + "SupportsRead", _CATALOG + "SupportsWrite")
CAPABILITIES = ("BATCH_READ", "V1_BATCH_WRITE", "TRUNCATE", "OVERWRITE_BY_FILTER")


class SparkTable:
    """A table at one version. What writes and scans need is in ``store``, ``snapshot``, ``head`` and ``schema``.

    ``head`` differs from the snapshot's where a write brings the first schema. ``result`` is what the last write through this object did, ``operation``
    what an append through it says about itself in the log, ``failure`` our own error where the write ended with one, ``opening`` what loading it cost.
    """

    def __init__(self, bridge: Bridge, store: Store, snapshot: Snapshot, names: Sequence[str], *, head: Head | None = None) -> None:
        self.bridge = bridge
        self.store = store
        self.snapshot = snapshot
        self.names = tuple(names)
        self.head = head or snapshot.head
        self.result: Result | None = None
        self.operation = Operation("append")
        self.failure: TamisError | None = None
        self.opening = Opening()

    @staticmethod
    def held(bridge: Bridge, store: Store, snapshot: Snapshot, df: Any) -> SparkTable:
        """A table opened by path, about to take the rows of ``df``, which bring the schema if it has none yet."""
        head = snapshot.head if snapshot.head.schema else with_schema(snapshot.head, from_spark(df._jdf.schema().json()))
        return SparkTable(bridge, store, snapshot, (store.url,), head=head)

    @property
    def logical_schema(self) -> Schema:
        return self.head.schema or Schema(())

    def java(self) -> Any:
        return self.bridge.implement(INTERFACES, self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SparkTable) and self._value() == other._value()

    def __hash__(self) -> int:
        return hash(self._value())

    def _value(self) -> tuple[object, ...]:
        return self.store, self.snapshot.head.table_id, self.snapshot.version

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

    @cached_property
    def _struct(self) -> Any:
        return self.bridge.struct_type(to_spark(self.logical_schema))

    def capabilities(self) -> list[Any]:
        return [self.bridge.enum(_CATALOG + "TableCapability", name) for name in CAPABILITIES]

    def properties(self) -> dict[str, str]:
        shown = {k: v for k, v in self.head.properties.items() if k != PENDING}
        shown |= {"provider": "tamis", "location": self.store.url, "is_managed_location": "true", "tamis.format": self.head.format}
        if self.head.comment is not None:
            shown["comment"] = self.head.comment
        return shown

    def partitioning(self) -> list[Any]:
        """The clustering, as DESCRIBE and SHOW CREATE TABLE print it."""
        by_id = self.logical_schema.by_id
        columns = [self.bridge.list([by_id[i].name for i in ids]) for ids in self.head.cluster_by if all(i in by_id for i in ids)]
        return [clustering(self.bridge, columns)] if columns else []

    def newScanBuilder(self, options: Any) -> Any:  # noqa: N802  # Spark's name
        from tamis.spark.scan import scan_builder

        return scan_builder(self.bridge, self, options)

    def newWriteBuilder(self, info: Any) -> Any:  # noqa: N802  # Spark's name
        from tamis.spark.insert import WriteBuilder

        return WriteBuilder(self, self.bridge.dict(info.options().asCaseSensitiveMap())).java()


def clustering(bridge: Bridge, columns: Sequence[Any]) -> Any:
    """A CLUSTER BY transform of column paths (Java lists of names)."""
    package = "org.apache.spark.sql.connector.expressions."
    references = [bridge.new(package + "FieldReference", bridge.jvm.PythonUtils.toSeq(path)) for path in columns]
    return bridge.new(package + "ClusterByTransform", bridge.seq(references))


def with_schema(head: Head, schema: Schema) -> Head:
    """The head of a table that had no schema and now has this one; clustering names that waited for it are resolved."""
    import json

    from tamis.table.definition import clustering_column

    given = replace(schema.assign_ids(head.highest_column_id), schema_id=len(head.schemas))
    properties = dict(head.properties)
    waiting = json.loads(properties.pop(PENDING, "[]"))
    keys = tuple(clustering_column(given, name) for name in waiting) or head.cluster_by
    return replace(head, schemas=(*head.schemas, given), highest_column_id=given.highest_id(), cluster_by=keys, properties=properties)
