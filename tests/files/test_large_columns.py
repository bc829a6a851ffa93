"""Columns of adopted files whose texts do not fit into one array, whose offsets have 32 bits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.core.types.dictionary_arrays import joined_arrays, plain_array
from tamis.engine.part_reader import lazy_reader, read_columns
from tamis.storage.files.parquet import array_pieces, dictionary_texts, foreign_pages, parquet_part
from tamis.storage.files.parquet.array_pieces import array_cuts, read_groups, runs_within
from tamis.storage.files.parquet.parquet_part import ParquetPart
from tamis.storage.files.parquet.view_types import without_views

ROWS = 3_000
FILTERS = (
    "",
    "id IN (5, 650)",
    "startswith(body, '6')",
    "id % 2 = 0",
    "id BETWEEN 400 AND 549",
    "tag = 'b'",
    "body IS NULL",
    "s.x > 600",
)


def table(rows: int, base: str) -> pa.Table:
    ids = range(rows)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "body": [None if i % 97 == 3 else f"{i}:{base}" for i in ids],
            "tag": [("a", "b", None)[i // 50 % 3] for i in ids],
            "kind": pa.array([(b"long" * 20, b"b")[i // 70 % 2] for i in ids], pa.binary()),
            "s": [{"x": i, "y": f"{i}{base}"} for i in ids],
        }
    )


LIMIT = 10_000


def in_pieces(data: pa.Table) -> pa.Table:
    """Each column without nesting in pieces that end elsewhere than those of the column before."""
    columns = []
    for at, column in enumerate(data.columns):
        ends = sorted({0, *range(7 + at, len(column), 101 + at), len(column)})
        cut = [c for a, z in pairwise(ends) for c in column.slice(a, z - a).chunks]
        columns.append(column if pa.types.is_nested(column.type) else pa.chunked_array(cut))
    return pa.table(columns, schema=data.schema)


@pytest.fixture
def small_arrays(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Arrays hold few bytes, which whatever makes one is held to; returns into how many pieces blocks were cut."""
    cut: list[int] = []

    def fitting(make: Callable[..., pa.Array]) -> Callable[..., pa.Array]:
        def made(*given: Any) -> pa.Array:
            found = make(*given)
            if pa.types.is_string(found.type) or pa.types.is_binary(found.type):
                assert found.nbytes <= LIMIT, found.nbytes
            return found

        return made

    def noted(columns: Any, length: int) -> list[int]:
        cut.append(len(array_cuts(columns, length)) - 1)
        return array_cuts(columns, length)

    monkeypatch.setattr(parquet_part, "without_views", lambda read: in_pieces(without_views(read)))
    monkeypatch.setattr(parquet_part, "array_cuts", noted)
    for module in (dictionary_texts, array_pieces):
        monkeypatch.setattr(module, "LARGEST_ARRAY", LIMIT)
    monkeypatch.setattr(lazy_reader, "MOST_WAITING_BYTES", LIMIT // 4)
    monkeypatch.setattr(dictionary_texts, "_joined", fitting(dictionary_texts._joined))
    monkeypatch.setattr(lazy_reader, "joined_arrays", fitting(joined_arrays))
    monkeypatch.setattr(read_columns, "plain_array", fitting(plain_array))
    return cut


@pytest.mark.parametrize("index", [False, True])
@pytest.mark.parametrize("lazy", ["on", "off", "auto"])
def test_a_scan_of_columns_in_pieces(
    tmp_path: Path, lazy: str, index: bool, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, options = table(ROWS, "x" * 50), {"tamis.read.lazy": lazy}
    (tmp_path / "source").mkdir()
    pq.write_table(
        data,
        tmp_path / "source" / "a.parquet",
        row_group_size=ROWS,
        use_dictionary=["tag", "kind"],
        write_page_index=index,
        data_page_size=1_000,
        write_batch_size=50,
        max_rows_per_page=50,
    )
    monkeypatch.setattr(foreign_pages, "_PERCENT", 10_000)
    met: Counter[bool] = Counter()
    of_pages = ParquetPart._excerpt

    def excerpt(part: ParquetPart, plan: Any, blocks: list[int]) -> Any:
        found = of_pages(part, plan, blocks)
        met[found is not None] += 1
        return found

    monkeypatch.setattr(ParquetPart, "_excerpt", excerpt)
    adopted = tamis.adopt(tmp_path / "source", tmp_path / "t")
    whole = {text: adopted.scan(text or None, options=options).to_arrow() for text in FILTERS}
    cut: list[int] = request.getfixturevalue("small_arrays")
    for step in ("all", "deleted"):
        for text in FILTERS:
            found = adopted.scan(text or None, options=options).to_arrow()
            expected = whole[text]
            if step == "deleted":
                expected = expected.filter((pc.field("id") < 100) | (pc.field("id") > 300))
            assert found.equals(expected), (step, text)
            assert len(expected) > 0
        adopted.delete("id BETWEEN 100 AND 300")
        adopted.refresh()
    assert max(cut) > 7, "columns were cut"
    if index and lazy == "on":
        assert met[True] > 0, "rows were read by pages"
        assert met[False] > 0, "rows of pages were too large for one array"


def rows_of(batches: Iterable[pa.RecordBatch], name: str) -> list[tuple[int, Any]]:
    """The ids and the first bytes of the column, without all batches in memory at once."""
    found: list[tuple[int, Any]] = []
    for batch in batches:
        column = batch[name].field(0) if pa.types.is_struct(batch[name].type) else batch[name]
        head = pc.binary_slice(column.cast(pa.binary()), 0, 8)
        found += zip(batch["id"].to_pylist(), head.to_pylist(), strict=True)
    return found


@pytest.mark.merge
@pytest.mark.parametrize("kind", ["plain", "dictionary", "binary dictionary", "long dictionary", "struct"])
def test_more_than_two_gibibytes(tmp_path: Path, kind: str) -> None:
    count, base = (7_500, 300_000) if kind == "plain" else (45_000, 50_000)
    if kind == "long dictionary":  # too long to be read as one
        count, base = 32_000, 70_000
    text: Any = b"x" * base if "binary" in kind else "x" * base
    values: pa.DataType = pa.binary() if "binary" in kind else pa.string()
    column = pa.struct([("y", values)]) if kind == "struct" else values
    schema = pa.schema([("id", pa.int64()), ("body", column)])
    source = tmp_path / "source" / "a.parquet"
    source.parent.mkdir()
    coded, step = kind != "plain", 500
    packed = "NONE" if kind == "long dictionary" else "zstd"
    with pq.ParquetWriter(source, schema, use_dictionary=coded, compression=packed) as out:
        pieces = [pa.array([text] * step, values)] * (count // step)
        if kind == "struct":
            pieces = [pa.StructArray.from_arrays([piece], ["y"]) for piece in pieces]
        if kind == "plain":
            pieces = [pa.array([f"{i:08}{text}" for i in range(a, a + step)]) for a in range(0, count, step)]
        out.write_table(pa.table([pa.array(range(count)), pa.chunked_array(pieces, column)], schema=schema))
    del pieces
    assert pq.read_metadata(source).num_row_groups == 1

    def head(i: int) -> bytes:
        return f"{i:08}".encode() if kind == "plain" else b"x" * 8

    adopted = tamis.adopt(source.parent, tmp_path / "t")
    for gone in (set[int](), {5}):
        if gone:
            adopted.delete("id = 5")
            adopted.refresh()
        left = [i for i in range(count) if i not in gone]
        for lazy in ("on", "off"):
            options = {"tamis.read.lazy": lazy}
            found = adopted.scan("id IN (7, 7400)", options=options).to_batches()
            assert rows_of(found, "body") == [(7, head(7)), (7400, head(7400))]
            found = adopted.scan("id <> 9", options=options).to_batches()
            assert rows_of(found, "body") == [(i, head(i)) for i in left if i != 9]
        assert rows_of(adopted.scan().to_batches(), "body") == [(i, head(i)) for i in left]
        if kind != "struct":
            some = adopted.scan("octet_length(body) > 5", ["id"]).to_arrow()
            assert some["id"].to_pylist() == left


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


def test_columns_are_cut_where_they_are_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(array_pieces, "LARGEST_ARRAY", 1_020)
    numbers = pa.chunked_array([pa.nulls(100, pa.int64()).fill_null(0)] * 4)
    code = pa.DictionaryArray.from_arrays(pa.array(np.zeros(100, np.int32)), pa.array(["x" * 30]))
    encoded = pa.chunked_array([code])
    assert array_cuts([encoded, numbers], 100) == [0, 25, 50, 75, 100]
    inside = pa.chunked_array([pa.StructArray.from_arrays([code], ["d"])])
    assert array_cuts([inside], 100) == [0, 25, 50, 75, 100]
    lists = pa.chunked_array([pa.ListArray.from_arrays(pa.array(range(0, 101, 10), pa.int32()), code)])
    assert array_cuts([lists], 10) == [0, 2, 3, 5, 7, 8, 10]
    skewed = pa.chunked_array([pa.array([""] * 90 + ["x" * 300] * 10, pa.large_string())])
    cuts = array_cuts([skewed], 100)
    assert max(skewed.slice(a, z - a).nbytes for a, z in pairwise(cuts)) <= 1_020
    assert array_cuts([numbers], 400) == [0, 400], "they have no offsets"
    assert array_cuts([], 0) == [0, 0]
    assert array_cuts([pa.chunked_array([pa.array(["a" * 900]), pa.array(["b" * 900])])], 2) == [0, 1, 2]
    assert array_cuts([pa.chunked_array([pa.array(["a" * 90]), pa.array(["b" * 90])])], 2) == [0, 2]


class Reader:
    """Fails for more than ``most`` rows at once, as the library does."""

    def __init__(self, most: int, message: str) -> None:
        self.reader, self._most, self._message, self.asked = self, most, message, list[int]()

    def read_row_groups(self, *_: Any, **__: Any) -> pa.Table:
        raise pa.ArrowNotImplementedError(self._message)

    def iter_batches(self, rows: int, *_: Any, **__: Any) -> list[pa.RecordBatch]:
        self.asked.append(rows)
        if rows > self._most:
            raise pa.ArrowNotImplementedError(self._message)
        return [pa.record_batch({"a": [rows]})]


def test_nested_columns_are_decoded_in_smaller_batches() -> None:
    message = "Nested data conversions not implemented for chunked array outputs"
    reader: Any = Reader(3, message)
    assert read_groups(reader, [0], [0], 1_000).to_pydict() == {"a": [1]}
    assert reader.asked == [125, 15, 1]
    for most, said, asked in ((0, message, [125, 15, 1]), (0, "no such codec", [])):
        reader = Reader(most, said)
        with pytest.raises(pa.ArrowNotImplementedError, match=said):
            read_groups(reader, [0], [0], 1_000)
        assert reader.asked == asked
