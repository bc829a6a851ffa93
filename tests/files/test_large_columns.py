"""Columns of adopted files whose texts do not fit into one array, whose offsets have 32 bits."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.storage.files.parquet import dictionary_texts, parquet_part
from tamis.storage.files.parquet.dictionary_texts import array_cuts, plain_pieces
from tamis.storage.files.parquet.parquet_part import runs_within
from tamis.storage.files.parquet.view_types import without_views

ROWS = 700
FILTERS = ("", "id IN (5, 650)", "startswith(body, '6')", "id % 2 = 0", "tag = 'b'", "body IS NULL", "s.x > 600")


def table(rows: int, base: str) -> pa.Table:
    ids = range(rows)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "body": [None if i % 97 == 3 else f"{i}:{base}" for i in ids],
            "tag": [("a", "b", None)[i // 50 % 3] for i in ids],
            "s": [{"x": i, "y": f"{i}{base}"} for i in ids],
        }
    )


def in_pieces(data: pa.Table) -> pa.Table:
    """Each column in pieces that end elsewhere than those of the column before."""
    columns = []
    for at, column in enumerate(data.columns):
        ends = sorted({0, *range(7 + at, len(column), 101 + at), len(column)})
        columns.append(pa.chunked_array([c for a, z in pairwise(ends) for c in column.slice(a, z - a).chunks]))
    return pa.table(columns, schema=data.schema)


@pytest.mark.parametrize("lazy", ["on", "off", "auto"])
def test_a_scan_of_columns_in_pieces(tmp_path: Path, lazy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data, cut = table(ROWS, "x" * 50), list[int]()
    (tmp_path / "source").mkdir()
    pq.write_table(data, tmp_path / "source" / "a.parquet", row_group_size=ROWS, use_dictionary=["tag"])
    adopted = tamis.adopt(tmp_path / "source", tmp_path / "t")
    original, cuts_of = without_views, array_cuts

    def noted(columns: Any, length: int) -> list[int]:
        cut.append(len(cuts_of(columns, length)))
        return cuts_of(columns, length)

    monkeypatch.setattr(parquet_part, "without_views", lambda read: in_pieces(original(read)))
    monkeypatch.setattr(parquet_part, "array_cuts", noted)
    for module in (parquet_part, dictionary_texts):
        monkeypatch.setattr(module, "LARGEST_ARRAY", 10_000)
    for step in ("all", "deleted"):
        for text in FILTERS:
            scan = adopted.scan(text or None, options={"tamis.read.lazy": lazy})
            with monkeypatch.context() as plain:
                plain.setattr(parquet_part, "without_views", original)
                for module in (parquet_part, dictionary_texts):
                    plain.setattr(module, "LARGEST_ARRAY", 2**31 - 1)
                expected = adopted.scan(text or None, options={"tamis.read.lazy": lazy}).to_arrow()
            assert scan.to_arrow().equals(expected), (step, text)
            assert len(expected) > 0
        adopted.delete("id BETWEEN 100 AND 300")
        adopted.refresh()
    assert max(cut) > 7, "columns were cut"


@pytest.mark.merge
def test_texts_of_more_than_two_gibibytes(tmp_path: Path) -> None:
    rows, base = 7_500, "abcdefghij" * 30_000
    (tmp_path / "source").mkdir()
    schema = pa.schema([("id", pa.int64()), ("body", pa.string())])
    with pq.ParquetWriter(tmp_path / "source" / "a.parquet", schema, use_dictionary=False, compression="zstd") as out:
        ids = pa.array(range(rows), pa.int64())
        pieces = [pa.array([f"{i}:{base}" for i in range(a, a + 500)]) for a in range(0, rows, 500)]
        out.write_table(pa.table([ids, pa.chunked_array(pieces)], schema=schema))
    del pieces
    assert pq.read_metadata(tmp_path / "source" / "a.parquet").num_row_groups == 1
    adopted = tamis.adopt(tmp_path / "source", tmp_path / "t")
    for lazy in ("on", "off"):
        options = {"tamis.read.lazy": lazy}
        found = adopted.scan("id IN (5, 7400)", options=options).to_arrow()
        assert [text[:7] for text in found["body"].to_pylist()] == ["5:abcde", "7400:ab"]
        assert adopted.scan("startswith(body, '749')", ["id"], options=options).count() == 11
        got = 0
        for batch in adopted.scan("length(body) > 5", options=options).to_batches():
            for i, text in zip(batch["id"].to_pylist(), batch["body"].to_pylist(), strict=True):
                assert text.startswith(f"{i}:abc"), i
                got += 1
        assert got == rows


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=5), st.data())
def test_runs_within(gaps: list[tuple[int, int]], data: st.DataObject) -> None:
    runs, at = [], 0
    for gap, length in gaps:
        runs.append((at + gap, at + gap + length))
        at = runs[-1][1]
    rows = [row for a, z in runs for row in range(a, z)]
    first = data.draw(st.integers(0, len(rows)))
    end = data.draw(st.integers(first, len(rows)))
    found = runs_within(runs, first, end)
    assert [row for a, z in found for row in range(a, z)] == rows[first:end]
    assert found, "a piece has at least one run, if an empty one"


def test_a_dictionary_is_cut_where_its_texts_are_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dictionary_texts, "LARGEST_ARRAY", 1_000)
    encoded = pa.DictionaryArray.from_arrays(pa.array(np.zeros(100, np.int32)), pa.array(["x" * 30]))
    cuts = array_cuts([encoded, pa.nulls(100, pa.int64())], 100)
    assert cuts == [0, 33, 66, 99, 100]
    assert array_cuts([pa.nulls(100, pa.int64())], 100) == [0, 100]
    assert array_cuts([], 0) == [0, 0]
    short = pa.chunked_array([pa.array(["a"]), pa.array(["b"])])
    assert isinstance(plain_pieces(short), pa.Array)
    assert plain_pieces(pa.chunked_array([pa.array(["a" * 900]), pa.array(["b" * 900])])).num_chunks == 2
