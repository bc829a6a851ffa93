"""Stripes of an ORC part: excerpts hold what the library reads from the file itself, and nothing that was not verified."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import orc

from tamis.core.types import DOUBLE, LONG, STRING, Array, Field, Map, Schema, Struct
from tamis.core.types.arrow import to_arrow_schema
from tamis.errors import CorruptData
from tamis.storage.files import open_part
from tamis.storage.files.file_seal import SealingSink, Summary
from tamis.storage.files.orc import orc_writer
from tamis.storage.files.orc.excerpt_reader import ExcerptReader
from tamis.storage.files.orc.file_reader import FileReader
from tamis.storage.files.orc.protobuf import message_fields, number_records
from tamis.storage.files.orc.stripe_excerpt import ColumnsExcerpt
from tamis.storage.files.orc.stripe_layout import StripeLayout
from tamis.storage.files.protocol import PartRef, WriteOptions
from tamis.storage.files.sealed_reader import Sealed, open_sealed
from tamis.storage.object_store import open_store
from tests.files.parts import write_part

STORE = open_store("memory://orc-stripes")
INNER = Struct((Field("x", LONG, id=11), Field("y", Struct((Field("z", STRING, id=13),)), id=12)))
SCHEMA = Schema(
    (
        Field("n", LONG, id=1),
        Field("s", STRING, id=2),
        Field("t", INNER, id=3),
        Field("l", Array(Field("element", Struct((Field("w", DOUBLE, id=22),)), id=21)), id=4),
        Field("m", Map(Field("key", STRING, False, id=31), Field("value", LONG, id=32)), id=5),
        Field("e", STRING, id=6),
        Field("d", DOUBLE, id=7),
    )
)
SIZES = (700, 1, 450)
ROWS = sum(SIZES)
WIDE_SCHEMA = Schema(tuple(Field(f"c{at}", LONG, id=at) for at in range(1, 61)))


def batches() -> list[pa.RecordBatch]:
    rows = [
        {
            "n": None if at % 7 == 0 else at * 7919 % 1009,
            "s": None if at % 11 == 0 else f"text {at % 5}",
            "t": None if at % 3 == 0 else {"x": at, "y": None if at % 4 == 0 else {"z": f"z{at}"}},
            "l": None if at % 5 == 0 else [{"w": at / 3}] * (at % 4),
            "m": [(f"k{at % 6}", at)] * (at % 2),
            "e": "" if at < SIZES[0] else None,
            "d": float(at % 2),
        }
        for at in range(ROWS)
    ]
    table = pa.Table.from_pylist(rows, schema=to_arrow_schema(SCHEMA)).combine_chunks()
    starts = np.cumsum([0, *SIZES])
    return [table.slice(a, n).to_batches()[0] for a, n in zip(starts, SIZES, strict=False)]


def part_of(part_id: str, stripe_rows: int = 100) -> PartRef:
    """Blocks of wide rows, so that a block of 700 rows has seven stripes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(orc_writer, "STRIPE_ROWS", stripe_rows)
        patch.setattr(orc_writer, "WIDE", 1)
        return write_part(STORE, SCHEMA, batches(), part_id, form="orc")


def file_of(ref: PartRef) -> pa.Buffer:
    return pa.py_buffer(STORE.get(ref.path)[: open_sealed(STORE, ref).seal.size])


REF = part_of("several")
FILE = orc.ORCFile(pa.BufferReader(file_of(REF)))
COLUMNS = st.sets(st.integers(0, len(SCHEMA.fields) - 1), min_size=1).map(sorted)


def test_blocks_have_several_stripes_of_equal_rows() -> None:
    layout = ExcerptReader(open_sealed(STORE, REF))
    assert layout.rows.tolist() == [100] * 7 + [1] + [90] * 5
    assert open_part(STORE, REF, SCHEMA).block_rows == SIZES


@given(COLUMNS, st.sets(st.integers(0, 12), min_size=1).map(sorted))
def test_an_excerpt_holds_what_the_library_reads_from_the_file(places: list[int], stripes: list[int]) -> None:
    found = ExcerptReader(open_sealed(STORE, REF)).read(places, stripes)
    names = [FILE.schema.names[at] for at in places]
    for batch, stripe in zip(found, stripes, strict=True):
        expected = FILE.read_stripe(stripe, columns=places)
        assert expected.schema.names == names
        assert [c.to_pylist() for c in batch.columns] == [c.to_pylist() for c in expected.columns]
        assert batch.schema.types == expected.schema.types


