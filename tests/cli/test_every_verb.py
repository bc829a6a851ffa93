"""Every verb of a table is there for Python, for Spark SQL and for the command line; a command answers in JSON on stdout, and says on stderr what it does."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pytest
import typer
from tests.cli.conftest import Run

import tamis
from tamis.cli.app import program
from tamis.spark.sql.procedure_registry import PROCEDURES

T, ROWS = "TABLE", "FILE"


class Verb(NamedTuple):
    """``method`` of ``Table``; ``sql``: a procedure of CALL, or a statement in capitals; ``command``: arguments after the program's name; ``progress``: what stderr begins with."""

    method: str
    sql: str
    command: tuple[str, ...]
    progress: str | None = None


MATCHED = ("--on", "target.n = source.n", "--when", "MATCHED THEN DELETE")
VERBS = [
    Verb("delete", "DELETE", ("delete", T, "--where", "n = 1"), "Deleting"),
    Verb("update", "UPDATE", ("update", T, "--set", "n=n + 1", "--where", "n = 1"), "Updating"),
    Verb("merge", "MERGE", ("merge", T, ROWS, *MATCHED), "Merging"),
    Verb("upsert", "MERGE", ("upsert", T, ROWS, "--on", "n"), "Upserting"),
    Verb("compact", "compact", ("compact", T), "Compacting"),
    Verb("analyze", "analyze", ("analyze", T), "Analyzing"),
    Verb("vacuum", "vacuum", ("vacuum", T, "--retention", "0s", "--below-retention", "--yes"), "Removing"),
    Verb("restore", "restore", ("restore", T, "2"), "Restoring"),
    Verb("verify", "verify", ("verify", T), "Verifying"),
    Verb("changes", "changes", ("changes", T, "1"), "Changes"),
    Verb("export", "export", ("export", T, "delta")),
    Verb("history", "history", ("history", T)),
    Verb("detail", "detail", ("describe", T)),
    Verb("explain", "explain", ("explain", T, "--where", "n = 1")),
    Verb("create_index", "create_index", ("index", "create", T, "by_n", "n"), "Building by_n"),
    Verb("repair_index", "repair_index", ("index", "repair", T), "Repairing all indexes"),
    Verb("indexes", "list_indexes", ("index", "list", T)),
    Verb("constraints", "constraints", ("constraint", "list", T)),
]
ELSEWHERE = {"drop_index_segments", "drop_index", "add_constraint", "drop_constraint", "sync", "adopt"}
"""Procedures without a line above: their commands are in test_index, test_constraint, test_sync and test_adopt."""


@pytest.mark.push_cases(6)
@pytest.mark.parametrize("verb", VERBS, ids=lambda v: v.method)
def test_a_verb_is_there_in_every_way(verb: Verb, run: Run, tmp_path: Path) -> None:
    table = tamis.create(tmp_path / "t", pa.schema([("n", pa.int64())]))
    for n in range(3):
        table.append(pa.table({"n": [n, n + 10]}))
    (tmp_path / "rows.csv").write_text("n\n1\n77\n")
    assert callable(getattr(table, verb.method))
    assert verb.sql.isupper() or verb.sql in PROCEDURES
    places = {T: table.path, ROWS: str(tmp_path / "rows.csv")}
    done = run(*(places.get(word, word) for word in verb.command), "--json")
    assert done.code == 0, done.err
    assert done.json is not None
    assert verb.progress is None or done.err.startswith(verb.progress)


def test_no_procedure_and_no_command_is_left_out() -> None:
    assert {v.sql for v in VERBS if not v.sql.isupper()} | ELSEWHERE == set(PROCEDURES)
    commands = typer.main.get_command(program).commands  # type: ignore[attr-defined]
    elsewhere = {"create", "ingest", "query", "schema", "demo", "spark", "sync", "adopt"}
    assert {v.command[0] for v in VERBS} | elsewhere == set(commands)


@pytest.mark.parametrize("verb", ["delete", "update", "merge", "upsert"])
def test_progress_counts_every_byte_once(verb: str, tmp_path: Path) -> None:
    """The filter keeps one of four parts wholly and one in part; progress counts each part once, read or not."""
    table = tamis.create(tmp_path / "t", pa.schema([("n", pa.int64()), ("v", pa.int64())]))
    for first in range(0, 400, 100):
        table.append(pa.table({"n": list(range(first, first + 100)), "v": [0] * 100}))
    size = table.detail()["size_in_bytes"][0].as_py()
    progress_calls: list[tuple[int, str]] = []
    source = pa.table({"n": [150], "v": [1]})

    def progress(amount: int, message: str) -> None:
        progress_calls.append((amount, message))

    {
        "delete": lambda: table.delete("n < 150", progress=progress),
        "update": lambda: table.update({"v": "1"}, "n < 150", progress=progress),
        "merge": lambda: table.merge(source, on="target.n = source.n").when_matched_delete().execute(progress=progress),
        "upsert": lambda: table.upsert(source, on="n", progress=progress),
    }[verb]()
    assert sum(amount for amount, _ in progress_calls) == size
    reads = 2 if verb == "update" else 1
    assert progress_calls[0][1] == f"{reads} of 4 parts to read"
    assert len(progress_calls) == 1 + reads
