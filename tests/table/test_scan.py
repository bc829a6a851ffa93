"""Every way of reading a scan, fields in the order asked for, rows in theirs."""

import threading
from pathlib import Path

import pyarrow as pa
import pytest

import tamis
from tamis.engine.scan.parallel_reader import reader_threads
from tamis.errors import InvalidInput

SEGMENTS = [
    pa.table({"id": pa.array([5, 3], pa.int64()), "s": [{"x": 1, "y": "a"}, None], "v": [0.5, None]}),
    pa.table(
        {"id": pa.array([4, None], pa.int64()), "s": [{"x": 2, "y": None}, {"x": None, "y": "b"}], "v": [1.5, 2.5]}
    ),
]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> tamis.Table:
    made = tamis.create(tmp_path_factory.mktemp("t"))
    for rows in SEGMENTS:
        made.append(rows)
    return made


def test_rows_come_in_segment_part_row_order(table: tamis.Table) -> None:
    assert table.scan().to_arrow()["id"].to_pylist() == [5, 3, 4, None]


def test_fields_in_the_order_asked_for(table: tamis.Table) -> None:
    assert table.scan(selected_fields=("v", "id")).to_arrow().column_names == ["v", "id"]
    nested = table.scan("id > 3", ("s.y", "ID")).to_arrow()
    assert nested.to_pylist() == [{"s": {"y": "a"}, "id": 5}, {"s": {"y": None}, "id": 4}]


def test_the_filter_may_name_columns_that_are_not_selected(table: tamis.Table) -> None:
    assert table.scan("s.x = 2", ["v"]).to_arrow().to_pylist() == [{"v": 1.5}]


def test_every_way_out_gives_the_same_rows(table: tamis.Table) -> None:
    scan = table.scan("id >= 4", ("id", "v"))
    rows = [{"id": 5, "v": 0.5}, {"id": 4, "v": 1.5}]
    assert scan.to_arrow().to_pylist() == rows
    assert [r for b in scan.to_batches() for r in b.to_pylist()] == rows
    assert scan.to_batches().read_all().to_pylist() == rows
    assert [r for b in scan for r in b.to_pylist()] == rows
    assert pa.table(scan).to_pylist() == rows
    assert scan.to_pandas().to_dict("records") == rows
    assert scan.to_polars().to_dicts() == rows
    assert scan.to_duckdb().fetchall() == [(5, 0.5), (4, 1.5)]
    assert scan.count() == len(rows)
    assert scan.to_arrow().schema.equals(scan.schema, check_metadata=True)


def test_polars_and_duckdb_take_the_scan_itself(table: tamis.Table) -> None:
    import duckdb
    import polars as pl

    scan = table.scan("id >= 4", ("id",))
    assert pl.DataFrame(scan)["id"].to_list() == [5, 4]
    assert duckdb.sql("SELECT sum(id) FROM scan").fetchall() == [(9,)]


def test_a_scan_is_a_value(table: tamis.Table) -> None:
    scan = table.scan("id > 1")
    with pytest.raises(AttributeError):
        scan.limit = 3  # type: ignore[misc]
    assert scan.report is None
    assert scan.to_arrow().equals(scan.to_arrow())


def test_limit_stops_reading(table: tamis.Table) -> None:
    scan = table.scan(limit=1)
    assert scan.to_arrow()["id"].to_pylist() == [5]
    assert (scan.report.parts.kept, scan.report.parts.skipped_limit) == (1, 1)
    assert table.scan(limit=0).to_arrow().num_rows == 0
    assert table.scan(limit=3).to_arrow()["id"].to_pylist() == [5, 3, 4]
    assert table.scan(limit=9).to_arrow().num_rows == 4


def test_limit_stops_reading_where_no_part_matches_wholly(tmp_path: Path) -> None:
    """As many parts are begun as are read at once, and no more."""
    table = tamis.create(tmp_path)
    for first in range(0, 40 * 4, 4):
        table.append(pa.table({"id": range(first, first + 4)}))
    for limit, needed in ((1, 1), (5, 3)):
        scan = table.scan("id % 2 = 1", limit=limit)
        assert scan.to_arrow()["id"].to_pylist() == [1, 3, 5, 7, 9][:limit]
        assert needed <= scan.report.parts.kept <= needed - 1 + reader_threads(str(tmp_path)) < 20
        assert scan.report.parts.kept + scan.report.parts.skipped_limit == 40
    limited = table.scan("id % 2 = 1 AND id < 12", limit=5)
    assert limited.to_arrow()["id"].to_pylist() == [1, 3, 5, 7, 9]
    assert limited.report.parts.kept == 3, "the fewest that can suffice"


def test_an_error_is_raised_in_written_order_and_only_when_met(table: tamis.Table) -> None:
    assert table.scan("id <> 3 AND 10 / (id - 3) > 4", ("id",)).to_arrow()["id"].to_pylist() == [5, 4]
    with pytest.raises(InvalidInput):
        table.scan("10 / (id - 3) > 4").to_arrow()
    with pytest.raises(InvalidInput):
        table.scan("10 / (id - 3) > 4 AND id <> 3").to_arrow()
    assert table.scan("10 / (id - 3) > 4", ("id",), options={"ansi": "false"}).to_arrow()["id"].to_pylist() == [5, 4]


def test_now_is_one_instant(tmp_path: Path) -> None:
    table = tamis.create(tmp_path)
    table.append(pa.table({"t": pa.array([1_000_000, 3_000_000], pa.timestamp("us", tz="UTC"))}))
    assert table.scan("t < current_timestamp()", now="1970-01-01T00:00:02Z").count() == 1
    assert table.scan("t < current_timestamp()").count() == 2
    assert table.explain("t > current_timestamp()", now=("2020-01-01", "2030-01-01")).parts.skipped_stats == 1


def test_a_stream_dropped_early_leaves_no_threads_and_finishes_its_report(tmp_path: Path) -> None:
    table = tamis.create(tmp_path)
    for i in range(6):
        table.append(pa.table({"id": pa.array([i] * 10, pa.int64())}))
    before = set(threading.enumerate())  # those of other tests may end meanwhile
    scan = table.scan()
    stream = iter(scan)
    next(stream)
    del stream
    assert set(threading.enumerate()) <= before
    assert tamis.reports()[0] is scan.report
