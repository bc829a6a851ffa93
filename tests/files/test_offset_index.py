"""Where pages begin, by the offset indexes: as a file that records each write of the library tells it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.core.types.arrow import from_arrow_schema
from tamis.storage.files import open_part
from tamis.storage.files.parquet.compact_thrift import thrift_varint
from tamis.storage.files.parquet.index_checksum import UNFILLED, filled_footer, split_end
from tamis.storage.files.parquet.offset_index import page_locations
from tamis.storage.files.parquet.page_offsets import decode_page_note
from tamis.storage.object_store import open_store
from tests.files.parts import write_part

STORE = open_store("memory://offset-index")


class Recorder:
    """A file that keeps the offset of each write: after the magic, those of page headers and bodies alternate."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.offsets: list[int] = []
        self.closed = False

    def write(self, data: bytes) -> int:
        self.offsets.append(len(self.data))
        self.data += data
        return len(data)

    def tell(self) -> int:
        return len(self.data)

    def flush(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True


def written(table: pa.Table, group: int, page: int, **options: Any) -> tuple[bytes, pq.FileMetaData, list[int]]:
    """The page indexes and the footer of a file, and where its data pages begin."""
    file = Recorder()
    writer = pq.ParquetWriter(
        pa.PythonFile(file, mode="w"), table.schema, write_page_index=True, max_rows_per_page=page, **options
    )
    writer.write_table(table, row_group_size=group)
    pages, end = file.offsets[1::2], len(file.data)
    writer.close()
    index, _ = split_end(bytes(file.data[end:]))
    footer = pq.read_metadata(pa.BufferReader(bytes(file.data)))
    chunks = [footer.row_group(g).column(c) for g in range(footer.num_row_groups) for c in range(footer.num_columns)]
    dictionaries = {chunk.dictionary_page_offset for chunk in chunks if chunk.has_dictionary_page}
    return index, footer, [page for page in pages if page not in dictionaries]


def found(index: bytes, footer: pq.FileMetaData) -> list[int] | None:
    first, chunks = footer.row_group(0).column(0).data_page_offset, footer.num_row_groups * footer.num_columns
    locations = page_locations(index, first, chunks)
    return None if locations is None else locations.starts.tolist()


def table_of(rows: int) -> pa.Table:
    numbers = np.arange(rows)
    return pa.table(
        {
            "n": numbers,
            "t": pa.array([f"text {n % 7}" for n in numbers]),
            "x": numbers / 3,
            "flag": numbers % 2 == 0,
            "null": pa.nulls(rows, pa.int32()),
            "l": pa.array([[str(n)] * (n % 3) for n in numbers], pa.list_(pa.string())),
            "s": pa.StructArray.from_arrays([pa.array(numbers), pa.array(numbers.astype(str))], names=["a", "b"]),
        }
    )


@pytest.mark.parametrize("pages", [1, 2, 6, 7, 8, 9, 14, 15, 16, 17, 127, 128, 130])
@pytest.mark.parametrize("dictionary", [True, False])
def test_any_number_of_pages(pages: int, dictionary: bool) -> None:
    """The protocol writes the length of a list in three ways."""
    index, footer, expected = written(table_of(3 * pages), 3 * pages, 3, use_dictionary=dictionary)
    assert found(index, footer) == expected
    assert len(expected) >= pages * footer.num_columns


@given(st.integers(1, 300), st.integers(1, 300), st.integers(1, 40), st.booleans())
def test_any_groups(rows: int, group: int, page: int, dictionary: bool) -> None:
    index, footer, expected = written(table_of(rows), group, page, use_dictionary=dictionary)
    assert found(index, footer) == expected


def test_pages_without_texts() -> None:
    """The bytes of a page's texts may be zero, which the header of their list runs into."""
    for count in range(1, 20):
        table = pa.table({"t": ["", *["x"] * (count - 1)], "n": pa.nulls(count, pa.string())})
        index, footer, expected = written(table, count, 1, use_dictionary=False)
        assert found(index, footer) == expected


def test_large_offsets_and_texts_like_an_index() -> None:
    """A column's least text may look like the beginning of the first offset index."""
    table = pa.table({"t": [b"\x19\x1c\x16\x08\x15" + b"\x80" * 3, b"\x16\x08\x15"] * 3, "x": [b"y" * 100_000] * 6})
    index, footer, expected = written(table, 2, 1, use_dictionary=False, compression="none")
    assert found(index, footer) == expected


def test_a_value_that_is_an_index() -> None:
    """A column's least value may be a whole offset index, with a list that goes on to the end of the real one."""

    def with_index(starts: list[int], behind: int) -> pa.Table:
        pages = b"".join(b"\x16" + thrift_varint(2 * at) + b"\x15\x08\x16\x08\x00" for at in starts)
        value = b"\x00\x19" + bytes([16 * len(starts) + 12]) + pages + b"\x19\xf6" + thrift_varint(behind)
        return pa.table({"b": [value + b"\x01" * (80 - len(value)), *(b"%02d" % n * 20 for n in range(1, 40))]})

    wrong, behind, options = [4, 900, 1_300, 1_301], 200, {"use_dictionary": False, "compression": "none"}
    for _ in range(3):  # lengths stay as they are
        table = with_index(wrong, behind)
        index, footer, expected = written(table, 40, 10, **options)
        wrong = [4, expected[2], expected[3], expected[3] + 1]
        rest = index[index.index(b"\x19\xf6" + thrift_varint(behind)) + 2 + len(thrift_varint(behind)) :]
        behind = sum(byte < 0x80 for byte in rest) - 1
    assert table == with_index(wrong, behind), "the value names these places"
    assert found(index, footer) == expected


def test_what_is_no_index_is_unknown() -> None:
    index, footer, expected = written(table_of(40), 20, 3)
    for damaged in (index[:-1], index + b"\0", b"", index[: len(index) // 2], index.replace(b"\x15", b"\x35")):
        assert found(damaged, footer) is None
    assert page_locations(index, expected[0] + 1, 14) is None
    assert page_locations(index, expected[0], 13) is None


@given(st.data())
def test_a_changed_byte_raises_nothing(data: st.DataObject) -> None:
    index, footer, _ = written(table_of(20), 10, 3)
    changed = bytearray(index)
    changed[data.draw(st.integers(0, len(index) - 1))] = data.draw(st.integers(0, 255))
    found(bytes(changed), footer)


@pytest.mark.parametrize("length", [0, 1, 16, 127, 128, 20_000])
def test_notes_are_filled_in(length: int) -> None:
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, pa.schema({"a": pa.int32()})) as writer:
        writer.add_key_value_metadata({"first": UNFILLED, "other": UNFILLED, "second": UNFILLED})
    _, footer = split_end(sink.getvalue().to_pybytes()[4:])
    notes = {"first": "x" * length, "second": "y" * 3}
    metadata = pq.read_metadata(pa.BufferReader(b"PAR1" + filled_footer(footer, notes))).metadata
    assert (metadata[b"first"], metadata[b"second"]) == (notes["first"].encode(), b"yyy")
    assert metadata[b"other"] == UNFILLED.encode()


def test_parts_note_every_data_page() -> None:
    table = table_of(100).drop_columns(["null"])
    schema = from_arrow_schema(table.schema).assign_ids(0)
    ref = write_part(STORE, schema, table.to_batches(max_chunksize=30), page_rows=7)
    footer = pq.read_metadata(pa.BufferReader(STORE.get(ref.path)))
    rows, starts = decode_page_note(footer)
    assert (rows, len(starts)) == (7, footer.num_columns * (5 + 5 + 5 + 2))
    (piece,) = open_part(STORE, ref, schema).read([1], [0], np.array([8]))
    assert piece.batch.column(0).to_pylist() == [8]
