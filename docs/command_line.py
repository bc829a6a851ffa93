"""The page ``command-line.md``: every command with its arguments and options, as the program itself declares them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer.main

from tamis.cli.app import program

HEAD = """# The command line

Results go to stdout, as tables or with `--json` for programs. Progress and messages go to stderr. The exit code is 0 for success, 1 for a failure, and 2 for an invalid
command line. A `TABLE` is a path or a URL. A command that changes rows or files prints what it did in numbers. A command that deletes files only lists them unless you confirm.

This page is generated from the program by `docs/generate.py`; `tamis COMMAND --help` prints the same text.
"""


def page() -> str:
    return HEAD + "".join(map(_section, _commands("tamis", typer.main.get_command(program))))


def _commands(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    """Every command that does something, with the words it is called by."""
    inside = getattr(command, "commands", None)
    if inside is None:
        yield name, command
        return
    for word, inner in inside.items():
        yield from _commands(f"{name} {word}", inner)


def _section(named: tuple[str, Any]) -> str:
    name, command = named
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option"]
    usage = " ".join([name, *((p.metavar or p.name).upper() for p in arguments)])
    lines = ["", f"## {usage}", "", " ".join(command.help.split())]
    if options:
        lines += ["", "| option | |", "| --- | --- |"]
        lines += [
            f"| {', '.join(f'`{o}`' for o in p.opts)} | {' '.join((p.help or '').split()).replace('|', chr(92) + '|')} |"
            for p in options
        ]
    return "\n".join(lines) + "\n"
