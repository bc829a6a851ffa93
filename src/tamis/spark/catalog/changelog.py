"""Spark's ``Changelog``: what ``CHANGES FROM VERSION …`` and ``spark.read.changes`` read, from Spark 4.2 on.

Rows that a commit only copied are never reported, and images are paired by the option ``keyColumns``, so that Spark
has nothing to add. Net changes are the difference of the two versions, and carry the number of the last one.
"""

from __future__ import annotations

from typing import Any, ClassVar

from tamis.core.types import Schema
from tamis.core.types.identifiers import split_list
from tamis.engine.operations import FeedForm
from tamis.errors import InvalidInput
from tamis.spark.catalog.change_feed_table import ChangeFeedTable
from tamis.spark.jvm_bridge.adapter import Bridge
from tamis.spark.options.source_options import Use, read_options
from tamis.storage.commit_log import Head, Snapshot, load, version_after
from tamis.storage.commit_log.table_constraints import PRIMARY_KEY, column_names
from tamis.storage.commit_log.version_points import parse_version
from tamis.storage.object_store import Store

_CATALOG = "org.apache.spark.sql.connector.catalog."


class Changelog:
    """The changes of a range of versions. Compared by value."""

    java_constant: ClassVar = dict.fromkeys(["name", "columns"], "")

    def __init__(self, feed: ChangeFeedTable) -> None:
        self.feed = feed
        feed.use = Use.CHANGES

    def java(self) -> Any:
        return self.feed.bridge.implement([_CATALOG + "Changelog"], self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Changelog) and self.feed == other.feed

    def __hash__(self) -> int:
        return hash(self.feed)

    def __str__(self) -> str:
        return self.name()

    def name(self) -> str:
        return self.feed.name()

    def columns(self) -> list[Any]:
        create = self.feed.bridge.cls(_CATALOG + "Column").create
        return [create(f.name(), f.dataType(), f.nullable()) for f in self.feed.schema().fields()]

    def containsCarryoverRows(self) -> bool:  # noqa: N802  # Spark's name
        return False

    def containsIntermediateChanges(self) -> bool:  # noqa: N802  # Spark's name
        return False

    def representsUpdateAsDeleteAndInsert(self) -> bool:  # noqa: N802  # Spark's name
        return False

    def newScanBuilder(self, options: Any) -> Any:  # noqa: N802  # Spark's name
        return self.feed.newScanBuilder(options)


def read_changelog(bridge: Bridge, store: Store, context: Any, options: Any) -> Changelog:
    """Return the changes that Spark's ``ChangelogContext`` describes. Raises ``InvalidInput`` and ``NotFound``."""
    given = read_options(bridge.dict(options.asCaseSensitiveMap()), {Use.CHANGES}, by_path=False)
    keys = tuple(split_list(given.get("keycolumns", "")))
    first, last = _range(store, context.range())
    if context.computeUpdates() and not keys and not (keys := _primary_key(last.head)):
        raise InvalidInput(
            "computeUpdates needs columns that identify a row.",
            code="BAD_OPTION",
            name="computeUpdates",
            remedy="Name them: WITH ('computeUpdates' = 'true', 'keyColumns' = 'id'), or add a PRIMARY KEY.",
        )
    form = FeedForm(keys, str(context.deduplicationMode().toString()) == "NET_CHANGES")
    return Changelog(ChangeFeedTable(bridge, store, first, last, form))


def _primary_key(head: Head) -> tuple[str, ...]:
    """The columns of the primary key. Nothing enforces it; reading fails if it is ambiguous within a commit."""
    held = (one for one in head.constraints if one.kind == PRIMARY_KEY)
    return tuple(name for one in held for name in column_names(one, head.schema or Schema(())))


def _range(store: Store, asked: Any) -> tuple[int, Snapshot]:
    """The first version of the range, and the last one; a range without versions begins after its end."""
    kind = str(asked.getClass().getSimpleName())
    if kind == "UnboundedRange":
        raise InvalidInput(
            "Streaming reads of the change feed are not supported.",
            code="BAD_OPTION",
            name="startingVersion",
            remedy="Read a range of versions by spark.read, or stream added rows by readStream.table.",
        )
    first, last = (_by_time if kind == "TimestampRange" else _by_version)(store, asked)
    return (first, last) if first <= last.version else (last.version + 1, last)


def _by_version(store: Store, asked: Any) -> tuple[int, Snapshot]:
    start, ending = parse_version(asked.startingVersion()), asked.endingVersion()
    newest = None if ending.isPresent() else load(store)
    end = newest.version if newest is not None else parse_version(ending.get())
    first = start if asked.startingBoundInclusive() else start + 1
    if newest is None or first > end + 1:  # a poller begins with the version that the next commit will make
        _check_order(start, end, f"Version {start} is after version {end}.")
    final = end if asked.endingBoundInclusive() or newest is not None else end - 1
    if final < first:  # all is excluded; the columns are those of the version at the end
        return final + 2, load(store, max(final, 0))
    return first, newest or load(store, final)


def _by_time(store: Store, asked: Any) -> tuple[int, Snapshot]:
    start, ending = asked.startingTimestamp(), asked.endingTimestamp()
    first = version_after(store, start - 1 if asked.startingBoundInclusive() else start)
    if not ending.isPresent():
        return first, load(store)
    _check_order(start, ending.get(), "The first time is after the last one.")
    return first, load(store, timestamp_micros=ending.get() if asked.endingBoundInclusive() else ending.get() - 1)


def _check_order(start: int, end: int, what: str) -> None:
    if start > end:
        raise InvalidInput(what, code="BAD_VERSION", name=f"{start}, {end}", remedy="Give the older one first.")
