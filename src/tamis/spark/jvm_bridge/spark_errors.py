"""Spark's own exceptions for errors that Spark users know, such as TABLE_OR_VIEW_NOT_FOUND."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tamis.core.types.identifiers import BACKQUOTED, remove_backquotes
from tamis.errors import InvalidInput
from tamis.spark.jvm_bridge.adapter import Bridge
from tamis.spark.jvm_bridge.java_callback import JavaThrow

_ANALYSIS = "org.apache.spark.sql.catalyst.analysis."


def no_such_table(bridge: Bridge, names: Sequence[str]) -> JavaThrow:
    return _thrown(bridge, "NoSuchTableException", identifier(bridge, names))


def table_exists(bridge: Bridge, names: Sequence[str]) -> JavaThrow:
    return _thrown(bridge, "TableAlreadyExistsException", identifier(bridge, names))


def no_such_view(bridge: Bridge, names: Sequence[str]) -> JavaThrow:
    return _thrown(bridge, "NoSuchViewException", identifier(bridge, names))


def view_exists(bridge: Bridge, names: Sequence[str]) -> JavaThrow:
    return _thrown(bridge, "ViewAlreadyExistsException", identifier(bridge, names))


def no_such_namespace(bridge: Bridge, names: Sequence[str]) -> JavaThrow:
    return _thrown(bridge, "NoSuchNamespaceException", bridge.array("java.lang.String", names))


def namespace_exists(bridge: Bridge, names: Sequence[str]) -> JavaThrow:
    return _thrown(bridge, "NamespaceAlreadyExistsException", bridge.array("java.lang.String", names))


def namespace_not_empty(bridge: Bridge, names: Sequence[str]) -> JavaThrow:
    return _thrown(bridge, "NonEmptyNamespaceException", bridge.array("java.lang.String", names))


def index_error(bridge: Bridge, kind: str, index: str, table: str) -> JavaThrow:
    """``IndexAlreadyExistsException`` or ``NoSuchIndexException``, which IF (NOT) EXISTS suppresses."""
    none = bridge.scala_object("scala.None")
    return JavaThrow(bridge.new(_ANALYSIS + kind, index, table, none))


def no_such_procedure(names: Sequence[str], known: Sequence[str]) -> InvalidInput:
    name = ".".join(names)
    return InvalidInput(
        f"There is no procedure {name!r}.",
        code="UNKNOWN_PROCEDURE",
        name=name,
        remedy="Procedures are: " + ", ".join(f"system.{k}" for k in known) + ".",
    )


def unsupported_statement(what: str, remedy: str) -> InvalidInput:
    """The error for a statement or clause that Tamis does not support."""
    return InvalidInput(f"{what} is not supported by tamis.", code="UNSUPPORTED_STATEMENT", name=what, remedy=remedy)


def offending_column(parameters: Mapping[str, str]) -> str | None:
    """The column, dotted if nested, that Spark's rejection of an INSERT is about, or None.

    ``parameters`` are the message parameters of Spark's error.
    """
    if extra := _names(parameters.get("extraColumns", "") or parameters.get("extraFields", "")):
        return extra[0]
    if column := _names(parameters.get("colName", "")):
        return column[0]
    table, data = _names(parameters.get("tableColumns", "")), _names(parameters.get("dataColumns", ""))
    known, given = {name.lower() for name in table}, [name.lower() for name in data]
    odd = [name for at, name in enumerate(data) if name.lower() not in known or name.lower() in given[:at]]
    odd += [name for name in table if name.lower() not in given]
    odd += _names(parameters.get("name", "") or parameters.get("columnName", ""))
    return odd[0] if odd else None


def _names(quoted: str) -> list[str]:
    """The names in Spark's list of backquoted names, dotted and without backquotes."""
    items = re.findall(rf"(?:{BACKQUOTED}\.?)+", quoted)
    return [".".join(remove_backquotes(part) for part in re.findall(BACKQUOTED, item)) for item in items]


def identifier(bridge: Bridge, names: Sequence[str]) -> Any:
    """A Java ``Identifier`` of namespace parts and a name."""
    return bridge.cls("org.apache.spark.sql.connector.catalog.Identifier").of(
        bridge.array("java.lang.String", names[:-1]), names[-1]
    )


def text_with_causes(error: BaseException) -> str:
    """The text of an error of Spark with those of its causes, which PySpark shows only if it is configured to."""
    return f"{error} {getattr(error, '_stackTrace', '')}"


def _thrown(bridge: Bridge, name: str, argument: Any) -> JavaThrow:
    return JavaThrow(bridge.new(_ANALYSIS + name, argument))
