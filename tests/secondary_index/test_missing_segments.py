"""Segments that an index lacks are read by their statistics, the others by the index; its report lists what is missing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyroaring import BitMap

import tamis
from tamis.errors import InvalidInput, NotFound, StoreUnavailable, TamisError
from tests.secondary_index.tables import (
    ROWS,
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


def test_index_where_it_covers_statistics_where_not(out_of_sync: tamis.Table) -> None:
    report = same(out_of_sync, "k IN (1, 2000, 4000, 6000, 8000, 9000)")
    assert used(report) == {"ik": (3, 2)}
    assert missing(out_of_sync) == [1, 4]


def test_a_row_of_a_missing_segment_is_found(out_of_sync: tamis.Table) -> None:
    report = same(out_of_sync, f"k = {key_in(1)}")
    assert (report.rows.matched, report.parts.skipped_index, report.parts.kept) == (1, 3, 2)


def test_statistics_prune_missing_segments(tmp_path: Path) -> None:
    table = empty_table(tmp_path / "t")
    for low in (0, 5_000):
        table.append(
            rows_of(0).filter(pc.less(rows_of(0)["k"], 5_000))
            if not low
            else rows_of(1).filter(pc.greater(rows_of(1)["k"], 5_000))
        )
    table.create_index("ik", "k")
    table.drop_index_segments("ik", [ids(table)[1]])
    report = same(table, "k = 17")
    assert (report.segments.by_stats, used(report)) == (1, {"ik": (1, 0)})


def test_a_repair_covers_one_segment_or_all(out_of_sync: tamis.Table, just_ik: tamis.Table) -> None:
    every = ids(out_of_sync)
    before = same(out_of_sync, f"k = {key_in(2)}").bytes.read
    out_of_sync.repair_index("ik", [every[1]])
    assert missing(out_of_sync) == [4]
    assert used(same(out_of_sync, f"k = {key_in(2)}")) == {"ik": (4, 1)}
    out_of_sync.repair_index()
    assert missing(out_of_sync) == []
    after = same(out_of_sync, f"k = {key_in(2)}")
    assert used(after) == {"ik": (5, 0)}
    assert after.bytes.leader + after.bytes.follower < before
    in_sync = same(just_ik, f"k = {key_in(2)}")
    assert (used(after), after.parts) == (used(in_sync), in_sync.parts)
    assert after.bytes.leader + after.bytes.follower == in_sync.bytes.leader + in_sync.bytes.follower, (
        "as if it had never lacked any"
    )


def test_missing_segments_are_those_of_their_own_table(tmp_path: Path, out_of_sync: tamis.Table) -> None:
    """Neither another table nor an earlier query of the process has a say in it."""
    other = table_a(tmp_path / "other", ("ik", "k"))
    same(out_of_sync, f"k = {key_in(0)}")
    report = same(other, f"k = {key_in(1)}")
    assert (used(report), report.parts.skipped_index, report.parts.kept) == ({"ik": (5, 0)}, 4, 1)
    assert used(same(out_of_sync, f"k = {key_in(1)}")) == {"ik": (3, 2)}
    out_of_sync.repair_index("ik")
    assert used(same(out_of_sync, f"k = {key_in(0)}")) == {"ik": (5, 0)}


@pytest.fixture
def two_out_of_sync(tmp_path: Path) -> tamis.Table:
    table = table_a(tmp_path / "two", ("ik", "k"), ("is", "s"))
    every = ids(table)
    table.drop_index_segments("ik", [every[0], every[1]])
    table.drop_index_segments("is", [every[3], every[4], every[0]])
    return table


def test_an_and_reads_the_segment_that_neither_index_covers(two_out_of_sync: tamis.Table) -> None:
    report = same(two_out_of_sync, f"k = {key_in(2)} AND s = '{rows_of(2)['s'][5].as_py()}'")
    assert report.rows.matched == 1
    assert report.parts.kept == 2, "the segment that holds the row, and the one that neither index covers"
    assert set(used(report)) == {"ik", "is"}


def test_an_or_reads_the_segments_that_either_index_misses(two_out_of_sync: tamis.Table) -> None:
    for segment in range(SEGMENTS):
        report = same(two_out_of_sync, f"k = {key_in(segment)} OR s = '{rows_of(4)['s'][7].as_py()}'")
        assert report.rows.matched == 2
        assert set(used(report)) == {"ik", "is"}, "of the third segment both know, and it is answered by both"
        assert report.parts.kept == len({0, 1, 3, 4, segment}), (
            "the segments that one of them misses, and those that hold a row"
        )


def left(table: tamis.Table, row_filter: str) -> dict[int, int | None]:
    """By load that is kept: the candidates of its part; None where every row is one."""
    same(table, row_filter)
    order = ids(table)
    parts = table.metadata("parts")
    segment = dict(zip(parts["part_id"].to_pylist(), parts["segment_id"].to_pylist(), strict=True))
    found = {order.index(segment[ref.part_id]): ref.candidates for ref in table.scan(row_filter).plan().parts}
    return {load: None if rows is None else len(BitMap.deserialize(rows)) for load, rows in found.items()}


def test_each_index_prunes_what_it_has(two_out_of_sync: tamis.Table) -> None:
    """ik has the loads 2, 3, 4, is has 1, 2; nobody has 0."""

    def key(load: int) -> str:
        return f"k = {key_in(load)}"

    def text(load: int) -> str:
        return f"s = '{rows_of(load)['s'][9].as_py()}'"

    assert left(two_out_of_sync, f"{key(3)} AND {text(1)}") == {0: None, 1: 1, 3: 1}, "2 by both, 4 by ik"
    assert left(two_out_of_sync, f"{key(1)} AND {text(3)}") == {0: None}, "1 by is, 2 by both, 3 and 4 by ik"
    assert left(two_out_of_sync, f"{key(2)} AND s = '{rows_of(2)['s'][5].as_py()}'") == {0: None, 2: 1}
    assert left(two_out_of_sync, f"{key(3)} OR {text(1)}") == {0: None, 1: None, 3: None, 4: None}, "2 by both"
    assert left(two_out_of_sync, f"{key(2)} OR {text(2)}") == {0: None, 1: None, 2: 2, 3: None, 4: None}


def test_or_of_an_index_and_statistics(tmp_path: Path) -> None:
    table = tamis.create(tmp_path / "t")
    for day in range(4):
        table.append(rows_of(day).append_column("day", pa.array([day] * ROWS, pa.int32())))
    table.create_index("ik", "k")
    report = same(table, f"k = {key_in(1)} OR day = 2")
    assert used(report) == {"ik": (3, 0)}, "every row of the load 2 matches: nothing to ask"
    assert left(table, f"k = {key_in(1)} OR day = 2") == {1: 1, 2: None}
    table.drop_index_segments("ik", [ids(table)[3]])
    assert left(table, f"k = {key_in(1)} OR day = 2") == {1: 1, 2: None, 3: None}


def test_an_index_that_covers_nothing_is_not_used(just_ik: tamis.Table, tmp_path: Path) -> None:
    table = table_a(tmp_path / "t", ("ik", "k"))
    table.drop_index_segments("ik", ids(table))
    report = same(table, f"k = {key_in(0)}")
    assert used(report) == {}
    assert "covers none" in report.index_reason
    assert missing(table) == [0, 1, 2, 3, 4]


def test_an_index_of_an_empty_table_covers_its_first_load(tmp_path: Path) -> None:
    table = empty_table(tmp_path / "t")
    table.create_index("ik", "k")
    assert same(table, "k = 5").rows.matched == 0
    table.append(rows_of(0))
    assert (missing(table), used(same(table, f"k = {key_in(0)}"))) == ([], {"ik": (1, 0)})


def test_a_build_that_fails_does_not_fail_the_load(tmp_path: Path) -> None:
    table = table_a(tmp_path / "t", ("ik", "k"), ("ig", "g"), segments=2)
    with failing("ik"):
        assert table.append(rows_of(2)).rows_inserted == 2_000
    assert (missing(table), missing(table, "ig")) == ([2], [])
    (reason,) = info(table).missing.values()
    assert "told to fail" in reason
    assert same(table, f"k = {key_in(2)}").rows.matched == 1
    table.append(rows_of(3))
    assert missing(table) == [], "the next load builds it, too"
    assert used(same(table, f"k = {key_in(2)}")) == {"ik": (4, 0)}


def failed_loads(table: tamis.Table, count: int, name: str | None = None) -> None:
    with failing(name):
        for segment in range(count):
            table.append(rows_of(segment))


@pytest.mark.push_cases(2)
@pytest.mark.parametrize(("most", "left"), [(None, [1, 2]), ("0", [0, 1, 2]), ("1", [1, 2]), ("1GB", [])])
def test_a_load_catches_up_within_its_limit(tmp_path: Path, most: str | None, left: list[int]) -> None:
    """By default as many bytes as it loads, and always a part; the rest waits for the next load."""
    table = empty_table(tmp_path / "t", properties={} if most is None else {"tamis.index.catch_up": most})
    table.create_index("ik", "k")
    failed_loads(table, 3)
    before = table.refresh().version
    assert table.append(rows_of(3)).version == before + 1
    assert missing(table) == left
    assert "its build failed" in str(info(table).missing) or not left
    for segment in range(4):
        assert same(table, f"k = {key_in(segment)}").rows.matched == 1
    if most is None:
        table.append(rows_of(4))
        table.append(rows_of(4))
        assert missing(table) == []
        version = table.refresh().version
        table.append(rows_of(4))
        assert table.refresh().version == version + 1, "nothing is left to catch up on"


def test_a_load_does_not_fail_because_it_catches_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = empty_table(tmp_path / "t")
    table.create_index("ik", "k")
    table.create_index("ig", "g")
    failed_loads(table, 1, "ik")
    assert table.append(rows_of(1)).rows_inserted == ROWS
    assert (missing(table), missing(table, "ig")) == ([], [])
    failed_loads(table, 1)
    (part,) = [at for at in (tmp_path / "t" / "data").iterdir() if at.name in lost_parts(table)]
    part.rename(tmp_path / "away")
    version = table.refresh().version
    assert table.append(rows_of(3)).rows_inserted == ROWS
    assert (missing(table), table.refresh().version) == ([2], version + 1)
    (tmp_path / "away").rename(part)
    with failing("ik"):
        table.append(rows_of(4))
    assert (missing(table), missing(table, "ig")) == ([2, 4], []), "an index whose build fails now is not tried again"


def lost_parts(table: tamis.Table) -> list[str]:
    """The file names of the parts of the newest load."""
    return [Path(str(table.metadata("parts")["path"][-1])).name]


def test_a_load_leaves_what_was_dropped_or_deferred(tmp_path: Path) -> None:
    table = table_a(tmp_path / "t", ("ik", "k"), segments=2)
    table.create_index("ig", "g", build="deferred")
    table.drop_index_segments("ik", [ids(table)[0]])
    table.append(rows_of(2))
    assert (missing(table), missing(table, "ig")) == ([0], [0, 1, 2])


def test_a_load_and_its_index_are_one_commit(tmp_path: Path) -> None:
    table = table_a(tmp_path / "t", ("ik", "k"), ("is", "s"), segments=1)
    for segment in range(1, 4):
        before = table.refresh().version
        assert table.append(rows_of(segment)).version == before + 1 == table.refresh().version
        assert (missing(table), missing(table, "is")) == ([], [])
        held = tamis.open(table.path, version=before + 1)
        assert used(same(held, f"k = {key_in(segment)}")) == {"ik": (segment + 1, 0)}


def test_a_store_that_refuses_index_files_does_not_fail_the_load(tmp_path: Path) -> None:
    """The load lands although no file can be written under index/; the failed build is recorded as missing."""
    table = table_a(tmp_path / "t", ("ik", "k"), segments=1)
    (tmp_path / "t" / "index").rename(tmp_path / "t" / "index.away")
    (tmp_path / "t" / "index").write_text("no folder")
    before = table.refresh().version
    table.append(rows_of(1))
    assert table.refresh().version == before + 1
    assert missing(table) == [0, 1], "the index part of the first load is away, too"
    assert "its build failed" in info(table).missing[ids(table)[1]]
    with pytest.raises(TamisError, match="index"):
        table.repair_index()
    (tmp_path / "t" / "index").unlink()
    (tmp_path / "t" / "index.away").rename(tmp_path / "t" / "index")
    report = same(table, f"k = {key_in(1)}")
    assert (report.rows.matched, used(report)) == (1, {"ik": (1, 1)})
    table.repair_index()
    assert used(same(table, f"k = {key_in(1)}")) == {"ik": (2, 0)}


def test_a_build_that_fails_at_creation_covers_nothing(tmp_path: Path) -> None:
    table = table_a(tmp_path / "t", segments=2)
    with failing(), pytest.raises(StoreUnavailable, match="could not be built"):
        table.create_index("ik", "k")
    assert missing(table) == [0, 1]
    assert same(table, f"k = {key_in(0)}").rows.matched == 1
    table.drop_index("ik")
    table.create_index("ik", "k")
    assert missing(table) == []


def test_a_delete_validates_nothing(tmp_path: Path) -> None:
    """Deleting rows does not make a segment covered whose index was never built."""
    table = table_a(tmp_path / "t", segments=2)
    with failing(), pytest.raises(StoreUnavailable):
        table.create_index("ik", "k")
    assert delete(table, f"k = {key_in(0, 8)}") == 1
    assert missing(table) == [0, 1]
    assert same(table, f"k = {key_in(0)}").rows.matched == 1
    assert same(table, f"k = {key_in(0, 8)}").rows.matched == 0


def test_a_delete_changes_no_coverage(out_of_sync: tamis.Table) -> None:
    assert delete(out_of_sync, f"k IN ({key_in(1)}, {key_in(2)})") == 2
    assert missing(out_of_sync) == [1, 4]
    for segment in range(SEGMENTS):
        assert same(out_of_sync, f"k = {key_in(segment)}").rows.matched == (segment not in (1, 2))


def test_a_repair_that_fails_says_so(out_of_sync: tamis.Table) -> None:
    version = out_of_sync.version
    with failing(), pytest.raises(StoreUnavailable) as caught:
        out_of_sync.repair_index("ik")
    assert caught.value.code == "INDEX_BUILD_FAILED"
    assert (out_of_sync.refresh().version, missing(out_of_sync)) == (version, [1, 4])


def test_a_repair_refuses_unknown_names(just_ik: tamis.Table) -> None:
    version = just_ik.refresh().version
    with pytest.raises(NotFound, match="ik"):
        just_ik.repair_index("nothing")
    with pytest.raises(InvalidInput) as caught:
        just_ik.repair_index("ik", ["no such segment"])
    assert caught.value.code == "UNKNOWN_SEGMENT"
    assert just_ik.refresh().version == version


def test_a_repair_of_what_is_covered_reads_no_rows_and_commits_nothing(out_of_sync: tamis.Table) -> None:
    assert out_of_sync.repair_index("ik").parts_added > 0
    version = out_of_sync.refresh().version
    (Path(out_of_sync.path) / "data").rename(Path(out_of_sync.path) / "data.away")
    again = out_of_sync.repair_index("ik")
    assert (again.parts_added, again.bytes_written, out_of_sync.refresh().version) == (0, 0, version), (
        "it reads the index only"
    )


def test_coverage_is_the_same_when_opened_again(out_of_sync: tamis.Table) -> None:
    again = tamis.open(out_of_sync.path)
    assert missing(again) == [1, 4]
    assert used(same(again, f"k = {key_in(0)}")) == used(same(out_of_sync, f"k = {key_in(0)}")) == {"ik": (3, 2)}


def test_another_process_finds_the_same_coverage(out_of_sync: tamis.Table) -> None:
    program = f"""
