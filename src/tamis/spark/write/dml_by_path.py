"""DELETE, UPDATE and MERGE by Spark for a table opened by path.

Runs the statement as SQL over a catalog that contains only the tables in use, so that Spark's own analysis,
casts and checks apply.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, ClassVar

from tamis.core.expr import Expr, to_sql
from tamis.core.types.identifiers import backquote
from tamis.engine.operations import MergeClause, Result, retry_conflicts
from tamis.engine.operations.rows.merge import duplicate_keys
from tamis.engine.operations.rows.merge_plan import BY_SOURCE, MATCHED, NOT_MATCHED
from tamis.errors import Conflict, InvalidInput
from tamis.spark.catalog.catalog import catalog_interfaces
from tamis.spark.catalog.spark_table import SparkTable
from tamis.spark.jvm_bridge import spark_errors
from tamis.spark.jvm_bridge.adapter import Bridge, bridge_of
from tamis.spark.jvm_bridge.session_checks import check_version, is_connect, no_session
from tamis.spark.write.merge_pruning import StaleSource, run_with_held_source
from tamis.spark.write.own_reads import check_versions_read, find_versions_read
from tamis.storage.commit_log import Snapshot
from tamis.storage.object_store import Store

CATALOG = "tamis_held"
_WHEN = {MATCHED: "WHEN MATCHED", NOT_MATCHED: "WHEN NOT MATCHED", BY_SOURCE: "WHEN NOT MATCHED BY SOURCE"}
Latest = Callable[[], Snapshot]
"""Loads the newest version, and raises if a name that the table object holds now refers to another column."""
_numbers = itertools.count()
_registering = threading.Lock()


class StatementCatalog:
    """The catalog of the tables in use, by the names that the statements give them."""

    java_arity: ClassVar = {"loadTable": (1, 2)}

    def __init__(self, java: Bridge) -> None:
        self.bridge = java
        self.tables: dict[str, Any] = {}

    def name(self) -> str:
        return CATALOG

    def loadTable(self, identifier: Any, at: Any = None) -> Any:  # noqa: ARG002, N802  # Spark's name; one version
        names = self.bridge.identifier(identifier)
        if names[-1] not in self.tables:
            raise spark_errors.no_such_table(self.bridge, (CATALOG, *names))
        return self.tables[names[-1]]

    def loadRelation(self, identifier: Any) -> Any:  # noqa: N802  # Spark's name
        return self.loadTable(identifier)

    def __str__(self) -> str:
        return CATALOG


def delete(table: Any, spark: Any, row_filter: str | Expr | None = None, *, latest: Latest) -> Result:
    """``table.delete(row_filter, spark=spark)``."""
    return _run(table, spark, latest, lambda name: f"DELETE FROM {name}{_where(row_filter)}")


def update(
    table: Any, spark: Any, values: Mapping[str, str], row_filter: str | Expr | None = None, *, latest: Latest
) -> Result:
    """``table.update(values, row_filter, spark=spark)``."""
    return _run(table, spark, latest, lambda name: f"UPDATE {name} SET {_assignments(values)}{_where(row_filter)}")


def merge(
    table: Any,
    df: Any,
    on: str,
    clauses: Sequence[MergeClause],
    keys: Mapping[str, str] | None = None,
    *,
    latest: Latest,
) -> Result:
    """``table.merge(df, on)…execute()``, or ``table.upsert(df, on)`` with the SQL of its keys by name.

    Raises ``InvalidInput`` (``DUPLICATE_KEYS``) if two rows have the same ``keys``.
    """
    if is_connect(df):
        raise InvalidInput(
            "A DataFrame of Spark Connect cannot be merged.",
            code="SPARK_CONNECT",
            name="data",
            remedy="Use df.toArrow(), or a classic session.",
        )
    if keys is None:
        return _merge_rows(table, df, on, clauses, latest)

    bridge = bridge_of(df.sparkSession)

    def versions_read(planned: Any) -> list[int]:
        return find_versions_read(planned, bridge, table.store, latest())

    def upsert(rows: Any, versions: list[int]) -> Result:
        _check_unique(rows, keys)
        current = partial(_not_newer, latest, table.store, versions)
        return _merge_rows(table, rows, on, clauses, current, reads_table=bool(versions))

    return run_with_held_source(df, bridge, table.path, versions_read, upsert)


def _not_newer(latest: Latest, store: Store, versions: list[int]) -> Snapshot:
    """Return the newest version if its rows are those of the table's ``versions`` that a source was computed from.

    Raises ``StaleSource``. A plan over rows that are held does not say what they were computed from.
    """
    snapshot = latest()
    try:
        check_versions_read(versions, store, snapshot)
    except Conflict as error:
        raise StaleSource(error) from error
    return snapshot


def _merge_rows(
    table: Any, rows: Any, on: str, clauses: Sequence[MergeClause], latest: Latest, *, reads_table: bool = False
) -> Result:
    """Merge ``rows``; ``reads_table``: they are held, and were computed from the table's own rows."""
    with _temporary_view(rows) as view:
        return _run(
            table,
            rows.sparkSession,
            latest,
            lambda name: f"MERGE INTO {name} AS target USING {view} AS source ON {on} {merge_clauses_sql(clauses)}",
            reads_table=reads_table,
        )


