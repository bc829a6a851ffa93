"""Changes of a table's schema from the command line."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Run

import tamis


def test_a_plain_column_does_not_become_a_generated_one(run: Run, tmp_path: Path) -> None:
    table = tmp_path / "t"
    tamis.create(table, "x INT, g INT")
    done = run("schema", "evolve", table, "x INT, g INT GENERATED ALWAYS AS (x % 7)")
    assert done.code == 1
    assert "[GENERATED_COLUMN]" in done.err
    made = tmp_path / "made"
    tamis.create(made, "x INT, g INT GENERATED ALWAYS AS (x % 7)")
    assert run("schema", "evolve", made, "x INT, g INT GENERATED ALWAYS AS (x % 7)").code == 0
