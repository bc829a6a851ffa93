"""``format("tamis")``: tables by path, for ``spark.read``, ``readStream``, ``df.write`` and ``writeStream``.

Invariants: a read is planned as in a catalog. A write is one commit, which creates a missing table. A stream
writes each epoch once, as ``stream_writer`` does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tamis.engine.operations.result import written
from tamis.engine.scan.query_instants import micros
from tamis.errors import AlreadyExists, InvalidInput, NotFound
from tamis.spark.catalog.create_table import Definition, data_format, new_head
from tamis.spark.catalog.spark_table import SparkTable
from tamis.spark.jvm_bridge.adapter import Bridge
from tamis.spark.jvm_bridge.spark_errors import unsupported
from tamis.spark.jvm_bridge.spark_types import from_spark
from tamis.spark.scan.join_keys import plan_with_keys
from tamis.spark.write import insert_by_path, spark_write
from tamis.spark.write.session_frames import dataframe, switches
from tamis.storage.commit_log import Operation, Snapshot, create, load
from tamis.storage.commit_log.path_checks import check_free
from tamis.storage.commit_log.version_points import check_one, version_in
from tamis.storage.object_store import Store, open_store
from tamis.table import Table
from tamis.table.table_definition import FORMAT

INTERFACES = (
    "org.apache.spark.sql.connector.catalog.TableProvider",
    "org.apache.spark.sql.sources.CreatableRelationProvider",
)
_VERSION = ("versionasof", "version")
_TIMESTAMP = ("timestampasof", "timestamp")
_PARTITIONED, _CLUSTERED = "__partition_columns", "__clustering_columns"
"""Options in which Spark passes ``partitionBy`` and ``clusterBy``, as JSON lists of names."""


def register(bridge: Bridge) -> None:
    """Register ``format("tamis")`` for all sessions. If the JVM forbids it, ``tamis.open`` remains."""
    bridge.register_source(bridge.implement(INTERFACES, PathSource(bridge)))


class PathSource:
    """Reads and writes tables by path. Method names are Spark's; option names are case-insensitive."""

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge

    def inferSchema(self, options: Any) -> Any:  # noqa: N802
        return self._opened(self._bridge.dict(options.asCaseSensitiveMap())).schema()

    def getTable(self, schema: Any, partitioning: Any, properties: Any) -> Any:  # noqa: N802, ARG002  # both inferred
        self._bridge.helper("Pushed").enable()
        plan_with_keys(self._bridge)
        return self._opened(self._bridge.dict(properties)).java()

    def createRelation(self, context: Any, mode: Any, parameters: Any, data: Any) -> None:  # noqa: N802, ARG002
        df, told = dataframe(data), self._told(parameters)
        store, how = open_store(_path(told)), str(mode.name())
        snapshot = _there(store)
        if snapshot is None:
            _create(self._bridge, store, df, told)
        elif how == "ErrorIfExists":
            raise AlreadyExists(
                f"{store.url} holds a table.",
                code="TABLE_EXISTS",
                name=store.url,
                remedy='Say what becomes of its rows: mode("append") or mode("overwrite").',
            )
        elif how != "Ignore" and _CLUSTERED in told:
            raise unsupported(
                "clusterBy for a table that is there", "Leave it out: rows are arranged as the table says."
            )
        elif how == "Append":
            insert_by_path.append(
                Table(store, snapshot), df, merge_schema=told.get("mergeschema", "").lower() == "true"
            )
        elif how == "Overwrite":
            insert_by_path.overwrite(Table(store, snapshot), df, told.get("replacewhere"))

    def _opened(self, given: Mapping[str, str]) -> SparkTable:
        told = {key.lower(): value for key, value in given.items()}
        store = open_store(_path(told))
        return SparkTable(self._bridge, store, load(store, **self._point(told)), (store.url,))

    def _point(self, told: Mapping[str, str]) -> dict[str, Any]:
        """The arguments of ``commit_log.load`` that name the snapshot."""
        version, instant = (next((told[k] for k in keys if k in told), None) for keys in (_VERSION, _TIMESTAMP))
        check_one(version, instant)
        if instant is not None:
            zone = self._bridge.active_session().conf.get("spark.sql.session.timeZone")
            return {"timestamp_micros": micros(instant, zone)}
        return {} if version is None else {"version": version_in(version)}

    def _told(self, parameters: Any) -> dict[str, str]:
        """The options of a write. Raises ``InvalidInput`` for unsupported ones."""
        java = self._bridge.cls("scala.jdk.javaapi.CollectionConverters").asJava(parameters)
        told = {key.lower(): value for key, value in self._bridge.dict(java).items()}
        if _PARTITIONED in told:
            raise unsupported(
                f"partitionBy ({told[_PARTITIONED]})", "Use clusterBy: parts are skipped by their statistics."
            )
        for key in told:
            if key.startswith("tamis.") and key != FORMAT:
                raise _bad(key, f"A write to a path does not take {key}.", "Set it in the session's conf.")
        return told


def _create(bridge: Bridge, store: Store, df: Any, told: Mapping[str, str]) -> None:
    """Create the table with the rows of ``df`` in one commit."""
    check_free(store)
    clustering = tuple(tuple(name.split(".")) for name in json.loads(told.get(_CLUSTERED, "[]")))
    asked = Definition(from_spark(df._jdf.schema().json()), clustering, {}, None, data_format(told))
    head = new_head(asked, ())
    manifests = spark_write.write_rows(df, store, head, switches(df.sparkSession, bridge, {}, {}))
    rows, parts, size = written(manifests)
    create(
        store,
        head,
        Operation("create", metrics={"rows_inserted": rows, "parts_added": parts, "bytes_written": size}),
        add=manifests,
    )


def _there(store: Store) -> Snapshot | None:
    try:
        return load(store)
    except NotFound as error:
        if error.code != "TABLE_NOT_FOUND":
            raise
        return None


def _path(told: Mapping[str, str]) -> str:
    if "paths" in told:
        raise _bad("path", "Several paths are given.", "Load one table at a time, and unite the DataFrames.")
    if "path" not in told:
        raise _bad(
            "path",
            "No path is given.",
            "Name the table's folder, as load(path) or save(path); of a catalog, use table(name).",
        )
    return told["path"]


def _bad(name: str, what: str, remedy: str) -> InvalidInput:
    return InvalidInput(what, code="BAD_OPTION", name=name, remedy=remedy)
