"""Look-ups by the pages of index parts: what they leave out holds no match, at every edge of every page."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import tamis
from tamis.core.stats.columns.page_statistics import PageStatistics, pages_of
from tamis.core.stats.statistics_columns import bound_name
from tamis.core.types import DOUBLE, LONG, STRING, Field, Schema
from tamis.core.types.arrow import to_arrow_schema
from tamis.engine.scan import scan_execution
from tamis.engine.secondary_index.index_build import PAGE_ROWS
from tamis.engine.secondary_index.index_pages import WHOLE_ROWS
from tamis.engine.secondary_index.lookup_cost import Estimate, LookupBudget
from tamis.storage.files.parquet.parquet_part import ParquetPart
from tamis.storage.object_store.lru_cache import LruCache
from tests.secondary_index.tables import same, used

ROWS = 3 * WHOLE_ROWS + 700
PREFIX = "p" * 80
"""Longer than what bounds keep of a text."""


def rows() -> pa.Table:
    place = np.random.default_rng(3).permutation(ROWS)
    groups = place // 700
    return pa.table(
        {
            "k": place,
            "dup": pa.array(groups, mask=groups == 3),
            "f": np.select([groups == 0, groups == 1, groups == 2], [np.nan, -0.0, 0.0], groups.astype(float)),
            "long": [f"{PREFIX}{x:06d}" for x in (place // 3).tolist()],
            "w": np.arange(ROWS) % 5,
        }
    )


@pytest.fixture(scope="module")
def t(tmp_path_factory: pytest.TempPathFactory) -> tamis.Table:
    table = tamis.create(tmp_path_factory.mktemp("pages") / "t")
    table.append(rows())
    for name in ("k", "dup", "f", "long"):
        table.create_index(f"i{name}", name)
    table.create_index("iwk", ["w", "k"])
    return table


def edges() -> list[int]:
    """Keys whose entries stand first or last on a page of the index, which has one for each row, and at the ends of its blocks."""
    starts = (PAGE_ROWS, 7 * PAGE_ROWS, 16 * PAGE_ROWS, 24 * PAGE_ROWS)
    return [0, ROWS - 1, *(start + by for start in starts for by in (-1, 0))]


def look(table: tamis.Table, index: str, row_filter: str) -> tamis.scan.Report:
    report = same(table, row_filter, options={"tamis.index.use": index})
    assert used(report) == {index: (1, 0)}
    return report


def test_an_entry_at_the_edge_of_a_page_is_found(t: tamis.Table) -> None:
    size = next(i.bytes for i in t.indexes() if i.name == "ik")
    look(t, "ik", "k = 0")  # its footer has been read
    for key in edges():
        report = look(t, "ik", f"k = {key}")
        assert report.rows.matched == 1
        assert report.bytes.index < size / 2, "a page or two, not the blocks"
    assert look(t, "ik", f"k IN ({', '.join(map(str, edges()))})").rows.matched == len(edges())
    assert look(t, "ik", f"k BETWEEN {PAGE_ROWS - 1} AND {3 * PAGE_ROWS}").rows.matched == 2 * PAGE_ROWS + 2
    assert same(t, f"k IN ({ROWS}, -1)").rows.matched == 0


@pytest.mark.parametrize(
    "row_filter", ["dup = 2", "dup IN (1, 4, 34)", "dup IS NULL", "dup > 33", "dup IS NULL OR dup = 0", "dup <=> 3"]
)
def test_equal_values_go_on_over_the_edges_of_pages(t: tamis.Table, row_filter: str) -> None:
    assert (look(t, "idup", row_filter).rows.matched > 0) == (row_filter != "dup <=> 3")


@pytest.mark.parametrize(
    "row_filter", ["f = double('NaN')", "f = 0.0", "f = -0.0", "f > 34", "f < 4", "f >= double('NaN')"]
)
def test_nans_and_zeros(t: tamis.Table, row_filter: str) -> None:
    assert look(t, "if", row_filter).rows.matched > 0


@pytest.mark.parametrize("at", [0, 341, 342, 4_000])
def test_texts_that_bounds_cut(t: tamis.Table, at: int) -> None:
    assert look(t, "ilong", f"long = '{PREFIX}{at:06d}'").rows.matched == 3
    assert look(t, "ilong", f"long LIKE '{PREFIX}{at:06d}%'").rows.matched == 3


def test_the_second_column_of_an_index(t: tamis.Table) -> None:
    for key in edges()[:6]:
        look(t, "iwk", f"w = 3 AND k = {key}")
        assert look(t, "iwk", f"k = {key}").rows.matched == 1


def test_rows_from_the_index_alone_by_pages(t: tamis.Table) -> None:
    size = next(i.bytes for i in t.indexes() if i.name == "ik")
    look(t, "ik", "k = 0")  # its footer has been read
    report = same(t, f"k IN ({', '.join(map(str, edges()[:4]))})", ("k",))
    assert "alone" in report.index_reason
    assert report.bytes.index < size / 2


def test_an_index_that_says_nothing_of_its_pages(t: tamis.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ParquetPart, "pages", lambda _: None)
    monkeypatch.setattr("tamis.engine.part_reader.evidence_cache._pages", LruCache(2**20))
    for row_filter in (f"k = {PAGE_ROWS}", "k IN (1, 9000, 20000)"):
        look(t, "ik", row_filter)


SCHEMA = Schema((Field("a", LONG, id=1), Field("x", DOUBLE, id=2), Field("s", STRING, id=3)))


def test_the_note_of_pages() -> None:
    batch = pa.RecordBatch.from_pydict(
        {"a": [3, None, 5, None, None], "x": [1.0, float("nan"), 2.0, -0.0, None], "s": ["b", "a", "", None, "x" * 70]},
        to_arrow_schema(SCHEMA),
    )
    pages = PageStatistics(SCHEMA, 2)
    pages.update(batch)
    pages.update(batch.slice(0, 1))
    found = pages_of(pages.note(), 6)
    assert found is not None
    assert found["rows"].to_pylist() == [2, 2, 1, 1]
    assert found[bound_name(1, LONG, "lo")].to_pylist() == [3, 5, None, 3]
    assert (found["1|nulls"].to_pylist(), found["2|nans"].to_pylist()) == ([1, 1, 1, 0], [1, 0, 0, 0])
    assert len(found[bound_name(3, STRING, "hi")][2].as_py()) == 64
    for note, count in ((pages.note(), 7), ("", 0), (b"\xff", 6), ("AAAA", 6), (pages.note()[:-40], 6)):
        assert pages_of(note, count) is None
    assert PageStatistics(SCHEMA, 2).note() == ""


def test_what_a_look_up_is_worth() -> None:
    budget = LookupBudget(rows=10_000_000, leaders=40_000_000)
    assert budget.refusal(Estimate(4_000, 1_000_000), covering=False) is None
    assert "to save" in str(budget.refusal(Estimate(0, 41_000_000), covering=True))
    assert "finds 6,000,000 rows" in str(budget.refusal(Estimate(6_000_000, 45_000_000), covering=False))
    assert budget.most_hits(1_000_000) > 4_000 > 1_024 == budget.most_hits(50_000_000)
    assert budget.refusal(Estimate(6_000_000, 9_000_000), covering=True) is None
    thousand = Estimate(1_000, 4_700_000)
    assert budget.refusal(thousand, covering=False) is None, "a tenth of the index"
    assert LookupBudget(2_000_000, 8_000_000).refusal(thousand, covering=False) is not None, "half of it"


def test_few_values_of_many_rows_each_are_looked_up(tmp_path: Path) -> None:
    """A hundred keys of four rows each, as a join leaves them: what is not known is counted, not guessed."""
    random = np.random.default_rng(1)
    keys = random.permutation(np.repeat(np.arange(50_000), 4))
    table = tamis.create(tmp_path / "t")
    table.append(pa.table({"k": keys, "v": random.random(len(keys))}))
    table.create_index("ik", "k")
    chosen = ", ".join(map(str, random.choice(50_000, 100, replace=False).tolist()))
    report = same(table, f"k IN ({chosen})")
    assert (used(report), report.rows.matched) == ({"ik": (1, 0)}, 400)


def test_a_part_of_which_few_rows_are_read_weighs_little(t: tamis.Table) -> None:
    parts = t.scan("k = 7").plan().parts
    assert len(parts) == 1
    assert 0 < parts.weights[0] < parts.bytes / 10
    assert t.scan("w = 3").plan().parts.weights.tolist() == [parts.bytes]


def test_a_part_of_which_few_rows_are_read_is_read_in_one_piece(
    t: tamis.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large part is cut for several threads; one of whose rows an index left few is not."""
    monkeypatch.setattr(scan_execution, "LEAST_BYTES", t.scan("k = 7").plan().parts.bytes // 4)
    monkeypatch.setattr(scan_execution, "reader_threads", lambda _: 4)
    monkeypatch.setattr(
        scan_execution, "split_windows", lambda ref, count: [ref] * max(count, 1)
    )  # whatever its blocks are

    def windows(row_filter: str) -> int:
        made = t.scan(row_filter).plan()
        return len(scan_execution.Execution(made)._cut(list(made.parts)))

    assert windows("w = 3") > 1
    assert windows("k = 7") == 1
