"""Maintenance procedures. Each calls the method of ``Table`` with its name; compaction runs on executors."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pyarrow as pa

from tamis.core.types.identifiers import split_list
from tamis.engine.operations import CompactionPlan
from tamis.engine.scan import Options
from tamis.errors import InvalidInput
from tamis.spark.sql.procedure import (
    FILTER,
    ROW_FILTER,
    TABLE,
    Parameter,
    Procedure,
    named_table,
    opened_table,
    row_filter,
)
from tamis.spark.write.session_frames import write_switches
from tamis.storage.commit_log import Head
from tamis.table import Table

_GROUP = pa.schema(
    [
        *[(name, pa.int64()) for name in ("parts", "rows", "deleted_rows", "bytes")],
        *[(name, pa.timestamp("us", tz="UTC")) for name in ("since", "until")],
        ("reasons", pa.list_(pa.string())),
    ]
)


class _SessionTable(Table):
    """The table that the argument ``table`` names, under the settings of the calling session, as for an INSERT."""

    def __init__(self, catalog: Any, arguments: dict[str, Any]) -> None:
        super().__init__(*opened_table(catalog, arguments))
        self._bridge = catalog.bridge

    def _options(self, head: Head) -> Options:
        return write_switches(self._bridge.active_session(), self._bridge, {}, head)


def _compact(catalog: Any, arguments: dict[str, Any]) -> pa.Table:
    names = split_list(arguments["cluster_by"] or "")
    found = _SessionTable(catalog, arguments).compact(
        row_filter(arguments),
        max_bytes=arguments["max_bytes"],
        max_seconds=arguments["max_seconds"],
        dry_run=arguments["dry_run"],
        cluster_by=names,
        curve=arguments["curve"],
        adopted=arguments["adopted"],
        spark=catalog.bridge.active_session(),
    )
    if isinstance(found, CompactionPlan):
        groups = [g.as_dict() for g in found.groups]
        return pa.Table.from_pylist(
            [{**g, "since": g["since_micros"], "until": g["until_micros"]} for g in groups], schema=_GROUP
        )
    return result_numbers(found.as_dict())


def _analyze(catalog: Any, arguments: dict[str, Any]) -> pa.Table:
    done = _SessionTable(catalog, arguments).analyze(
        row_filter(arguments),
        max_bytes=arguments["max_bytes"],
        max_seconds=arguments["max_seconds"],
        spark=catalog.bridge.active_session(),
    )
    return result_numbers(done.as_dict())


def _vacuum(catalog: Any, arguments: dict[str, Any]) -> pa.Table:
    retention, hours = arguments["retention"], arguments["retention_hours"]
    if retention is not None and hours is not None:
        raise InvalidInput(
            "Both retention and retention_hours are given.",
            code="BAD_RETENTION",
            name="retention",
            remedy="Give retention or retention_hours.",
        )
    keep = f"{hours:.12f}h" if hours is not None else timedelta(days=7) if retention is None else retention
    found = named_table(catalog, arguments).vacuum(
        keep, dry_run=arguments["dry_run"], below_retention=arguments["below_retention"]
    )
    return found.objects if arguments["dry_run"] and len(found.objects) else result_numbers(found.as_dict())


def _restore(catalog: Any, arguments: dict[str, Any]) -> pa.Table:
    table = named_table(catalog, arguments)
    return result_numbers(
        table.restore(arguments["version"], allow_dropped_columns=arguments["allow_dropped_columns"]).as_dict()
    )


def _verify(catalog: Any, arguments: dict[str, Any]) -> pa.Table:
    found = named_table(catalog, arguments).verify(data=arguments["data"])
    return result_numbers(found.as_dict()) if found.ok else found.problems


def _changes(catalog: Any, arguments: dict[str, Any]) -> pa.Table:
    found = named_table(catalog, arguments).changes(
        arguments["from_version"],
        arguments["to_version"],
        keys=split_list(arguments["keys"] or ""),
        net=arguments["net"],
    )
    rows: pa.Table = found.to_arrow()
    return rows


def _export(catalog: Any, arguments: dict[str, Any]) -> pa.Table:
    done = named_table(catalog, arguments).export(
        arguments["format"],
        format_version=arguments["format_version"],
        by_id=arguments["by_id"],
        final=arguments["final"],
    )
    return pa.Table.from_pylist([{**done.as_dict(), "notes": " ".join(done.notes)}])


def result_numbers(done: dict[str, Any]) -> pa.Table:
    """One row with the result of an operation. Lists are shown as their lengths."""
    return pa.Table.from_pylist([{k: len(v) if isinstance(v, list) else v for k, v in done.items()}])


PROCEDURES = (
    Procedure(
        "compact",
        "Merges small parts, sorts, drops deleted rows",
        (
            TABLE,
            FILTER,
            Parameter("max_bytes", "long", "NULL"),
            Parameter("max_seconds", "double", "NULL"),
            Parameter("dry_run", "boolean", "false", "Say what would be done, and why"),
            Parameter("cluster_by", default="NULL", comment="Columns to sort by together, separated by commas"),
            Parameter("curve", default="'hilbert'", comment="hilbert or zorder"),
            Parameter("adopted", "boolean", "false", "Move the rows of adopted files into files of the table, too"),
            ROW_FILTER,
        ),
        _compact,
    ),
    Procedure(
        "analyze",
        "Learns the full statistics of parts that lack them, such as adopted files",
        (
            TABLE,
            FILTER,
            Parameter("max_bytes", "long", "NULL"),
            Parameter("max_seconds", "double", "NULL"),
            ROW_FILTER,
        ),
        _analyze,
    ),
    Procedure(
        "vacuum",
        "Removes what no version within the retention needs",
        (
            TABLE,
            Parameter(
                "retention_hours", "double", "NULL", "How far back versions stay readable: by default seven days"
            ),
            Parameter(
                "dry_run",
                "boolean",
                "true",
                "Only list what would be removed, or say in one row of numbers that nothing would be",
            ),
            Parameter("retention", default="NULL", comment="The same as text: 7d, 36h, 90m"),
            Parameter("below_retention", "boolean", "false", "Allow a retention of less than seven days"),
        ),
        _vacuum,
    ),
    Procedure(
        "restore",
        "Brings back the rows of a version",
        (TABLE, Parameter("version", "long"), Parameter("allow_dropped_columns", "boolean", "false")),
        _restore,
    ),
    Procedure(
        "verify",
        "What is wrong with what is stored, a row each; where nothing is, one row of what was looked at",
        (TABLE, Parameter("data", "boolean", "true", "Read every part too")),
        _verify,
    ),
    Procedure(
        "export",
        "Writes metadata of another format beside the data, for its readers",
        (
            TABLE,
            Parameter("format", comment="delta or iceberg"),
            Parameter("format_version", "long", "NULL", "Version of Iceberg: 2 or 3"),
            Parameter("by_id", "boolean", "false", "Export to Delta although files have columns under other names"),
            Parameter("final", "boolean", "false", "End the table: it is a plain table of that format from then on"),
        ),
        _export,
    ),
    Procedure(
        "changes",
        "Rows that changed after one version up to another (by default the newest)",
        (
            TABLE,
            Parameter("from_version", "long"),
            Parameter("to_version", "long", "NULL"),
            Parameter("keys", default="NULL", comment="Columns that identify a row, separated by commas"),
            Parameter("net", "boolean", "false", "Compare the two versions, not each with the one before it"),
        ),
        _changes,
    ),
)
