"""The command sync."""

from __future__ import annotations

from typing import Annotated

import typer

from tamis.cli.arguments import Json, Place, Stored, key_value_pairs
from tamis.cli.output import print_json, print_line, print_note


def sync(
    table: Place,
    skip_history: Annotated[
        bool,
        typer.Option(
            "--skip-history", help="Take the source's newest version in one commit, without the versions between."
        ),
    ] = False,
    source_option: Annotated[
        list[str] | None,
        typer.Option(
            "--source-option",
            metavar="NAME=VALUE",
            help="An option of the source that the table does not keep, such as catalog.token; may be repeated.",
        ),
    ] = None,
    storage_option: Stored = None,
    json: Json = False,
) -> None:
    """Take what happened to the source that a table follows: each of its new versions becomes a commit."""
    import tamis
    from tamis.engine.scan.report.report_text import counted_noun

    held = tamis.open(table, storage_options=key_value_pairs(storage_option, "--storage-option"))
    print_note("Synchronizing …")
    done = held.sync(skip_history=skip_history, source_options=key_value_pairs(source_option, "--source-option"))
    if json:
        print_json(done.as_dict())
    elif not done.commits:
        print_line(f"Nothing new: the source is at version {done.source_version}.")
    else:
        print_line(
            f"{counted_noun(done.commits, 'version')} taken, up to {done.source_version}. "
            f"{counted_noun(done.files_added, 'file')} came, {done.files_removed:,} left. Version {done.version}."
        )
