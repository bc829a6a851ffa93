"""Escape sequences in values, names of columns, filters and errors are shown, never sent to the terminal."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from tests.cli.conftest import Run

import tamis

EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\x7f\u202egnp"
SENT = {*map(chr, range(32)), *map(chr, range(127, 160)), "\u202e"} - {"\n"}


@pytest.fixture
def evil(tmp_path: Path) -> Path:
    table = tamis.create(tmp_path / "t", pa.schema([(EVIL, pa.string()), ("a", pa.int64())]), properties={"note": EVIL})
    table.append(pa.table({EVIL: [EVIL, None], "a": [1, 2]}))
    table.delete(f"`{EVIL}` = '{EVIL}' AND a > 5")
    return tmp_path / "t"


@pytest.mark.push_cases(5)
@pytest.mark.parametrize(
    "words",
    [
        ("query",),
        ("query", "--json"),
        ("query", "--report", "--where", f"`{EVIL}` = '{EVIL}'"),
        ("explain", "--where", f"`{EVIL}` = '{EVIL}'"),
        ("explain", "--json", "--where", f"`{EVIL}` = '{EVIL}'"),
        ("describe",),
        ("describe", "--json"),
        ("history",),
        ("history", "--json"),
        ("schema",),
        ("query", "--where", f"`{EVIL}` ="),
        ("query", "--where", f"nope{EVIL} = 1"),
        ("query", "--select", f"nope{EVIL}"),
        ("query", "--set", f"tamis.nope{EVIL}=1"),
    ],
    ids=lambda words: " ".join(w for w in words if EVIL not in w),
)
def test_nothing_is_sent_to_the_terminal(run: Run, evil: Path, words: tuple[str, ...]) -> None:
    done = run(words[0], evil, *words[1:])
    assert not SENT & set(done.out)
    assert not SENT & set(done.err)
    assert done.out + done.err
    if words in {("query",), ("describe",)}:
        assert "\\x1b]0;owned\\x07\\x1b[2J\\x9b31m\\x7f\\u202egnp" in "".join(done.out.split())


def test_a_path_in_an_error(run: Run, tmp_path: Path) -> None:
    done = run("query", f"{tmp_path}/x\x9bnope")
    assert done.code != 0
    assert not SENT & set(done.err)
