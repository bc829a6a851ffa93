"""The commands restore and changes."""

from __future__ import annotations

from itertools import islice
from typing import Annotated

import typer

from tamis.cli.arguments import Json, Limit, Place, Stored, column_names, key_value_pairs
from tamis.cli.output import print_json, print_json_rows, print_line, print_note, print_rows, row_records

SHOWN = 20
"""Changed rows shown to a person by default."""


def restore(
    table: Place,
    version: Annotated[int, typer.Argument(min=0, metavar="VERSION", help="The version to restore.")],
    allow_dropped_columns: Annotated[
        bool,
        typer.Option(
            "--allow-dropped-columns", help="Restore even if a column has been dropped since; its values are lost."
        ),
    ] = False,
    storage_option: Stored = None,
    json: Json = False,
) -> None:
    """Restore the rows of an earlier version under the current schema, in one commit. Copies no file."""
    import tamis
    from tamis.engine.scan.report.report_text import counted_noun

    held = tamis.open(table, storage_options=key_value_pairs(storage_option, "--storage-option"))
    print_note(f"Restoring version {version} …")
    done = held.restore(version, allow_dropped_columns=allow_dropped_columns)
    if json:
        print_json(done.as_dict())
    elif done.version == held.version:
        print_line(f"The rows of version {version} are there already.")
    else:
        print_line(
            f"{counted_noun(done.rows_inserted, 'row')} came back, {done.rows_deleted:,} left. Version {done.version}."
        )


def changes(
    table: Place,
    after: Annotated[int, typer.Argument(min=0, metavar="A", help="The first version to compare.")],
    until: Annotated[
        int | None, typer.Argument(min=0, metavar="[B]", help="The last version to compare; by default the newest.")
    ] = None,
    keys: Annotated[
        str | None,
        typer.Option(
            "--keys",
            metavar="COLUMNS",
            help="Columns that identify a row, separated by commas: reports an updated row as its two images.",
        ),
    ] = None,
    net: Annotated[
        bool, typer.Option("--net", help="Compare the two versions instead of each with the one before it.")
    ] = False,
    limit: Limit = None,
    storage_option: Stored = None,
    json: Json = False,
) -> None:
    """Print the rows that were inserted, deleted and updated between two versions."""
    import tamis

    held = tamis.open(table, storage_options=key_value_pairs(storage_option, "--storage-option"))
    found = held.changes(after, until, keys=column_names(keys), net=net)
    print_note(f"Changes after version {after} …")
    most = SHOWN if limit is None and not json else limit
    rows = islice((row for batch in found.to_batches() for row in row_records(batch)), most)
    if json:
        print_json_rows(rows)
        return
    shown = [list(row.values()) for row in rows]
    print_rows(found.schema.names, shown)
    if limit is None and len(shown) == SHOWN:
        print_note(f"The first {SHOWN}; --limit gives more.")
