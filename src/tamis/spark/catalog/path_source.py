"""``format("tamis")``: tables by path, for ``spark.read``, ``readStream``, ``df.write`` and ``writeStream``.

Invariants: a read is planned as in a catalog. A write is one commit, which creates a missing table. A stream
writes each epoch once, as ``stream_writer`` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tamis.engine.scan.query_instants import instant_micros
from tamis.errors import AlreadyExists, InvalidInput, NotFound
from tamis.spark.catalog.change_feed_table import ChangeFeedTable, change_feed
from tamis.spark.catalog.path_write import PathWrite
from tamis.spark.catalog.spark_table import SparkTable
from tamis.spark.jvm_bridge.adapter import Bridge
from tamis.spark.options.hadoop_options import session_store
from tamis.spark.options.source_options import READS, Use, read_options
from tamis.spark.scan.join_keys import install_planning
from tamis.spark.write.session_frames import python_frame
from tamis.storage.commit_log import Snapshot, load
from tamis.storage.commit_log.version_points import check_single_point, parse_version
from tamis.storage.object_store import Store
from tamis.storage.object_store.storage_options import is_storage_option
from tamis.table import Table

INTERFACES = (
    "org.apache.spark.sql.connector.catalog.TableProvider",
    "org.apache.spark.sql.sources.CreatableRelationProvider",
)


def register_source(bridge: Bridge) -> None:
    """Register ``format("tamis")`` for all sessions. If the JVM forbids it, ``tamis.open`` remains."""
    bridge.register_source(bridge.implement(INTERFACES, PathSource(bridge)))


class PathSource:
    """Reads and writes tables by path. Method names are Spark's; option names are case-insensitive."""

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge

    def inferSchema(self, options: Any) -> Any:  # noqa: N802
        return self._opened(self._bridge.dict(options.asCaseSensitiveMap())).schema()

    def getTable(self, schema: Any, partitioning: Any, properties: Any) -> Any:  # noqa: N802, ARG002  # both inferred
        install_planning(self._bridge)
        return self._opened(self._bridge.dict(properties)).java()

    def createRelation(self, context: Any, mode: Any, parameters: Any, data: Any) -> None:  # noqa: N802, ARG002
        df, how = python_frame(data), str(mode.name())
        java = self._bridge.cls("scala.jdk.javaapi.CollectionConverters").asJava(parameters)
        asked = PathWrite(self._bridge, df, how == "Overwrite", self._bridge.dict(java))
        store = self._store(asked.given, df.sparkSession)
        snapshot = _there(store)
        if snapshot is None:
            asked.create(store)
        elif how == "ErrorIfExists":
            raise AlreadyExists(
                f"{store.url} holds a table.",
                code="TABLE_EXISTS",
                name=store.url,
                remedy='Say what becomes of its rows: mode("append") or mode("overwrite").',
            )
        elif how != "Ignore":
            asked.write(Table(store, snapshot))

    def _opened(self, given: Mapping[str, str]) -> SparkTable | ChangeFeedTable:
        session = self._bridge.active_session()
        found = read_options(given, {*READS, Use.WRITE_STREAM}, by_path=True)
        store, zone = self._store(given, session), session.conf.get("spark.sql.session.timeZone")
        point = _load_arguments(found, zone)
        if found.get("readchangefeed"):
            if point:
                raise _bad(
                    "readChangeFeed",
                    "Time travel cannot be combined with readChangeFeed.",
                    "Leave versionAsOf out, and give startingVersion and endingVersion.",
                )
            read_options(given, {Use.FEED}, by_path=True)  # what a feed ignores would be ignored in silence
            feed = change_feed(self._bridge, store, found, zone)
            feed.by_path = True
            return feed
        table = SparkTable(self._bridge, store, load(store, **point), (store.url,))
        table.pinned = bool(point)
        return table

    def _store(self, given: Mapping[str, str], session: Any) -> Store:
        """The store at the path, with the storage options among ``given`` and those of the session."""
        storage = {key: value for key, value in given.items() if is_storage_option(key)}
        return session_store(self._bridge, session, _path(given), storage)


def _load_arguments(found: Mapping[str, Any], zone: str) -> dict[str, Any]:
    """The arguments of ``commit_log.load`` that name the snapshot."""
    version, instant = found.get("versionasof"), found.get("timestampasof")
    check_single_point(version, instant)
    if instant is not None:
        return {"timestamp_micros": instant_micros(instant, zone)}
    return {} if version is None else {"version": parse_version(version)}


def _there(store: Store) -> Snapshot | None:
    try:
        return load(store)
    except NotFound as error:
        if error.code != "TABLE_NOT_FOUND":
            raise
        return None


def _path(given: Mapping[str, str]) -> str:
    paths = {key.lower(): value for key, value in given.items()}
    if "paths" in paths:
        raise _bad("path", "Several paths are given.", "Load one table at a time, and join them by DataFrame.union.")
    if "path" not in paths:
        raise _bad(
            "path",
            "No path is given.",
            "Name the table's folder, as load(path) or save(path); of a catalog, use table(name).",
        )
    return paths["path"]


def _bad(name: str, what: str, remedy: str) -> InvalidInput:
    return InvalidInput(what, code="BAD_OPTION", name=name, remedy=remedy)