@given(COLUMNS, st.sets(st.integers(0, ROWS - 1)).map(sorted), st.sets(st.integers(0, 2)).map(sorted))
def test_chosen_rows_of_stripes(places: list[int], rows: list[int], blocks: list[int]) -> None:
    expected = pa.Table.from_batches(batches())
    block_of = np.searchsorted(np.cumsum(SIZES), rows, side="right")
    wanted = [row for row, block in zip(rows, block_of, strict=True) if block in blocks]
    ids = [SCHEMA.fields[at].id for at in places]
    pieces = list(open_part(STORE, REF, SCHEMA).read(ids, blocks, np.array(rows, dtype=np.int64)))
    assert [n for p in pieces for n in p.positions.tolist()] == wanted
    for at in places:
        values = [v for p in pieces for v in p.batch.column(str(SCHEMA.fields[at].id)).to_pylist()]
        assert values == expected.column(at).take(pa.array(wanted, pa.int64())).to_pylist()


def test_the_file_proper_is_an_orc_file() -> None:
    assert (FILE.nrows, FILE.nstripes, FILE.compression, FILE.row_index_stride) == (ROWS, 13, "ZSTD", 10_000)
    assert FILE.read().column("n").to_pylist() == [v for b in batches() for v in b.column("n").to_pylist()]
    assert FILE.nstripe_statistics == 13
    assert [f.name for f in FILE.schema] == [f.name for f in SCHEMA]


def test_a_part_of_earlier_releases_has_no_layout() -> None:
    sink, summary = SealingSink(STORE.writer("data/old.orc")), Summary(SCHEMA)
    sink.write(file_of(part_of("to-copy", 1_000)))
    for batch in batches():
        summary.add(batch)
        summary.end()
    done = sink.seal(summary, WriteOptions("old"), ())
    ref = PartRef("old", "data/old.orc", "orc", 0, ROWS, done.bytes, done.checksum, done.footer_checksum, SIZES)
    part = open_part(STORE, ref, SCHEMA)
    rows = np.array([0, 99, 100, 700, 701, ROWS - 1], dtype=np.int64)
    for some in (None, rows):
        pieces = list(part.read([1, 3, 5], range(3), some))
        same = list(open_part(STORE, REF, SCHEMA).read([1, 3, 5], range(3), some))
        assert [p.positions.tolist() for p in pieces] == [p.positions.tolist() for p in same]
        assert [p.batch.to_pylist() for p in pieces] == [p.batch.to_pylist() for p in same]
    assert FileReader(open_sealed(STORE, ref)).rows.tolist() == list(SIZES)


def test_a_row_costs_a_stripe() -> None:
    noise = np.random.default_rng(5).integers(0, 2**62, (60, 40_000))
    batch = pa.record_batch(list(noise), schema=to_arrow_schema(WIDE_SCHEMA))
    part = open_part(STORE, write_part(STORE, WIDE_SCHEMA, [batch], "wide", form="orc"), WIDE_SCHEMA)
    list(part.read([1], [0], np.array([39_999])))
    before = part.io.bytes, part.io.requests
    list(part.read([f.id for f in WIDE_SCHEMA], [0], np.array([12_345])))
    share = orc_writer.STRIPE_ROWS / 40_000
    assert 0.5 * share < (part.io.bytes - before[0]) / (40_000 * 60 * 8) < 1.5 * share
    assert part.io.requests - before[1] == 1


def test_indexes_are_not_fetched() -> None:
    seal = open_sealed(STORE, REF).seal
    layout = StripeLayout.unpack(seal.layout, seal.blocks, seal.size)
    excerpt = ColumnsExcerpt(layout, [0, 1])
    ranges = excerpt.ranges(excerpt.streams([2, 5]))
    cuts = layout.cuts
    wanted = [at for s in (2, 5) for at in range(cuts[s], cuts[s + 1]) if layout.kinds[at] < 6]
    assert sum(size for _, size in ranges) == sum(layout.sizes[at] for at in wanted if layout.columns[at] in {1, 2})
    assert len(ranges) == 2


def test_dictionaries_are_made_of_texts_that_repeat() -> None:
    words = ["twenty different words " + str(at % 20) for at in range(4_000)]
    other = [f"no text is like this one {at * 7919 % 4001}" for at in range(4_000)]
    schema = Schema((Field("s", STRING, id=1),))
    for name, texts, entries in (("few", words, 20), ("many", other, 0)):
        batch = pa.record_batch([texts], schema=to_arrow_schema(schema))
        seal = open_sealed(STORE, write_part(STORE, schema, [batch], f"words-{name}", form="orc")).seal
        assert StripeLayout.unpack(seal.layout, seal.blocks, seal.size).dictionaries.tolist() == [[0, entries]]


