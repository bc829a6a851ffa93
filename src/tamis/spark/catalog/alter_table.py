"""ALTER TABLE: translates Spark's table changes to ours and commits those of one statement together.

Unsupported changes are rejected by name before anything is done.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tamis.core.schema.schema_edits import Place
from tamis.core.types import DataType, Field
from tamis.core.types.arrow import to_arrow_type
from tamis.core.types.defaults import initial_json
from tamis.engine.operations.schema.alter import Alteration
from tamis.spark.catalog.create_table import user_properties
from tamis.spark.catalog.spark_constraints import asked_constraint
from tamis.spark.jvm_bridge.adapter import Bridge
from tamis.spark.jvm_bridge.spark_errors import unsupported_statement
from tamis.spark.jvm_bridge.spark_types import from_spark
from tamis.storage.commit_log import Snapshot
from tamis.storage.object_store import Store


def requested_alteration(bridge: Bridge, store: Store, snapshot: Snapshot, changes: Any) -> Alteration:
    """The alteration that the Java ``changes`` describe.

    Raises ``InvalidInput`` (``UNSUPPORTED_STATEMENT``) naming an unsupported change.
    """
    found = Alteration(store, snapshot)
    kinds = [change.getClass().getSimpleName() for change in changes]
    if snapshot.schema is not None and kinds.count("DeleteColumn") >= len(snapshot.schema) and "AddColumn" in kinds:
        raise unsupported_statement(
            "ALTER TABLE (REPLACE COLUMNS)",
            "Say which columns to add, drop, rename or widen; CREATE OR REPLACE TABLE begins anew.",
        )
    for change in changes:
        kind = change.getClass().getSimpleName()
        if kind not in _STEPS:
            raise unsupported_statement(f"ALTER TABLE ({kind})", "Create a table as it should be and INSERT INTO it.")
        _STEPS[kind](bridge, found, change)
    return found


def _add(bridge: Bridge, found: Alteration, change: Any) -> None:
    path = bridge.texts(change.fieldNames())
    column = Field(path[-1], _type(change.dataType()), bool(change.isNullable()), comment=change.comment())
    default = change.defaultValue()
    if default is not None:
        sql = default.getSql() or str(default.getValue())
        column = replace(
            column, write_default=sql, initial_default=_initial(bridge, sql, change.dataType(), column.type)
        )
    found.add(path, column, _place(change.position()))


def _drop(bridge: Bridge, found: Alteration, change: Any) -> None:
    found.drop(bridge.texts(change.fieldNames()), missing_ok=bool(change.ifExists()))


def _rename(bridge: Bridge, found: Alteration, change: Any) -> None:
    found.rename(bridge.texts(change.fieldNames()), change.newName())


def _retype(bridge: Bridge, found: Alteration, change: Any) -> None:
    found.widen(bridge.texts(change.fieldNames()), _type(change.newDataType()))


def _relax(bridge: Bridge, found: Alteration, change: Any) -> None:
    if not change.nullable():
        raise unsupported_statement("ALTER COLUMN … SET NOT NULL", "Add a new column.")
    found.drop_not_null(bridge.texts(change.fieldNames()))


def _comment(bridge: Bridge, found: Alteration, change: Any) -> None:
    found.comment(bridge.texts(change.fieldNames()), change.newComment())


def _move(bridge: Bridge, found: Alteration, change: Any) -> None:
    place = _place(change.position())
    assert place is not None
    found.move(bridge.texts(change.fieldNames()), place)


def _default(bridge: Bridge, found: Alteration, change: Any) -> None:
    found.set_default(bridge.texts(change.fieldNames()), change.newDefaultValue() or None)


def _cluster(bridge: Bridge, found: Alteration, change: Any) -> None:
    found.cluster_by([bridge.texts(bridge.call(column, "fieldNames")) for column in change.clusteringColumns()])


def _constrain(bridge: Bridge, found: Alteration, change: Any) -> None:
    found.add_constraint(asked_constraint(bridge, change.constraint()))


def _release(_: Bridge, found: Alteration, change: Any) -> None:
    found.drop_constraint(change.name(), missing_ok=bool(change.ifExists()))


def _set(_: Bridge, found: Alteration, change: Any) -> None:
    if change.property() == "comment":
        found.set_comment(change.value())
        return
    checked = user_properties({change.property(): change.value()})
    if not checked:
        raise unsupported_statement(
            f"Setting the property {change.property()!r}", "It is chosen when the table is created."
        )
    found.set_properties(checked)


def _unset(_: Bridge, found: Alteration, change: Any) -> None:
    if change.property() == "comment":
        found.set_comment(None)
    else:
        found.unset_property(change.property())


_STEPS: dict[str, Callable[[Bridge, Alteration, Any], None]] = {
    "AddColumn": _add,
    "DeleteColumn": _drop,
    "RenameColumn": _rename,
    "UpdateColumnType": _retype,
    "UpdateColumnNullability": _relax,
    "UpdateColumnComment": _comment,
    "UpdateColumnPosition": _move,
    "UpdateColumnDefaultValue": _default,
    "ClusterBy": _cluster,
    "AddConstraint": _constrain,
    "DropConstraint": _release,
    "SetProperty": _set,
    "RemoveProperty": _unset,
}


def _type(java_type: Any) -> DataType:
    column = {"name": "c", "type": json.loads(java_type.json()), "nullable": True, "metadata": {}}
    return from_spark(json.dumps({"type": "struct", "fields": [column]})).fields[0].type


def _place(position: Any) -> Place | None:
    if position is None:
        return None
    return Place(position.column()) if position.getClass().getSimpleName() == "After" else Place()


def _initial(bridge: Bridge, sql: str, java_type: Any, data_type: DataType) -> Any:
    """The default's current value, computed by Spark. Existing rows keep it permanently."""
    text = f"SELECT CAST(({sql}) AS {java_type.sql()}) AS v"
    value = bridge.active_session().sql(text).toArrow().column(0).combine_chunks().cast(to_arrow_type(data_type))
    return initial_json(value[0])
