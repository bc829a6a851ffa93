"""The program ``tamis``: its commands, and the handling of their errors.

Invariant: the requested output goes to stdout, everything else (progress, messages) to stderr. The exit code
is 0 for success, 1 for failure, 2 for an invalid command line.
"""

from __future__ import annotations

import errno
import functools
import os
import sys
from collections.abc import Callable
from typing import Any

import typer

import tamis
from tamis.cli import change, constraint, demo_command, index, query_commands, restore, rows, schema, spark_commands
from tamis.cli.adopt import adopt
from tamis.cli.analyze import analyze
from tamis.cli.compact import compact
from tamis.cli.export import export
from tamis.cli.output import exit_with_error, print_note
from tamis.cli.spark_errors import first_line, is_spark_error
from tamis.cli.sync import sync
from tamis.cli.vacuum import vacuum
from tamis.cli.verify import verify
from tamis.errors import TamisError


def main() -> None:
    """Run the command line of this process, and exit."""
    try:
        if sys.stdout is None:  # closed by the caller
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        try:
            program()
        finally:
            sys.stdout.flush()
    except OSError as error:
        if error.errno != errno.EPIPE:  # the reader of a pipe has gone: no message is needed
            print_note(f"[OUTPUT_FAILED] The output could not be written: {error.strerror or error}.")
        if sys.stdout is not None:
            # a flush of the remaining buffer would fail again
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


def _failing(command: Callable[..., None]) -> Callable[..., None]:
    """Wrap ``command`` to print its errors as one line on stderr and exit with code 1."""

    @functools.wraps(command)
    def run(**arguments: Any) -> None:
        try:
            command(**arguments)
        except TamisError as error:
            exit_with_error(str(error))
        except Exception as error:
            if not is_spark_error(error):
                raise  # a defect: show its traceback
            exit_with_error(first_line(error))

    return run


def _version(value: bool) -> None:
    if value:
        sys.stdout.write(f"tamis {tamis.__version__}\n")
        raise typer.Exit


program = typer.Typer(name="tamis", add_completion=False, pretty_exceptions_enable=False)


@program.callback(invoke_without_command=True)
def _about(
    context: typer.Context,
    version: bool = typer.Option(  # noqa: ARG001  # its callback
        False, "--version", callback=_version, is_eager=True, help="Print the version and exit."
    ),
) -> None:
    """A table format that reads only what a query needs, and is never wrong about it."""
    if context.invoked_subcommand is None:
        sys.stdout.write(context.get_help())


for _command in (
    change.create,
    change.ingest,
    adopt,
    query_commands.query,
    query_commands.explain,
    query_commands.describe,
    query_commands.history,
    restore.changes,
    rows.delete,
    rows.update,
    rows.upsert,
    rows.merge,
    restore.restore,
    sync,
    analyze,
    compact,
    vacuum,
    verify,
    export,
    demo_command.demo,
):
    program.command()(_failing(_command))

_index = typer.Typer(help="Secondary indexes: create, drop, repair, drop-segments, list.", no_args_is_help=True)
for _name, _verb in (
    ("create", index.create),
    ("drop", index.drop),
    ("repair", index.repair),
    ("drop-segments", index.drop_segments),
    ("list", index.list_),
):
    _index.command(_name)(_failing(_verb))
program.add_typer(_index, name="index")

for _step in (schema.show, schema.check, schema.evolve, schema.cluster):
    schema.program.command()(_failing(_step))
program.add_typer(schema.program)

for _name, _change in (("add", constraint.add), ("drop", constraint.drop), ("list", constraint.list_)):
    constraint.program.command(_name)(_failing(_change))
program.add_typer(constraint.program)

_OPTIONS_FIRST = {"ignore_unknown_options": False, "allow_interspersed_args": False}
"""What follows a script's name belongs to the script."""
for _start in (spark_commands.connect, spark_commands.thrift, spark_commands.sql):
    spark_commands.program.command()(_failing(_start))
spark_commands.program.command(context_settings=_OPTIONS_FIRST)(_failing(spark_commands.submit))
program.add_typer(spark_commands.program)
