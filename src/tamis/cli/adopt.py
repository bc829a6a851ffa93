"""The command adopt."""

from __future__ import annotations

from typing import Annotated

import typer

from tamis.cli.arguments import Json, Place, key_value_pairs
from tamis.cli.change import Properties
from tamis.cli.output import print_json, print_line, print_note

SourcePlace = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="A folder of Parquet files, a Delta or an Iceberg table, or a table's name in a catalog.",
    ),
]
Mode = Annotated[
    str, typer.Option(help="reference: the files stay where they are. copy: their rows are written into the table.")
]
Follow = Annotated[
    bool, typer.Option("--follow", help="Keep the position in the source, so that sync takes its later versions.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would be adopted.")]
PartitionTypes = Annotated[
    str | None,
    typer.Option(metavar="DDL", help='Types of columns of folders k=v, e.g. "day DATE"; by default inferred.'),
]
BinaryAsString = Annotated[
    bool, typer.Option("--binary-as-string", help="Read unmarked binaries of Parquet files as texts.")
]
SourceOption = Annotated[
    list[str] | None,
    typer.Option(
        "--source-option",
        metavar="NAME=VALUE",
        help="How the source is read, such as version=3 or catalog=prod; may be repeated.",
    ),
]
BothStored = Annotated[
    list[str] | None,
    typer.Option(
        "--storage-option",
        metavar="KEY=VALUE",
        help="An option of the table's object store; of the source's: source.KEY=VALUE.",
    ),
]


def adopt(
    source: SourcePlace,
    table: Place,
    mode: Mode = "reference",
    follow: Follow = False,
    dry_run: DryRun = False,
    partition_types: PartitionTypes = None,
    binary_as_string: BinaryAsString = False,
    source_option: SourceOption = None,
    properties: Properties = None,
    storage_option: BothStored = None,
    json: Json = False,
) -> None:
    """Make a table over the files of a folder, or of a Delta or an Iceberg table, without copying them."""
    from tamis.engine.scan.report.report_text import counted_noun, size_text
    from tamis.storage.object_store import open_store
    from tamis.table.adoption import AdoptionOptions, adopt_into

    asked = AdoptionOptions(
        mode=mode,
        dry_run=dry_run,
        partition_types=partition_types,
        binary_as_string=binary_as_string,
        follow=follow,
        source_options=key_value_pairs(source_option, "--source-option"),
        properties=key_value_pairs(properties, "--property"),
    )
    print_note("Reading the source …")
    _, done = adopt_into(open_store(table, key_value_pairs(storage_option, "--storage-option")), source, asked)
    if json:
        print_json(done.as_dict())
        return
    counts = [counted_noun(done.files, "file"), size_text(done.bytes), counted_noun(done.rows, "row")]
    if done.deleted_rows:
        counts.append(counted_noun(done.deleted_rows, "deleted row"))
    at = "" if done.source_version is None else f", version {done.source_version}"
    print_line(f"{done.source} ({done.kind}{at}): {', '.join(counts)}.")
    for column in done.columns:
        print_line(f"  {column}")
    print_line("Nothing was written." if done.version is None else f"Version {done.version} of {table}.")
