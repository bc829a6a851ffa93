"""Constraints between Spark and a table's head.

Spark tests each CHECK that a table shows, in its own plan and by the session's rules. Whatever it tests, the part
writer tests again, by rules that no session changes. A CHECK is always enforced: Spark's grammar has no other.

Invariant: Spark sees no CHECK on a generated or identity column. In its plan the column still has NULL, or the value
of before an update, and it would refuse rows that are right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tamis.core.types import Schema
from tamis.core.types.identifiers import dotted_path, parse_path
from tamis.engine.operations.schema.constraint_definitions import ConstraintRequest, request_check, request_key
from tamis.spark.jvm_bridge import spark_errors
from tamis.spark.jvm_bridge.adapter import Bridge
from tamis.storage.commit_log import Constraint
from tamis.storage.commit_log.table_constraints import CHECK, FOREIGN_KEY, PRIMARY_KEY, UNIQUE

_CONSTRAINT = "org.apache.spark.sql.connector.catalog.constraints.Constraint"
_REFERENCE = "org.apache.spark.sql.connector.expressions.NamedReference"
_KINDS = {"Check": CHECK, "PrimaryKey": PRIMARY_KEY, "Unique": UNIQUE, "ForeignKey": FOREIGN_KEY}
"""Kinds by the simple names of Spark's classes."""


def has_constraints(bridge: Bridge) -> bool:
    """Whether this Spark has table constraints in its grammar."""
    return bridge.has_class(_CONSTRAINT)


def asked_constraint(bridge: Bridge, given: Any) -> ConstraintRequest:
    """Return the Java ``Constraint`` as the engine takes it."""
    kind, name, rely = _KINDS[given.getClass().getSimpleName()], given.name(), bool(given.rely())
    if kind == CHECK:
        return request_check(name, given.predicateSql(), rely=rely)
    refers: tuple[str, tuple[str, ...]] = ("", ())
    if kind == FOREIGN_KEY:
        columns = tuple(dotted_path(path) for path in _paths(bridge, given.referencedColumns()))
        refers = dotted_path(bridge.identifier(given.referencedTable())), columns
    return request_key(kind, name, _paths(bridge, given.columns()), refers=refers, rely=rely)


def _paths(bridge: Bridge, references: Any) -> list[tuple[str, ...]]:
    return [bridge.texts(bridge.call(reference, "fieldNames")) for reference in references]


def java_constraints(bridge: Bridge, constraints: Iterable[Constraint], schema: Schema) -> list[Any]:
    """Return the constraints that Spark may test or show, as Java objects."""
    late = {f.id for f in schema if f.computed}
    shown = [one for one in constraints if one.kind != CHECK or late.isdisjoint(ids[0] for ids in one.columns)]
    return [_java(bridge, one, schema) for one in shown]


def _java(bridge: Bridge, one: Constraint, schema: Schema) -> Any:
    def make(method: str, *args: Any) -> Any:
        return bridge.static(_CONSTRAINT, method)(one.name, *args)

    keys = [[schema.by_id[i].name for i in ids] for ids in one.columns]
    makers: dict[str, Callable[[], Any]] = {
        CHECK: lambda: make("check").predicateSql(one.expression),
        PRIMARY_KEY: lambda: make("primaryKey", _references(bridge, keys)),
        UNIQUE: lambda: make("unique", _references(bridge, keys)),
        FOREIGN_KEY: lambda: make("foreignKey", _references(bridge, keys), *_referred(bridge, one)),
    }
    status = bridge.enum(_CONSTRAINT + "$ValidationStatus", "VALID" if one.enforced else "UNVALIDATED")
    built = makers[one.kind]().enforced(one.enforced).rely(one.rely).validationStatus(status)
    return built.build()


def _referred(bridge: Bridge, one: Constraint) -> tuple[Any, Any]:
    table = spark_errors.identifier(bridge, parse_path(one.references) or (one.references,))
    return table, _references(bridge, [list(parse_path(name) or (name,)) for name in one.referenced_columns])


def _references(bridge: Bridge, paths: Iterable[list[str]]) -> Any:
    to_seq = bridge.static("org.apache.spark.api.python.PythonUtils", "toSeq")
    made = [
        bridge.new("org.apache.spark.sql.connector.expressions.FieldReference", to_seq(bridge.list(path)))
        for path in paths
    ]
    return bridge.array(_REFERENCE, made)
