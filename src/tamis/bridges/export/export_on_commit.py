"""Keeps a table's exports current: after each commit, where the property ``tamis.export`` names their formats.

Importing this module is what makes commits of this process export, so ``tamis.table`` imports it eagerly; the writers
of the formats are loaded by the first commit that needs them. Invariant: nothing here fails a commit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.bridges.export.export_property import kept_formats
from tamis.errors import TamisError
from tamis.lazy_imports import lazy_module
from tamis.storage.commit_log import Snapshot
from tamis.storage.commit_log.commit_landing import watch_commits
from tamis.storage.commit_log.commit_record import Commit
from tamis.storage.commit_log.features import EXPORTED
from tamis.storage.object_store import Store

if TYPE_CHECKING:
    from tamis.bridges.export import current_exports
else:
    current_exports = lazy_module("tamis.bridges.export.current_exports")


def export_kept_formats(store: Store, commit: Commit) -> None:
    """Export the version that ``commit`` made in the formats that the table names; note failures."""
    try:
        snapshot = Snapshot.at(store.with_new_counters(), commit)
        if EXPORTED in snapshot.head.writer_features:
            return  # others may write to the exported table from now on
        names = kept_formats(snapshot.head.properties) if snapshot.schema is not None else ()
    except TamisError:
        return
    for name in names:
        current_exports.export_noting_failure(store, snapshot, name)


watch_commits(export_kept_formats)