@pytest.mark.parametrize("value", [0, 1, 127, 128, 2**31, 2**62])
def test_numbers_of_fixed_width(value: int) -> None:
    (found,) = number_records(5, (1, np.array([value])), (2, np.array([7]))).tolist()
    ((number, message),) = message_fields(bytes(found))
    assert (number, list(message_fields(message))) == (5, [(1, value), (2, 7)])


@pytest.mark.parametrize("message", [b"\x08", b"\x0a\x05abc", b"\x80", b"\x0b\x00", b"\x09\x00"])
def test_a_message_that_is_cut_is_refused(message: bytes) -> None:
    with pytest.raises(ValueError, match=r"a field|a number"):
        list(message_fields(message))


def test_no_byte_of_a_stream_can_change_unnoticed() -> None:
    """For each stream that is read, one bit at three places; the bytes of streams that are not read do not matter."""
    ref = part_of("flipped")
    whole = STORE.get(ref.path)
    seal = open_sealed(STORE, ref).seal
    layout = StripeLayout.unpack(seal.layout, seal.blocks, seal.size)
    seen = 0
    for offset, size, kind in zip(layout.offsets, layout.sizes, layout.kinds, strict=True):
        for at in {int(offset), int(offset + size // 2), int(offset + size - 1)} if size and kind < 6 else ():
            with STORE.writer(ref.path) as file:
                file.write(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
            with pytest.raises(CorruptData, match=ref.path):
                list(open_part(STORE, ref, SCHEMA).read([f.id for f in SCHEMA], range(3)))
            seen += 1
    assert seen > 300


def with_layout(change: Callable[[StripeLayout], StripeLayout]) -> Sealed:
    """The part as if its seal had another layout."""
    source = open_sealed(STORE, REF)
    layout = StripeLayout.unpack(source.seal.layout, source.seal.blocks, source.seal.size)
    source.seal = replace(source.seal, layout=change(layout).pack(), crcs=source.seal.crcs)
    source.key = (*source.key, str(source.seal.layout))
    return source


def changed(name: str, at: Any, value: int) -> Callable[[StripeLayout], StripeLayout]:
    def change(layout: StripeLayout) -> StripeLayout:
        found = getattr(layout, name).copy()
        found[at] = value
        return replace(layout, **{name: found})

    return change


LIES: list[Callable[[StripeLayout], StripeLayout]] = [
    changed("rows", 0, 99),
    changed("rows", 0, -1),
    changed("lengths", 12, 10**9),
    changed("lengths", 3, 5),
    changed("sizes", 2, 10**9),
    changed("sizes", 2, -5),
    changed("streams", 0, 1),
    changed("columns", 3, 99),
    lambda layout: replace(layout, types=()),
    lambda layout: replace(layout, types=layout.types[:3]),
    lambda layout: replace(layout, types=(b"\x08\x0c", *layout.types[1:])),
    lambda layout: replace(layout, kinds=layout.kinds[:-1]),
    lambda layout: replace(layout, rows=layout.rows[:-1]),
]


@pytest.mark.parametrize("lie", range(len(LIES)))
def test_a_layout_that_contradicts_itself_is_refused(lie: int) -> None:
    with pytest.raises(CorruptData, match=f"{REF.path}.*layout"):
        ExcerptReader(with_layout(LIES[lie]))


def test_what_a_layout_says_of_a_stream_is_checked_by_decoding_it() -> None:
    def longer(layout: StripeLayout) -> StripeLayout:
        sizes = layout.sizes.copy()
        sizes[16:18] = sizes[17:15:-1]
        return replace(layout, sizes=sizes)

    with pytest.raises(CorruptData, match=REF.path):
        ExcerptReader(with_layout(longer)).read(range(7), [0])
    assert ExcerptReader(with_layout(lambda layout: layout)).read(range(7), [0])


def test_rows_that_are_decoded_for_chosen_ones() -> None:
    part = open_part(STORE, REF, SCHEMA)
    for rows in ([], [0], [0, 5], [0, 100]):
        touched = {row // 100 for row in rows}
        assert part.decoded_rows([1], np.array(rows, dtype=np.int64)) == 100 * len(touched)
