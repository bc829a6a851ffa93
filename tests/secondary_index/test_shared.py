"""Look-ups that are left to those who read the rows, and rows that come from an index alone: what comes out is what a scan without index gives."""

from __future__ import annotations

import importlib
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tamis
from tamis.engine.part_reader import ReadCounters, read_part
from tamis.engine.scan import Report
from tamis.engine.secondary_index import index_lookup, lookup_cost, shared_lookup
from tamis.storage.object_store.lru_cache import LruCache
from tests.secondary_index.tables import SEGMENTS, delete, ids, key_in, rows_of, same, table_a, used

PLAN, LOOKUP = {"tamis.index.use": "plan"}, {"tamis.index.use": "lookup"}
FILTERS = [
    f"k = {key_in(1)}",
    "k BETWEEN 100 AND 3000",
    "k < 60 OR k > 9990",
    "k IN (1, 2, 3, 4000, 9999)",
    "k >= 0",
    "k = 5 AND w >= 0",
    "k > 100 AND k < 300 AND g = 3",
    "g = 4 AND k < 2000",
    "k = 1 OR s = 'ab000123'",
    "k = -1",
]


@pytest.fixture(scope="module")
def t(tmp_path_factory: pytest.TempPathFactory) -> tamis.Table:
    """Of five segments ik covers three, igk four; rows are deleted in all of them, and one is gone."""
    table = table_a(tmp_path_factory.mktemp("shared") / "t", ("ik", "k"), ("is", "s"), ("igk", ["g", "k"]))
    every = ids(table)
    table.drop_index_segments("ik", [every[1], every[4]])
    table.drop_index_segments("igk", [every[0]])
    assert delete(table, "k IN (1, 3, 120, 2999, 9998) OR k % 97 = 0") > 100
    assert delete(table, f"k IN ({', '.join(map(str, rows_of(2)['k'].to_pylist()))})") > 1_900
    assert len(ids(table)) == SEGMENTS - 1
    return table


def base_bytes(report: Report | None) -> int:
    assert report is not None
    return int(report.bytes.leader + report.bytes.follower)


@pytest.mark.parametrize("columns", [("*",), ("k",), ("w", "k"), ("k", "g")])
@pytest.mark.parametrize("row_filter", FILTERS)
@pytest.mark.push_cases(5)
def test_both_paths_give_the_rows_and_counts_of_a_scan_without_index(
    t: tamis.Table, row_filter: str, columns: tuple[str, ...]
) -> None:
    for options in (PLAN, LOOKUP, {}):
        same(t, row_filter, columns, options=options)


def test_a_plan_asks_where_rows_are_read(t: tamis.Table) -> None:
    made = t.scan("k BETWEEN 100 AND 3000 AND w >= 0", options=PLAN).plan()
    assert [one.name for one in made.shared] == ["igk", "ik"], (
        "the second answers for the segments that the first misses"
    )
    assert not set(made.shared[0].places) & set(made.shared[1].places)
    assert "candidates" not in made.parts.table.column_names
    assert (made.report.bytes.index, made.report.parts.skipped_index) == (0, 0)
    assert "each task asks ik" in made.report.index_reason
    report = same(t, "k BETWEEN 100 AND 3000 AND w >= 0", options=PLAN)
    assert report.bytes.index > 0
    assert used(report) == {"igk": (3, 1), "ik": (1, 0)}
    assert used(same(t, "k BETWEEN 100 AND 3000 AND w >= 0", options={"tamis.index.use": "ik"})) == {"ik": (2, 2)}
    looked = t.scan("k BETWEEN 100 AND 3000 AND w >= 0", options=LOOKUP).plan()
    assert looked.shared == ()
    assert looked.report.bytes.index > 0


