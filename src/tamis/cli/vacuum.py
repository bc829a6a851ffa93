"""The command vacuum."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

import typer

from tamis.cli.arguments import Json, Place, Stored, key_value_pairs
from tamis.cli.output import print_json, print_line, print_note, print_rows
from tamis.cli.progress import progress_bar

SHOWN = 20
"""Objects of a dry run shown to a person."""


def length(text: str) -> timedelta:
    """Parse ``7d``, ``36h``, ``90m``. Exits with a usage error for other text."""
    from tamis.engine.operations import retention_of
    from tamis.errors import InvalidInput

    try:
        return retention_of(text)
    except InvalidInput as error:
        raise typer.BadParameter(
            f"{text!r} is no length of time such as 7d, 36h or 90m.", param_hint="--retention"
        ) from error


def vacuum(
    table: Place,
    retention: Annotated[
        str, typer.Option(metavar="TIME", help="How long old versions stay readable: 7d, 36h, 90m.")
    ] = "7d",
    yes: Annotated[bool, typer.Option("--yes", help="Remove the files; without it, only list them.")] = False,
    below_retention: Annotated[
        bool,
        typer.Option(
            "--below-retention",
            help="Allow a retention of less than 7 days; no write or query may run for longer than it.",
        ),
    ] = False,
    storage_option: Stored = None,
    json: Json = False,
) -> None:
    """Remove files that no version within the retention needs, and those left by failed writes.

    Only lists them unless --yes is given.
    """
    import tamis
    from tamis.engine.scan.report.report_text import counted_noun, size_text

    held, keep = (
        tamis.open(table, storage_options=key_value_pairs(storage_option, "--storage-option")),
        length(retention),
    )
    done = held.vacuum(keep, below_retention=below_retention)
    if yes:
        with progress_bar(f"Removing {len(done.objects):,} objects", done.bytes) as advance:
            done = held.vacuum(keep, dry_run=False, below_retention=below_retention, progress=advance)
    if json:
        print_json({**done.as_dict(), "paths": done.objects["path"].to_pylist()})
        return
    if not yes and len(done.objects):
        shown = done.objects.slice(0, SHOWN).to_pylist()
        print_rows(
            ["object", "size", "days old", "why"],
            [[r["path"], size_text(r["bytes"]), f"{r['age_seconds'] / 86400:.1f}", r["reason"]] for r in shown],
        )
    verb = "Removed" if yes else "Would remove"
    failed = f" {counted_noun(done.failed, 'object')} could not be removed." if done.failed else ""
    print_line(
        f"{verb} {counted_noun(len(done.objects), 'object')}, {size_text(done.bytes)}. "
        f"Versions from {done.oldest_version} on stay readable.{failed}"
    )
    if not yes and len(done.objects):
        print_note("Nothing was removed: add --yes.")
