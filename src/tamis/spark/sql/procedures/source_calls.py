"""Procedures about sources: tables over the files of foreign ones, and following them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from tamis.spark.sql.procedure import TABLE, Parameter, Procedure, named_table, new_name
from tamis.spark.sql.procedures.upkeep_calls import result_numbers
from tamis.table.adoption import AdoptionOptions, adopt_into


def _adopt(catalog: Any, arguments: dict[str, Any]) -> pa.Table:
    names = new_name(catalog, arguments)
    store = catalog.new_table_store(names)
    asked = AdoptionOptions(
        mode=arguments["mode"],
        dry_run=arguments["dry_run"],
        partition_types=arguments["partition_types"],
        binary_as_string=arguments["binary_as_string"],
        follow=arguments["follow"],
        source_options=arguments["source_options"],
        properties=arguments["properties"],
        name=".".join(names),
    )
    _, done = catalog.create_unless_exists(names, lambda: adopt_into(store, arguments["source"], asked))
    row = done.as_dict()
    return pa.Table.from_pylist([{**row, "columns": ", ".join(row["columns"])}], schema=_ADOPTION)


def _sync(catalog: Any, arguments: dict[str, Any]) -> pa.Table:
    given = arguments["source_options"]
    done = named_table(catalog, arguments).sync(skip_history=arguments["skip_history"], source_options=given)
    return result_numbers(done.as_dict())


_ADOPTION = pa.schema(
    [
        *[(name, pa.string()) for name in ("kind", "source", "source_version")],
        *[(name, pa.int64()) for name in ("files", "rows", "deleted_rows", "bytes")],
        ("columns", pa.string()),
        ("version", pa.int64()),
    ]
)

PROCEDURES = (
    Procedure(
        "adopt",
        "Makes a table over the files of a folder, or of a Delta or an Iceberg table, without copying them",
        (
            Parameter("source", comment="Where it lies, or its name in a catalog"),
            TABLE,
            Parameter("mode", default="'reference'", comment="reference, or copy: write the rows into the table"),
            Parameter(
                "follow", "boolean", "false", "Keep the position in the source, so that sync takes later versions"
            ),
            Parameter("dry_run", "boolean", "false", "Only say what would be adopted"),
            Parameter("partition_types", default="NULL", comment="Types of columns of folders k=v, such as day DATE"),
            Parameter("binary_as_string", "boolean", "false", "Read unmarked binaries of Parquet files as texts"),
            Parameter("source_options", "map", "NULL", "How the source is read: map('version', '3')"),
            Parameter("properties", "map", "NULL", "Properties of the table"),
        ),
        _adopt,
    ),
    Procedure(
        "sync",
        "Takes the new versions of the source that the table follows, a commit each",
        (
            TABLE,
            Parameter("skip_history", "boolean", "false", "Take its newest version alone, in one commit"),
            Parameter("source_options", "map", "NULL", "Options of the source that the table does not keep"),
        ),
        _sync,
    ),
)
