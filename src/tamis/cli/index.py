"""The commands ``tamis index create | drop | repair | drop-segments | list``."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Annotated, Any

import typer

from tamis.cli.arguments import Json, Place, Stored, column_names, key_value_pairs
from tamis.cli.output import print_json, print_note, print_rows
from tamis.cli.progress import over_table

Name = Annotated[str, typer.Argument(metavar="INDEX", help="The name of the index.")]


def create(
    table: Place,
    index: Name,
    columns: Annotated[
        str,
        typer.Argument(
            metavar="COLUMNS",
            help="Columns, fields of structs or JSON paths (body:user.id::bigint), separated by commas.",
        ),
    ],
    build: Annotated[
        str, typer.Option(help="with_write: built by every write. deferred: built by repair.")
    ] = "with_write",
    storage_option: Stored = None,
    json: Json = False,
) -> None:
    """Create a secondary index, and build it for the existing rows."""
    from tamis.engine.secondary_index.indexed_paths import split_definitions

    held = _open(table, storage_option)
    with nullcontext() if build == "deferred" else over_table(f"Building {index}", held) as advance:
        done = held.create_index(index, split_definitions(columns), build=build, progress=advance)
    _print_result(done, json, f"Made the index {index}; {done.bytes_written:,} bytes were written.")


def drop(table: Place, index: Name, storage_option: Stored = None, json: Json = False) -> None:
    """Drop a secondary index."""
    _print_result(_open(table, storage_option).drop_index(index), json, f"Dropped the index {index}.")


def repair(
    table: Place,
    index: Annotated[str | None, typer.Argument(metavar="[INDEX]", help="Only this index.")] = None,
    segments: Annotated[
        str | None, typer.Option(metavar="IDS", help="Only these segments, separated by commas.")
    ] = None,
    storage_option: Stored = None,
    json: Json = False,
) -> None:
    """Build the missing segments of indexes. Safe to interrupt: the next call continues."""
    held = _open(table, storage_option)
    with over_table(f"Repairing {index or 'all indexes'}", held, 1 if index else len(held.indexes())) as advance:
        done = held.repair_index(index, list(column_names(segments)) if segments else None, progress=advance)
    _print_result(
        done,
        json,
        f"{done.parts_added:,} index parts were built, {done.bytes_written:,} bytes."
        if done.parts_added
        else "Nothing was missing.",
    )


def drop_segments(
    table: Place,
    index: Name,
    segments: Annotated[
        str, typer.Argument(metavar="SEGMENTS", help="Ids of segments of the table, separated by commas.")
    ],
    storage_option: Stored = None,
    json: Json = False,
) -> None:
    """Drop an index's entries for some segments. Queries prune these by statistics alone until a repair."""
    held = _open(table, storage_option)
    before = held.version
    done = held.drop_index_segments(index, list(column_names(segments)))
    _print_result(
        done,
        json,
        f"{index} no longer covers these segments." if done.version > before else f"{index} covered none of them.",
    )


def list_(table: Place, storage_option: Stored = None, json: Json = False) -> None:
    """List the indexes with their columns, size and covered segments, and why others are not covered."""
    found = _open(table, storage_option).indexes()
    if json:
        print_json([entry.as_dict() for entry in found])
        return
    rows = [
        (e.name, ", ".join(e.columns), e.build, f"{len(e.covered):,}", f"{len(e.missing):,}", f"{e.bytes:,}")
        for e in found
    ]
    print_rows(("index", "columns", "build", "covered", "missing", "bytes"), rows)
    for entry in found:
        for segment, why in entry.missing.items():
            print_note(f"{entry.name}: segment {segment} is not covered: {why}")


def _open(table: str, storage_option: list[str] | None) -> Any:
    import tamis

    return tamis.open(table, storage_options=key_value_pairs(storage_option, "--storage-option"))


def _print_result(done: Any, json: bool, text: str) -> None:
    print_json(done.as_dict()) if json else print_note(text)