import tamis
table = tamis.open({out_of_sync.path!r})
scan = table.scan("k = {key_in(0)}")
rows = scan.to_arrow().num_rows
print([sorted(i.missing) for i in table.indexes()], rows, [dict(used) for used in scan.report.indexes], scan.report.parts.skipped_index)
"""
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()
    here = same(out_of_sync, f"k = {key_in(0)}")
    lacking = [sorted(info(out_of_sync).missing)]
    assert output == f"{lacking} 1 {[dict(entry) for entry in here.indexes]} {here.parts.skipped_index}"


def test_a_limit_is_filled_across_missing_segments(out_of_sync: tamis.Table) -> None:
    keys = ", ".join(str(k) for s in range(5) for k in rows_of(s)["k"].to_pylist()[:50])
    assert out_of_sync.scan(f"k IN ({keys})", limit=10).to_arrow().num_rows == 10


@pytest.mark.push_cases(1)
@pytest.mark.parametrize("use", ["auto", "lookup", "plan"])
def test_the_least_rows_are_deleted(tmp_path: Path, use: str) -> None:
    """The order by an indexed column leaves deleted rows out, in covered segments and in missing ones."""
    table = table_a(tmp_path / "t", ("ik", "k"))
    table.drop_index_segments("ik", [ids(table)[2]])
    assert delete(table, "k < 5") == 5
    found = table.scan("k < 100", ["k", "w"], order_by="k", limit=5, options={"tamis.index.use": use}).to_arrow()
    assert found["k"].to_pylist() == [5, 6, 7, 8, 9]
    assert found.equals(
        table.scan("k < 100", ["k", "w"], order_by="k", limit=5, options={"tamis.index.use": "off"}).to_arrow()
    )
    assert table.scan("k < 5", ["k"], order_by="k", limit=5, options={"tamis.index.use": use}).to_arrow().num_rows == 0


def test_a_limit_over_deletes_in_every_segment(tmp_path: Path) -> None:
    table = table_a(tmp_path / "t", ("ik", "k"))
    gone = [key for segment in range(SEGMENTS) for key in sorted(rows_of(segment)["k"].to_pylist())[:2]]
    assert delete(table, f"k IN ({', '.join(map(str, gone))})") == 2 * SEGMENTS
    assert all(table.metadata("parts")["deleted_rows"].to_numpy() == 2)
    for use in ("auto", "lookup", "plan"):
        for row_filter in ("k < 30", f"k IN ({', '.join(map(str, (*gone, *range(5_000, 5_012))))})"):
            everything = same(table, row_filter, options={"tamis.index.use": use})
            assert (set(used(everything)), everything.rows.matched >= 10) == ({"ik"}, True)
            found = (
                table.scan(row_filter, ["k"], limit=10, options={"tamis.index.use": use}).to_arrow()["k"].to_pylist()
            )
            assert (len(set(found)), set(found) & set(gone)) == (10, set())


def test_deleted_rows_do_not_come_back_through_the_index(tmp_path: Path) -> None:
    table = table_a(tmp_path / "t", ("ik", "k"))
    assert delete(table, "k < 5") == 5
    found = table.scan("k < 10", ["k"]).to_arrow()["k"].to_pylist()
    assert sorted(found)[:5] == [5, 6, 7, 8, 9]
    assert table.scan("k < 60", limit=10).to_arrow().num_rows == 10
    assert used(same(table, "k < 10"))["ik"][1] == 0
