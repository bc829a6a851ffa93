"""A source's file that is replaced while it is read: rows of the file that was adopted, or an error; never rows of another."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import obstore
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tamis
from tamis.errors import CorruptData
from tamis.storage.object_store import open_store
from tests.bridges.store_requests import hooked_requests

ROWS, GROUP = 40_000, 4_000


def contents(sign: int) -> bytes:
    """A file in which ``a`` and ``b`` are equal in each row, with much between them; ``sign`` changes no size."""
    numbers = pa.array(np.arange(1, ROWS + 1) * sign)
    between = pa.array(np.char.mod("%032d", np.arange(ROWS)))
    held = io.BytesIO()
    table = pa.table({"a": numbers, "between": between, "b": numbers})
    pq.write_table(table, held, compression="none", use_dictionary=False, row_group_size=GROUP)
    return held.getvalue()


OLD, NEW = contents(1), contents(-1)
FILTERS = [None, "a + b > 0", "b * 1 <> 12345"]


def test_the_files_have_one_layout() -> None:
    assert len(OLD) == len(NEW)


OTHERS = {"equal size": NEW, "shorter": NEW[: len(NEW) // 2], "longer": b"PAR1" + NEW}


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("row_filter", FILTERS)
def test_a_local_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, row_filter: str | None, other: str) -> None:
    """It is replaced ahead of each request of a scan in turn."""
    file = tmp_path / "source" / "x.parquet"
    file.parent.mkdir()
    file.write_bytes(OLD)
    tamis.adopt(file.parent, tmp_path / "table")
    expected = tamis.open(tmp_path / "table").scan(row_filter, ("a", "b")).to_arrow()
    outcomes: list[str] = []
    for at in range(200):
        file.write_bytes(OLD)
        tamis.adopt(file.parent, tmp_path / f"t{at}")
        table = tamis.open(tmp_path / f"t{at}")
        (tmp_path / "new").write_bytes(OTHERS[other])
        with hooked_requests(monkeypatch, lambda number, *_, at=at: replaced(file, number == at)) as count:
            outcomes.append(outcome(table, row_filter, expected))
        if count[0] <= at:
            break
    assert {"rows", "SOURCE_CHANGED"} == set(outcomes)


def replaced(file: Path, now: bool) -> None:
    if now:
        (file.parent.parent / "new").replace(file)


def outcome(table: Any, row_filter: str | None, expected: pa.Table) -> str:
    """``rows`` if the scan gives the expected ones, or the code of its error."""
    try:
        found = table.scan(row_filter, ("a", "b")).to_arrow()
    except CorruptData as error:
        return error.code
    assert found.sort_by("a").equals(expected.sort_by("a"))
    return "rows"


def test_a_local_file_between_two_batches(tmp_path: Path) -> None:
    file = tmp_path / "source" / "x.parquet"
    file.parent.mkdir()
    file.write_bytes(OLD)
    (tmp_path / "new").write_bytes(NEW)
    batches = iter(tamis.adopt(file.parent, tmp_path / "table").scan("b * 1 <> 12345", ("a",)).to_batches())
    seen = [next(batches)]
    replaced(file, now=True)
    with pytest.raises(CorruptData, match="SOURCE_CHANGED"):
        seen.extend(batches)
    assert all(value > 0 for batch in seen for value in batch.column("a").to_pylist())


@pytest.mark.parametrize("shorter", [False, True])
@pytest.mark.parametrize("ahead_of", range(3))
def test_an_object_with_an_etag(monkeypatch: pytest.MonkeyPatch, ahead_of: int, shorter: bool) -> None:
    """It is replaced ahead of one of the requests of a read of three spans that lie far apart."""
    place = f"memory://replaced-{ahead_of}-{shorter}"
    store = open_store(f"{place}/table").open_source_store(f"{place}/table")
    store.put("x", b"1" * 3_000_000)
    etag, calls, get = store.entry("x").etag, [0], obstore.get
    assert etag

    def counted(*args: Any, **options: Any) -> Any:
        if calls[0] == ahead_of:
            store.put("x", b"2" * (1_000_000 if shorter else 3_000_000))
        calls[0] += 1
        return get(*args, **options)

    spans = [(0, 10), (1_500_000, 10), (2_900_000, 10)]
    assert [bytes(view) for view in store.views("x", spans, etag=etag)] == [b"1" * 10] * 3
    monkeypatch.setattr(obstore, "get", counted)
    with pytest.raises(CorruptData) as caught:
        store.views("x", spans, etag=etag)
    assert caught.value.code == "OBJECT_CHANGED"
    assert calls[0] > ahead_of, "it was replaced"
