"""Procedures about indexes: create, drop, repair, drop segments, list."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from tamis.engine.operations.layout import index_operations as verbs
from tamis.engine.scan import Options
from tamis.engine.secondary_index.indexed_paths import split_definitions
from tamis.spark.sql.procedure import TABLE, Parameter, Procedure, opened_table
from tamis.spark.sql.procedures.upkeep_calls import result_numbers
from tamis.spark.write.spark_index import spark_index_builder
from tamis.table import metadata_tables


def _create(catalog: Any, arguments: dict[str, Any]) -> pa.Table:
    return _run(
        catalog,
        arguments,
        "create_index",
        arguments["index"],
        split_definitions(arguments["columns"]),
        arguments["build"],
        builds=True,
    )


def _drop(catalog: Any, arguments: dict[str, Any]) -> pa.Table:
    return _run(catalog, arguments, "drop_index", arguments["index"])


def _repair(catalog: Any, arguments: dict[str, Any]) -> pa.Table:
    return _run(catalog, arguments, "repair_index", arguments["index"], _list(arguments["segments"]), builds=True)


def _drop_segments(catalog: Any, arguments: dict[str, Any]) -> pa.Table:
    return _run(catalog, arguments, "drop_index_segments", arguments["index"], _list(arguments["segments"]) or [])


def _list_indexes(catalog: Any, arguments: dict[str, Any]) -> pa.Table:
    _, snapshot = opened_table(catalog, arguments)
    return metadata_tables.indexes(snapshot)


def _run(catalog: Any, arguments: dict[str, Any], verb: str, *given: Any, builds: bool = False) -> pa.Table:
    store, snapshot = opened_table(catalog, arguments)
    more: dict[str, Any] = {}
    if builds:
        session = catalog.bridge.active_session()
        conf = catalog.bridge.dict(session._jsparkSession.sessionState().conf().settings(), "tamis.")
        more = {
            "build_mode": Options.resolve(None, conf, snapshot.head.properties).index_build,
            "run": spark_index_builder(session),
        }
    _, done = getattr(verbs, verb)(store, snapshot, *given, **more)
    return result_numbers(done.as_dict())


def _list(text: str | None) -> list[str] | None:
    return None if text is None else [part.strip() for part in text.split(",") if part.strip()]


INDEX = Parameter("index", comment="Name of the index")
SEGMENTS = Parameter("segments", comment="Ids of segments, separated by commas")

PROCEDURES = (
    Procedure(
        "create_index",
        "Makes a secondary index, and builds it unless it is deferred",
        (
            TABLE,
            INDEX,
            Parameter(
                "columns",
                comment="Columns, fields of structs or JSON paths (body:user.id::bigint), separated by commas",
            ),
            Parameter("build", default="'with_write'"),
        ),
        _create,
    ),
    Procedure("drop_index", "Drops a secondary index", (TABLE, INDEX), _drop),
    Procedure(
        "repair_index",
        "Builds what an index, or every index, lacks",
        (
            TABLE,
            Parameter("index", default="NULL", comment="One index only"),
            Parameter("segments", default="NULL", comment=SEGMENTS.comment),
        ),
        _repair,
    ),
    Procedure(
        "drop_index_segments", "Forgets what an index has of some segments", (TABLE, INDEX, SEGMENTS), _drop_segments
    ),
    Procedure(
        "list_indexes", "The indexes of a table: columns, size, covered and missing segments", (TABLE,), _list_indexes
    ),
)
