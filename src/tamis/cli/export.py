"""The command export."""

from __future__ import annotations

from typing import Annotated

import typer

from tamis.cli.arguments import Json, Place, Stored, key_value_pairs
from tamis.cli.output import print_json, print_line, print_note


def export(
    table: Place,
    format: Annotated[str, typer.Argument(help="delta or iceberg.")],  # noqa: A002  # the public name
    format_version: Annotated[int | None, typer.Option(help="Version of Iceberg: 2 or 3.")] = None,
    by_id: Annotated[
        bool, typer.Option("--by-id", help="Export to Delta although files have columns under other names.")
    ] = False,
    final: Annotated[
        bool, typer.Option("--final", help="End the table: it is a plain table of that format from then on.")
    ] = False,
    storage_option: Stored = None,
    json: Json = False,
) -> None:
    """Write metadata of another format beside the data, so that its readers read the table."""
    import tamis

    held = tamis.open(table, storage_options=key_value_pairs(storage_option, "--storage-option"))
    done = held.export(format, format_version=format_version, by_id=by_id, final=final)
    for note in done.notes:
        print_note(note)
    if json:
        print_json(done.as_dict())
    else:
        print_line(
            f"The {done.format} export is at version {done.version}: "
            f"{done.files_added} files added, {done.files_removed} removed."
            + (" The table has ended: the folder is a plain table of that format now." if final else "")
        )
