"""compact, vacuum, verify: what they print, and how they exit."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from tests.cli.conftest import Run

import tamis


@pytest.fixture
def place(tmp_path: Path) -> str:
    of = tamis.create(tmp_path / "t", pa.schema([("a", pa.int64())]), cluster_by=["a"])
    for i in range(6):
        of.append(pa.table({"a": [i, i + 10, i + 20]}))
    return of.path


def test_compact_then_vacuum_then_verify(run: Run, place: str) -> None:
    planned = run("compact", place, "--dry-run", "--json").json
    assert [g["parts"] for g in planned["groups"]] == [6]
    assert "small parts" in run("compact", place, "--dry-run").out
    done = run("compact", place)
    assert "6 parts became 1 in 1 commit" in done.out
    assert "█" in done.out
    assert "█" in run("describe", place).out
    assert "Nothing to do" in run("compact", place, "--dry-run").out

    dry_run = run("vacuum", place, "--retention", "0s", "--below-retention")
    assert "Would remove 6 objects" in dry_run.out
    assert tamis.open(place, version=3).scan().count() == 9
    removed = run("vacuum", place, "--retention", "0s", "--below-retention", "--yes", "--json").json
    assert (removed["objects"], len(removed["paths"]), removed["failed"]) == (6, 6, 0)
    assert "All is well" in run("verify", place).out
    assert run("verify", place, "--quick", "--json").json["ok"]


def test_sizes_have_units(run: Run, place: str) -> None:
    assert run("compact", place, "--max-bytes", "1GB", "--dry-run", "--json").json["groups"]
    for text in ("1 potato", "0", "-1"):
        assert run("compact", place, f"--max-bytes={text}").code == 2
    assert run("explain", place, "--where", "a = 1", "--max-bytes", "64MB").code == 0
    assert run("explain", place, "--where", "a = 1", "--max-bytes", "1").code == 1


def test_verify_fails_where_something_is_wrong(run: Run, place: str) -> None:
    next(Path(place).glob("data/*")).unlink()
    done = run("verify", place)
    assert done.code == 1
    assert "MISSING_OBJECT" in done.out
    assert "[NOT_WELL] 1 problem" in done.err


@pytest.mark.parametrize("text", ["7", "a week", "-3d"])
def test_a_retention_has_a_unit(run: Run, place: str, text: str) -> None:
    assert run("vacuum", place, f"--retention={text}").code == 2


def test_a_table_is_clustered_anew(run: Run, tmp_path: Path) -> None:
    table = tamis.create(tmp_path / "t", pa.schema([("a", pa.int64()), ("b.c", pa.int64())]), cluster_by=["a"])
    planned = run("schema", "cluster", table.path, "`b.c`,a", "--dry-run", "--json").json
    assert (planned["changes"], planned["dry_run"], planned["version"]) == (["clustered by `b.c`, `a`"], True, None)
    assert table.detail()["clustering_columns"].to_pylist() == [["a"]]
    done = run("schema", "cluster", table.path, "`b.c`,a")
    assert (done.code, "is at schema 1" in done.err) == (0, True)
    assert table.detail()["clustering_columns"].to_pylist() == [["b.c", "a"]]
    assert run("schema", "cluster", table.path, "--none", "--json").json["changes"] == ["no longer clustered"]
    assert table.detail()["clustering_columns"].to_pylist() == [[]]
    for arguments in ((), ("a", "--none")):
        assert run("schema", "cluster", table.path, *arguments).code == 2
