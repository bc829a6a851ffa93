"""Permanent views, where Spark has catalogs of tables and views (``RelationCatalog``, from Spark 4.2 on).

Spark parses and checks a view when it is created, and expands its text under the catalog, namespace and settings that
are stored with it. So a filter of the view reaches the scan as if it stood in the query.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from tamis.errors import AlreadyExists, InvalidInput
from tamis.spark.catalog.stored_views import StoredViews
from tamis.spark.catalog.warehouse_paths import Warehouse
from tamis.spark.jvm_bridge import spark_errors
from tamis.spark.jvm_bridge.adapter import Bridge
from tamis.spark.jvm_bridge.java_callback import JavaThrow

_CATALOG = "org.apache.spark.sql.connector.catalog."
RELATIONS = _CATALOG + "RelationCatalog"
_TEXTS = ("queryText", "currentCatalog", "schemaMode")
_LISTS = ("currentNamespace", "queryColumnNames")
_MAPS = ("properties", "sqlConfigs")

Names = tuple[str, ...]


class Views:
    """The catalog's implementation of ``ViewCatalog``."""

    bridge: Bridge
    warehouse: Warehouse
    _name: str

    @cached_property
    def views(self) -> StoredViews:
        return StoredViews(self.warehouse)

    def loadTable(self, identifier: Any, at: Any = None, options: Any = None) -> Any:  # noqa: N802  # the catalog's
        raise NotImplementedError

    def loadRelation(self, identifier: Any) -> Any:  # noqa: N802  # Spark's name
        """Load the table or view of that name. Raises Spark's own error for a missing one."""
        try:
            return self.loadTable(identifier)
        except JavaThrow:
            if (definition := self._stored(self.bridge.identifier(identifier))) is None:
                raise
            return self._java(definition)

    def listViews(self, namespace: Any) -> list[Any]:  # noqa: N802  # Spark's name
        names = self._existing_names(self.bridge.texts(namespace))
        views: Iterator[str] = self.warehouse.children(names, "view")
        return [spark_errors.identifier(self.bridge, (*names, view)) for view in views]

    def viewExists(self, identifier: Any) -> bool:  # noqa: N802  # Spark's name
        return self.warehouse.is_view(self.bridge.identifier(identifier))

    def loadView(self, identifier: Any) -> Any:  # noqa: N802  # Spark's name
        return self._java(self._existing_view(self.bridge.identifier(identifier)))

    def createView(self, identifier: Any, view: Any) -> Any:  # noqa: N802  # Spark's name
        names = self.bridge.identifier(identifier)
        self._check_name(names)
        if not self.views.create(names, self._definition(view)):
            raise spark_errors.view_exists(self.bridge, (self._name, *names))
        return view

    def replaceView(self, identifier: Any, view: Any) -> Any:  # noqa: N802  # Spark's name
        names = self.bridge.identifier(identifier)
        self._existing_view(names)
        self.views.replace(names, self._definition(view))
        return view

    def createOrReplaceView(self, identifier: Any, view: Any) -> Any:  # noqa: N802  # Spark's name
        names = self.bridge.identifier(identifier)
        return (self.replaceView if self.warehouse.is_view(names) else self.createView)(identifier, view)

    def dropView(self, identifier: Any) -> bool:  # noqa: N802  # Spark's name
        names = self.bridge.identifier(identifier)
        if not self.warehouse.is_view(names):
            return False
        self.views.drop(names)
        return True

    def renameView(self, old: Any, new: Any) -> None:  # noqa: N802  # Spark's name
        source, target = self.bridge.identifier(old), self.strip_catalog_name(self.bridge.identifier(new))
        definition = self._existing_view(source)
        self._check_name(target)
        if not self.views.create(target, definition):
            raise spark_errors.view_exists(self.bridge, (self._name, *target))
        self.views.drop(source)

    def strip_catalog_name(self, names: Names) -> Names:
        raise NotImplementedError

    def _existing_names(self, names: Names) -> Names:
        raise NotImplementedError

    def _keep_namespace(self, namespace: Names) -> None:
        raise NotImplementedError

    def _check_name(self, names: Names) -> None:
        """Raise unless a new view may have this name. Its namespace stays, whatever tables go."""
        self._existing_names(names[:-1])
        if self.warehouse.is_table(names):
            raise spark_errors.view_exists(self.bridge, (self._name, *names))
        if self.warehouse.is_namespace(names):
            raise AlreadyExists(
                f"{'.'.join(names)!r} is a namespace.",
                code="NAMESPACE_EXISTS",
                name=".".join(names),
                remedy="Choose another name for the view.",
            )
        self._keep_namespace(names[:-1])

    def _check_no_view(self, names: Names) -> None:
        if self.warehouse.is_view(names):
            raise InvalidInput(
                f"{'.'.join(names)} is a view: views have no change feed.",
                code="BAD_OPTION",
                name="readChangeFeed",
                remedy="Read the changes of the tables that it reads.",
            )

    def _stored(self, names: Names) -> dict[str, Any] | None:
        return self.views.load(names) if len(names) > 1 else None

    def _existing_view(self, names: Names) -> dict[str, Any]:
        definition = None if self.warehouse.is_table(names) else self._stored(names)
        if definition is None:
            raise spark_errors.no_such_view(self.bridge, (self._name, *names))
        return definition

    # --- Spark's View ---

    def _definition(self, view: Any) -> dict[str, Any]:
        """Return what is stored of Spark's ``View``."""
        found: dict[str, Any] = {"schema": str(view.schema().json())}
        found |= {name: getattr(view, name)() for name in _TEXTS}
        found |= {
            name: list(self.bridge.texts(value)) for name in _LISTS if (value := getattr(view, name)()) is not None
        }
        return found | {name: self.bridge.dict(getattr(view, name)()) for name in _MAPS}

    def _java(self, definition: dict[str, Any]) -> Any:
        built = self.bridge.new(_CATALOG + "View$Builder")
        built.withSchema(self.bridge.struct_type(definition["schema"]))
        for name in _TEXTS:
            _given(built, name)(definition[name])
        for name in _LISTS:
            _given(built, name)(self._texts(definition.get(name, ())))
        for name in _MAPS:
            _given(built, name)(self.bridge.map(definition[name]))
        return built.build()

    def _texts(self, values: Sequence[str]) -> Any:
        return self.bridge.array("java.lang.String", values)


def _given(builder: Any, name: str) -> Any:
    """The builder's method that takes what the view's method ``name`` returns."""
    return getattr(builder, f"with{name[0].upper()}{name[1:]}")
