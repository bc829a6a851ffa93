"""The command demo."""

from __future__ import annotations

from typing import Annotated

import typer

from tamis.cli.arguments import Json
from tamis.cli.output import exit_with_error, print_json


def demo(
    path: Annotated[
        str,
        typer.Option(metavar="FOLDER", help="The folder of the demo's tables. An earlier demo there is replaced."),
    ] = "./demo-lake",
    json: Json = False,
) -> None:
    """Load a year of real flights into a table with Spark, query it, and compare every answer with plain Spark."""
    from tamis.cli.demo import run_demo

    outcome = run_demo(path)
    if json:
        print_json(outcome)
    if outcome["differing"]:
        exit_with_error(f"[DEMO_DIFFERS] {outcome['differing']} answers differ from plain Spark's.")
