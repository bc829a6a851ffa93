"""Numbers of NULLs and bounds that some writers get wrong are not believed of these writers: rows would be lost."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tamis
from tamis.storage.files.parquet.foreign_writers import NullCounts, orders_texts, trusted_null_counts
from tests.bridges.foreign_files import edit_footer, write_file, writer_of

HALF = pa.table({"k": range(10), "h": [None if k % 2 else f"v{k}" for k in range(10)]})
FIVE, TEN, NONE = b"\x36\x0a\x28", b"\x36\x14\x28", b"\x36\x00\x28"
"""A number of NULLs in the statistics of a text, before its bounds."""


def adopted(tmp_path: Path, writer: bytes | None, changes: list[tuple[bytes, bytes]]) -> tamis.Table:
    """Adopt the file in ``source`` as one of ``writer`` whose footer has these mistakes."""
    (file,) = (tmp_path / "source").iterdir()
    known = writer_of(file)
    edit_footer(file, [*changes, *([(known, writer.ljust(len(known)))] if writer else [])])
    table = tamis.adopt(tmp_path / "source", tmp_path / "table")
    assert isinstance(table, tamis.Table)
    return table


def check_half(table: tamis.Table) -> None:
    """Five of ten values are NULL."""
    assert table.scan("h IS NULL", ["k"]).count() == 5
    assert table.scan("h IS NOT NULL", ["k"]).count() == 5
    assert table.scan("h = 'v4'", ["k"]).to_arrow()["k"].to_pylist() == [4]
    assert table.scan().aggregate(["count(h)"]).to_pylist() == [{"count(h)": 5}]
    assert table.scan("h >= 'v'", ["k"], limit=8).to_arrow().num_rows == 5


@pytest.mark.parametrize("writer", [b"Polars", b"Polars version 1.9.0", b"Polars (python)"])
def test_polars_multiplies_nulls_by_pages(tmp_path: Path, writer: bytes) -> None:
    write_file(tmp_path / "source" / "a.parquet", HALF)
    check_half(adopted(tmp_path, writer, [(FIVE, TEN)]))


@pytest.mark.parametrize("writer", [b"parquet-cpp-arrow version 5.0.0", b"parquet-cpp version 1.5.1"])
def test_early_arrow_counts_no_null_in_a_dictionary(tmp_path: Path, writer: bytes) -> None:
    write_file(tmp_path / "source" / "a.parquet", HALF)
    check_half(adopted(tmp_path, writer, [(FIVE, NONE)]))


def test_early_arrow_bounds_the_first_chunk_of_a_dictionary(tmp_path: Path) -> None:
    file = write_file(tmp_path / "source" / "a.parquet", pa.table({"k": [0, 1, 2], "h": ["aa", "sean", "zzz"]}))
    assert pq.read_metadata(file).row_group(0).column(1).statistics.max == "zzz"
    table = adopted(tmp_path, b"parquet-cpp-arrow version 10.0.1", [(b"\x28\x03zzz", b"\x28\x03sea")])
    assert pq.read_metadata(file).row_group(0).column(1).statistics.max == "sea"
    assert table.scan("h = 'zzz'", ["k"]).to_arrow()["k"].to_pylist() == [2]
    assert table.scan().aggregate(["max(h)"]).to_pylist() == [{"max(h)": "zzz"}]


@pytest.mark.parametrize("writer", [b"DuckDB version v1.4.0", b"Polars version 1.30.0", b"cudf version 23.02"])
def test_nulls_of_structs_count_for_their_fields(tmp_path: Path, writer: bytes) -> None:
    """Here by Arrow, which leaves them out of the number where it writes from a dictionary."""
    values = [None if i % 4 == 3 else {"s": str(i % 9)} for i in range(40)]
    kind = pa.struct([("s", pa.dictionary(pa.int8(), pa.string()))])
    file = write_file(tmp_path / "source" / "a.parquet", pa.table({"k": range(40), "x": pa.array(values, kind)}))
    assert pq.read_metadata(file).row_group(0).column(1).statistics.null_count == 0
    table = adopted(tmp_path, writer, [])
    assert table.scan("x.s IS NULL", ["k"]).count() == 10
    assert table.scan("x.s IS NOT NULL", ["k"]).count() == 30


def test_what_writers_are_known_to_count_still_skips(tmp_path: Path) -> None:
    for writer in ("parquet-mr version 1.15.2", "parquet-rs version 58.0.0", "delta-rs version 1.0.0"):
        assert orders_texts(writer)
        assert trusted_null_counts(writer, texts=True, nested=True) is NullCounts.ALL
    for writer in ("parquet-cpp-arrow version 26.0.1", "DuckDB version v2.0.0", "Trino", ""):
        assert trusted_null_counts(writer, texts=True, nested=False) is NullCounts.ALL
    write_file(tmp_path / "source" / "a.parquet", HALF.filter(pa.array([k % 2 == 0 for k in range(10)])))
    scan = adopted(tmp_path, None, []).scan("h IS NULL")
    assert scan.to_arrow().num_rows == 0
    assert scan.report.parts.kept == 0


def test_files_of_polars_and_duckdb_have_their_rows(tmp_path: Path) -> None:
    """Of the versions at hand, with several pages and a dictionary, and NULL structs."""
    polars, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    texts = [None if i % 5 == 0 else f"category-{i % 10:02d}" for i in range(50_000)]
    (tmp_path / "p").mkdir()
    polars.DataFrame({"h": texts}).write_parquet(tmp_path / "p" / "a.parquet", data_page_size=4000)
    table = tamis.adopt(tmp_path / "p", tmp_path / "tp")
    assert table.scan("h IS NULL").count() == 10_000
    assert table.scan("h = 'category-07'").count() == 5_000
    (tmp_path / "d").mkdir()
    rows = "SELECT i AS k, CASE WHEN i % 4 = 0 THEN NULL ELSE {'x': i} END AS s FROM range(40) t(i)"
    duckdb.connect().execute(f"COPY ({rows}) TO '{tmp_path}/d/a.parquet'")
    table = tamis.adopt(tmp_path / "d", tmp_path / "td")
    assert table.scan("s.x IS NULL").count() == 10
    assert table.scan("s.x IS NOT NULL").count() == 30
