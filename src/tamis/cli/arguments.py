"""Arguments shared by several commands, and their parsing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from tamis.core.types.identifiers import remove_backquotes, split_list

Where = Annotated[
    str | None,
    typer.Option(
        "--where",
        "-w",
        "--filter",
        "--row-filter",
        metavar="SQL",
        help="A filter in Spark SQL, e.g. \"ts > '2026-01-01'\".",
    ),
]
Select = Annotated[
    str | None,
    typer.Option(
        "--select",
        "-s",
        metavar="COLUMNS",
        help=(
            "Columns to read, separated by commas; by default all. "
            "a.b is the field b of a, `a.b` a column of that name."
        ),
    ),
]
Limit = Annotated[int | None, typer.Option("--limit", "-n", min=0, metavar="N", help="The maximum number of rows.")]
OrderBy = Annotated[
    str | None,
    typer.Option(
        "--order-by",
        metavar="COLUMNS",
        help='Return the first rows in this order, e.g. "ts DESC NULLS LAST, id"; needs --limit.',
    ),
]
Version = Annotated[int | None, typer.Option("--version", min=0, metavar="N", help="Read this version.")]
Timestamp = Annotated[
    str | None,
    typer.Option("--timestamp", metavar="TIME", help="Read the version at a time, e.g. 2026-01-31T12:00:00+00:00."),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="An option of this scan, e.g. tamis.read.lazy=off."),
]
Stored = Annotated[
    list[str] | None,
    typer.Option("--storage-option", metavar="KEY=VALUE", help="An option of the object store, e.g. region=eu-west-1."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Place = Annotated[str, typer.Argument(metavar="TABLE", help="The table's folder or URL.")]


def key_value_pairs(texts: Sequence[str] | None, option: str) -> dict[str, str]:
    """Parse ``KEY=VALUE`` texts to a mapping. Exits with a usage error naming an invalid one, or a key given twice."""
    found: dict[str, str] = {}
    given = set[str]()
    for text in texts or ():
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            secret = option in {"--storage-option", "--source-option"}  # it may be a credential
            shown = "The text" if secret else repr(text)
            raise typer.BadParameter(f"{shown} is not KEY=VALUE.", param_hint=option)
        spelled = key.strip().lower() if option == "--read-option" else key.strip()  # Spark's options have no case
        if spelled in given:
            raise typer.BadParameter(f"{key.strip()} is given more than once. Give it one value.", param_hint=option)
        given.add(spelled)
        found[key.strip()] = value
    return found


def size_in(text: str | None, option: str, least: int = 0) -> int | None:
    """Parse ``1000`` or ``1GB`` to bytes. Exits with a usage error if invalid or below ``least``."""
    from tamis.engine.scan.scan_options import size_of

    if text is None:
        return None
    try:
        found = size_of(text)
    except ValueError:
        found = -1
    if found < least:
        raise typer.BadParameter(
            f"{text!r} is no size: give a number of bytes, or a size such as 64MB.", param_hint=option
        )
    return found


def column_names(text: str | None, *, whole: bool = False) -> tuple[str, ...]:
    """Split column names at commas outside backquotes.

    Names with a dot keep their backquotes, because without them they may be the path of a field; unless only
    ``whole`` columns are allowed.
    """
    items = split_list(text or "")
    return tuple(filter(None, (item if "." in item and not whole else remove_backquotes(item) for item in items)))


def version_arguments(version: int | None, timestamp: str | None) -> dict[str, Any]:
    """Return the ``tamis.open`` and ``Table.scan`` arguments for a version or a time."""
    if version is not None and timestamp is not None:
        raise typer.BadParameter("Give a version or a timestamp, not both.", param_hint="--version / --timestamp")
    return {"version": version} if version is not None else {"timestamp": timestamp} if timestamp is not None else {}
