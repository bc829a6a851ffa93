"""Finds the reads of a statement from the table that it writes, other than those of the rows that it changes.

Spark plans a MERGE that only inserts as an INSERT of the source's rows without a match. Such rows depend on the table,
so a concurrent commit that may change them has to be a conflict. The same holds for an UPDATE, DELETE or MERGE whose
subquery or source reads the table.

A version that a query asks for by number, time or tag never changes, and does not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tamis.core.expr import Expr
from tamis.engine.operations.rows.row_change import read_set
from tamis.engine.scan import Options
from tamis.errors import Conflict
from tamis.spark.catalog.loaded_table import LoadedTable
from tamis.spark.jvm_bridge.adapter import Bridge
from tamis.spark.scan.scan_frame import FRAME_NAME
from tamis.spark.scan.spark_scan import Scan
from tamis.storage.commit_log import ReadSet, Snapshot
from tamis.storage.commit_log.commit_objects import read_commits
from tamis.storage.object_store import Store


@dataclass(frozen=True, slots=True)
class OwnReads:
    """The rows of the table that inserted rows depend on."""

    reads: ReadSet
    conjuncts: Sequence[Expr] | None
    """The bound filter of ``reads``; None: all rows."""


@dataclass(frozen=True, slots=True)
class FrameRead:
    """A DataFrame of an embedded scan (``Scan.to_spark``) in a query, by the name of its function."""

    table_id: str
    version: int
    resolved_url: str

    @staticmethod
    def of_name(name: str) -> FrameRead | None:
        """Return what ``scan_frame.frame_name`` has named, or None."""
        if not name.startswith(f"{FRAME_NAME} "):
            return None
        _, table_id, version, resolved_url = name.split(" ", 3)
        return FrameRead(table_id, int(version), resolved_url)


@dataclass(frozen=True, slots=True)
class ReadsBeside:
    """The reads of its table by a row change beside the target: scans, and whether there are others."""

    scans: list[Scan]
    others: bool


def find_own_reads(df: Any, table: LoadedTable, options: Options) -> OwnReads | None:
    """Return what the query of ``df`` reads of ``table``; None for a query that does not read it.

    Raises ``Conflict`` as ``check_own_reads`` does.
    """
    tables, frames = _own_tables(df, table.bridge, table.store, table.snapshot)
    if not tables and not frames and not table.source_reads_table:
        return None
    scans = own_scans(df, table.bridge, table.store, table.snapshot)[0]
    check_versions_read(_versions_of(tables, scans, frames), table.store, table.snapshot)
    known = len(scans) == 1 and len(tables) == 1 and not frames and not table.source_reads_table
    conjuncts = scans[0].filters.conjuncts if known else ()
    return OwnReads(read_set(conjuncts, options), conjuncts or None)


def check_own_reads(df: Any, bridge: Bridge, store: Store, snapshot: Snapshot) -> None:
    """Raise ``Conflict`` if ``df`` reads rows of the table in ``store`` that are older than ``snapshot``.

    Spark reads those that it has cached, and before 4.3 those that the table had when the DataFrame was made.
    DataFrames of embedded scans always read the version of their scan.
    """
    check_versions_read(find_versions_read(df, bridge, store, snapshot), store, snapshot)


def find_versions_read(df: Any, bridge: Bridge, store: Store, snapshot: Snapshot) -> list[int]:
    """Return the versions of the table in ``store`` that ``df`` would read now; empty if it does not read it."""
    tables, frames = _own_tables(df, bridge, store, snapshot)
    scans = own_scans(df, bridge, store, snapshot)[0] if tables else []
    return _versions_of(tables, scans, frames)


def read_beside(df: Any, table: LoadedTable, targets: Sequence[Scan]) -> ReadsBeside:
    """Return the reads of ``table`` by a row change other than those of its target: in subqueries and in the source.

    Raises ``Conflict`` as ``check_own_reads`` does.
    """
    known = {scan.java_key for scan in targets}
    scans, frames = own_scans(df, table.bridge, table.store, table.snapshot)
    found = [one for one in scans if one.java_key not in known]
    # A commit that lands while Spark analyzes a statement can be in the table of a subquery, and not in the target.
    read = _versions_of([], found, frames)
    check_versions_read(read, table.store, table.snapshot, max(read, default=0))
    return ReadsBeside(found, bool(frames) or table.source_reads_table)


def own_scans(df: Any, bridge: Bridge, store: Store, snapshot: Snapshot) -> tuple[list[Scan], list[FrameRead]]:
    """Return the scans of the table in the optimized plan of ``df``, in its subqueries, and in what it has cached."""
    keys = list(bridge.helper("TableReads").scans(df._jdf))
    scans = [bridge.target_of_key(key) for key in keys]
    ours = [one for one in scans if isinstance(one, Scan) and not one.source.pinned]
    return [one for one in ours if _is_same(one.source, store, snapshot)], _own_frames(keys, store, snapshot)


def _own_tables(df: Any, bridge: Bridge, store: Store, snapshot: Snapshot) -> tuple[list[LoadedTable], list[FrameRead]]:
    """Return the table at each version at which ``df`` will read it, and the DataFrames of embedded scans of it."""
    helper = bridge.helper("TableReads")

    def own(keys: Iterable[str]) -> list[LoadedTable]:
        found = [bridge.target_of_key(key) for key in keys]
        loaded = [one for one in found if isinstance(one, LoadedTable) and not one.pinned]
        return [one for one in loaded if _is_same(one, store, snapshot)]

    analyzed = list(helper.tables(df._jdf))
    # Spark loads all tables of the plan to tell, which most statements need not wait for
    tables = own(helper.tablesToRead(df._jdf)) if own(analyzed) else []
    return tables, _own_frames(analyzed, store, snapshot)


def _own_frames(keys: Iterable[str], store: Store, snapshot: Snapshot) -> list[FrameRead]:
    wanted = snapshot.head.table_id, store.location.resolved_url
    found = (FrameRead.of_name(key) for key in keys)
    return [one for one in found if one is not None and (one.table_id, one.resolved_url) == wanted]


def _is_same(read: Any, store: Store, snapshot: Snapshot) -> bool:
    """Whether what is read, a table or the source of a scan, is the table, in any version."""
    if read.snapshot.head.table_id != snapshot.head.table_id:
        return False
    return bool(read.store.location.resolved_url == store.location.resolved_url)


def _versions_of(tables: Sequence[LoadedTable], scans: Sequence[Scan], frames: Sequence[FrameRead]) -> list[int]:
    of_tables = [one.snapshot.version for one in tables]
    return of_tables + [one.source.snapshot.version for one in scans] + [one.version for one in frames]


def check_versions_read(read: Sequence[int], store: Store, snapshot: Snapshot, newest: int = 0) -> None:
    """Raise ``Conflict`` if rows have changed between one of the versions ``read`` and ``snapshot``, or ``newest``."""
    oldest = min([*read, snapshot.version])
    last = max(snapshot.version, newest)
    for commit in read_commits(store, range(oldest + 1, last + 1), snapshot.head.table_id):
        if commit.touches_rows:
            raise Conflict(
                f"The rows to write depend on version {oldest} of the table, and version {commit.version} "
                f"({commit.operation.name}) changed its rows.",
                code="CONFLICT_READ",
                name=str(commit.version),
                remedy="Repeat the statement, or make the DataFrame again without what is cached of the table.",
            )
