"""The change feed of a table as a DataFrame: for ``readChangeFeed``, ``table_changes`` and ``CHANGES FROM``.

The driver reads the metadata of every version; for a commit that changes rows, that of the version before it, too.
Executors read the rows. No filter and no choice of columns is pushed down.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from tamis.core.types import Schema
from tamis.core.types.arrow import from_arrow_schema
from tamis.core.types.identifiers import split_list
from tamis.engine.operations import FeedForm
from tamis.engine.operations.rows.change_feed import changes_of, feed_spec
from tamis.engine.operations.rows.change_images import key_columns
from tamis.engine.operations.rows.feed_columns import feed_schema
from tamis.engine.scan.query_instants import instant_micros
from tamis.errors import InvalidInput
from tamis.spark.executors.change_task import ChangeRead, change_tasks
from tamis.spark.executors.partitions import Sizes, pack_tasks
from tamis.spark.jvm_bridge.adapter import Bridge
from tamis.spark.jvm_bridge.spark_types import to_spark
from tamis.spark.jvm_bridge.wire_format import list_items
from tamis.spark.options.source_options import Use, read_options, refuse_settings
from tamis.spark.scan.python_source import python_reader
from tamis.storage.commit_log import Snapshot, load, version_after
from tamis.storage.commit_log.vacuum_marker import check_readable
from tamis.storage.object_store import Store

_READ = "org.apache.spark.sql.connector.read."
_CATALOG = "org.apache.spark.sql.connector.catalog."
_TIMES = ("startingTimestamp", "endingTimestamp")


class ChangeFeedTable:
    """The changes from version ``first`` up to the snapshot ``last``; none if ``first`` is after it.

    Read only; compared by value.
    """

    java_constant: ClassVar = dict.fromkeys(["name", "schema", "readSchema", "description"], "")

    def __init__(self, bridge: Bridge, store: Store, first: int, last: Snapshot, form: FeedForm) -> None:
        self.bridge, self.store, self.first, self.last, self.form = bridge, store, first, last, form
        before = max(first - 1, 0)
        check_readable(store, last.head.table_id, before)
        self.arrow_schema = feed_schema(store, before, last)
        self.use, self.by_path = Use.FEED, False
        key_columns(last.schema or Schema(()), form.keys)

    def java(self) -> Any:
        return self.bridge.implement([_CATALOG + "SupportsRead"], self)

    def _value(self) -> tuple[object, ...]:
        return self.store, self.first, *self.last.identity[1:], self.form

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ChangeFeedTable) and self._value() == other._value()

    def __hash__(self) -> int:
        return hash(self._value())

    def __str__(self) -> str:
        return self.name()

    def name(self) -> str:
        return f"{self.store.url} changes {self.first} to {self.last.version}"

    def schema(self) -> Any:
        return self.bridge.struct_type(to_spark(from_arrow_schema(self.arrow_schema)))

    def capabilities(self) -> list[Any]:
        names = ("BATCH_READ", "MICRO_BATCH_READ")  # the second for an error of ours
        return [self.bridge.enum(_CATALOG + "TableCapability", name) for name in names]

    def properties(self) -> dict[str, str]:
        return {"provider": "tamis", "location": self.store.url}

    def newScanBuilder(self, options: Any) -> Any:  # noqa: N802  # Spark's name
        """Return a scan builder. A catalog gets only some of the options, so all are checked here."""
        given = self.bridge.dict(options.asCaseSensitiveMap())
        read_options(given, {self.use}, by_path=self.by_path)
        refuse_settings(given, "A change feed", "Leave it out.")
        return self.bridge.implement([_READ + "ScanBuilder"], ChangeFeedScan(self))


class ChangeFeedScan:
    """Spark's ``ScanBuilder``, ``Scan`` and ``Batch`` of a feed, which nothing is pushed into."""

    java_constant: ClassVar = dict.fromkeys(["readSchema", "description", "planInputPartitions"], "")

    def __init__(self, table: ChangeFeedTable) -> None:
        self.table = table

    def build(self) -> Any:
        return self.table.bridge.implement([_READ + "Scan"], self)

    def toBatch(self) -> Any:  # noqa: N802  # Spark's name
        return self.table.bridge.implement([_READ + "Batch"], self)

    def toMicroBatchStream(self, checkpoint: str) -> Any:  # noqa: N802, ARG002  # Spark's name
        raise InvalidInput(
            "Streaming reads of the change feed are not supported.",
            code="BAD_OPTION",
            name="readChangeFeed",
            remedy="Read a range of versions by spark.read, or stream added rows without readChangeFeed.",
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ChangeFeedScan) and self.table == other.table

    def __hash__(self) -> int:
        return hash(self.table)

    def __str__(self) -> str:
        return self.description()

    def readSchema(self) -> Any:  # noqa: N802  # Spark's name
        return self.table.schema()

    def description(self) -> str:
        return f"tamis changes of versions {self.table.first} to {self.table.last.version}, reader: Python"

    def planInputPartitions(self) -> Any:  # noqa: N802  # Spark's name
        table = self.table
        flat = list_items(table.bridge.helper("ScanBuilders").settings("tamis."))
        sizes = Sizes.of(dict(zip(flat[::2], flat[1::2], strict=True)))
        found = (
            changes_of(table.store, table.first, table.last, table.form) if table.first <= table.last.version else ()
        )
        return table.bridge.helper("Partitions").python(pack_tasks(change_tasks(found, sizes.largest)))

    def createReaderFactory(self) -> Any:  # noqa: N802  # Spark's name
        table = self.table
        read = ChangeRead(feed_spec(table.store, table.last), table.arrow_schema, table.form.keys)
        return python_reader(self.table.bridge, read, self.table.schema())


