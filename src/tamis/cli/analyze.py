"""The command analyze."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tamis.cli.arguments import Json, Place, Stored, Where, key_value_pairs, size_in
from tamis.cli.output import print_json, print_line
from tamis.cli.progress import progress_bar


def analyze(
    table: Place,
    where: Where = None,
    max_bytes: Annotated[
        str | None, typer.Option(metavar="B", help="The most bytes to read, such as 1000000 or 1GB.")
    ] = None,
    max_seconds: Annotated[
        float | None, typer.Option(min=0, metavar="S", help="Start no work that would end after so many seconds.")
    ] = None,
    spark: Annotated[bool, typer.Option("--spark", help="Do the work with a local Spark.")] = False,
    storage_option: Stored = None,
    json: Json = False,
) -> None:
    """Learn the full statistics of parts that lack them, such as adopted files. The table's rows do not change.

    Safe to interrupt: the next call continues. Does not disturb readers and writers.
    """
    import tamis
    from tamis.engine.operations.upkeep.analyze import unanalyzed_parts
    from tamis.engine.scan.report.report_text import counted_noun, size_text

    held = tamis.open(table, storage_options=key_value_pairs(storage_option, "--storage-option"))
    arguments: dict[str, Any] = {"max_bytes": size_in(max_bytes, "--max-bytes", 1), "max_seconds": max_seconds}
    todo = unanalyzed_parts(held.snapshot)
    with progress_bar(f"Analyzing up to {counted_noun(len(todo), 'part')}", sum(todo["bytes"].to_pylist())) as advance:
        if spark:
            from tamis.cli.session import spark_session

            with spark_session() as session:
                done = held.analyze(where, spark=session, progress=advance, **arguments)
        else:
            done = held.analyze(where, progress=advance, **arguments)
    if json:
        print_json(done.as_dict())
        return
    print_line(
        f"{counted_noun(done.parts, 'part')} analyzed in {counted_noun(done.commits, 'commit')}, "
        f"{size_text(done.bytes_read)} read; "
        f"{counted_noun(done.later, 'part')} left to the next call."
    )
