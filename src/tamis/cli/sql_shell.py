"""The shell of ``tamis spark sql``: reads statements, runs them, prints their rows."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.resources import as_file, files
from typing import Any

from tamis.cli.output import exit_with_error, print_note
from tamis.cli.spark_errors import first_line, is_spark_error
from tamis.core.types.printable import printable
from tamis.errors import TamisError
from tamis.spark.sql.sql_script import run_statement, split_statements

PROMPT, CONTINUED = "tamis> ", "     > "


@contextmanager
def quiet_log() -> Iterator[dict[str, str]]:
    """Provide the configuration of a session that logs errors only, to stderr.

    PySpark's own logger is switched off: it prints each error of a statement with its Java frames.
    """
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL + 1)
    with as_file(files("tamis.cli") / "quiet.properties") as log:
        yield {
            "spark.ui.showConsoleProgress": "false",
            "spark.driver.defaultJavaOptions": f"-Dlog4j2.configurationFile={log.as_uri()}",
            "spark.log.level": "ERROR",
        }


def run_script(session: Any, text: str) -> None:
    """Run the statements of ``text`` in order. The first error is printed and ends the process with code 1."""
    for statement in split_statements(session, text):
        problem = _run(session, statement)
        if problem is not None:
            exit_with_error(problem)


def run_shell(session: Any) -> None:
    """Read statements that end with a semicolon from the terminal until ``quit``, ``exit`` or end of input."""
    with suppress(ImportError):  # not on every system; without it, lines cannot be edited
        import readline  # noqa: F401  # input() uses it once it is loaded
    lines: list[str] = []
    while True:
        try:
            line = input(CONTINUED if lines else PROMPT)
        except EOFError:
            sys.stdout.write("\n")
            return
        except KeyboardInterrupt:  # forget what was typed, as in psql
            sys.stdout.write("\n")
            lines = []
            continue
        if not lines and line.strip().rstrip(";").lower() in {"quit", "exit"}:
            return
        lines.append(line)
        if line.rstrip().endswith(";"):
            lines = [] if _run_all(session, "\n".join(lines)) else lines


def _run_all(session: Any, text: str) -> bool:
    """Run the statements of ``text`` until one fails; return False if it ends inside of quotes, a comment or BEGIN."""
    mark = "SELECT 'the end'"
    statements = split_statements(session, f"{text}\n{mark}")
    if statements[-1].strip() != mark:
        return False
    for statement in statements[:-1]:
        try:
            problem = _run(session, statement)
        except KeyboardInterrupt:  # PySpark has cancelled the statement's jobs
            problem = "[CANCELLED] The statement was cancelled."
        if problem is not None:
            print_note(problem)
            break
    return True


def _run(session: Any, statement: str) -> str | None:
    """Run one statement and print its rows; return the error, or None."""
    try:
        rows = run_statement(session, statement)
    except TamisError as error:
        return str(error)
    except Exception as error:
        if not is_spark_error(error):
            raise
        return first_line(error)
    for row in rows:
        sys.stdout.write(printable(row, keep="\t") + "\n")
    sys.stdout.flush()
    return None
