"""The procedures of CALL lake.system.<procedure>(table => 'db.t', …), which are defined in ``procedures``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tamis.spark.catalog.local_rows import LocalTable, local_scan
from tamis.spark.jvm_bridge import spark_errors
from tamis.spark.jvm_bridge.adapter import Bridge
from tamis.spark.sql.procedure import READERS, Parameter, Procedure, procedure_argument
from tamis.spark.sql.procedures import constraint_calls, index_calls, query_calls, source_calls, upkeep_calls
from tamis.world import new_id

_PROCEDURES = "org.apache.spark.sql.connector.catalog.procedures."

PROCEDURES: dict[str, Procedure] = {
    p.name: p
    for calls in (query_calls, upkeep_calls, source_calls, index_calls, constraint_calls)
    for p in calls.PROCEDURES
}


class Procedures:
    """The catalog's implementation of ``ProcedureCatalog``."""

    bridge: Bridge

    def listProcedures(self, namespace: Any) -> list[Any]:  # noqa: N802  # Spark's name
        known = PROCEDURES if self.bridge.texts(namespace) == ("system",) else {}
        return [spark_errors.identifier(self.bridge, ("system", name)) for name in known]

    def loadProcedure(self, identifier: Any) -> Any:  # noqa: N802  # Spark's name
        names = self.bridge.identifier(identifier)
        if len(names) != 2 or names[0].lower() != "system" or names[1].lower() not in PROCEDURES:
            raise spark_errors.no_such_procedure(names, tuple(PROCEDURES))
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
        arguments = {p.name: procedure_argument(row, i, p) for i, p in enumerate(self.procedure.parameters)}
        rows = self.procedure.answer(self.catalog, arguments)
        return [local_scan(LocalTable(self.catalog.bridge, self.procedure.name, (new_id(),), lambda: rows))]

    def _parameter(self, p: Parameter) -> Any:
        java = self.catalog.bridge
        kind = READERS[p.type][0]
        types = "org.apache.spark.sql.types."
        is_json = kind.startswith("{")
        data_type = java.static(types + "DataType", "fromJson")(kind) if is_json else java.scala_object(types + kind)
        builder = getattr(java.cls(_PROCEDURES + "ProcedureParameter"), "in")(p.name, data_type).comment(p.comment)
        return (builder if p.default is None else builder.defaultValue(p.default)).build()
