"""Rows that a source's own format deleted are gone, whichever way a query takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tamis
from tests.oracle import foreign_sources
from tests.oracle import history as h

ROWS = 400
GONE = (0, 1, *range(100, 150), 199, 200, 201, *range(390, 400))
"""The first and the last, and some in the middle: bounds in footers and logs still are those of all rows."""
LEFT = [k for k in range(ROWS) if k not in GONE]
WAYS = [("delta", "vectors"), ("iceberg", "positions"), ("iceberg", "vectors"), ("iceberg", "equality")]


def value(k: int) -> int:
    return k * 37 % 400


@pytest.fixture(params=WAYS, ids=" by ".join)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> tamis.Table:
    source, deletes = request.param
    keys = [*range(ROWS)]
    step = h.Adopt(
        {"k": "bigint", "v": "int", "s": "string"},
        source=source,
        values={"k": keys, "v": [value(k) for k in keys], "s": [f"s{k:03}" for k in keys]},
        files=2,
        row_group=50,
        deleted=GONE,
        options={"deletes": deletes},
    )
    foreign_sources.adopt(step, tmp_path / "table")
    return tamis.open(tmp_path / "table")


def keys_of(table: tamis.Table, row_filter: str | None = None, **more: Any) -> list[int]:
    return sorted(table.scan(row_filter, ["k"], **more).to_arrow()["k"].to_pylist())


def test_counts_and_bounds_are_those_of_the_rows_that_are_left(table: tamis.Table) -> None:
    assert table.scan().count() == len(LEFT)
    assert table.scan("k >= 0").count() == len(LEFT)
    assert table.scan("k = 0").count() == 0
    assert not table.scan("k >= 390").exists()
    measures = ["count(*)", "count(k)", "min(k)", "max(k)", "max(s)"]
    for measure, wanted in (("min(k)", min(LEFT)), ("max(k)", max(LEFT))):
        assert table.scan().aggregate([measure]).to_pylist() == [{measure: wanted}]
    (found,) = table.scan().aggregate(measures).to_pylist()
    assert list(found.values()) == [len(LEFT), len(LEFT), min(LEFT), max(LEFT), f"s{max(LEFT):03}"]
    (found,) = table.scan("k < 200").aggregate(measures).to_pylist()
    low = [k for k in LEFT if k < 200]
    assert list(found.values()) == [len(low), len(low), min(low), max(low), f"s{max(low):03}"]


@pytest.mark.push_cases(7)
@pytest.mark.parametrize("limit", [1, 140, 190, len(LEFT), ROWS])
def test_a_limit_counts_no_deleted_row(table: tamis.Table, limit: int) -> None:
    for row_filter in (None, "k >= 0"):
        found = keys_of(table, row_filter, limit=limit)
        assert len(found) == min(limit, len(LEFT))
        assert set(found) <= set(LEFT)


@pytest.mark.push_cases(4)
@pytest.mark.parametrize("lazy", ["on", "off", "auto"])
def test_filters_find_no_deleted_row(table: tamis.Table, lazy: str) -> None:
    options = {"tamis.read.lazy": lazy}
    for low, high in ((0, 5), (95, 155), (195, 205), (380, 400)):
        wanted = [k for k in LEFT if low <= k < high]
        assert keys_of(table, f"k >= {low} AND k < {high}", options=options) == wanted
    assert keys_of(table, f"v = {value(100)}", options=options) == []
    assert keys_of(table, f"v = {value(99)}", options=options) == [99]


@pytest.mark.push_cases(3)
@pytest.mark.parametrize(("order", "backwards"), [("k", False), ("k DESC", True)])
def test_an_order_with_a_limit_begins_with_a_row_that_is_left(table: tamis.Table, order: str, backwards: bool) -> None:
    for limit in (1, 7, 140, 160, 190, 199, 250):
        found = table.scan(None, ["k"], order_by=order, limit=limit).to_arrow()["k"].to_pylist()
        assert found == sorted(LEFT, reverse=backwards)[:limit]


@pytest.mark.push_cases(3)
@pytest.mark.parametrize("use", ["lookup", "plan"])
def test_an_index_that_was_built_finds_no_deleted_row(table: tamis.Table, use: str) -> None:
    table.create_index("by_v", ["v"])
    table.repair_index()
    for k in (*GONE[:8], *GONE[-3:], 2, 99, 150, 202):
        assert keys_of(table, f"v = {value(k)}", options={"tamis.index.use": use}) == ([k] if k in LEFT else [])


@pytest.mark.push_cases(2)
def test_compaction_and_changes_bring_none_back(table: tamis.Table) -> None:
    table.alter().cluster_by(["v"]).commit()
    table.compact()
    assert keys_of(table) == LEFT
    table.overwrite(table.scan().to_arrow(), allow_outside=True)
    assert not table.snapshot.parts()["source"].drop_null().to_pylist(), "all parts are the table's own"
    assert keys_of(table) == LEFT
    table.restore(0)
    assert keys_of(table) == LEFT
    table.delete("k < 50")
    table.update({"s": "'new'"}, "k >= 300")
    assert keys_of(table) == [k for k in LEFT if k >= 50]
    assert keys_of(table, "s = 'new'") == [k for k in LEFT if k >= 300]
    table.restore(0)
    assert keys_of(table) == LEFT
    assert table.verify().ok
