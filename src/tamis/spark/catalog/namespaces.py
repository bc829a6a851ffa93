"""SHOW, CREATE, ALTER and DROP NAMESPACE."""

from __future__ import annotations

from typing import Any

from tamis.errors import AlreadyExists
from tamis.spark.catalog.warehouse_paths import Warehouse
from tamis.spark.jvm_bridge import spark_errors
from tamis.spark.jvm_bridge.adapter import Bridge


class Namespaces:
    """The catalog's implementation of ``SupportsNamespaces``."""

    bridge: Bridge
    warehouse: Warehouse

    def listNamespaces(self, parent: Any = None) -> list[list[str]]:  # noqa: N802  # Spark's name
        names = () if parent is None else self._existing(parent)
        return [[*names, child] for child in self.warehouse.children(names, "namespace")]

    def namespaceExists(self, namespace: Any) -> bool:  # noqa: N802  # Spark's name
        return self.warehouse.is_namespace(self.bridge.texts(namespace))

    def loadNamespaceMetadata(self, namespace: Any) -> dict[str, str]:  # noqa: N802  # Spark's name
        names = self._existing(namespace)
        return {**self.warehouse.namespace_properties(names), "location": "/".join((self.warehouse.root.url, *names))}

    def createNamespace(self, namespace: Any, properties: Any) -> None:  # noqa: N802  # Spark's name
        names = self.bridge.texts(namespace)
        given = self.bridge.dict(properties)
        if "location" in given:
            raise spark_errors.unsupported_statement(
                "LOCATION of a namespace", "A namespace lies in its catalog's folder: leave LOCATION out."
            )
        if self.warehouse.is_view(names):
            raise AlreadyExists(
                f"{'.'.join(names)!r} is a view.",
                code="VIEW_EXISTS",
                name=".".join(names),
                remedy="Choose another name for the namespace.",
            )
        for depth in range(1, len(names) + 1):
            if self.warehouse.is_table(names[:depth]):
                raise AlreadyExists(
                    f"{'.'.join(names[:depth])!r} is a table, and {'.'.join(names)!r} would be in its folder.",
                    code="TABLE_EXISTS",
                    name=".".join(names[:depth]),
                    remedy="Choose another name for the namespace.",
                )
        if self.warehouse.is_namespace(names) or not self.warehouse.create_namespace(names, given):
            raise spark_errors.namespace_exists(self.bridge, names)

    def alterNamespace(self, namespace: Any, changes: Any) -> None:  # noqa: N802  # Spark's name
        names = self._existing(namespace)
        properties = self.warehouse.namespace_properties(names)
        for change in changes:
            if change.getClass().getSimpleName() == "SetProperty":
                properties[change.property()] = change.value()
            else:
                properties.pop(change.property(), None)
        self.warehouse.set_namespace_properties(names, properties)

    def dropNamespace(self, namespace: Any, cascade: bool) -> bool:  # noqa: N802  # Spark's name
        names = self._existing(namespace)
        if not cascade and any(
            True for kind in ("table", "view", "namespace") for _ in self.warehouse.children(names, kind)
        ):
            raise spark_errors.namespace_not_empty(self.bridge, names)
        self.warehouse.drop_namespace(names)
        return True

    def _existing(self, namespace: Any) -> tuple[str, ...]:
        return self._existing_names(self.bridge.texts(namespace))

    def _existing_names(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """The names of an existing namespace. Raises Spark's own SCHEMA_NOT_FOUND if it is missing."""
        if not self.warehouse.is_namespace(names):
            raise spark_errors.no_such_namespace(self.bridge, names)
        return names
