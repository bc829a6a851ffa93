"""The verbs that tend a table: they change how it lies, not what it holds."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from tamis.core.expr import Expr
from tamis.engine import operations
from tamis.engine.operations import Changes, Compacted, CompactionPlan, Result, Vacuumed, Verification
from tamis.engine.operations.layout.curve_clustering import layout_of
from tamis.engine.scan import Options
from tamis.engine.scan.column_selection import names_of
from tamis.engine.scan.scan_options import check_bound
from tamis.storage.commit_log import Head, Snapshot
from tamis.storage.commit_log.version_points import checked_version
from tamis.storage.object_store import Store
from tamis.table.scan_request import checked_flag, parse_filter


class Tending:
    """What ``Table`` does for its own upkeep; each verb works on the newest version, whatever schema this object reads under."""

    _store: Store

    if TYPE_CHECKING:

        def _writable(self) -> None: ...
        def _newest(self) -> Snapshot: ...
        @staticmethod
        def _options(head: Head) -> Options: ...

    def compact(
        self,
        row_filter: str | Expr | None = None,
        *,
        max_bytes: int | None = None,
        max_seconds: float | None = None,
        dry_run: bool = False,
        cluster_by: Sequence[str] = (),
        curve: str = "hilbert",
        spark: Any = None,
        progress: operations.Progress | None = None,
    ) -> Compacted | CompactionPlan:
        """Merges small parts, sorts, drops deleted rows; the table's rows are the same before and after. ``dry_run``: says what it would do, and why.

        A call reads at most about ``max_bytes`` and begins nothing that would end after ``max_seconds``; the next call goes on. ``row_filter`` leaves only parts that may match it.
        ``cluster_by`` sorts by these columns together, along a ``curve`` ("hilbert", "zorder"). With ``spark`` its executors do the work. Never fails another writer: where one took a
        part meanwhile, compaction gives way.
        """
        self._writable()
        check_bound("max_bytes", max_bytes, 1)
        check_bound("max_seconds", max_seconds, 0)
        snapshot = self._newest()
        options = self._options(snapshot.head)
        conjuncts = parse_filter(row_filter, snapshot.schema, options)[0]
        names = names_of(cluster_by, "cluster_by")
        layout = layout_of(snapshot.schema, curve, names) if names and snapshot.schema else None
        if checked_flag("dry_run", dry_run):
            return operations.plan_compaction(self._store, snapshot, conjuncts, options, layout=layout, max_bytes=max_bytes)
        return operations.compact(
            self._store,
            snapshot,
            conjuncts,
            options,
            layout=layout,
            max_bytes=max_bytes,
            max_seconds=max_seconds,
            progress=progress,
            **({} if spark is None else importlib.import_module("tamis.spark.write.spark_compact").by_executors(spark)),
        )[1]

    def vacuum(
        self, retention: timedelta | str = timedelta(days=7), *, dry_run: bool = True, progress: operations.Progress | None = None
    ) -> Vacuumed:
        """Removes, or by default only says, what no version of the last ``retention`` and no running write can need; versions before become unreadable.

        Nothing younger than ``retention`` (a timedelta, or text such as ``7d``) goes: keep it above the longest write. Raises ``InvalidInput`` (``BAD_RETENTION``; ``BAD_OPTION`` where
        ``dry_run`` is not True or False).
        """
        self._writable()
        return operations.vacuum(
            self._store, operations.retention_of(retention), dry_run=checked_flag("dry_run", dry_run), progress=progress
        )

    def restore(self, version: int, *, allow_dropped_columns: bool = False) -> Result:
        """Brings back the rows of ``version`` under the current schema, by one commit.

        Raises ``InvalidInput`` (``COLUMN_DROPPED``) naming a column that it had and the table has no more, unless that is allowed; ``NotFound`` for a version that is not there (any more).
        """
        self._writable()
        self._newest()
        return operations.restore(self._store, checked_version(version), allow_dropped_columns=allow_dropped_columns)[1]

    def verify(self, *, data: bool = True, progress: operations.Progress | None = None) -> Verification:
        """Compares log, manifests, checksums and parts with each other; ``data``: also reads every part. What is wrong is in its ``problems``."""
        return operations.verify(self._store, data=data, progress=progress)

    def changes(self, a: int, b: int | None = None) -> Changes:
        """The rows inserted and deleted after version ``a`` up to version ``b`` (None: the newest), with ``_change_type`` (insert, delete), ``_commit_version`` and ``_commit_timestamp``.

        Raises ``NotFound`` (``VERSION_NOT_FOUND``) for a version that is not there (any more).
        """
        self._newest()
        return operations.changes(self._store, checked_version(a), None if b is None else checked_version(b))

    def stream_writer(self, query: str | None = None) -> Any:
        """What ``writeStream.foreachBatch`` takes: appends each micro-batch exactly once, however often Spark repeats it.

        A batch is known by its query and epoch, in the commit itself. ``query``: a name of one's own instead of the id that Spark keeps in the checkpoint.
        """
        self._writable()
        return importlib.import_module("tamis.spark.streaming.stream_write").StreamWriter(self._store, query)
