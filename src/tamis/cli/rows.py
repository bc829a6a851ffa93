"""Commands that change rows: delete, update, upsert, merge; each runs that ``Table`` verb locally."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tamis.cli.arguments import Json, Place, Stored, Where, column_names, key_value_pairs
from tamis.cli.output import print_json, print_line
from tamis.cli.progress import over_table

All = Annotated[bool, typer.Option("--all-rows", "--all", help="Change every row; needed if there is no --where.")]
Source = Annotated[
    str, typer.Argument(metavar="FILE", help="The file with the new rows: parquet, csv (with a header) or json lines.")
]
Format = Annotated[str | None, typer.Option("--format", help="parquet, csv or json; by default from the file's name.")]


def delete(
    table: Place, where: Where = None, every: All = False, storage_option: Stored = None, json: Json = False
) -> None:
    """Delete the rows that match a filter. Parts that match entirely or not at all are not read."""
    held, chosen = _open(table, storage_option), _chosen(where, every)
    with over_table("Deleting", held) as advance:
        done = held.delete(chosen, all_rows=every, progress=advance)
    _print_result(done, json)


def update(
    table: Place,
    values: Annotated[
        list[str], typer.Option("--set", metavar="COLUMN=SQL", help='A column\'s new value, e.g. "n=n + 1".')
    ],
    where: Where = None,
    every: All = False,
    storage_option: Stored = None,
    json: Json = False,
) -> None:
    """Set columns to new values in the rows that match a filter."""
    held, chosen = _open(table, storage_option), _chosen(where, every)
    with over_table("Updating", held) as advance:
        done = held.update(key_value_pairs(values, "--set"), chosen, all_rows=every, progress=advance)
    _print_result(done, json)


def upsert(
    table: Place,
    source: Source,
    on: Annotated[str, typer.Option(metavar="COLUMNS", help="The key columns, separated by commas.")],
    format: Format = None,  # noqa: A002  # the option's name
    storage_option: Stored = None,
    json: Json = False,
) -> None:
    """Update the rows whose keys are in a file, and insert the file's other rows."""
    from tamis.cli.row_file import rows_of

    held = _open(table, storage_option)
    with rows_of(source, format, held.schema) as rows, over_table("Upserting", held) as advance:
        done = held.upsert(rows, on=list(column_names(on, whole=True)), progress=advance)
    _print_result(done, json)


def merge(
    table: Place,
    source: Source,
    on: Annotated[str, typer.Option(metavar="SQL", help='The condition for a match, e.g. "target.id = source.id".')],
    when: Annotated[
        list[str],
        typer.Option(
            metavar="CLAUSE",
            help=(
                'In order, as in SQL: "MATCHED AND source.gone THEN DELETE", "NOT MATCHED THEN INSERT *". '
                "Name it again for more."
            ),
        ),
    ],
    format: Format = None,  # noqa: A002  # the option's name
    storage_option: Stored = None,
    json: Json = False,
) -> None:
    """Update, delete and insert rows by the rows of a file, with the clauses of a MERGE."""
    from tamis.cli.merge_clauses import add_merge_clauses
    from tamis.cli.row_file import rows_of

    held = _open(table, storage_option)
    with rows_of(source, format, held.schema) as rows, over_table("Merging", held) as advance:
        done = add_merge_clauses(held.merge(rows, on=on), when).execute(progress=advance)
    _print_result(done, json)


def _open(table: str, storage_option: list[str] | None) -> Any:
    import tamis

    return tamis.open(table, storage_options=key_value_pairs(storage_option, "--storage-option"))


def _chosen(where: str | None, every: bool) -> str | None:
    """Return the filter. Exits with a usage error unless exactly one of it and ``--all-rows`` is given."""
    if (where is None) != every:
        raise typer.BadParameter("Say which rows: by a filter, or --all-rows.", param_hint="--where / --all-rows")
    return where


def _print_result(done: Any, json: bool) -> None:
    from tamis.engine.scan.report.report_text import counted_noun

    if json:
        print_json(done.as_dict())
        return
    changes = (
        f"{counted_noun(getattr(done, f'rows_{how}'), 'row')} {how}" for how in ("inserted", "updated", "deleted")
    )
    print_line(
        f"{', '.join(changes)}; {counted_noun(done.parts_read, 'part')} read, "
        f"{done.parts_removed:,} removed, {done.parts_added:,} added. Version {done.version}."
    )
