"""The shell of ``tamis spark sql`` at a terminal."""

from __future__ import annotations

from typing import Any

import pytest
from tests.spark.capabilities import needs_syntax

from tamis.cli import sql_shell


def test_a_statement_ends_at_a_semicolon_outside_of_quotes(
    spark: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    typed = iter(["SELECT 'a;", "b' AS x;", "SELECT nothing; SELECT 'never';", "SELECT 1;", "quit"])
    monkeypatch.setattr("builtins.input", lambda _: next(typed))
    sql_shell.run_shell(spark)
    captured = capsys.readouterr()
    assert captured.out == "a;\\nb\n1\n"
    assert "[SPARK] [UNRESOLVED_COLUMN" in captured.err
    assert "never" not in captured.err


def test_a_compound_statement_ends_at_its_end(
    spark: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    needs_syntax(spark, "BEGIN DECLARE x INT = 3; SELECT x; END")
    typed = iter(
        [
            "-- sums",
            "BEGIN",
            "  DECLARE x INT = 3;",
            "  IF x = 3 THEN SET x = 4;",
            "  END IF;",
            "  SELECT x;",
            "END;",
            "quit",
        ]
    )
    monkeypatch.setattr("builtins.input", lambda _: next(typed))
    sql_shell.run_shell(spark)
    assert capsys.readouterr().out == "4\n"
    sql_shell.run_script(spark, "SELECT 1; begin SELECT 2; SELECT 'END'; end; SELECT 3")
    assert capsys.readouterr().out == "1\nEND\n3\n"


def test_ctrl_c_ends_the_statement_alone(
    spark: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    typed = iter(["SELECT 1;", "exit;"])

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("builtins.input", lambda _: next(typed))
    monkeypatch.setattr(sql_shell, "run_statement", interrupted)
    sql_shell.run_shell(spark)
    assert capsys.readouterr().err == "[CANCELLED] The statement was cancelled.\n"
