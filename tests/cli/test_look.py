"""Commands that only look, and the rules that all commands keep: stdout for the answer, stderr for the rest, exit codes 0, 1 and 2."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import Run

import tamis
from tamis.engine.scan.report.report_text import size_text


def test_query_prints_the_rows_that_match(run: Run, numbers: Path) -> None:
    done = run("query", numbers, "--where", "n >= 25 AND n < 28", "--select", "word,n", "--json")
    assert done.code == 0
    assert done.json == [{"word": "w1", "n": 25}, {"word": "w2", "n": 26}, {"word": "w0", "n": 27}]
    assert "1 of 4 parts" in done.err


def test_the_bytes_of_a_query_are_those_of_its_data(run: Run, numbers: Path) -> None:
    done = run("query", numbers, "--json")
    read = tamis.reports()[0].bytes
    assert f"{size_text(read.leader + read.follower)} of {size_text(read.table)}" in done.err


def test_query_for_people_shows_the_first_rows_and_says_so(run: Run, numbers: Path) -> None:
    done = run("query", numbers)
    assert done.code == 0
    assert "NULL" in done.out
    assert " 19 " in done.out
    assert " 20 " not in done.out
    assert "first 20 rows" in done.err
    assert "first" not in run("query", numbers, "--limit", "3").err


def test_query_of_nothing_is_an_empty_array(run: Run, numbers: Path) -> None:
    assert run("query", numbers, "--where", "n > 1000", "--json").json == []


def test_query_at_a_version(run: Run, numbers: Path) -> None:
    assert len(run("query", numbers, "--version", 1, "--json").json) == 10
    assert run("query", numbers, "--version", 99).code == 1


def test_query_with_its_report(run: Run, numbers: Path) -> None:
    done = run("query", numbers, "--where", "n < 5", "--report", "--json")
    assert len(done.json) == 5
    assert "segments" in done.err


def test_explain_says_what_would_be_read(run: Run, numbers: Path) -> None:
    done = run("explain", numbers, "--where", "n < 15", "--json")
    assert done.code == 0
    assert done.json["parts"]["kept"] == 2
    assert done.json["parts"]["total"] == 4
    assert done.json["bytes"]["leader"] == 0
    assert "parts" in run("explain", numbers, "--where", "n < 15").out


def test_the_first_rows_of_an_order(run: Run, numbers: Path) -> None:
    """The stage stands in both reports: parts that cannot hold the first rows."""
    order = ["--order-by", "n DESC", "--limit", "2"]
    assert run("query", numbers, *order, "--select", "n", "--json").json == [{"n": n} for n in (39, 38)]
    found = run("explain", numbers, *order, "--json").json["parts"]
    assert (found["kept"], found["skipped_topk"]) == (1, 3)
    assert "3 by top-k" in run("explain", numbers, *order).out
    assert "by the limit" in run("explain", numbers, "--where", "n >= 10", "--limit", "2").out


@pytest.mark.parametrize(
    ("limits", "code"),
    [
        (["--max-parts", 2], 0),
        (["--max-parts", 1], 1),
        (["--max-bytes", 10**9], 0),
        (["--max-bytes", 10], 1),
        (["--max-parts", 2, "--max-bytes", 10], 1),
    ],
)
def test_explain_guards_a_filter(run: Run, numbers: Path, limits: list[object], code: int) -> None:
    done = run("explain", numbers, "--where", "n < 15", *limits, "--json")
    assert done.code == code
    assert done.json["parts"]["kept"] == 2  # the report is printed all the same
    assert ("PRUNING_LOST" in done.err) == bool(code)


def test_a_lost_pruning_says_which_conjunct(run: Run, numbers: Path) -> None:
    done = run("explain", numbers, "--where", "word = 'w1'", "--max-parts", 1)
    assert done.code == 1
    assert "word" in done.err


def test_describe(run: Run, numbers: Path) -> None:
    done = run("describe", numbers, "--json").json
    assert done["clustering_columns"] == ["n"]
    assert done["num_rows"] == 40
    assert [(c["name"], c["lo"], c["hi"]) for c in done["columns"]] == [("n", "0", "39"), ("word", "w0", "w2")]
    assert "word" in run("describe", numbers).out


def test_history_is_newest_first(run: Run, numbers: Path) -> None:
    done = run("history", numbers, "--limit", 2, "--json").json
    assert [(row["version"], row["operation"]) for row in done] == [(4, "append"), (3, "append")]
    assert all(isinstance(commit["parameters"], dict) for commit in done), "an object, not text with JSON in it"
    assert "create" in run("history", numbers).out


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["query", "{}", "--where", "nowhere = 1"], 1, "COLUMN_NOT_FOUND"),
        (["query", "{}", "--where", "n = = 1"], 1, "PARSE_ERROR"),
        (["query", "{}", "--select", "nowhere"], 1, "nowhere"),
        (["query", "{}-none"], 1, "TABLE_NOT_FOUND"),
        (["explain", "{}", "--set", "tamis.nope=1"], 1, "tamis.nope"),
        (["history", "{}", "--limit", "-1"], 2, "limit"),
        (["query", "{}", "--set", "novalue"], 2, "KEY=VALUE"),
        (["query", "{}", "--version", "1", "--timestamp", "2026-01-01"], 2, "both"),
        (["query"], 2, "TABLE"),
        (["nope"], 2, "nope"),
    ],
)
def test_errors_are_one_line_and_name_the_thing(
    run: Run, numbers: Path, arguments: list[str], code: int, message: str
) -> None:
    done = run(*(a.format(numbers) for a in arguments))
    assert done.code == code
    assert message in done.err
    assert done.out == ""
    if code == 1:
        assert done.err.startswith("[")
        assert len(done.err.splitlines()) == 1


def test_create_makes_an_empty_table(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "t"
    assert (
        run(
            "create", path, "--schema", "ts TIMESTAMP NOT NULL, `a b` INT", "--cluster-by", "ts", "--property", "x=y"
        ).code
        == 0
    )
    found = run("describe", path, "--json").json
    assert [(c["name"], c["nullable"]) for c in found["columns"]] == [("ts", False), ("a b", True)]
    assert found["clustering_columns"] == ["ts"]
    again = run("create", path)
    assert (again.code, "TABLE_EXISTS" in again.err) == (1, True)
