"""CALL lake.system.<procedure>(table => 'db.t', …): each answers with rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tamis.errors import InvalidInput
from tamis.spark import errors
from tamis.spark.adapter import Bridge
from tamis.spark.local import LocalTable, local_scan
from tamis.table import metadata
from tamis.world import new_id

_PROCEDURES = "org.apache.spark.sql.connector.catalog.procedures."
_TYPES = {"string": "StringType", "int": "IntegerType"}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument; ``default`` is SQL text, None where it must be given."""

    name: str
    type: str = "string"
    default: str | None = None
    comment: str = ""


TABLE = Parameter("table", comment="Name of the table within the catalog, such as db.t")
Answer = Callable[[Any, dict[str, Any]], pa.Table]


@dataclass(frozen=True)
class Procedure:
    """What CALL runs: ``answer`` gets the catalog and the arguments by name."""

    name: str
    description: str
    parameters: tuple[Parameter, ...]
    answer: Answer


def _history(catalog: Any, arguments: dict[str, Any]) -> pa.Table:
    from tamis.state import history

    store, _ = catalog.open(table_name(arguments["table"]))
    return history(store, arguments["limit"])


def _detail(catalog: Any, arguments: dict[str, Any]) -> pa.Table:
    return metadata.detail(*catalog.open(table_name(arguments["table"])))


def _explain(catalog: Any, arguments: dict[str, Any]) -> pa.Table:
    from tamis.table import Table

    report = Table(*catalog.open(table_name(arguments["table"]))).explain(arguments["filter"])
    lines = [{"item": key, "value": str(value)} for key, value in report.as_dict().items()]
    return pa.Table.from_pylist(lines, schema=pa.schema([("item", pa.string()), ("value", pa.string())]))


PROCEDURES = {
    p.name: p
    for p in (
        Procedure("history", "The commits of a table, newest first", (TABLE, Parameter("limit", "int", "NULL")), _history),
        Procedure("detail", "One row about a table as a whole", (TABLE,), _detail),
        Procedure("explain", "What a filter would read, and why not less", (TABLE, Parameter("filter", default="NULL")), _explain),
    )
}


class Procedures:
    """The part of the catalog that is ``ProcedureCatalog``."""

    bridge: Bridge

    def listProcedures(self, namespace: Any) -> list[Any]:  # noqa: N802  # Spark's name
        known = PROCEDURES if self.bridge.texts(namespace) == ("system",) else {}
        return [errors.identifier(self.bridge, ("system", name)) for name in known]

    def loadProcedure(self, identifier: Any) -> Any:  # noqa: N802  # Spark's name
        names = self.bridge.identifier(identifier)
        if len(names) != 2 or names[0].lower() != "system" or names[1].lower() not in PROCEDURES:
            raise errors.no_such_procedure(names, tuple(PROCEDURES))
        return self.bridge.implement([_PROCEDURES + "UnboundProcedure"], Unbound(self, PROCEDURES[names[1].lower()]))


@dataclass(eq=False)
class Unbound:
    catalog: Any
    procedure: Procedure

    def name(self) -> str:
        return self.procedure.name

    def description(self) -> str:
        return self.procedure.description

    def bind(self, input_type: Any) -> Any:  # noqa: ARG002  # one signature each
        return self.catalog.bridge.implement([_PROCEDURES + "BoundProcedure"], Bound(self.catalog, self.procedure))


@dataclass(eq=False)
class Bound(Unbound):
    def parameters(self) -> list[Any]:
        return [self._parameter(p) for p in self.procedure.parameters]

    def isDeterministic(self) -> bool:  # noqa: N802  # Spark's name
        return False

    def call(self, row: Any) -> list[Any]:
        arguments = {p.name: _argument(row, i, p) for i, p in enumerate(self.procedure.parameters)}
        rows = self.procedure.answer(self.catalog, arguments)
        return [local_scan(LocalTable(self.catalog.bridge, self.procedure.name, (new_id(),), lambda: rows))]

    def _parameter(self, p: Parameter) -> Any:
        java = self.catalog.bridge
        data_type = java.scala_object("org.apache.spark.sql.types." + _TYPES[p.type])
        builder = getattr(java.cls(_PROCEDURES + "ProcedureParameter"), "in")(p.name, data_type).comment(p.comment)
        return (builder if p.default is None else builder.defaultValue(p.default)).build()


def table_name(text: str | None) -> tuple[str, ...]:
    """``db.t`` or ``db.`my table``` as parts."""
    if not text:
        raise InvalidInput("No table is named.", code="BAD_NAME", name="table", remedy="Write table => 'db.t'.")
    parts, rest = [], text
    while rest:
        if rest.startswith("`") and "`" in rest[1:]:
            part, _, rest = rest[1:].partition("`")
        else:
            part, dot, rest = rest.partition(".")
            rest = dot + rest
        parts.append(part)
        rest = rest.removeprefix(".")
    return tuple(parts)


def _argument(row: Any, at: int, p: Parameter) -> Any:
    if row.isNullAt(at):
        return None
    return row.getInt(at) if p.type == "int" else row.getUTF8String(at).toString()
