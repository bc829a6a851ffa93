"""The commands ``tamis constraint add | drop | list``."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tamis.cli.arguments import Json, Place, Stored, column_names, key_value_pairs
from tamis.cli.output import print_json, print_note, print_rows

Name = Annotated[str, typer.Argument(metavar="NAME", help="The name of the constraint.")]

program = typer.Typer(name="constraint", help="Constraints: add, drop, list.", no_args_is_help=True)


def add(
    table: Place,
    name: Name,
    check: Annotated[
        str | None, typer.Option(metavar="PREDICATE", help="Refuse rows for which this is false, in Spark SQL.")
    ] = None,
    primary_key: Annotated[
        str | None, typer.Option(metavar="COLUMNS", help="Note the key, separated by commas. Nothing enforces it.")
    ] = None,
    unique: Annotated[
        str | None, typer.Option(metavar="COLUMNS", help="Note columns that are unique. Nothing enforces it.")
    ] = None,
    storage_option: Stored = None,
    json: Json = False,
) -> None:
    """Add a constraint. The rows that are there are tested first."""
    if sum(given is not None for given in (check, primary_key, unique)) != 1:
        raise typer.BadParameter("Give one of --check, --primary-key and --unique.", param_hint="--check")
    change = _open(table, storage_option).alter()
    if check is not None:
        change.add_check(name, check)
    elif primary_key is not None:
        change.add_primary_key(name, column_names(primary_key))
    else:
        change.add_unique(name, column_names(unique))
    _print_result(change.commit(), json)


def drop(
    table: Place,
    name: Name,
    if_exists: Annotated[bool, typer.Option("--if-exists", help="Do nothing if there is none.")] = False,
    storage_option: Stored = None,
    json: Json = False,
) -> None:
    """Drop a constraint."""
    _print_result(_open(table, storage_option).alter().drop_constraint(name, missing_ok=if_exists).commit(), json)


def list_(table: Place, storage_option: Stored = None, json: Json = False) -> None:
    """List the constraints."""
    found = _open(table, storage_option).constraints().to_pylist()
    if json:
        print_json(found)
        return
    print_rows(("name", "constraint"), [(row["name"], row["definition"]) for row in found])


def _open(table: str, storage_option: list[str] | None) -> Any:
    import tamis

    return tamis.open(table, storage_options=key_value_pairs(storage_option, "--storage-option"))


def _print_result(done: Any, json: bool) -> None:
    if json:
        print_json(done.as_dict())
        return
    for change in done.changes or ("nothing changed",):
        print_note(f"{change[0].upper()}{change[1:]}.")
