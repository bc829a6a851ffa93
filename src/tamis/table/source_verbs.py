"""The verbs of tables that follow a source."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tamis.errors import CorruptData, NotFound
from tamis.lazy_imports import lazy_module
from tamis.storage.commit_log import Head, Snapshot, Source, history
from tamis.storage.commit_log.retry_policy import RESTORES
from tamis.storage.object_store import Store
from tamis.table.scan_request import checked_flag

if TYPE_CHECKING:
    from tamis.bridges.adoption import log_sources, source_sync
    from tamis.bridges.adoption.source_sync import Synchronization
else:
    log_sources = lazy_module("tamis.bridges.adoption.log_sources")
    source_sync = lazy_module("tamis.bridges.adoption.source_sync")


class SourceVerbs:
    """The part of ``Table`` that takes what happens to the source that it follows."""

    _store: Store
    _snapshot: Snapshot

    if TYPE_CHECKING:

        def _writable(self) -> None: ...
        def _newest(self) -> Snapshot: ...

    def sync(self, *, skip_history: bool = False, source_options: Mapping[str, Any] | None = None) -> Synchronization:
        """Take the versions of the followed source since the last one that was taken, each in a commit of its own.

        ``skip_history`` takes its newest version in one commit, for a source that lost the versions between.
        ``source_options`` are those of ``tamis.adopt`` that the table does not keep, such as a catalog's credentials.
        Raises ``InvalidInput`` (``NOT_FOLLOWING``), ``CorruptData`` (``SOURCE_HISTORY_GONE``, ``SOURCE_REPLACED``).
        """
        self._writable()
        skip = checked_flag("skip_history", skip_history)
        given = dict(source_options or {})

        def attempt(_: int) -> Synchronization:
            snapshot = self._newest()
            source = source_sync.followed_source(snapshot.head, self._store.url)
            log_sources.check_options(source.kind, given, follow=True)
            storage = self._store.open_source_store(source.root).options

            def changes(source: Source, head: Head) -> Any:
                if skip:
                    return iter([log_sources.newest_version(source, head, storage, given)])
                return log_sources.source_changes(source, head, storage, given)

            try:
                self._snapshot, done = source_sync.take_changes(snapshot, changes)
            except CorruptData as error:
                if error.code == "SOURCE_CHANGED" and not skip:
                    head = self._newest().head  # versions before may have been taken
                    followed = source_sync.followed_source(head, self._store.url)
                    log_sources.check_history(error, followed, head, storage, given)
                raise
            return done

        return RESTORES.run(attempt)

    def version_of_source(self, version: int | str) -> int:
        """Return the newest version of the table that holds the rows of this version of its source.

        It is a Delta version or the id of an Iceberg snapshot. Raises ``NotFound`` (``SOURCE_VERSION_NOT_TAKEN``).
        """
        found = history(self._store)
        for own, parameters in zip(found["version"].to_pylist(), found["parameters"].to_pylist(), strict=True):
            if json.loads(parameters or "{}").get("source_version") == str(version):
                return int(own)
        raise NotFound(
            f"The table {self._store.url} has no version of its source's version {version}.",
            code="SOURCE_VERSION_NOT_TAKEN",
            name=str(version),
            remedy="Look at history(): commits name the source_version that they took.",
        )
