"""Spark's catalog: the namespaces, tables and metadata tables of one warehouse."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, TypeVar

from tamis.errors import AlreadyExists, InvalidInput, NotFound
from tamis.spark.catalog.alter_table import requested_alteration
from tamis.spark.catalog.change_feeds import ChangeFeeds
from tamis.spark.catalog.create_table import Definition, inherited_definition, new_head, requested_definition
from tamis.spark.catalog.local_rows import LocalTable
from tamis.spark.catalog.namespaces import Namespaces
from tamis.spark.catalog.spark_constraints import has_constraints
from tamis.spark.catalog.spark_table import SparkTable
from tamis.spark.catalog.staged_table import StagedTable
from tamis.spark.catalog.table_names import METADATA_TABLES, can_exist
from tamis.spark.catalog.view_catalog import RELATIONS, Views
from tamis.spark.catalog.warehouse_paths import Warehouse
from tamis.spark.jvm_bridge import spark_errors
from tamis.spark.jvm_bridge.adapter import Bridge
from tamis.spark.scan.join_keys import pushed_planning
from tamis.spark.scan.scan_metrics import Opening
from tamis.spark.sql.procedure_registry import Procedures
from tamis.storage.commit_log import Head, Operation, Proposal, Snapshot, commit, create, load
from tamis.storage.commit_log.path_checks import check_free
from tamis.storage.commit_log.retry_policy import HEAD_CHANGES
from tamis.storage.commit_log.version_points import parse_version
from tamis.storage.object_store import Store
from tamis.table import metadata_tables
from tamis.world import new_id, world

_CATALOG = "org.apache.spark.sql.connector.catalog."
_INTERFACES = tuple(_CATALOG + name for name in ("StagingTableCatalog", "SupportsNamespaces", "ProcedureCatalog"))

Names = tuple[str, ...]
T = TypeVar("T")


def catalog_interfaces(bridge: Bridge) -> tuple[str, ...]:
    """The Java interfaces of every catalog of ours: with views, where this Spark has catalogs of both."""
    return (*_INTERFACES, RELATIONS) if bridge.has_class(RELATIONS) else _INTERFACES


class Catalog(Namespaces, Procedures, ChangeFeeds, Views):
    """The catalog of one attached name in one Spark application, shared by all its sessions."""

    java_arity: ClassVar = {
        "loadTable": (1, 2),
        "createTable": (2, 4),
        "stageCreate": (2, 4),
        "stageReplace": (2, 4),
        "stageCreateOrReplace": (2, 4),
    }
    java_constant: ClassVar = {"name": "", "tableStateOptionKeys": ""}

    def __init__(self, bridge: Bridge, name: str, warehouse: Warehouse, application: str) -> None:
        self.bridge = bridge
        self.warehouse = warehouse
        self.application = application
        self._name = name

    def name(self) -> str:
        return self._name

    def __str__(self) -> str:
        return f"tamis catalog {self._name} at {self.warehouse.root.url}"

    def capabilities(self) -> list[Any]:
        with_table = ("GENERATED_COLUMNS", "IDENTITY_COLUMNS")
        names = ["SUPPORT_COLUMN_DEFAULT_VALUE", *(f"SUPPORTS_CREATE_TABLE_WITH_{name}" for name in with_table)]
        if has_constraints(self.bridge):
            names.append("SUPPORT_TABLE_CONSTRAINT")
        return [self.bridge.enum(_CATALOG + "TableCatalogCapability", name) for name in names]

    # --- list and load ---

    def listTables(self, namespace: Any) -> list[Any]:  # noqa: N802  # Spark's name
        names = self._existing(namespace)
        return [
            spark_errors.identifier(self.bridge, (*names, table)) for table in self.warehouse.children(names, "table")
        ]

    def tableExists(self, identifier: Any) -> bool:  # noqa: N802  # Spark's name
        names = self.bridge.identifier(identifier)
        return self.warehouse.is_table(names) or self._is_metadata(names)

    def loadTable(self, identifier: Any, at: Any = None, options: Any = None) -> Any:  # noqa: N802  # Spark's name
        """Load a table.

        ``at``: a version as text, an instant in microseconds, or write privileges (a Java set). With ``options``,
        among which is readChangeFeed, it is a ``TableContext``; None leaves the table to Spark's default.
        """
        names = self.bridge.identifier(identifier)
        if options is not None:
            self._check_no_view(names)
            feed = None if self._is_metadata(names) else self.feed(names, at, options)
            return None if feed is None else feed.java()
        if self._is_metadata(names):
            return self._metadata_table(names[:-1], names[-1], at).java()
        start = world().monotonic()
        store, snapshot = self.open(names, at)
        table = SparkTable(self.bridge, store, snapshot, (self._name, *names))
        table.pinned = bool(_load_arguments(at))
        cost = store.io.bytes + snapshot.io.bytes, store.io.requests + snapshot.io.requests
        table.opening = Opening(*cost, world().monotonic() - start)
        return table.java(pushed_planning(self.bridge))

    def open(self, names: Names, at: Any = None) -> tuple[Store, Snapshot]:
        """The table's store and the requested snapshot. Raises Spark's own error for a missing table."""
        if not can_exist(names):
            raise spark_errors.no_such_table(self.bridge, (self._name, *names))
        store, point = self.warehouse.store(names), _load_arguments(at)
        try:
            return store, load(store, point.get("version"), point.get("timestamp_micros"))
        except NotFound as error:
            if error.code != "TABLE_NOT_FOUND":
                raise
            raise spark_errors.no_such_table(self.bridge, (self._name, *names)) from None

    def _is_metadata(self, names: Names) -> bool:
        return len(names) > 1 and names[-1].lower() in METADATA_TABLES and self.warehouse.is_table(names[:-1])

    def _metadata_table(self, names: Names, kind: str, at: Any) -> LocalTable:
        store, snapshot = self.open(names, at)
        full = ".".join((self._name, *names, kind))
        return LocalTable(
            self.bridge,
            full,
            snapshot.identity,
            lambda: metadata_tables.table(store, snapshot, kind.lower()),
        )

    # --- create and replace ---

    # ``given`` is a TableInfo, or what Spark 4.0 passes: columns, partitioning and properties.

    def createTable(self, identifier: Any, *given: Any) -> Any:  # noqa: N802  # Spark's name
        return self._create_table(self.bridge.identifier(identifier), requested_definition(self.bridge, *given))

    def createTableLike(self, identifier: Any, info: Any, source: Any) -> Any:  # noqa: N802  # Spark's name
        """Create a table like ``source``, whose columns and clustering are in ``info``.

        Properties, comment and format of a Tamis table are inherited unless the statement gives them.
        """
        asked, origin = requested_definition(self.bridge, info), self.bridge.target(source)
        if isinstance(origin, SparkTable):
            asked = inherited_definition(asked, origin.head, self.bridge.dict(info.properties()))
        return self._create_table(self.bridge.identifier(identifier), asked)

    def _create_table(self, names: Names, asked: Definition) -> Any:
        store, head = self._new_table(names, asked)
        snapshot = self.create_unless_exists(names, lambda: create(store, head, Operation("create")))
        return SparkTable(self.bridge, store, snapshot, (self._name, *names)).java()

    def stageCreate(self, identifier: Any, *given: Any) -> Any:  # noqa: N802  # Spark's name
        names = self.bridge.identifier(identifier)
        return self._staged_new(names, requested_definition(self.bridge, *given)).java()

    def stageReplace(self, identifier: Any, *given: Any) -> Any:  # noqa: N802  # Spark's name
        names = self.bridge.identifier(identifier)
        return self._staged_replacement(names, requested_definition(self.bridge, *given)).java()

    def stageCreateOrReplace(self, identifier: Any, *given: Any) -> Any:  # noqa: N802  # Spark's name
        names = self.bridge.identifier(identifier)
        asked = requested_definition(self.bridge, *given)
        staged = self._staged_replacement if self.warehouse.is_table(names) else self._staged_new
        return staged(names, asked).java()

    def new_table_store(self, names: Names) -> Store:
        """The store of a new table of that name. Raises Spark's own error if the name is taken."""
        if self.warehouse.is_table(names) or self.warehouse.is_view(names):
            raise spark_errors.table_exists(self.bridge, (self._name, *names))
        if self._is_metadata(names):
            raise InvalidInput(
                f"{'.'.join(names)!r} is a metadata table.",
                code="BAD_NAME",
                name=names[-1],
                remedy="Choose another name.",
            )
        self._existing_names(names[:-1])
        store = self.warehouse.store(names)
        check_free(store)
        return store

    def _new_table(self, names: Names, asked: Definition) -> tuple[Store, Head]:
        return self.new_table_store(names), new_head(asked, names)

    def _staged_new(self, names: Names, asked: Definition) -> StagedTable:
        store, head = self._new_table(names, asked)
        return StagedTable(
            self.bridge, store, None, head, (self._name, *names), lambda: self.warehouse.remove_empty_folders(names)
        )

    def _staged_replacement(self, names: Names, asked: Definition) -> StagedTable:
        store, snapshot = self.open(names)
        head = new_head(asked, names, snapshot.head)
        return StagedTable(self.bridge, store, snapshot, head, (self._name, *names), _nothing)

    def create_unless_exists(self, names: Names, make: Callable[[], T]) -> T:
        """Return ``make()``. Raises Spark's own error if a table of that name was created meanwhile."""
        try:
            return make()
        except AlreadyExists:
            raise spark_errors.table_exists(self.bridge, (self._name, *names)) from None

    # --- alter, rename and drop ---

    def dropTable(self, identifier: Any) -> bool:  # noqa: N802  # Spark's name
        names = self.bridge.identifier(identifier)
        if not self.warehouse.is_table(names):
            return False
        self._keep_namespace(names[:-1])
        return self.warehouse.drop_table(names)

    def purgeTable(self, identifier: Any) -> bool:  # noqa: N802  # Spark's name
        return self.dropTable(identifier)

    def renameTable(self, old: Any, new: Any) -> None:  # noqa: N802  # Spark's name
        source, target = self.bridge.identifier(old), self.strip_catalog_name(self.bridge.identifier(new))
        if not self.warehouse.is_table(source):
            raise spark_errors.no_such_table(self.bridge, (self._name, *source))
        if self.warehouse.is_table(target) or self.warehouse.is_view(target):
            raise spark_errors.table_exists(self.bridge, (self._name, *target))
        self._existing_names(target[:-1])
        self.warehouse.check_not_ended(source)
        self._keep_namespace(source[:-1])
        self.warehouse.rename(source, target)
        store, _ = self.open(target)

        def rename(_: int) -> None:
            snapshot = load(store)
            self._commit_head(store, snapshot, replace(snapshot.head, name=".".join(target)), "rename")

        HEAD_CHANGES.run(rename)

    def alterTable(self, identifier: Any, changes: Any) -> Any:  # noqa: N802  # Spark's name
        names = self.bridge.identifier(identifier)
        store, snapshot = self.open(names)
        snapshot = requested_alteration(self.bridge, store, snapshot, changes).commit()
        return SparkTable(self.bridge, store, snapshot, (self._name, *names)).java()

    def strip_catalog_name(self, names: Names) -> Names:
        """The new name without the catalog's name, which Spark may pass as a namespace (SPARK-39527)."""
        qualified = len(names) > 1 and names[0] == self._name and not self.warehouse.is_namespace(names[:1])
        return names[1:] if qualified else names

    def _keep_namespace(self, namespace: Names) -> None:
        """Write a namespace's marker, so that it outlives its last table even if tables were created by path."""
        if namespace:
            self.warehouse.create_namespace(namespace, {})

    @staticmethod
    def _commit_head(store: Store, snapshot: Snapshot, head: Head, operation: str) -> Snapshot:
        proposal = Proposal(
            Operation(operation),
            read_version=snapshot.version,
            read_operation_id=snapshot.commit.operation_id,
            head=head,
            operation_id=new_id(),
        )
        return commit(store, proposal)


def _load_arguments(at: Any) -> dict[str, int]:
    """The arguments of ``commit_log.load`` for VERSION AS OF (text) or TIMESTAMP AS OF (microseconds)."""
    if isinstance(at, bool) or not isinstance(at, int | str):
        return {}
    if isinstance(at, int):
        return {"timestamp_micros": at}
    return {"version": parse_version(at)}


def _nothing() -> None:
    return None
