"""Commands on a table's schema: show, check, evolve."""

from __future__ import annotations

from typing import Annotated

import typer

from tamis.cli.arguments import Json, Place, Stored, column_names, key_value_pairs
from tamis.cli.output import print_json, print_note, print_rows

New = Annotated[
    str,
    typer.Argument(metavar="DDL", help='All columns of the new schema, e.g. "ts TIMESTAMP NOT NULL, user BIGINT".'),
]

program = typer.Typer(name="schema", help="Show a table's schemas; check and make the next one.", no_args_is_help=True)


def show(table: Place, storage_option: Stored = None, json: Json = False) -> None:
    """List the table's schemas, what each one changed, and how many parts still have it."""
    import tamis

    held = tamis.open(table, storage_options=key_value_pairs(storage_option, "--storage-option"))
    rows = held.metadata("schemas").to_pylist()
    if json:
        print_json([{name: value for name, value in row.items() if name != "json"} for row in rows])
        return
    print_rows(["schema", "parts", "changes"], [[r["schema_id"], r["parts"], "; ".join(r["changes"])] for r in rows])


def check(table: Place, schema: New, storage_option: Stored = None, json: Json = False) -> None:
    """Check whether the table may change to this schema, and which readers that fences. Exits with 1 if not."""
    _evolve(table, schema, storage_option, json, dry_run=True)


def evolve(
    table: Place,
    schema: New,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would change and which readers it would fence, and do nothing.")
    ] = False,
    storage_option: Stored = None,
    json: Json = False,
) -> None:
    """Change the table to this schema without rewriting data. Columns match by name; others are dropped or added."""
    _evolve(table, schema, storage_option, json, dry_run=dry_run)


def cluster(
    table: Place,
    columns: Annotated[
        str | None, typer.Argument(metavar="[COLUMNS]", help="Columns to sort by, separated by commas.")
    ] = None,
    none: Annotated[bool, typer.Option("--none", help="Sort by no columns any more.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would change, and do nothing.")] = False,
    storage_option: Stored = None,
    json: Json = False,
) -> None:
    """Change the columns that later writes sort by. Existing parts are sorted when they are compacted."""
    import tamis

    chosen = column_names(columns)
    if bool(chosen) == none:
        raise typer.BadParameter("Give columns, or --none.", param_hint="COLUMNS")
    change = (
        tamis.open(table, storage_options=key_value_pairs(storage_option, "--storage-option"))
        .alter()
        .cluster_by(chosen)
    )
    done = change.dry_run() if dry_run else change.commit()
    if json:
        print_json({**done.as_dict(), "dry_run": dry_run})
        return
    print_rows(["change"], [[words] for words in done.changes])
    print_note(f"The table {'would be' if dry_run else 'is'} at schema {done.schema_id}.")


def _evolve(table: str, schema: str, storage_option: list[str] | None, json: bool, *, dry_run: bool) -> None:
    import tamis
    from tamis.core.expr.column_definitions import parse_columns
    from tamis.core.schema import Evolution

    held = tamis.open(table, storage_options=key_value_pairs(storage_option, "--storage-option"))
    planned = held.compare_and_evolve_schema(held.schema_id, parse_columns(schema), dry_run=True)
    assert isinstance(planned, Evolution)
    shown = planned.as_dict()
    if not dry_run:
        shown["schema_id"] = held.compare_and_evolve_schema(held.schema_id, parse_columns(schema))
    if json:
        print_json({**shown, "dry_run": dry_run})
        return
    print_rows(["change"], [[change] for change in planned.changes])
    print_rows(
        ["fences readers of", "because it", "in schemas"],
        [[f.column, f.why, ", ".join(map(str, f.schema_ids))] for f in planned.fences],
    )
    print_note(f"The table {'would be' if dry_run else 'is'} at schema {shown['schema_id']}.")
