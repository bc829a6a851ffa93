"""Commands that create and fill tables: create, ingest."""

from __future__ import annotations

from typing import Annotated

import typer

from tamis.cli.arguments import Json, Place, Stored, column_names, key_value_pairs
from tamis.cli.output import print_json, print_note

Cluster = Annotated[
    str | None,
    typer.Option("--cluster-by", metavar="COLUMNS", help="Columns to sort and skip by, separated by commas."),
]
Properties = Annotated[list[str] | None, typer.Option("--property", metavar="KEY=VALUE", help="A table property.")]


def create(
    table: Place,
    schema: Annotated[
        str | None,
        typer.Option(
            metavar="DDL",
            help='Columns, e.g. "ts TIMESTAMP NOT NULL, user BIGINT"; by default those of the first append.',
        ),
    ] = None,
    cluster_by: Cluster = None,
    format: Annotated[str, typer.Option("--format", help="The format of its data files.")] = "parquet",  # noqa: A002  # the option's name
    properties: Properties = None,
    storage_option: Stored = None,
    json: Json = False,
) -> None:
    """Create an empty table."""
    import tamis
    from tamis.core.expr.column_definitions import parse_columns

    if schema is not None and not schema.strip():
        raise typer.BadParameter("Name at least one column, or leave the option out.", param_hint="--schema")
    made = tamis.create(
        table,
        parse_columns(schema) if schema else None,
        cluster_by=column_names(cluster_by),
        format=format,
        properties=key_value_pairs(properties, "--property"),
        storage_options=key_value_pairs(storage_option, "--storage-option"),
    )
    print_json({"path": made.path, "version": made.version}) if json else print_note(
        f"Made an empty table at {made.path}."
    )


def ingest(
    table: Place,
    folder: Annotated[str, typer.Argument(help="The folder whose new files are ingested, including subfolders.")],
    format: Annotated[  # noqa: A002  # the option's name
        str | None, typer.Option("--format", help="parquet, csv or json; by default from the files' names.")
    ] = None,
    cluster_by: Cluster = None,
    read_option: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="An option of Spark's reader, e.g. header=false.")
    ] = None,
    batch_bytes: Annotated[int, typer.Option(min=1, metavar="B", help="The most bytes of files in one commit.")] = 1
    << 30,
    storage_option: Stored = None,
    json: Json = False,
) -> None:
    """Append the new files of a folder with Spark, and create the table if it does not exist.

    A file is identified by its path, and ingested exactly once, even if the command is repeated or killed.
    """
    from tamis.cli.ingest import ingest_folder

    done = ingest_folder(
        table,
        folder,
        file_format=format,
        cluster_by=column_names(cluster_by),
        read_options=key_value_pairs(read_option, "--read-option"),
        batch_bytes=batch_bytes,
        storage_options=key_value_pairs(storage_option, "--storage-option"),
    )
    if json:
        print_json(done)
    elif done["files"]:
        print_note(
            f"Ingested {done['files']:,} files, {done['rows']:,} rows in {done['commits']:,} commits; "
            f"{done['known']:,} files were in the table before."
        )
    else:
        print_note(f"Nothing new: all {done['known']:,} files are in the table.")
