"""The command verify."""

from __future__ import annotations

from typing import Annotated

import typer

from tamis.cli.arguments import Json, Place, Stored, key_value_pairs
from tamis.cli.output import exit_with_error, print_json, print_line, print_rows
from tamis.cli.progress import over_table, progress_bar


def verify(
    table: Place,
    quick: Annotated[bool, typer.Option("--quick", help="Check only metadata and sizes; read no data file.")] = False,
    storage_option: Stored = None,
    json: Json = False,
) -> None:
    """Check the log, manifests, checksums and data files against each other. Exits with 1 if anything is wrong."""
    import tamis
    from tamis.engine.scan.report.report_text import counted_noun

    held = tamis.open(table, storage_options=key_value_pairs(storage_option, "--storage-option"))
    with progress_bar("Verifying", 0) if quick else over_table("Verifying", held) as advance:
        found = held.verify(data=not quick, progress=advance)
    if json:
        print_json(found.as_dict())
    elif not found.ok:
        print_rows(found.problems.column_names, [list(row.values()) for row in found.problems.to_pylist()])
    if not found.ok:
        exit_with_error(f"[NOT_WELL] {counted_noun(len(found.problems), 'problem')} found in {held.path}.")
    if not json:
        print_line(
            f"All is well: {counted_noun(found.commits, 'commit')}, {counted_noun(found.objects, 'data file')}, "
            f"{counted_noun(found.parts, 'part')} read."
        )
