"""The change feeds of a catalog's tables: by ``readChangeFeed``, and through Spark's own interface."""

from __future__ import annotations

from typing import Any, ClassVar

from tamis.errors import InvalidInput
from tamis.spark.catalog.change_feed_table import ChangeFeedTable, change_feed
from tamis.spark.catalog.changelog import read_changelog
from tamis.spark.jvm_bridge.adapter import Bridge
from tamis.spark.options.source_options import Use, read_options
from tamis.storage.commit_log import Snapshot
from tamis.storage.object_store import Store

FEED_OPTIONS = (
    "readChangeFeed",
    "readChangeData",
    "startingVersion",
    "startingTimestamp",
    "endingVersion",
    "endingTimestamp",
    "keyColumns",
)


class ChangeFeeds:
    """The part of the catalog that answers with changes instead of rows."""

    bridge: Bridge
    java_when_option: ClassVar = {"loadTable": ("readChangeFeed", "readChangeData")}

    def open(self, names: tuple[str, ...], at: Any = None) -> tuple[Store, Snapshot]:
        raise NotImplementedError

    def tableStateOptionKeys(self) -> set[str]:  # noqa: N802  # Spark's name
        """The options that decide what is loaded: Spark keeps one table for reads that differ in no such option."""
        return set(FEED_OPTIONS)

    def loadChangelog(self, identifier: Any, context: Any, options: Any) -> Any:  # noqa: N802  # Spark's name
        """Return the changes that ``CHANGES FROM …`` or ``spark.read.changes`` asks for (Spark 4.2)."""
        store, _ = self.open(self.bridge.identifier(identifier))
        return read_changelog(self.bridge, store, context, options).java()

    def feed(self, names: tuple[str, ...], context: Any, options: Any) -> ChangeFeedTable | None:
        """Return the change feed of a table; None if ``options`` do not ask for one, or Spark wants to write.

        ``context`` is Spark's ``TableContext``, which Spark 4.3 passes together with the options.
        """
        given = self.bridge.dict(options.asCaseSensitiveMap())
        asked = read_options(given, set(Use), by_path=False)
        if not asked.get("readchangefeed") or not context.writePrivileges().isEmpty():
            return None
        if context.timeTravel().isPresent():
            raise InvalidInput(
                "Time travel cannot be combined with readChangeFeed.",
                code="BAD_OPTION",
                name="readChangeFeed",
                remedy="Leave versionAsOf out, and give startingVersion and endingVersion.",
            )
        store, _ = self.open(names)
        zone = self.bridge.active_session().conf.get("spark.sql.session.timeZone")
        return change_feed(self.bridge, store, read_options(given, {Use.FEED}, by_path=False), zone)
