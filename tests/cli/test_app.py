"""The program itself: help, usage errors, and an output that cannot be written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FULL = Path("/dev/full")
CALL = [sys.executable, "-c", "from tamis.cli import main; main()"]


def test_without_a_command_there_is_help(run: Any) -> None:
    done = run()
    assert (done.code, done.err) == (0, "")
    assert "describe" in done.out


def test_an_empty_schema_is_a_usage_error(run: Any, tmp_path: Path) -> None:
    assert run("create", tmp_path / "t", "--schema", " ").code == 2
    assert not (tmp_path / "t").exists()


def test_one_part(run: Any, numbers: Path) -> None:
    assert "1 of 4 parts" in run("query", numbers, "--where", "n = 3").err
    refused = run("explain", numbers, "--where", "n = 3", "--max-parts", "0")
    assert refused.code == 1
    assert "1 part would be read" in refused.err


@pytest.mark.push_cases(2)
@pytest.mark.skipif(not FULL.exists(), reason="this system has no full device")
@pytest.mark.parametrize("arguments", [["--version"], ["describe"], ["query", "--json"], ["history", "--json"]])
def test_a_full_output_is_one_line(numbers: Path, arguments: list[str]) -> None:
    command = arguments if arguments == ["--version"] else [arguments[0], str(numbers), *arguments[1:]]
    with FULL.open("w") as full:
        done = subprocess.run([*CALL, *command], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    messages = [line for line in done.stderr.splitlines() if not line.startswith("Read ")]
    assert len(messages) == 1, done.stderr
    assert messages[0].startswith("[OUTPUT_FAILED]")


def test_a_closed_output_is_one_line() -> None:
    done = subprocess.run(
        ["sh", "-c", '"$0" "$@" >&-', *CALL, "--version"], stderr=subprocess.PIPE, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith("[OUTPUT_FAILED]")
    assert len(done.stderr.splitlines()) == 1
