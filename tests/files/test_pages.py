"""Parquet by pages: the rows of whole chunks, for a part of their bytes; and whole chunks wherever the note about pages does not fit."""

import base64
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.core.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    VARIANT,
    Array,
    DayTimeInterval,
    Decimal,
    Field,
    Schema,
)
from tamis.core.types.arrow import to_arrow_schema
from tamis.errors import CorruptData
from tamis.storage.files import PAGE_ROWS, PartRef, open_part
from tamis.storage.files.parquet import page_excerpt, page_offsets, parquet_part
from tamis.storage.files.parquet.page_excerpt import Excerpt
from tamis.storage.files.parquet.parquet_part import ParquetPart
from tamis.storage.object_store.lru_cache import LruCache
from tamis.storage.object_store.store import open_store
from tests.files.parts import write_part

STORE = open_store("memory://pages")
SCHEMA = Schema(
    (
        Field("n", LONG, nullable=False, id=1),
        Field("few", INTEGER, id=2),
        Field("s.t", STRING, id=3),
        Field("dec", Decimal(20, 3), id=4),
        Field("small", Decimal(5, 1), id=5),
        Field("on", BOOLEAN, id=6),
        Field("day", DATE, id=7),
        Field("at", TIMESTAMP, id=8),
        Field("x", DOUBLE, id=9),
        Field("span", DayTimeInterval("day", "second"), id=10),
        Field("l", Array(Field("element", LONG, id=12)), id=11),
        Field("v", VARIANT, id=13),
    )
)
PAGE = PAGE_ROWS // 2  # a file says how many rows its pages have
SIZES = (3 * PAGE + 17, 8 * PAGE, 5)
FLAT = list(range(1, 11))


def table() -> pa.RecordBatch:
    n = np.arange(sum(SIZES))
    rng = np.random.default_rng(5)
    gap = rng.random(len(n)) < 0.2
    one = {"value": b"\x0c\x01", "metadata": b"\x01\x00\x00"}
    columns = [
        pa.array(n),
        pa.array(n % 7, pa.int32(), mask=gap),
        pa.array(np.char.mod("%x", n * 7919), mask=gap),
        pa.array(n, pa.int64()).cast(pa.decimal128(24, 3)).cast(pa.decimal128(20, 3)),
        pa.array(n % 9999, pa.int64()).cast(pa.decimal128(24, 1)).cast(pa.decimal128(5, 1)),
        pa.array(n % 3 == 0, mask=gap),
        pa.array(n, pa.int32()).cast(pa.date32()),
        pa.array(n * 10**9).view(pa.timestamp("us", "UTC")),
        pa.array(np.where(n % 5 == 0, np.nan, n / 3)),
        pa.array(n).view(pa.duration("us")),
        pa.array([[int(i)] * (i % 3) if i % 4 else None for i in n], pa.list_(pa.int64())).cast(
            to_arrow_schema(SCHEMA)[10].type
        ),
        pa.array([one if i % 2 else None for i in n], to_arrow_schema(SCHEMA)[11].type),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=to_arrow_schema(SCHEMA))


WHOLE = table()
STARTS = np.concatenate([[0], np.cumsum(SIZES)])


def make_part() -> PartRef:
    return write_part(STORE, SCHEMA, [WHOLE.slice(a, z - a) for a, z in pairwise(STARTS)], "pages", page_rows=PAGE)


REF = make_part()


def read(ids: list[int], rows: list[int], blocks: list[int] | None = None) -> tuple[pa.Table, int]:
    open_part(STORE, REF, SCHEMA)  # from now on its footer is remembered, and the file is recognized by its part's id
    part = open_part(STORE, REF, SCHEMA)
    before = part.io.bytes + len(REF.part_id)
    pieces = list(part.read(ids, [0, 1, 2] if blocks is None else blocks, np.array(rows, dtype=np.int64)))
    assert [p for piece in pieces for p in piece.positions.tolist()] == rows
    return pa.Table.from_batches([p.batch for p in pieces]), part.io.bytes - before


@given(
    st.sets(
        st.sampled_from([0, 1, 1023, 1024, 1025, 3071, 3072, 3088, 3089, 4112, 4113, 9000, 11280, 11281, 11285]),
        min_size=1,
    ),
    st.sets(st.integers(1, 13).filter(lambda i: i != 12), min_size=1),
)
def test_rows_by_pages_are_rows(rows: set[int], ids: set[int]) -> None:
    found, _ = read(sorted(ids), sorted(rows))
    expected = WHOLE.take(pa.array(sorted(rows)))
    for i in sorted(ids):
        name = SCHEMA.by_id[i].name
        assert str(found[str(i)].to_pylist()) == str(expected.column(name).to_pylist())
        assert found[str(i)].type == to_arrow_schema(SCHEMA).field(name).type


