"""The program as tests call it, in this process."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import tamis
from tamis.cli.app import program


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Outcome]


@pytest.fixture
def run() -> Run:
    """Calls ``tamis`` with the arguments given; what it printed and its exit code."""

    def call(*arguments: object) -> Outcome:
        done = CliRunner().invoke(program, [str(a) for a in arguments])
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return Outcome(done.exit_code, done.stdout, done.stderr)

    return call


@pytest.fixture(scope="session")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of four parts: n from 0 to 39, clustered, and texts beside it."""
    path = tmp_path_factory.mktemp("cli") / "numbers"
    table = tamis.create(path, cluster_by=["n"])
    for first in range(0, 40, 10):
        n = list(range(first, first + 10))
        table.append(pa.table({"n": n, "word": [f"w{x % 3}" if x % 4 else None for x in n]}))
    return path
