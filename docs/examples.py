"""Runs a page's examples in order and compares what they print with what the page says.

A page is one program. Its ``python`` and ``sql`` blocks share one interpreter (``sql`` needs a ``spark`` that the page has made), and
``console`` blocks run the command line. A command that should fail says ``# exits with N``. Blocks of any other kind are pictures.

What a ``python`` or ``sql`` block prints stands in an ``output`` block directly below it; of SQL, that is each statement's rows as a
table. What a command prints stands below its line in the ``console`` block; of a command that fails, standard error belongs to it.
Whatever differs between runs (ids, instants, seconds, sizes, folders) is written as ``…``, which stands for any text within a line. A line
that is only ``…`` stands for any number of lines. An output of nothing but ``…`` is refused, because it would match everything.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$\n?", re.MULTILINE | re.DOTALL)
_RUNNABLE = {"python", "sql", "console"}


@dataclass(frozen=True)
class Example:
    """A block that runs, with the output that the page gives for it."""

    kind: str
    body: str
    line: int
    """The line of the page on which the body begins."""
    expected: str
    place: tuple[int, int]
    """Where in the page the output stands, fences included; empty where there is none yet."""


def page_examples(text: str) -> list[Example]:
    """The page's blocks that run, in order. Raises ``ValueError`` for an output that follows no such block."""
    found: list[Example] = []
    fences = list(_FENCE.finditer(text))
    for at, fence in enumerate(fences):
        kind, body, line = fence[1], fence[2], text.count("\n", 0, fence.start()) + 2
        before = fences[at - 1] if at else None
        if kind == "output" and not (
            before and before[1] in {"python", "sql"} and not text[before.end() : fence.start()].strip()
        ):
            raise ValueError(f"Line {line}: an output block must stand directly below a python or sql block.")
        if kind not in _RUNNABLE:
            continue
        after = fences[at + 1] if at + 1 < len(fences) else None
        if kind == "console":
            found.append(Example(kind, body, line, body, fence.span()))
        elif after and after[1] == "output" and not text[fence.end() : after.start()].strip():
            found.append(Example(kind, body, line, after[2], after.span()))
        else:
            found.append(Example(kind, body, line, "", (fence.end(), fence.end())))
    return found


def run_examples(examples: Sequence[Example], page: str) -> list[str]:
    """What each example prints. Runs in the current folder and process; an error has the page's line in its traceback."""
    names: dict[str, Any] = {"__name__": "__main__"}
    outputs = []
    for example in examples:
        if example.kind == "console":
            lines = [line for line in example.body.splitlines() if line.startswith("$ ")]
            outputs.append("".join(f"{line}\n{_command_output(line[2:])}" for line in lines))
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            if example.kind == "python":
                exec(compile("\n" * (example.line - 1) + example.body, page, "exec"), names)  # noqa: S102  # running the page is the purpose
            else:
                for statement in filter(None, map(str.strip, example.body.split(";"))):
                    print(_sql_output(names["spark"], statement), end="")  # noqa: T201  # captured
        outputs.append(printed.getvalue())
    return outputs


def command_words(line: str) -> tuple[list[str], int]:
    """The arguments of a ``tamis`` command, and the exit code that it should end with."""
    text, _, code = line.partition("# exits with ")
    words = shlex.split(text)
    if words[0] != "tamis":
        raise ValueError(f"{line!r} is not a tamis command.")
    return words[1:], int(code or 0)


def _command_output(line: str) -> str:
    words, code = command_words(line)
    call = [sys.executable, "-c", "import sys; sys.argv[0] = 'tamis'; from tamis.cli import main; main()", *words]
    environment = {**os.environ, "COLUMNS": "120"}  # noqa: TID251  # a tool of the project, not the package
    done = subprocess.run(call, capture_output=True, text=True, check=False, env=environment)  # noqa: S603  # our own commands
    if done.returncode != code:
        raise RuntimeError(f"{line!r} exited with {done.returncode}, not {code}:\n{done.stdout}\n{done.stderr}")
    return done.stdout + (done.stderr if code else "")


def _sql_output(spark: Any, statement: str) -> str:
    """The statement's rows as a table; nothing for a statement that has no columns. It runs as written: ``show()`` would add a LIMIT."""
    frame = spark.sql(statement)
    rows = frame.collect()
    return text_table(frame.columns, [list(row) for row in rows]) if frame.columns else ""