def test_one_row_costs_a_page_of_each_column_and_not_a_block() -> None:
    part = open_part(STORE, REF, SCHEMA)
    _, one = read([1], [4200])
    assert one < part.cost([1], [1]) / 6
    _, all_rows = read([1], list(range(STARTS[1], STARTS[2])))
    assert all_rows == part.cost([1], [1])


@pytest.mark.parametrize(
    "note",
    [
        b"",
        b"no",
        b"1024 3 !!",
        b"512 1 AA==",
        b"1024 2 " + base64.b64encode(b"x" * 9),
        page_offsets.encode_page_note([4, 5, 6], PAGE).encode(),
        page_offsets.encode_page_note([4], 0).encode(),
    ],
)
def test_without_a_fitting_note_chunks_are_read_whole(monkeypatch: pytest.MonkeyPatch, note: bytes) -> None:
    class Footer:
        metadata = {page_offsets.PAGES.encode(): note}  # noqa: RUF012  # a stub

    monkeypatch.setattr(
        "tamis.storage.files.parquet.page_offsets.decode_page_note",
        lambda _, real=page_offsets.decode_page_note: real(Footer()),
    )
    monkeypatch.setattr(
        "tamis.storage.files.parquet.parquet_part._shapes", LruCache(2**20)
    )  # what the true footer said is remembered
    found, size = read([1], [4200])
    assert found["1"].to_pylist() == [4200]
    assert size == open_part(STORE, REF, SCHEMA).cost([1], [1])


def test_chunks_read_whole_are_weighed_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """One row of each block is wanted: by pages that is little and comes together; of whole chunks no more than a piece is decoded at once."""
    monkeypatch.setattr("tamis.storage.files.parquet.parquet_part.PIECE_ROWS", 5 * PAGE)
    monkeypatch.setattr("tamis.storage.files.parquet.parquet_part.NARROW_BYTES", 0)
    rows = np.array([7, 4200, STARTS[2] + 1], dtype=np.int64)
    assert len(list(open_part(STORE, REF, SCHEMA).read([1], [0, 1, 2], rows))) == 1
    monkeypatch.setattr(
        "tamis.storage.files.parquet.page_offsets.decode_page_note",
        lambda _: (PAGE, np.array([4, 5, 6], dtype=np.int64)),
    )
    monkeypatch.setattr(
        "tamis.storage.files.parquet.parquet_part._shapes", LruCache(2**20)
    )  # what the true footer said is remembered
    assert [len(p.positions) for p in open_part(STORE, REF, SCHEMA).read([1], [0, 1, 2], rows)] == [1, 1, 1]


