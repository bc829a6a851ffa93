"""What a statement reads of the table that it writes, beside the rows that it changes.

Spark plans a MERGE that only inserts as an INSERT of the source's rows without a match. Such rows depend on the table,
so a concurrent commit that may change the answer has to be a conflict. So do the changes of a statement whose subquery
or source reads the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tamis.core.expr import Expr
from tamis.engine.operations.rows.row_change import read_set
from tamis.engine.scan import Options
from tamis.spark.catalog.loaded_table import LoadedTable
from tamis.spark.scan.spark_scan import Scan
from tamis.storage.commit_log import ReadSet, Snapshot


@dataclass(frozen=True, slots=True)
class OwnReads:
    """The oldest version that was read, and the rows of it that the inserted rows depend on."""

    snapshot: Snapshot
    reads: ReadSet
    conjuncts: Sequence[Expr] | None
    """The bound filter of ``reads``; None: all rows."""


def find_own_reads(df: Any, table: LoadedTable, options: Options) -> OwnReads | None:
    """Return what the query of ``df`` reads of ``table``; None for a query that does not read it.

    A version that the query asks for by number, time or tag never changes, and does not count.
    """
    helper = table.bridge.helper("TableReads")
    found = [table.bridge.target_of_key(key) for key in helper.tables(df._jdf)]
    own = [one for one in found if isinstance(one, LoadedTable) and not one.pinned and _is_same(one, table)]
    if not own:
        return None
    ours = own_scans(df, table)
    conjuncts = ours[0].filters.conjuncts if len(ours) == 1 and len(own) == 1 else ()
    snapshots = [table.snapshot, *(one.snapshot for one in own)]
    oldest = min(snapshots, key=lambda snapshot: snapshot.version)
    return OwnReads(oldest, read_set(conjuncts, options), conjuncts or None)


def own_scans(df: Any, table: LoadedTable) -> list[Scan]:
    """Return the scans of ``table``, in any version, in the optimized plan of ``df`` and its subqueries."""
    keys = table.bridge.helper("TableReads").scans(df._jdf)
    scans = [table.bridge.target_of_key(key) for key in keys]
    return [one for one in scans if isinstance(one, Scan) and _is_same(one.source, table)]


def _is_same(read: Any, table: LoadedTable) -> bool:
    """Whether what is read, a table or the source of a scan, is ``table`` in any version."""
    return (read.store.url, read.snapshot.head.table_id) == (table.store.url, table.snapshot.head.table_id)
