"""``tamis index``: what it prints, what it does, and how it exits."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from tests.cli.conftest import Run
from tests.secondary_index.tables import failing

import tamis


@pytest.fixture
def place(tmp_path: Path) -> str:
    of = tamis.create(tmp_path / "t")
    for load in range(3):
        of.append(pa.table({"k": list(range(load, 30, 3)), "g": [load] * 10}))
    return str(of.path)


def test_create_list_and_drop(run: Run, place: str) -> None:
    made = run("index", "create", place, "by_k", "k")
    assert (made.code, "Made the index by_k" in made.err) == (0, True)
    assert run("index", "create", place, "both", "g,k", "--build", "deferred", "--json").json["parts_added"] == 0
    listed = {entry["name"]: entry for entry in run("index", "list", place, "--json").json}
    assert [(listed[n]["columns"], len(listed[n]["covered"]), len(listed[n]["missing"])) for n in ("by_k", "both")] == [
        (["k"], 3, 0),
        (["g", "k"], 0, 3),
    ]
    shown = run("index", "list", place)
    assert all(word in shown.out for word in ("by_k", "g, k", "deferred"))
    assert shown.err.count("both: segment") == 3
    assert "Dropped the index by_k" in run("index", "drop", place, "by_k").err
    assert [entry["name"] for entry in run("index", "list", place, "--json").json] == ["both"]


def test_repair(run: Run, place: str) -> None:
    run("index", "create", place, "by_k", "k", "--build", "deferred")
    first, *others = tamis.open(place).metadata("segments")["segment_id"].to_pylist()
    assert "1 index parts were built" in run("index", "repair", place, "by_k", "--segments", first).err
    assert set(run("index", "list", place, "--json").json[0]["missing"]) == set(others)
    with failing():
        refused = run("index", "repair", place)
    assert (refused.code, "INDEX_BUILD_FAILED" in refused.err) == (1, True)
    assert run("index", "repair", place, "--json").json["parts_added"] > 0
    assert "Nothing was missing" in run("index", "repair", place).err


def test_segments_are_forgotten_and_built_again_with_progress(run: Run, place: str) -> None:
    assert "Building by_k: 100%" in run("index", "create", place, "by_k", "k").err
    first, second, third = tamis.open(place).metadata("segments")["segment_id"].to_pylist()
    assert "no longer covers" in run("index", "drop-segments", place, "by_k", f"{first},{third}").err
    listed = run("index", "list", place, "--json").json[0]
    assert (listed["covered"], set(listed["missing"])) == ([second], {first, third})
    assert "covered none" in run("index", "drop-segments", place, "by_k", first).err
    progress_calls: list[tuple[int, str]] = []
    table = tamis.open(place)
    table.repair_index("by_k", [third], progress=lambda amount, message: progress_calls.append((amount, message)))
    assert (sum(amount for amount, _ in progress_calls), progress_calls[0][1], len(progress_calls)) == (
        table.detail()["size_in_bytes"][0].as_py(),
        "by_k: 1 of 3 parts to read",
        2,
    )
    assert run("index", "drop-segments", place, "by_k", second, "--json").json["version"] == table.version + 1
    assert "Repairing by_k: 100%" in run("index", "repair", place, "by_k").err


@pytest.mark.push_cases(2)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("create", "by_k", "nothing"), "nothing"),
        (("create", "by_k", "k", "--build", "soon"), "with_write or deferred"),
        (("drop", "other"), "INDEX_NOT_FOUND"),
        (("repair", "other"), "INDEX_NOT_FOUND"),
        (("drop-segments", "other", "x"), "INDEX_NOT_FOUND"),
        (("repair", "--segments", "none such"), "UNKNOWN_SEGMENT"),
    ],
)
def test_refusals(run: Run, place: str, arguments: tuple[str, ...], message: str) -> None:
    done = run("index", arguments[0], place, *arguments[1:])
    assert done.code == 1
    assert message in done.err
