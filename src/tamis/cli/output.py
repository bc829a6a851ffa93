"""Output of commands: tables for people, JSON for programs, messages on stderr."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from tamis.core.types.printable import printable, printable_json

if TYPE_CHECKING:
    import pyarrow as pa

WIDE = 200
"""The output width without a terminal, wide so that tables are not truncated."""


@cache
def output_console(*, stderr: bool = False) -> Any:
    """Return the rich console of stdout or stderr."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    return Console(stderr=stderr, width=None if stream.isatty() else WIDE, highlight=False)


def print_note(message: str) -> None:
    """Print a message for the user to stderr."""
    output_console(stderr=True).print(printable(message, keep="\n"), markup=False, soft_wrap=True)


def print_line(message: str) -> None:
    """Print a line of the command's output to stdout."""
    output_console().print(printable(message, keep="\n"), markup=False, soft_wrap=True)


def exit_with_error(message: str) -> NoReturn:
    """Print one line to stderr and exit with code 1."""
    print_note(message.replace("\n", " "))
    raise typer.Exit(1)


def print_json(value: Any) -> None:
    sys.stdout.write(printable_json(json.dumps(plain(value), indent=2, ensure_ascii=False)) + "\n")


def print_json_rows(rows: Iterable[Mapping[str, Any]]) -> None:
    """Stream a JSON array with one element per line."""
    start = "[\n"
    for row in rows:
        sys.stdout.write(start + printable_json(json.dumps(plain(row), ensure_ascii=False)))
        start = ",\n"
    sys.stdout.write("[]\n" if start == "[\n" else "\n]\n")


def row_records(rows: pa.Table | pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """Yield the rows as mappings, converting nested Arrow maps too, including empty ones."""
    import pyarrow as pa

    nested = [field for field in rows.schema if pa.types.is_nested(field.type)]
    for row in _python_rows(rows):
        yield row | {field.name: _mapped(row[field.name], field.type) for field in nested}


def _python_rows(rows: pa.Table | pa.RecordBatch) -> list[dict[str, Any]]:
    """Return the rows as Python has them; bytes of texts that are not UTF-8 become U+FFFD, as Spark shows them.

    Dates and times that Python does not have make those of their columns texts, or numbers inside of other values.
    """
    import pyarrow as pa

    try:
        found: list[dict[str, Any]] = rows.to_pylist()
    except UnicodeDecodeError:
        found = _with_malformed_texts(rows)
    except (OverflowError, ValueError):
        shown = [_without_times(column) for column in rows.columns]
        if [column.type for column in shown] == list(rows.schema.types):
            raise
        found = _python_rows(pa.table(shown, names=rows.schema.names))
    return found


def _without_times(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return dates and times as Spark's texts, in UTC; inside of other values, as numbers since 1970."""
    import pyarrow as pa

    from tamis.core.expr import Column, evaluate, make_call
    from tamis.core.types import STRING
    from tamis.core.types.arrow import from_arrow_type

    if pa.types.is_date(column.type) or pa.types.is_timestamp(column.type):
        whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        text = make_call("cast", Column(from_arrow_type(column.type), (0,), "c"), type=STRING, zone="UTC")
        return evaluate(text, {0: whole}, len(whole)).values
    return column.cast(_with_leaves(column.type, _as_number)) if pa.types.is_nested(column.type) else column


def _as_number(kind: pa.DataType) -> pa.DataType:
    import pyarrow as pa

    if pa.types.is_date(kind):
        return pa.int32()
    return pa.int64() if pa.types.is_timestamp(kind) else kind


def _with_malformed_texts(rows: pa.Table | pa.RecordBatch) -> list[dict[str, Any]]:
    import pyarrow as pa

    raw = rows.cast(pa.schema([field.with_type(_with_leaves(field.type, _as_bytes)) for field in rows.schema]))
    types = {field.name: field.type for field in rows.schema}
    return [{name: _decoded(value, types[name]) for name, value in row.items()} for row in _python_rows(raw)]


def _as_bytes(kind: pa.DataType) -> pa.DataType:
    import pyarrow as pa

    return pa.binary() if pa.types.is_string(kind) else kind


def _with_leaves(kind: pa.DataType, leaf: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """Return the type with other types of its leaves, at any depth."""
    import pyarrow as pa

    if pa.types.is_map(kind):
        return pa.map_(_with_leaves(kind.key_type, leaf), _with_leaves(kind.item_type, leaf))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_with_leaves(field.type, leaf)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_with_leaves(kind.value_type, leaf)))
    return leaf(kind)


def _decoded(value: Any, kind: pa.DataType) -> Any:
    import pyarrow as pa

    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {field.name: _decoded(value[field.name], field.type) for field in kind}
    if pa.types.is_map(kind):
        return [(_decoded(key, kind.key_type), _decoded(item, kind.item_type)) for key, item in value]
    if pa.types.is_list(kind):
        return [_decoded(item, kind.value_type) for item in value]
    return value.decode(errors="replace") if pa.types.is_string(kind) else value


def _mapped(value: Any, kind: pa.DataType) -> Any:
    import pyarrow as pa

    if value is None or not pa.types.is_nested(kind):
        return value
    if pa.types.is_map(kind):
        return {text(key): _mapped(item, kind.item_type) for key, item in value}
    if pa.types.is_struct(kind):
        return {field.name: _mapped(value[field.name], field.type) for field in kind}
    return [_mapped(item, kind.value_type) for item in value]


def print_rows(columns: Sequence[str], rows: Iterable[Sequence[Any]], title: str | None = None) -> None:
    """Print a table for people, with numbers aligned right."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(printable(title)) if title else None, title_justify="left")
    shown = [
        [
            Text(printable(text(value)), justify="right" if isinstance(value, int | float | Decimal) else "left")
            for value in row
        ]
        for row in rows
    ]
    for name in columns:
        table.add_column(Text(printable(name)))
    for row in shown:
        table.add_row(*row)
    output_console().print(table)


def print_clustering(columns: Sequence[Mapping[str, Any]]) -> None:
    """Print the figures of each clustering column, and bars of the overlapping runs along its range."""
    if columns:
        shown = [
            [c["column"], f"{c['average_overlap']:.1f}", f"{c['average_depth']:.1f}", c["max_depth"], c["picture"]]
            for c in columns
        ]
        print_rows(["clustered by", "overlap", "depth", "deepest", "runs, from the lowest value to the highest"], shown)


def text(value: Any) -> str:
    """Format a value for people; NULL is spelled out."""
    if value is None:
        return "NULL"
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, bytes):
        return f"0x{value.hex()}"
    if isinstance(value, Mapping | list | tuple):
        return json.dumps(plain(value), ensure_ascii=False)
    return str(value)


def plain(value: Any) -> Any:
    """Convert a value for JSON.

    Times become ISO text, decimals text (to keep all digits), bytes hexadecimal, non-finite floats text.
    """
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        if value and all(isinstance(item, tuple) and len(item) == 2 for item in value):  # an Arrow map
            return {text(key): plain(item) for key, item in value}
        return [plain(item) for item in value]
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value
