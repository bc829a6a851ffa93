"""Read-only procedures: history, detail, explain."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from tamis.engine.scan.report.report_text import report_records
from tamis.spark.sql.procedure import (
    FILTER,
    ROW_FILTER,
    TABLE,
    Parameter,
    Procedure,
    named_table,
    opened_table,
    row_filter,
    session_options,
)
from tamis.storage.commit_log import history
from tamis.table import metadata_tables


def _history(catalog: Any, arguments: dict[str, Any]) -> pa.Table:
    store, _ = opened_table(catalog, arguments)
    return history(store, arguments["limit"])


def _detail(catalog: Any, arguments: dict[str, Any]) -> pa.Table:
    return metadata_tables.detail(*opened_table(catalog, arguments))


def _explain(catalog: Any, arguments: dict[str, Any]) -> pa.Table:
    """Explain a filter under the session's time zone, ANSI mode and ``tamis`` settings, as in a query."""
    table = named_table(catalog, arguments)
    report = table.explain(row_filter(arguments), options=session_options(catalog.bridge))
    report.guard(arguments["max_parts"], arguments["max_bytes"])
    return pa.Table.from_pylist(report_records(report), schema=_EXPLAINED)


_EXPLAINED = pa.schema(
    [("level", pa.string()), ("item", pa.string()), ("read", pa.int64()), ("total", pa.int64()), ("note", pa.string())]
)
_GUARDS = (Parameter("max_parts", "long", "NULL"), Parameter("max_bytes", "long", "NULL"))

PROCEDURES = (
    Procedure("history", "The commits of a table, newest first", (TABLE, Parameter("limit", "int", "NULL")), _history),
    Procedure("detail", "One row about a table as a whole", (TABLE,), _detail),
    Procedure("explain", "What a filter would read, and why not less", (TABLE, FILTER, *_GUARDS, ROW_FILTER), _explain),
)
