"""What changes rows or moves them hides no row and leaves no stale position in an index."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tamis
from tamis.engine.secondary_index.index_upkeep import build_entry
from tamis.errors import InvalidInput, StoreUnavailable
from tests.secondary_index.tables import (
    SEGMENTS,
    delete,
    empty_table,
    failing,
    ids,
    info,
    key_in,
    missing,
    rows_of,
    same,
    table_a,
    used,
)


def test_a_segment_whose_rows_are_all_deleted_leaves_the_index(tmp_path: Path) -> None:
    table = table_a(tmp_path / "t", ("ik", "k"), segments=3)
    lows, gone = rows_of(1)["k"].to_pylist(), ids(table)[1]
    assert delete(table, f"k IN ({', '.join(map(str, lows))})") == 2_000
    table = tamis.open(table.path)
    report = same(table, f"k = {key_in(1)}")
    assert (report.rows.matched, report.parts.kept, report.bytes.leader + report.bytes.follower) == (0, 0, 0)
    assert len(info(table).covered) == 2
    assert gone not in (*info(table).covered, *info(table).missing)
    assert report.segments.total == 2


def test_rows_written_anew_by_an_overwrite(tmp_path: Path) -> None:
    table = table_a(tmp_path / "t", ("ik", "k"), segments=3)
    old, new = key_in(1), 999_999
    row = table.scan(f"k = {old}").to_arrow()
    table.overwrite(row.set_column(0, "k", pa.array([new])), row_filter=f"k = {old}", allow_outside=True)
    assert missing(table) == []
    assert (same(table, f"k = {old}").rows.matched, same(table, f"k = {new}").rows.matched) == (0, 1)


def test_compaction_covers_what_it_writes(tmp_path: Path, out_of_sync: tamis.Table) -> None:
    for table in (table_a(tmp_path / "c", ("ik", "k")), out_of_sync):
        table.compact()
        assert missing(table) == []
        assert len(info(table).covered) == len(ids(table)) < SEGMENTS
        for segment in range(SEGMENTS):
            report = same(table, f"k = {key_in(segment)}")
            assert (report.rows.matched, used(report)["ik"][1]) == (1, 0)


def test_compaction_whose_index_fails_leaves_its_segments_missing(tmp_path: Path) -> None:
    table = table_a(tmp_path / "t", ("ik", "k"))
    with failing():
        table.compact()
    assert missing(table) == list(range(len(ids(table))))
    assert same(table, f"k = {key_in(0)}").rows.matched == 1


def test_an_update_moves_its_rows_in_the_index(tmp_path: Path) -> None:
    table = table_a(tmp_path / "t", ("ik", "k"), segments=3)
    old, other = key_in(1), key_in(2)
    assert table.update({"k": "k + 1000000"}, row_filter=f"k = {old}").rows_updated == 1
    assert table.update({"g": "77"}, row_filter=f"k = {other}").rows_updated == 1
    assert missing(table) == []
    assert [same(table, f"k = {key}").rows.matched for key in (old, old + 1_000_000, other)] == [0, 1, 1]
    assert table.scan(f"k = {other}", ["g"]).to_arrow()["g"].to_pylist() == [77]


@pytest.mark.slow
def test_a_merge_keeps_the_index_right(tmp_path: Path) -> None:
    table = tamis.create(tmp_path / "t")
    for segment in range(3):
        table.append(rows_of(segment))
    table.create_index("ik", "k")
    rows = pa.concat_tables([rows_of(1).slice(0, 20), rows_of(4).slice(0, 20)])
    merge = (
        table.merge(rows, on="source.k = target.k")
        .when_matched_delete(condition="source.k % 2 = 0")
        .when_matched_update({"g": "99"})
    )
    merge.when_not_matched_insert().execute()
    assert missing(table) == []
    for key in rows["k"].to_pylist():
        report = same(table, f"k = {key}")
        assert report.rows.matched == (0 if key % 2 == 0 and key in rows_of(1)["k"].to_pylist() else 1)


def test_a_segment_of_which_one_part_is_not_covered_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A repair goes step by step; one that is stopped inside a segment has not covered it."""
    from tamis.engine.operations.layout import index_operations

    table = empty_table(tmp_path / "t", properties={"tamis.write.part_bytes": "20k"})
    table.append(pa.concat_tables([rows_of(0, 70_000), rows_of(1, 70_000)]))
    table.create_index("ik", "k", build="deferred")
    assert len(table.metadata("parts")) > 1
    monkeypatch.setattr(index_operations, "STEP_ROWS", 10)
    calls: list[int] = []

    def stopped(*arguments: Any) -> object:
        calls.append(1)
        if len(calls) == 2:
            raise StoreUnavailable("stopped", code="INDEX_BUILD_FAILED")
        return build_entry(*arguments)

    monkeypatch.setattr(index_operations, "build_entry", stopped)
    with pytest.raises(StoreUnavailable):
        table.repair_index()
    assert info(table.refresh()).index_segments == 1
    assert missing(table) == [0]
    assert used(same(table, "k = 5")) == {}
    table.repair_index()
    assert (missing(table), used(same(table, "k = 5"))) == ([], {"ik": (1, 0)})


