"""``tamis constraint``: what it prints, what it does, and how it exits."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from tests.cli.conftest import Run

import tamis


@pytest.fixture
def place(tmp_path: Path) -> str:
    of = tamis.create(tmp_path / "t", "id BIGINT, price DOUBLE")
    of.append(pa.table({"id": [1], "price": [1.0]}))
    return str(of.path)


def test_add_list_and_drop(run: Run, place: str) -> None:
    made = run("constraint", "add", place, "sane", "--check", "price >= 0")
    assert (made.code, made.err) == (0, "Constraint sane added: CHECK (price >= 0) ENFORCED.\n")
    done = run("constraint", "add", place, "pk", "--primary-key", "id, price", "--json").json
    assert done["changes"] == ["constraint pk added: PRIMARY KEY (id, price) NOT ENFORCED"]
    assert run("constraint", "add", place, "u", "--unique", "id").code == 0
    assert [row["name"] for row in run("constraint", "list", place, "--json").json] == ["sane", "pk", "u"]
    assert "CHECK (price >= 0) ENFORCED" in run("constraint", "list", place).out
    assert "CHECK (price >= 0)" in run("describe", place).out
    assert run("constraint", "drop", place, "SANE").err == "Constraint sane dropped.\n"
    assert run("constraint", "drop", place, "sane", "--if-exists").err == "Nothing changed.\n"
    missing = run("constraint", "drop", place, "sane")
    assert (missing.code, "CONSTRAINT_NOT_FOUND" in missing.err) == (1, True)


def test_what_is_refused(run: Run, place: str) -> None:
    assert "CHECK_VIOLATION" in run("constraint", "add", place, "c", "--check", "price > 1").err
    for wrong in ((), ("--check", "id > 0", "--unique", "id")):
        assert run("constraint", "add", place, "c", *wrong).code == 2