def test_a_large_result_is_left_to_the_tasks(t: tamis.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    row_filter = "k BETWEEN 100 AND 900 AND w >= 0"
    assert t.scan(row_filter).plan().shared == ()
    monkeypatch.setattr(importlib.import_module("tamis.engine.secondary_index.index_choice"), "DRIVER_HITS", 0)
    made = t.scan(row_filter).plan()
    assert {one.name for one in made.shared} == {"ik", "igk"}
    same(t, row_filter)


def test_a_task_gets_what_its_own_parts_need(t: tamis.Table) -> None:
    made = t.scan("k BETWEEN 100 AND 3000", options=PLAN).plan()
    first = made.parts[0].part_id
    mine = made.shared[0].for_parts([first])
    assert set(mine.places) <= {first}
    assert len(mine.segments) <= 1
    assert pickle.loads(pickle.dumps(mine)) == mine  # our own


def test_what_is_left_to_tasks_does_not_grow_with_what_they_find(t: tamis.Table) -> None:
    """The driver's memory stays as it is however much a look-up finds."""

    def planned(use: str, least: int) -> int:
        made = t.scan(f"k BETWEEN {least} AND 9000 AND w >= 0", options={"tamis.index.use": use}).plan()
        return len(pickle.dumps((made.shared, list(made.parts))))

    assert planned("plan", 50) < 1.1 * planned("plan", 8_990)
    assert planned("lookup", 50) > 2 * planned("lookup", 8_990)


def test_an_index_that_cannot_be_read_by_a_task_leaves_the_part_whole(tmp_path: Path) -> None:
    table = table_a(tmp_path / "t", ("ik", "k"), segments=2)
    for columns in (("*",), ("k",)):
        scan = table.scan("k BETWEEN 100 AND 3000", columns, options=PLAN)
        expected = table.scan("k BETWEEN 100 AND 3000", columns, options={"tamis.index.use": "off"}).to_arrow()
        made = scan.plan_read()
        (shared,) = made.shared
        for path in (tmp_path / "t" / "index").iterdir():
            path.rename(path.with_suffix(".gone"))
        found = [b for ref in made.parts for b in shared.batches(ref, made.spec, ReadCounters(), read_part)]
        assert pa.Table.from_batches(found).num_rows == len(expected) > 0
        assert not [key for key in shared_lookup._asking if key[0] == shared.token], "nothing waits any more"
        kept = [shared_lookup._failed.get((shared.token, at)) for at in shared.segments]
        assert kept
        assert all(error is not None and error.__traceback__ is None for error in kept), "it would hold the lookup"
        for path in (tmp_path / "t" / "index").iterdir():
            path.rename(path.with_suffix(".parquet"))


@pytest.mark.parametrize("options", [{}, PLAN])
def test_rows_come_from_the_index_alone(tmp_path: Path, options: Any) -> None:
    table = table_a(tmp_path / "t", ("ik", "k"), ("igk", ["g", "k"]))
    assert delete(table, "k IN (7, 8)") == 2
    for row_filter, columns, rows in (
        ("k < 50", ("k",), 48),
        ("g = 3 AND k < 500", ("k", "g"), 50),
        ("k = 7", ("k",), 0),
    ):
        report = same(table, row_filter, columns, options=options)
        assert (report.rows.matched, base_bytes(report)) == (rows, 0)
        assert report.bytes.index > 0
        assert "alone" in report.index_reason
    assert base_bytes(same(table, "k < 50", ("w",), options=options)) > 0, "the index does not hold w"
    assert base_bytes(same(table, "k < 50 AND w >= 0", ("k",), options=options)) > 0, "nor what the filter says of it"


@pytest.mark.parametrize("options", [{}, PLAN])
def test_counts_come_from_the_index_alone(tmp_path: Path, options: Any) -> None:
    table = table_a(tmp_path / "t", ("ik", "k"))
    delete(table, "k IN (7, 8)")
    scan = table.scan("k < 50", options=options)
    assert scan.count() == 48
    assert scan.report is not None
    assert base_bytes(scan.report) == 0
    every = ids(table)
    table.drop_index_segments("ik", [every[0]])
    scan = table.scan("k < 50", options=options)
    assert (scan.count(), base_bytes(scan.report) > 0) == (48, True), "one segment is read"
    assert (
        table.scan("k < 50 AND w < 0.5", options=options).count()
        == table.scan("k < 50 AND w < 0.5").to_arrow().num_rows
    )


def test_values_that_would_fill_the_memory_come_from_the_base(t: tamis.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    def columns() -> list[Any]:
        return [one.columns is not None for one in t.scan("k < 1000", ("k",), options=PLAN).plan().shared]

    assert columns() == [True, True]
    monkeypatch.setattr(lookup_cost, "HELD_BYTES", 10)
    assert columns() == [False, False]
    same(t, "k < 1000", ("k",), options=PLAN)


@pytest.mark.parametrize(("share", "times"), [(4.0, 1), (1.0, 2)])
def test_a_result_that_is_larger_than_the_cache_is_read_once(
    t: tamis.Table, monkeypatch: pytest.MonkeyPatch, share: float, times: int
) -> None:
    """The next part of its segment needs it. With a share of 1, it would be read again."""
    plain, read = shared_lookup.SharedLookup._read, list[int]()

    def counted(self: Any, at: int, counters: ReadCounters) -> Any:
        read.append(at)
        return plain(self, at, counters)

    shared = t.scan("k < 5000", ("k",), options=PLAN).plan().shared[0]
    at = next(iter(shared.segments))
    found = plain(shared, at, ReadCounters())
    size = found.values.nbytes + found.rows.nbytes * 2
    monkeypatch.setattr(shared_lookup.SharedLookup, "_read", counted)
    monkeypatch.setattr(shared_lookup, "_found", LruCache(size // 2, largest_share=share))
    for _ in range(2):
        assert shared.entries(at, ReadCounters()).values.equals(found.values)
    assert read == [at] * times


def test_a_limit_does_not_wait_for_a_large_look_up(t: tamis.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers look up all matches of an index segment before the first row."""
    monkeypatch.setattr(lookup_cost.LookupBudget, "refusal", lambda *_args, **_more: None)
    monkeypatch.setattr(index_lookup.Lookup, "estimate", lookup_cost.Estimate(20_000, 1, 4))
    monkeypatch.setattr(importlib.import_module("tamis.engine.secondary_index.index_choice"), "DRIVER_HITS", 0)
    other, row_filter = "k BETWEEN 100 AND 900 AND w >= 0", "k BETWEEN 100 AND 900"
    assert len(t.scan(other, limit=10).plan().shared) == 2, "the other conjunct may leave fewer than 10"
    assert len(t.scan(row_filter).plan().shared) == 2
    early = t.scan(row_filter, limit=10)
    made = early.plan()
    assert (made.shared, "at once, of which 10 suffice" in made.report.index_reason) == ((), True)
    assert early.to_arrow().num_rows == 10
    assert t.scan(row_filter).exists()
    assert len(t.scan(row_filter, limit=100_000).plan().shared) == 2
    monkeypatch.setattr(index_lookup.Lookup, "estimate", lookup_cost.Estimate(4_000, 1, 4))
    assert len(t.scan(row_filter, limit=10).plan().shared) == 2, "each segment has few"


def test_the_first_rows_of_an_order_do_not_come_from_an_index(t: tamis.Table) -> None:
    """Their positions are looked for, so that its values would be read for nothing."""
    scan = t.scan("k < 1000", ("k",), limit=5, order_by="k DESC", options=PLAN)
    assert {one.columns for one in scan.plan().shared} == {None}
    expected = t.scan("k < 1000", ("k",), options={"tamis.index.use": "off"}).to_arrow().sort_by([("k", "descending")])
    assert scan.to_arrow()["k"].to_pylist() == expected["k"].to_pylist()[:5]


def test_errors_are_not_answered_by_an_index(tmp_path: Path) -> None:
    table = tamis.create(tmp_path / "t")
    table.append(pa.table({"t": ["1", "2", "x", "4"], "k": [1, 2, 3, 4]}))
    table.create_index("it", "t")
    for options in ({}, PLAN, LOOKUP):
        with pytest.raises(tamis.errors.InvalidInput, match="x"):
            table.scan("CAST(t AS INT) > 0", ["t"], options=options).to_arrow()
        with pytest.raises(tamis.errors.InvalidInput, match="x"):
            table.scan("CAST(t AS INT) > 0", options=options).count()


def test_columns_of_another_type_or_age_are_not_made_of_entries(tmp_path: Path) -> None:
    table = tamis.create(tmp_path / "t")
    table.append(pa.table({"k": pa.array([1, 2, 3], pa.int32()), "w": [1.0, 2.0, 3.0]}))
    table.create_index("ik", "k")
    table.alter().widen("k", pa.int64()).add_column("c", pa.int32(), default="7").commit()
    table.create_index("ic", "c")
    table.append(pa.table({"k": [2**40], "w": [4.0], "c": pa.array([8], pa.int32())}))
    for options in ({}, PLAN):
        assert same(table, "k = 3", ("k",), options=options).rows.matched == 1
        assert same(table, f"k = {2**40}", ("k",), options=options).rows.matched == 1
        assert same(table, "c = 7 OR c = 8", ("c",), options=options).rows.matched in (1, 4)


def test_audited_parts_are_read_whatever_the_index_found(tmp_path: Path) -> None:
    table = table_a(tmp_path / "t", ("ik", "k"), segments=2)
    for options in ({}, PLAN):
        scan = table.scan("k < 50", ["k"], options={**options, "tamis.audit.percent": 100})
        rows, count = (
            scan.to_arrow().num_rows,
            table.scan("k < 50", options={**options, "tamis.audit.percent": 100}).count(),
        )
        assert rows == count == table.scan("k < 50", options={"tamis.index.use": "off"}).count()
        assert scan.report is not None
        assert base_bytes(scan.report) > 0
