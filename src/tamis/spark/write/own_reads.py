"""What a statement reads of the table that it writes, beside the rows that it changes.

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


def find_own_reads(df: Any, table: LoadedTable, options: Options) -> OwnReads | None:
    """Return what the query of ``df`` reads of ``table``; None for a query that does not read it.

    Raises ``Conflict`` as ``check_own_reads`` does.
    """
    tables = _own_tables(df, table.bridge, table.store, table.snapshot)
    if not tables:
        return None
    scans = own_scans(df, table.bridge, table.store, table.snapshot)
    _check_versions(_versions_of(tables, scans), table.store, table.snapshot)
    conjuncts = scans[0].filters.conjuncts if len(scans) == 1 and len(tables) == 1 else ()
    return OwnReads(read_set(conjuncts, options), conjuncts or None)


def check_own_reads(df: Any, bridge: Bridge, store: Store, snapshot: Snapshot) -> None:
    """Raise ``Conflict`` if ``df`` reads rows of the table in ``store`` that are older than ``snapshot``.

    Spark reads those that it has cached, and before 4.3 those that the table had when the DataFrame was made.
    """
    tables = _own_tables(df, bridge, store, snapshot)
    scans = own_scans(df, bridge, store, snapshot) if tables else []
    _check_versions(_versions_of(tables, scans), store, snapshot)


def read_beside(df: Any, table: LoadedTable, targets: Sequence[Scan]) -> list[Scan]:
    """Return scans of ``table`` in a row change that do not find its rows: those of subqueries, and of the source.

    Raises ``Conflict`` as ``check_own_reads`` does.
    """
    known = {scan.java_key for scan in targets}
    scans = own_scans(df, table.bridge, table.store, table.snapshot)
    found = [one for one in scans if one.java_key not in known]
    # A commit that lands while Spark analyzes a statement can be in the table of a subquery, and not in the target.
    read = _versions_of([], found)
    _check_versions(read, table.store, table.snapshot, max(read, default=0))
    return found


def own_scans(df: Any, bridge: Bridge, store: Store, snapshot: Snapshot) -> list[Scan]:
    """Return the scans of the table in the optimized plan of ``df``, in its subqueries, and in what it has cached."""
    scans = [bridge.target_of_key(key) for key in bridge.helper("TableReads").scans(df._jdf)]
    ours = [one for one in scans if isinstance(one, Scan) and not one.source.pinned]
    return [one for one in ours if _is_same(one.source, store, snapshot)]


def _own_tables(df: Any, bridge: Bridge, store: Store, snapshot: Snapshot) -> list[LoadedTable]:
    """Return the table, at each version at which ``df`` will read it."""
    helper = bridge.helper("TableReads")

    def own(keys: Iterable[str]) -> list[LoadedTable]:
        found = [bridge.target_of_key(key) for key in keys]
        loaded = [one for one in found if isinstance(one, LoadedTable) and not one.pinned]
        return [one for one in loaded if _is_same(one, store, snapshot)]

    # Spark loads all tables of the plan to tell, which most statements need not wait for
    return own(helper.tablesToRead(df._jdf)) if own(helper.tables(df._jdf)) else []


def _is_same(read: Any, store: Store, snapshot: Snapshot) -> bool:
    """Whether what is read, a table or the source of a scan, is the table, in any version."""
    return bool((read.store.url, read.snapshot.head.table_id) == (store.url, snapshot.head.table_id))


def _versions_of(tables: Sequence[LoadedTable], scans: Sequence[Scan]) -> list[int]:
    return [one.snapshot.version for one in tables] + [one.source.snapshot.version for one in scans]


def _check_versions(read: Sequence[int], store: Store, snapshot: Snapshot, newest: int = 0) -> None:
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
