"""Read-only commands: query, explain, describe, history."""

from __future__ import annotations

from collections.abc import Iterator
from json import loads as parsed
from typing import Annotated, Any

import typer

from tamis.cli.arguments import (
    Json,
    Limit,
    OrderBy,
    Place,
    Select,
    Settings,
    Stored,
    Timestamp,
    Version,
    Where,
    column_names,
    key_value_pairs,
    size_in,
    version_arguments,
)
from tamis.cli.output import (
    output_console,
    print_clustering,
    print_json,
    print_json_rows,
    print_note,
    print_rows,
    row_records,
)

SHOWN = 20
"""Rows shown to a person by default."""


def query(
    table: Place,
    where: Where = None,
    select: Select = None,
    limit: Limit = None,
    order_by: OrderBy = None,
    version: Version = None,
    timestamp: Timestamp = None,
    settings: Settings = None,
    storage_option: Stored = None,
    report: Annotated[bool, typer.Option("--report", help="Print what was read, and why, on stderr.")] = False,
    json: Json = False,
) -> None:
    """Print the rows that match a filter. Reads without Spark."""
    import tamis
    from tamis.engine.scan.report.report_text import counted_noun

    options = key_value_pairs(settings, "--set")
    most = limit if json or limit is not None else SHOWN + 1
    held = tamis.open(table, storage_options=key_value_pairs(storage_option, "--storage-option"))
    scan = held.scan(
        where,
        column_names(select) or ("*",),
        limit=most,
        order_by=order_by,
        options=options,
        **version_arguments(version, timestamp),
    )
    with scan.to_batches() as batches:
        if json:
            print_json_rows(row for batch in batches for row in row_records(batch))
        else:
            _show(scan.schema.names, [row for batch in batches for row in _rows(batch)], cut=limit is None)
    done = scan.report
    assert done is not None
    if report:
        output_console(stderr=True).print(done)
    else:
        print_note(
            f"Read {done.parts.kept:,} of {counted_noun(done.parts.total, 'part')}, "
            f"{_size(done.bytes.read - done.bytes.metadata)} of {_size(done.bytes.table)}."
        )


def explain(
    table: Place,
    where: Where = None,
    select: Select = None,
    limit: Limit = None,
    order_by: OrderBy = None,
    version: Version = None,
    timestamp: Timestamp = None,
    settings: Settings = None,
    storage_option: Stored = None,
    max_parts: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Exit with 1 if more parts would be read.")
    ] = None,
    max_bytes: Annotated[
        str | None, typer.Option(metavar="B", help="Exit with 1 if more bytes would be read; a number or 64MB.")
    ] = None,
    json: Json = False,
) -> None:
    """Show what a query would read and why it cannot read less. Reads metadata only."""
    import tamis

    held = tamis.open(table, storage_options=key_value_pairs(storage_option, "--storage-option"))
    options = key_value_pairs(settings, "--set")
    found = held.explain(
        where,
        column_names(select) or ("*",),
        limit=limit,
        order_by=order_by,
        options=options,
        **version_arguments(version, timestamp),
    )
    print_json(found.as_dict()) if json else output_console().print(found)
    found.guard(max_parts, size_in(max_bytes, "--max-bytes"))


def describe(
    table: Place,
    version: Version = None,
    timestamp: Timestamp = None,
    storage_option: Stored = None,
    json: Json = False,
) -> None:
    """Show a table's version, size, clustering, columns with their bounds, and properties."""
    import tamis

    held = tamis.open(
        table,
        storage_options=key_value_pairs(storage_option, "--storage-option"),
        **version_arguments(version, timestamp),
    )
    detail, columns = next(row_records(held.detail())), held.metadata("columns").to_pylist()
    if json:
        more = {"exports": held.exports().to_pylist(), "sources": held.metadata("sources").to_pylist()}
        print_json({**detail, **more, "columns": columns})
        return
    trimmed = {"statistics_dropped", "statistics_excess_bytes"}  # 0 in most tables
    shown = [
        (name, value)
        for name, value in detail.items()
        if value not in (None, [], "") and name != "clustering" and (value or name not in trimmed)
    ]
    print_rows(["", ""], shown)
    if len(kept := held.exports()):
        print_rows(kept.column_names, [list(row.values()) for row in kept.to_pylist()])
    print_clustering(detail["clustering"])
    print_rows(
        ["column", "type", "nullable", "lo", "hi", "nulls"],
        [[c["name"], _kind(c), *(c[k] for k in ("nullable", "lo", "hi", "nulls"))] for c in columns],
    )


def _kind(column: dict[str, Any]) -> str:
    return " ".join(filter(None, [column["type"], column["computed"]]))


def history(table: Place, limit: Limit = None, storage_option: Stored = None, json: Json = False) -> None:
    """List the commits, newest first. --json gives more details of each."""
    import tamis

    held = tamis.open(table, storage_options=key_value_pairs(storage_option, "--storage-option"))
    commits = held.history(limit)
    if json:
        print_json_rows(row | {"parameters": parsed(row["parameters"])} for row in row_records(commits))
    else:
        shown = commits.select(
            ["version", "timestamp", "operation", "filter", "parts_added", "rows_added", "bytes_added"]
        )
        print_rows(shown.column_names, _rows(shown))


def _show(columns: list[str], rows: list[list[Any]], *, cut: bool) -> None:
    print_rows(columns, rows[:SHOWN] if cut else rows)
    if cut and len(rows) > SHOWN:
        print_note(f"The first {SHOWN} rows; --limit gives more.")


def _rows(table: Any) -> Iterator[list[Any]]:
    return (list(row.values()) for row in row_records(table))


def _size(count: int) -> str:
    from tamis.engine.scan.report.report_text import size_text

    return size_text(count)
