"""The command demo."""

from __future__ import annotations

from typing import Annotated

import typer

from tamis.cli.arguments import Json
from tamis.cli.output import fail, print_json


def demo(
    path: Annotated[
        str,
        typer.Option(
            metavar="FOLDER", help="Where the demonstration's tables go; an earlier demonstration there is replaced."
        ),
    ] = "./demo-lake",
    json: Json = False,
) -> None:
    """Fill a table with a year of real flights by Spark, query it, and check every answer against plain Spark."""
    from tamis.cli.demo import run

    outcome = run(path)
    if json:
        print_json(outcome)
    if outcome["differing"]:
        fail(f"[DEMO_DIFFERS] {outcome['differing']} answers differ from plain Spark's.")
