"""The command compact."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tamis.cli.arguments import Json, Place, Stored, Where, column_names, key_value_pairs, size_in
from tamis.cli.output import output_console, print_clustering, print_json, print_line, print_note, print_rows
from tamis.cli.progress import progress_bar


def compact(
    table: Place,
    where: Where = None,
    cluster_by: Annotated[
        str | None,
        typer.Option("--cluster-by", metavar="COLUMNS", help="Sort by these columns together, along a curve."),
    ] = None,
    curve: Annotated[str, typer.Option(help="The curve of --cluster-by: hilbert or zorder.")] = "hilbert",
    max_bytes: Annotated[
        str | None, typer.Option(metavar="B", help="The most bytes to read, such as 1000000 or 1GB.")
    ] = None,
    max_seconds: Annotated[
        float | None, typer.Option(min=0, metavar="S", help="Start no work that would end after so many seconds.")
    ] = None,
    adopted: Annotated[
        bool, typer.Option("--adopted", help="Move the rows of adopted files into files of the table, too.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be done, and why.")] = False,
    spark: Annotated[bool, typer.Option("--spark", help="Do the work with a local Spark.")] = False,
    storage_option: Stored = None,
    json: Json = False,
) -> None:
    """Merge small parts into fewer, sort them, and drop deleted rows. The table's rows do not change.

    Safe to interrupt: the next call continues. Does not disturb readers and writers.
    """
    import tamis
    from tamis.engine.scan.report.report_text import counted_noun

    held = tamis.open(table, storage_options=key_value_pairs(storage_option, "--storage-option"))
    arguments: dict[str, Any] = {
        "max_bytes": size_in(max_bytes, "--max-bytes", 1),
        "cluster_by": column_names(cluster_by),
        "curve": curve,
        "adopted": adopted,
    }
    plan: Any = held.compact(where, dry_run=True, **arguments)
    if dry_run:
        print_json(plan.as_dict()) if json else _show(plan)
        return
    arguments["max_seconds"] = max_seconds
    with progress_bar(
        f"Compacting {counted_noun(sum(len(g.parts) for g in plan.groups), 'part')}", plan.bytes
    ) as advance:
        if spark:
            from tamis.cli.session import spark_session

            with spark_session() as session:
                done: Any = held.compact(where, spark=session, progress=advance, **arguments)
        else:
            done = held.compact(where, progress=advance, **arguments)
    if json:
        print_json(done.as_dict())
        return
    print_line(_result_line(done))
    print_clustering(held.refresh().detail()["clustering"][0].as_py())


def _result_line(done: Any) -> str:
    from tamis.engine.scan.report.report_text import counted_noun

    return (
        f"{counted_noun(done.parts_removed, 'part')} became {done.parts_added:,} "
        f"in {counted_noun(done.commits, 'commit')}; "
        f"{counted_noun(done.rows_dropped, 'deleted row')} gone; "
        f"gave way to other writers {counted_noun(done.conflicts, 'time')}; "
        f"{counted_noun(done.later, 'group')} left to the next call."
    )


def _show(plan: Any) -> None:
    from tamis.engine.scan.report.report_text import counted_noun, size_text

    if not plan.groups:
        output_console().print(f"Nothing to do at version {plan.version}.")
        return
    rows = [
        [len(g.parts), f"{g.rows:,}", f"{g.deleted:,}", size_text(g.bytes), ", ".join(g.reasons)] for g in plan.groups
    ]
    print_rows(
        ["parts", "rows", "deleted", "bytes", "because of"], rows, f"At version {plan.version}, one commit a line"
    )
    if plan.later:
        print_note(f"{counted_noun(len(plan.later), 'group')} more would be left to the next call.")
