"""The maintenance verbs: they change a table's layout, not its rows."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from tamis.engine import operations
from tamis.engine.scan import Options
from tamis.engine.scan.column_selection import names_of
from tamis.engine.scan.scan_options import check_bound
from tamis.lazy_imports import lazy_module
from tamis.storage.commit_log import Head, Snapshot
from tamis.storage.commit_log.following import check_writable
from tamis.storage.commit_log.version_points import checked_version
from tamis.storage.object_store import Store
from tamis.table.scan_request import RowFilter, checked_flag, parse_filter

if TYPE_CHECKING:
    from tamis.bridges.export import current_exports
    from tamis.engine.operations import Analyzed, Changes, Compacted, CompactionPlan, Result, Vacuumed, Verification
else:
    current_exports = lazy_module("tamis.bridges.export.current_exports")


class UpkeepVerbs:
    """The maintenance part of ``Table``; each verb works on the newest version under its current schema."""

    _store: Store

    if TYPE_CHECKING:

        def _writable(self) -> None: ...
        def _newest(self) -> Snapshot: ...
        def _options(self, head: Head) -> Options: ...

    def compact(
        self,
        row_filter: RowFilter | None = None,
        *,
        max_bytes: int | None = None,
        max_seconds: float | None = None,
        dry_run: bool = False,
        cluster_by: Sequence[str] = (),
        curve: str = "hilbert",
        adopted: bool = False,
        spark: Any = None,
        progress: operations.Progress | None = None,
    ) -> Compacted | CompactionPlan:
        """Merge small parts, sort, and drop deleted rows; the table's rows do not change.

        ``dry_run`` returns the plan with its reasons. A call reads at most about ``max_bytes`` and starts no
        work that would end after ``max_seconds``; the next call continues. ``row_filter`` limits it to parts
        that may match. ``cluster_by`` sorts by these columns together, along a ``curve`` ("hilbert",
        "zorder"). ``adopted`` moves the rows of adopted files into files of the table; they stay where they are
        otherwise, and unchanged in any case. With ``spark``, its executors do the work. Compaction never fails
        another writer: if one changed a part meanwhile, compaction gives up that part.
        """
        self._writable()
        check_bound("max_bytes", max_bytes, 1)
        check_bound("max_seconds", max_seconds, 0)
        snapshot = self._newest()
        check_writable(snapshot.head, self._store.url)
        options = self._options(snapshot.head)
        conjuncts = parse_filter(row_filter, snapshot.schema, options)[0]
        names = names_of(cluster_by, "cluster_by")
        layout = operations.layout_of(snapshot.schema, curve, names) if names and snapshot.schema else None
        choice = operations.PartChoice(conjuncts, layout, checked_flag("adopted", adopted))
        if checked_flag("dry_run", dry_run):
            return operations.plan_compaction(self._store, snapshot, choice, options, max_bytes=max_bytes)
        return operations.compact(
            self._store,
            snapshot,
            choice,
            options,
            limits=operations.Limits(max_bytes, max_seconds),
            workers=None
            if spark is None
            else importlib.import_module("tamis.spark.write.spark_compact").executor_workers(spark),
            progress=progress,
        )[1]

    def analyze(
        self,
        row_filter: RowFilter | None = None,
        *,
        max_bytes: int | None = None,
        max_seconds: float | None = None,
        spark: Any = None,
        progress: operations.Progress | None = None,
    ) -> Analyzed:
        """Learn the full statistics of parts that lack them, by reading each once; the table's rows do not change.

        These are the files of an adopted table, of which only footers were read, and parts that were written with
        ``tamis.stats.collect=off``. Each commit lands a batch of parts; a call that was stopped is continued by the
        next. It reads at most about ``max_bytes`` and starts no batch that would end after ``max_seconds``.
        ``row_filter`` limits it to parts that may match. With ``spark``, its executors do the work.
        Raises ``CorruptData`` (``SOURCE_CHANGED``) naming a file that is not as it was adopted.
        """
        self._writable()
        check_bound("max_bytes", max_bytes, 1)
        check_bound("max_seconds", max_seconds, 0)
        snapshot = self._newest()
        options = self._options(snapshot.head)
        executors = None if spark is None else importlib.import_module("tamis.spark.write.spark_analyze")
        return operations.analyze(
            self._store,
            snapshot,
            parse_filter(row_filter, snapshot.schema, options)[0],
            options,
            limits=operations.Limits(max_bytes, max_seconds),
            learn=operations.learn_here if executors is None else executors.learn_by_executors(spark),
            progress=progress,
        )[1]

    def vacuum(
        self,
        retention: timedelta | str = timedelta(days=7),
        *,
        dry_run: bool = True,
        below_retention: bool = False,
        progress: operations.Progress | None = None,
    ) -> Vacuumed:
        """Remove (by default only list) files that no recent version and no running write can need.

        Versions older than ``retention`` become unreadable. Nothing younger than ``retention`` (a timedelta,
        or text such as ``7d``) is removed: keep it longer than the longest write. Less than 7 days needs
        ``below_retention=True``: it takes the files from writes and queries that run longer than that. Raises
        ``InvalidInput`` (``BAD_RETENTION``; ``BELOW_RETENTION``; ``BAD_OPTION`` if a flag is not True or False), and
        ``SchemaFenced`` (``TABLE_REPLACED``).
        """
        self._writable()
        self._newest()  # another table may lie there now
        return operations.vacuum(
            self._store,
            operations.retention_of(retention),
            dry_run=checked_flag("dry_run", dry_run),
            below_retention=checked_flag("below_retention", below_retention),
            released=lambda: current_exports.follow_vacuum(self._store),
            progress=progress,
        )

    def restore(self, version: int, *, allow_dropped_columns: bool = False) -> Result:
        """Restore the rows of ``version`` under the current schema, in one commit.

        Raises ``InvalidInput`` (``COLUMN_DROPPED``) naming a column that has been dropped since, unless
        ``allow_dropped_columns``, and (``COLUMN_NEEDS_VALUE``) naming one that must have values and is newer;
        ``NotFound`` for a version that does not exist (any more).
        """
        self._writable()
        self._newest()
        return operations.restore(self._store, checked_version(version), allow_dropped_columns=allow_dropped_columns)[1]

    def verify(self, *, data: bool = True, progress: operations.Progress | None = None) -> Verification:
        """Cross-check log, manifests, checksums and parts; ``data`` also reads every part.

        See ``problems``.
        """
        return operations.verify(self._store, data=data, progress=progress)

    def changes(self, a: int, b: int | None = None, *, keys: Sequence[str] | str = (), net: bool = False) -> Changes:
        """Return the rows that changed after version ``a`` up to version ``b`` (None: the newest).

        They carry ``_change_type`` (insert, delete), ``_commit_version`` and ``_commit_timestamp``. ``keys`` are
        columns that identify a row: with them, an updated row is an update_preimage and an update_postimage.
        ``net`` compares version ``a`` with ``b`` instead of each commit with the one before it.

        Raises ``NotFound`` (``VERSION_NOT_FOUND``) for a version that does not exist (any more), and on reading
        ``InvalidInput`` (``DUPLICATE_KEYS``) if several rows of a commit could be one update.
        """
        self._newest()
        form = operations.FeedForm(names_of(keys, "keys"), checked_flag("net", net))
        return operations.changes(self._store, checked_version(a), None if b is None else checked_version(b), form)

    def stream_writer(self, query: str | None = None) -> Any:
        """Return a ``writeStream.foreachBatch`` function that appends each micro-batch exactly once.

        The commit itself records a batch's query and epoch. ``query`` is a name to use instead of the id that
        Spark keeps in the checkpoint. Columns are those that this object's schema names.
        """
        self._writable()
        return importlib.import_module("tamis.spark.streaming.stream_write").StreamWriter(self, query)