def change_feed(bridge: Bridge, store: Store, given: Mapping[str, Any], zone: str) -> ChangeFeedTable:
    """Return the feed that the options ``given`` describe; both ends are included.

    It is empty if it begins with the version that the next commit will make, which is what a poller asks for. Times
    without an offset are in ``zone``. Raises ``InvalidInput`` and ``NotFound``.
    """
    first, last = _first(store, given, zone), _last(store, given, zone)
    times = [instant_micros(given[k.lower()], zone, name=k) for k in _TIMES if k.lower() in given]
    if times != sorted(times):
        raise _bad("startingTimestamp", "startingTimestamp is after endingTimestamp.", "Give the older time first.")
    if first > last.version + ("endingversion" not in given):
        raise _bad(
            "startingVersion",
            f"Version {first} is after version {last.version}.",
            "Give the older version first. Without an end, begin with the version after the newest at the latest.",
        )
    return ChangeFeedTable(bridge, store, first, last, FeedForm(tuple(split_list(given.get("keycolumns", "")))))


def _first(store: Store, given: Mapping[str, Any], zone: str) -> int:
    version, instant = given.get("startingversion"), given.get("startingtimestamp")
    if (version is None) == (instant is None):
        raise _bad(
            "startingVersion",
            "A change feed needs one start: a version or a time.",
            "Give startingVersion or startingTimestamp.",
        )
    if version == "latest":
        raise _bad("startingVersion", "A change feed cannot begin at 'latest'.", "Give the number of a version.")
    if version is not None:
        return int(version)
    return version_after(store, instant_micros(instant, zone, name="startingTimestamp") - 1)


def _last(store: Store, given: Mapping[str, Any], zone: str) -> Snapshot:
    version, instant = given.get("endingversion"), given.get("endingtimestamp")
    if version is not None and instant is not None:
        raise _bad("endingVersion", "Both endingVersion and endingTimestamp are given.", "Give one of them.")
    if instant is not None:
        return load(store, timestamp_micros=instant_micros(instant, zone, name="endingTimestamp"))
    return load(store, version)


def _bad(name: str, what: str, remedy: str) -> InvalidInput:
    return InvalidInput(what, code="BAD_OPTION", name=name, remedy=remedy)