@pytest.mark.parametrize(("narrow", "pieces"), [(0, 3), (4 * 2**20, 1)])
def test_narrow_columns_come_in_larger_pieces(narrow: int, pieces: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A piece costs as much as some thousand rows, so that few bytes of many rows are decoded together."""
    monkeypatch.setattr("tamis.storage.files.parquet.parquet_part.PIECE_ROWS", max(SIZES))
    monkeypatch.setattr("tamis.storage.files.parquet.parquet_part.NARROW_BYTES", narrow)
    found = list(open_part(STORE, REF, SCHEMA).read([1], [0, 1, 2]))
    assert len(found) == pieces
    assert [p for piece in found for p in piece.positions.tolist()] == list(range(sum(SIZES)))
    assert [len(piece) for piece in found] == [len(piece.batch) for piece in found]


def test_pages_of_chosen_rows_come_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four times as many as rows that are all wanted: what is kept of them is little."""
    monkeypatch.setattr("tamis.storage.files.parquet.parquet_part.PIECE_ROWS", 2 * PAGE)
    rows = np.array([7, 4200, STARTS[2] + 1], dtype=np.int64)
    assert [p.positions.tolist() for p in open_part(STORE, REF, SCHEMA).read([1], [0, 1, 2], rows)] == [rows.tolist()]


def test_pages_cut_short_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages that end early, or that are fewer than the footer says."""
    original = Excerpt.decode

    def shortened(self: Excerpt, fetched: list[bytes]) -> list[pa.Array] | None:
        return original(self, [f[:40] for f in fetched])

    monkeypatch.setattr(Excerpt, "decode", shortened)
    with pytest.raises(CorruptData, match="pages of blocks"):
        read([1], [4200])


def test_a_flipped_bit_in_a_page_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    original = Excerpt.decode
    monkeypatch.setattr(
        Excerpt, "decode", lambda self, fetched: original(self, [f[:-3] + bytes([f[-3] ^ 1]) + f[-2:] for f in fetched])
    )
    with pytest.raises(CorruptData, match=REF.part_id):
        read([1, 2, 3], [4200])


def test_chunks_of_different_codecs_are_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Our writer chooses once for a file; pages of two codecs would not go into one chunk."""
    real = page_offsets.Pages._chunk
    monkeypatch.setattr(
        page_offsets.Pages,
        "_chunk",
        lambda self, block, leaf: real(self, block, leaf)._replace(codec=("ZSTD", "GZIP", "SNAPPY")[block]),
    )
    monkeypatch.setattr(
        "tamis.storage.files.parquet.parquet_part._shapes", LruCache(2**20)
    )  # what the true footer said is remembered
    found, size = read([1], [7, 4200])
    assert found["1"].to_pylist() == [7, 4200]
    assert size == open_part(STORE, REF, SCHEMA).cost([1], [0, 1])


def test_a_name_that_looks_like_the_end_of_the_schema() -> None:
    """The footer of an excerpt is made of the one that the library writes for these names."""
    schema = Schema((Field("a\x16\x00\x19\x0cb", LONG, id=1), Field("n", LONG, id=2)))
    numbers = pa.array(np.arange(9 * PAGE))
    ref = write_part(STORE, schema, [pa.record_batch([numbers, numbers], schema=to_arrow_schema(schema))], "odd name")
    (piece,) = open_part(STORE, ref, schema).read([1, 2], [0], np.array([5 * PAGE]))
    assert piece.batch.to_pydict() == {"1": [5 * PAGE], "2": [5 * PAGE]}


@pytest.mark.parametrize(
    ("ids", "rows", "decoded"),
    [
        (FLAT, [], 0),
        (FLAT, [STARTS[1]], PAGE),
        (FLAT, [STARTS[1], STARTS[1] + 3 * PAGE], 2 * PAGE),
        (FLAT, [STARTS[1] + at * PAGE for at in range(5)], SIZES[1]),  # more than half of the pages
        (FLAT, [STARTS[2]], SIZES[2]),
        ([1, 11], [STARTS[1]], (SIZES[1] + PAGE) // 2),  # lists have no pages
        ([11], [STARTS[1]], SIZES[1]),
    ],
)
def test_rows_that_are_decoded_for_chosen_ones(ids: list[int], rows: list[int], decoded: int) -> None:
    part = open_part(STORE, REF, SCHEMA)
    assert part.decoded_rows(ids, np.array(rows, dtype=np.int64)) == decoded


def test_rows_of_other_blocks_are_left_out() -> None:
    rows = np.array([3, STARTS[1] + 7, STARTS[1] + 9, STARTS[2] + 1], dtype=np.int64)
    (piece,) = open_part(STORE, REF, SCHEMA).read([1], [0, 2], rows)
    assert piece.positions.tolist() == piece.batch["1"].to_pylist() == [rows[0], rows[3]]


@pytest.mark.parametrize(("rows", "by_pages"), [([1024, 4112], True), (list(range(0, 11286, 3)), False)])
def test_columns_are_decoded_a_few_at_a_time(
    rows: list[int], *, by_pages: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded: list[int] = []
    original = page_excerpt._decoded

    def counted(columns: Any, *rest: Any) -> Any:
        decoded.append(len(columns))
        return original(columns, *rest)

    monkeypatch.setattr(page_excerpt, "_decoded", counted)
    for module in (page_excerpt, parquet_part):
        monkeypatch.setattr(module, "DECODED_VALUES", 1)
    for ids in (FLAT, [f.id for f in SCHEMA]):
        found, _ = read(ids, rows)
        for i in ids:
            expected = WHOLE.column(SCHEMA.by_id[i].name).take(pa.array(rows))
            assert str(found[str(i)].to_pylist()) == str(expected.to_pylist())
    assert set(decoded) == ({1} if by_pages else set())


def test_leaves_of_one_column_stay_together() -> None:
    part = open_part(STORE, REF, SCHEMA)
    assert isinstance(part, ParquetPart)
    leaves = part._layout.select([1, 13, 2])
    assert list(part._layout.batches(leaves, 1)) == [[leaves[0]], [leaves[1]], leaves[2:]]
    assert len(leaves) == 4
    assert list(part._layout.batches(leaves, 2)) == [leaves[:2], leaves[2:]]
    assert list(part._layout.batches([], 2)) == []
