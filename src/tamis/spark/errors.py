"""Spark's own exceptions for what Spark users know: a missing table says TABLE_OR_VIEW_NOT_FOUND here as everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tamis.errors import InvalidInput
from tamis.spark.adapter import Bridge, JavaThrow

_ANALYSIS = "org.apache.spark.sql.catalyst.analysis."


def no_such_table(bridge: Bridge, names: Sequence[str]) -> JavaThrow:
    return _thrown(bridge, "NoSuchTableException", identifier(bridge, names))


def table_exists(bridge: Bridge, names: Sequence[str]) -> JavaThrow:
    return _thrown(bridge, "TableAlreadyExistsException", identifier(bridge, names))


def no_such_namespace(bridge: Bridge, names: Sequence[str]) -> JavaThrow:
    return _thrown(bridge, "NoSuchNamespaceException", bridge.array("java.lang.String", names))


def namespace_exists(bridge: Bridge, names: Sequence[str]) -> JavaThrow:
    return _thrown(bridge, "NamespaceAlreadyExistsException", bridge.array("java.lang.String", names))


def namespace_not_empty(bridge: Bridge, names: Sequence[str]) -> JavaThrow:
    return _thrown(bridge, "NonEmptyNamespaceException", bridge.array("java.lang.String", names))


def no_such_procedure(names: Sequence[str], known: Sequence[str]) -> InvalidInput:
    name = ".".join(names)
    return InvalidInput(
        f"There is no procedure {name!r}.",
        code="UNKNOWN_PROCEDURE",
        name=name,
        remedy="Procedures are: " + ", ".join(f"system.{k}" for k in known) + ".",
    )


def unsupported(what: str, remedy: str) -> InvalidInput:
    """A statement, or a clause of one, that Tamis does not have."""
    return InvalidInput(f"{what} is not supported by tamis.", code="UNSUPPORTED_STATEMENT", name=what, remedy=remedy)


def identifier(bridge: Bridge, names: Sequence[str]) -> Any:
    """A Java ``Identifier`` of namespace parts and a name."""
    return bridge.cls("org.apache.spark.sql.connector.catalog.Identifier").of(bridge.array("java.lang.String", names[:-1]), names[-1])


def _thrown(bridge: Bridge, name: str, argument: Any) -> JavaThrow:
    return JavaThrow(bridge.new(_ANALYSIS + name, argument))