@contextmanager
def _temporary_view(rows: Any) -> Iterator[str]:
    view = f"tamis_source_{next(_numbers)}"
    rows.createTempView(view)
    try:
        yield view
    finally:
        rows.sparkSession.catalog.dropTempView(view)


def _check_unique(rows: Any, keys: Mapping[str, str]) -> None:
    grouped = ", ".join(keys.values())
    present = " AND ".join(f"{key} IS NOT NULL" for key in keys.values())
    with _temporary_view(rows) as view:
        sql = f"SELECT 1 FROM {view} AS source WHERE {present} GROUP BY {grouped} HAVING count(*) > 1 LIMIT 1"
        if rows.sparkSession.sql(sql).collect():
            raise duplicate_keys(keys)


def _run(
    table: Any, spark: Any, latest: Latest, statement: Callable[[str], str], *, reads_table: bool = False
) -> Result:
    """Run the statement on the version that ``latest`` loads; repeat it after a conflict with another commit.

    Each attempt needs the check of ``latest``: a name of the statement may refer to another column by then. Raises our
    own errors unchanged, and Spark's.
    """
    if not hasattr(spark, "_jsparkSession"):
        raise no_session(spark)
    check_version(str(spark.version))

    def run(snapshot: Snapshot) -> tuple[Snapshot, Result]:
        with _registered_target(spark, table, snapshot) as (name, target):
            target.source_reads_table = reads_table
            try:
                spark.sql(statement(name)).collect()
            except Exception:
                if target.failure is not None:
                    raise target.failure from None
                raise
            return snapshot, target.result or Result(snapshot.version)

    return retry_conflicts(latest, run)[1]


@contextmanager
def _registered_target(spark: Any, table: Any, snapshot: Snapshot) -> Any:
    java = bridge_of(spark)
    held = _statement_catalog(java)
    spark.conf.set(f"spark.sql.catalog.{CATALOG}", java.catalog_class)
    name = f"t{next(_numbers)}"
    target = SparkTable(java, table.store, snapshot, (CATALOG, name))
    held.tables[name] = target.java()
    try:
        yield f"{CATALOG}.{name}", target
    finally:
        del held.tables[name]


def _statement_catalog(java: Bridge) -> StatementCatalog:
    """Return the catalog of this JVM, which all its sessions and threads share."""
    with _registering:  # a second one would replace the first, and a session keeps the one that it found
        held: StatementCatalog | None = java.registered_catalog(CATALOG)
        if held is None:
            held = StatementCatalog(java)
            java.register_catalog(CATALOG, java.implement(catalog_interfaces(java), held), catalog_interfaces(java))
        return held


def _where(row_filter: str | Expr | None) -> str:
    if row_filter is None:
        return ""
    return f" WHERE {to_sql(row_filter) if isinstance(row_filter, Expr) else row_filter}"


def _assignments(values: Mapping[str, str]) -> str:
    return ", ".join(f"{backquote(name)} = {text}" for name, text in values.items())


def merge_clauses_sql(clauses: Sequence[MergeClause]) -> str:
    """The clauses as SQL, ordered by kind as Spark's grammar requires, and otherwise as given."""
    kinds = list(_WHEN)
    return " ".join(_clause(c) for c in sorted(clauses, key=lambda c: kinds.index(c.kind)))


def _clause(asked: MergeClause) -> str:
    head = _WHEN[asked.kind] + (f" AND ({asked.condition})" if asked.condition is not None else "") + " THEN "
    if asked.action == "delete":
        return head + "DELETE"
    if asked.action == "update":
        return head + ("UPDATE SET *" if asked.values is None else f"UPDATE SET {_assignments(asked.values)}")
    if asked.values is None:
        return head + "INSERT *"
    names = ", ".join(backquote(name) for name in asked.values)
    return head + f"INSERT ({names}) VALUES ({', '.join(asked.values.values())})"