def text_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A table as ``DataFrame.show(truncate=False)`` prints it."""
    cells = [list(columns), *([_cell(value) for value in row] for row in rows)]
    widths = [max(3, *(len(row[at]) for row in cells)) for at in range(len(columns))]
    rule = "+" + "+".join("-" * width for width in widths) + "+\n"
    lines = [
        "|" + "|".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + "|\n" for row in cells
    ]
    return rule + lines[0] + rule + "".join(lines[1:]) + rule


def _cell(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "NULL", True: "true", False: "false"}[value]
    if isinstance(value, dt.datetime):
        return value.isoformat(" ")
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_cell, value)) + "]"
    return str(value)


def output_pattern(expected: str) -> re.Pattern[str]:
    """Matches the outputs that ``expected`` allows, whose lines must have lost their trailing blanks (``tidy_output``)."""
    lines = (
        r"(?:[^\n]*\n)*" if line == "…" else r"[^\n]*".join(map(re.escape, line.split("…"))) + "\n"
        for line in tidy_output(expected).splitlines()
    )
    return re.compile("".join(lines))


def tidy_output(text: str) -> str:
    """The text without blanks at the ends of lines and without empty lines at its end."""
    lines = "\n".join(line.rstrip() for line in text.splitlines()).rstrip("\n")
    return lines + "\n" if lines else ""


def output_problems(examples: Sequence[Example], outputs: Sequence[str]) -> list[str]:
    """What is wrong with the page's outputs, a sentence each."""
    problems = []
    for example, output in zip(examples, outputs, strict=True):
        if output_pattern(example.expected).fullmatch(tidy_output(output)) is None:
            said = f"the page says\n{example.expected}" if example.expected else "the page has no output block for it."
            problems.append(
                f"Line {example.line}: the {example.kind} block prints\n{tidy_output(output) or '(nothing)'}\n{said}"
            )
        elif example.expected and not example.expected.replace("…", "").strip():
            problems.append(f"Line {example.line}: an output of nothing but … matches everything.")
    return problems


def page_with_outputs(text: str, outputs: Sequence[str]) -> str:
    """The page with the outputs of a run in place of those that do not match it. Lines with ``…`` that still match are kept."""
    for example, output in reversed(list(zip(page_examples(text), outputs, strict=True))):
        if output_pattern(example.expected).fullmatch(tidy_output(output)):
            continue
        pieces = zip(_pieces(example.expected), _pieces(tidy_output(output)), strict=False)
        lines = (
            [line for said, printed in pieces for line in _merged(said, printed)]
            if example.expected
            else tidy_output(output).splitlines()
        )
        begin, end = example.place
        kind = "console" if example.kind == "console" else "output"
        block = f"```{kind}\n" + "\n".join(lines) + "\n```\n"
        if begin == end:
            block = f"\n{block}"
        text = text[:begin] + (block if lines else "") + text[end:]
    return text


def _pieces(text: str) -> list[str]:
    """The text, cut before each command line."""
    return re.split(r"(?m)^(?=\$ )", text)


def _merged(expected: str, output: str) -> list[str]:
    """The lines of ``expected`` if they match; else those of ``output``, in place of which single lines of ``expected`` with ``…`` stay."""
    if output_pattern(expected).fullmatch(output):
        return expected.splitlines()
    kept = [line for line in expected.splitlines() if "…" in line and line != "…"]
    return [
        next((line for line in kept if output_pattern(line).fullmatch(f"{actual}\n")), actual)
        for actual in output.splitlines()
    ]


def run_page(page: Path, folder: Path, environment: Mapping[str, str]) -> list[str]:
    """What the page's examples print, run by a new interpreter in ``folder``. Raises ``RuntimeError`` with its messages if one fails."""
    answer = folder / "outputs.json"
    call = [sys.executable, str(Path(__file__).resolve()), str(page.resolve()), str(answer)]
    work = folder / "work"
    work.mkdir()
    done = subprocess.run(call, cwd=work, env=dict(environment), capture_output=True, text=True, check=False)  # noqa: S603  # this very file
    if done.returncode != 0:
        raise RuntimeError(f"{page.name}:\n{done.stdout[-2000:]}\n{done.stderr[-6000:]}")
    return list(map(str, json.loads(answer.read_text())))


def fill_outputs(pages: Sequence[Path]) -> None:
    """Runs the pages and writes their outputs into them."""
    environment = {**os.environ, "TZ": "UTC", "SPARK_LOCAL_IP": "127.0.0.1"}  # noqa: TID251  # a tool of the project, not the package
    for page in pages:
        text = page.read_text()
        if page_examples(text):
            with tempfile.TemporaryDirectory() as folder:
                page.write_text(page_with_outputs(text, run_page(page, Path(folder), environment)))


if __name__ == "__main__":
    said, answer = map(Path, sys.argv[1:])
    answer.write_text(json.dumps(run_examples(page_examples(said.read_text()), said.name)))
