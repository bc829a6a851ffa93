"""Parts of an embedded scan cut into windows, and read ahead: the rows and the report of whole parts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tamis
from tamis.engine.part_reader import split_windows
from tamis.engine.part_writer import write_part
from tamis.engine.scan import parallel_reader, scan_execution
from tamis.errors import InvalidInput

ROWS, BLOCK = 20_000, 4_096
OPTIONS = [{}, {"tamis.index.use": "off"}, {"tamis.audit.percent": 100}]


@pytest.fixture(scope="module", params=["parquet", "vortex", "orc"])
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Five parts, more than threads on a machine of two cores; the last ones have deleted rows and a new column."""
    made = tamis.create(tmp_path_factory.mktemp("windows"), format=request.param)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(write_part, "BLOCK_ROWS", (BLOCK, BLOCK))
        for load in range(5):
            n = np.arange(load * ROWS, (load + 1) * ROWS)
            made.append(pa.table({"n": n, "x": pa.array(n % 7, mask=n % 11 == 0), "t": np.char.mod("t%d", n % 1000)}))
    made.delete("n % 1000 = 3 AND n > 60000")
    made.alter().add_column("late", "int", default=5).commit()
    return made


@pytest.fixture
def cut(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Makes windows of a block; how many each part was cut into."""
    counts: list[int] = []

    def counted(ref: Any, count: int) -> Any:
        found = split_windows(ref, count)
        counts.append(len(found))
        return found

    monkeypatch.setattr(scan_execution, "LEAST_BYTES", 1)
    monkeypatch.setattr(scan_execution, "WINDOW_BYTES", 1_000)
    monkeypatch.setattr(scan_execution, "split_windows", counted)
    monkeypatch.setattr(scan_execution, "reader_threads", lambda _: 3)
    return counts


def read(table: Any, where: str | None, options: dict[str, Any]) -> tuple[Any, ...]:
    scan = table.scan(where, options=options)
    rows = scan.to_arrow().to_pydict()
    report, count = scan.report, table.scan(where, options=options)
    return rows, count.count(), report.rows["total"], report.rows["matched"], report.blocks["total"]


@pytest.mark.parametrize("options", OPTIONS, ids=["plain", "no index", "audited"])
@pytest.mark.parametrize("where", [None, "x = 3", "n % 5000 = 1", "n > 30000 AND late = 5", "x IS NULL", "t = 't77'"])
@pytest.mark.push_cases(14)
def test_windows_of_many_parts_give_the_same(
    table: Any, where: str | None, options: dict[str, Any], request: pytest.FixtureRequest
) -> None:
    whole = read(table, where, options)
    counts: list[int] = request.getfixturevalue("cut")
    assert read(table, where, options) == whole
    assert bool(counts) == ("tamis.audit.percent" not in options or where is None), "audited parts stay whole"
    assert max(counts, default=2) > 1


def test_the_first_error_is_the_first_in_the_order_of_rows(table: Any, cut: list[int]) -> None:
    """Windows behind it fail earlier in time, for other reasons."""
    failing = "IF(n = 45000, CAST('a' AS INT), IF(n > 90000, CAST('b' AS INT), 1)) = 1"
    stream = iter(table.scan(failing, ["n"]).to_batches())
    seen: list[int] = []
    with pytest.raises(InvalidInput, match="'a'"):
        seen.extend(n for batch in stream for n in batch.column(0).to_pylist())
    assert seen == [n for n in range(seen[-1] + 1) if not (n % 1000 == 3 and n > 60000)]
    assert seen[-1] < 45_000
    assert max(cut) > 1


@pytest.mark.parametrize(("limit", "expected"), [(None, parallel_reader.AHEAD_BYTES), (5, 0)])
def test_who_wants_few_rows_is_not_read_ahead_for(
    table: Any, monkeypatch: pytest.MonkeyPatch, limit: int | None, expected: int
) -> None:
    ahead_limits: list[int] = []
    real: Callable[..., Any] = parallel_reader.read_in_order

    def read_in_order(work: Any, workers: int, ahead_bytes: int) -> Any:
        ahead_limits.append(ahead_bytes)
        return real(work, workers, ahead_bytes)

    monkeypatch.setattr(scan_execution, "read_in_order", read_in_order)
    table.scan("n > 7", limit=limit).to_arrow()
    assert ahead_limits == [expected]


def test_a_consumer_that_stops_stops_all_windows(table: Any, cut: list[int], tmp_path: Path) -> None:
    scan = table.scan("n >= 0")
    stream = scan.to_batches()
    first = stream.read_next_batch()
    stream.close()
    del stream
    assert first.column(0)[0].as_py() == 0
    assert scan.report is not None
    assert scan.report.seconds["read"] >= 0


def test_windows_are_cut_by_what_is_read(table: Any, cut: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each window opens its part again. Of narrow and of lazy scans, more of a part fits into one."""
    monkeypatch.setattr(scan_execution, "WINDOW_BYTES", max(part.bytes for part in table.scan().plan().parts) // 4)
    made = {}
    for name, (where, columns, lazy) in {
        "all": (None, ("*",), "auto"),
        "eager": ("n <> 7", ("*",), "off"),
        "lazy": ("n <> 7", ("*",), "auto"),
        "narrow": (None, ("x",), "auto"),
    }.items():
        cut.clear()
        table.scan(where, columns, options={"tamis.read.lazy": lazy}).to_arrow()
        made[name] = sum(cut)
    assert made["narrow"] < made["lazy"] <= made["all"] == made["eager"]