def test_an_overwrite_leaves_no_old_row_in_the_index(tmp_path: Path) -> None:
    table = table_a(tmp_path / "t", ("ik", "k"), segments=3)
    table.overwrite(rows_of(4))
    assert (missing(table), len(info(table).covered)) == ([], 1)
    assert same(table, f"k = {key_in(1)}").rows.matched == 0
    assert used(same(table, f"k = {key_in(4)}")) == {"ik": (1, 0)}


def test_overwrite_of_a_part_leaves_the_others(tmp_path: Path) -> None:
    table = table_a(tmp_path / "t", ("ik", "k"), segments=3)
    parts = dict(zip(*(table.metadata("parts")[c].to_pylist() for c in ("part_id", "segment_id")), strict=True))
    others = {part for part, segment in parts.items() if segment != ids(table)[0]}
    table.overwrite(
        rows_of(0).slice(0, 10).set_column(1, "g", pa.array([77] * 10)),
        row_filter=f"k IN ({key_in(0)}, {key_in(0, 6)})",
        allow_outside=True,
    )
    assert missing(table) == []
    assert used(same(table, f"k = {key_in(2)}"))["ik"][1] == 0
    assert others <= set(table.metadata("parts")["part_id"].to_pylist()), "the others were rewritten"
    alone = same(table, f"k = {key_in(0)} AND g = 77")
    assert (alone.rows.matched, alone.parts.kept, used(alone)["ik"][1]) == (1, 1, 0)
    report = same(table, "g = 77 AND k >= 0", options={"tamis.index.use": "ik"})
    assert report.rows.matched == 10


def test_a_repair_covers_what_writers_have_left_of_its_parts(
    out_of_sync: tamis.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A load, a delete and a compaction are committed while a repair builds: its entry covers what is left of what it was built for, and nothing else."""
    from tamis.engine.operations.layout import index_operations

    others: list[Callable[[tamis.Table], object]] = [
        lambda t: t.append(rows_of(0)),
        lambda t: delete(t, "k < 20"),
        lambda t: t.compact(),
    ]

    def interrupted(*arguments: Any) -> object:
        made = build_entry(*arguments)
        if others:
            others.pop(0)(tamis.open(out_of_sync.path))
        return made

    every = ids(out_of_sync)
    for lacking in (1, 4):
        with monkeypatch.context() as patched:
            patched.setattr(index_operations, "build_entry", interrupted)
            out_of_sync.repair_index("ik", [every[lacking]])
        held = tamis.open(out_of_sync.path)
        found = info(held)
        assert set(found.covered) | set(found.missing) == set(ids(held))
        for key in (key_in(0), key_in(1), key_in(4), 3):
            answered, lost = used(same(held, f"k = {key}")).get("ik", (0, 0))
            assert (answered <= len(found.covered), lost <= len(found.missing)) == (True, True)
    delete(out_of_sync, "k = 30"), tamis.open(out_of_sync.path).compact(), out_of_sync.repair_index()
    assert info(out_of_sync).missing == {}
    assert same(out_of_sync, "k = 30").rows.matched == 0


def test_a_repair_covers_loads_beside_it(out_of_sync: tamis.Table) -> None:
    other = tamis.open(out_of_sync.path)
    other.append(rows_of(0))
    held = tamis.open(out_of_sync.path, version=out_of_sync.version)
    out_of_sync.repair_index("ik")
    assert missing(out_of_sync) == []
    assert used(same(held, f"k = {key_in(0)}")) == {"ik": (3, 2)}
    assert used(same(out_of_sync, f"k = {key_in(0)}")) == {"ik": (6, 0)}


def test_errors_are_not_hidden(tmp_path: Path) -> None:
    """A conjunct before the indexed one may fail on a row that the index would drop: then the index drops nothing."""
    table = tamis.create(tmp_path / "t")
    table.append(pa.table({"k": np.arange(100), "t": ["x" if i == 7 else str(i) for i in range(100)]}))
    table.create_index("ik", "k")
    with pytest.raises(InvalidInput, match="x"):
        table.scan("CAST(t AS INT) > 0 AND k = 50").to_arrow()
    assert len(table.scan("k = 50 AND CAST(t AS INT) > 0").to_arrow()) == 1
    with pytest.raises(InvalidInput, match="x"):
        table.scan("k = 7 AND CAST(t AS INT) > 0").to_arrow()


def test_rows_along_a_curve_are_indexed_anew(tmp_path: Path) -> None:
    table = table_a(tmp_path / "t", ("ik", "k"))
    before = set(table.metadata("parts")["part_id"].to_pylist())
    table.compact(cluster_by=["w", "s"])
    assert not before & set(table.metadata("parts")["part_id"].to_pylist()), "every file is another"
    assert missing(table) == []
    for use in ("auto", "lookup", "plan"):
        for key in (key_in(1), key_in(4)):
            report = same(table, f"k = {key}", options={"tamis.index.use": use})
            assert (report.rows.matched, used(report)) == (1, {"ik": (len(ids(table)), 0)})
