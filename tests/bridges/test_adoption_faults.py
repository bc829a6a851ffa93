"""An adoption that dies at any request leaves no table or the whole one, and its source as it was."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

import tamis
from tamis.errors import AlreadyExists, CorruptData, NotFound, StoreUnavailable, TamisError
from tests.bridges.store_requests import BeforeRequest, failing_from, hooked_requests
from tests.oracle import foreign_sources
from tests.oracle import history as h

ROWS = 60
GONE = (3, 40)
CASES = ("folder", "hive", "delta", "iceberg", "copy")


class Killed(BaseException):
    """The process is gone: nothing catches it."""


class Lost(StoreUnavailable):
    """A request that fails however often it is made."""


def source(folder: Path, case: str) -> Path:
    """What is adopted; with deletes where the format has them."""
    kind = "delta" if case == "copy" else case
    step = h.Adopt(
        {"k": "bigint", "p": "int"},
        source=kind,
        values={"k": [*range(ROWS)], "p": [k // 30 for k in range(ROWS)]},
        files=3,
        partition="p" if kind == "hive" else None,
        deleted=GONE if kind in {"delta", "iceberg"} else (),
        options={"deletes": "vectors"},
    )
    folder.mkdir(exist_ok=True)
    return foreign_sources.WRITERS[kind](step, folder / "source")


def contents(place: Path) -> dict[str, tuple[int, bytes]]:
    return {str(p): (p.stat().st_mtime_ns, p.read_bytes()) for p in sorted(place.rglob("*")) if p.is_file()}


def adopt(place: Path, table: Path, case: str) -> None:
    tamis.adopt(place, table, mode="copy" if case == "copy" else "reference")


def keys(table: Path) -> list[int] | None:
    """The rows of the table; None if there is none."""
    try:
        return sorted(tamis.open(table).scan(None, ["k"]).to_arrow()["k"].to_pylist())
    except NotFound:
        return None


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["killed", "lost"])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.push_cases(2)
def test_at_any_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str, fault: str) -> None:
    place = source(tmp_path, case)
    before = contents(tmp_path / "source")
    deleted = set(GONE) if case not in {"folder", "hive"} else set()
    wanted = [k for k in range(ROWS) if k not in deleted]
    landed: list[bool] = []
    outlived = False
    while not outlived:
        at, table = len(landed), tmp_path / f"t{len(landed)}"
        failing = failing_from(at, lambda p: Killed() if fault == "killed" else Lost("gone", name=p, remedy="wait"))
        with hooked_requests(monkeypatch, failing) as count, contextlib.suppress(Killed, StoreUnavailable):
            adopt(place, table, case)
            outlived = count[0] <= at
        found = keys(table)
        assert found in (None, wanted), f"{fault} at request {at}"
        assert contents(tmp_path / "source") == before
        landed.append(found is not None)
        if found is None:
            adopt(place, table, case)
            assert keys(table) == wanted, f"again after request {at}"
            assert tamis.open(table).verify().ok
    assert landed == sorted(landed), "one moment at which it lands"
    assert len(landed) > 5


@pytest.mark.push_cases(2)
@pytest.mark.parametrize("case", ["folder", "hive", "delta", "iceberg"])
def test_a_source_that_is_written_while_it_is_adopted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    """At any request of an adoption, a data file is written again: the table refuses to read it, or was never made."""
    place = source(tmp_path, case)
    file = max((tmp_path / "source").rglob("*.parquet"), key=lambda p: p.stat().st_size)
    data = file.read_bytes()
    outcomes = set()
    for at in range(200):
        file.write_bytes(data)
        table, outcome = tmp_path / f"t{at}", ""
        with hooked_requests(monkeypatch, _cutting(file, data, at)) as count:
            try:
                adopt(place, table, case)
            except TamisError as error:
                outcome = error.code
        if outcome:
            assert keys(table) is None
            outcomes.add(outcome)
            continue
        if count[0] <= at:
            break
        with pytest.raises(CorruptData, match="SOURCE_CHANGED"):
            keys(table)
        outcomes.add("refused when read")
    else:
        raise AssertionError("an adoption makes fewer requests")
    assert "SOURCE_CHANGED" in outcomes <= {"SOURCE_CHANGED", "NOT_PARQUET", "SOURCE_DIFFERS", "refused when read"}


def _cutting(file: Path, data: bytes, at: int) -> BeforeRequest:
    """Cut the file in half ahead of request ``at``."""

    def before(number: int, _: str, __: str) -> None:
        if number == at:
            file.write_bytes(data[: len(data) // 2])

    return before


def test_a_copy_of_a_damaged_file_leaves_nothing(tmp_path: Path) -> None:
    place = source(tmp_path, "folder")
    file = max((tmp_path / "source").rglob("*.parquet"))
    data = file.read_bytes()
    file.write_bytes(data[:4] + bytes(100) + data[104:])
    with pytest.raises(CorruptData):
        tamis.adopt(place, tmp_path / "t", mode="copy")
    assert keys(tmp_path / "t") is None
    assert not [path for path in (tmp_path / "t").rglob("*") if path.is_file()]
    file.write_bytes(data)
    table = tamis.adopt(place, tmp_path / "t", mode="copy")
    assert isinstance(table, tamis.Table)
    assert keys(tmp_path / "t") == list(range(ROWS))
    assert table.history()["operation"].to_pylist() == ["create"]
    with pytest.raises(AlreadyExists):
        tamis.adopt(place, tmp_path / "t", mode="copy")
    assert keys(tmp_path / "t") == list(range(ROWS))
