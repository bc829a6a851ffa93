"""Texts read by the dictionaries of their chunks: the values that the library makes of them itself."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.core.types import BINARY, LONG, STRING, Field, Schema, Struct
from tamis.core.types.arrow import to_arrow_schema
from tamis.core.types.dictionary_arrays import DICTIONARY_TEXT, joined_arrays, plain_array
from tamis.errors import CorruptData
from tamis.storage.files import PartRef, open_part
from tamis.storage.files.parquet import dictionary_texts, page_excerpt, parquet_part
from tamis.storage.files.parquet.dictionary_texts import (
    dictionary_values,
    is_dictionary_text,
    plain_values,
    taken_columns,
    taken_pieces,
)
from tamis.storage.files.parquet.page_excerpt import Excerpt
from tamis.storage.files.parquet.view_types import without_views
from tamis.storage.object_store.store import open_store
from tests.files.parts import write_part

STORE = open_store("memory://dictionaries")
SCHEMA = Schema(
    (
        Field("n", LONG, id=1),
        Field("t", STRING, id=2),
        Field("b", BINARY, id=3),
        Field("none", STRING, id=4),
        Field("s", Struct((Field("t", STRING, id=6),)), id=5),
        Field("s.t", STRING, id=7),
        Field("many", STRING, id=8),
        Field("long", STRING, id=9),
    )
)
PAGE = 64
LONG_TEXTS = [np.random.default_rng(i).bytes(30_000).hex() for i in range(40)]
"""More than a dictionary holds."""
SIZES = (5 * PAGE + 17, 9 * PAGE, 3)


def block(start: int, size: int, values: int) -> pa.RecordBatch:
    """A block whose dictionaries have ``values`` entries or fewer, and other ones than those of other blocks."""
    n = np.arange(start, start + size)
    gap = n % 5 == 3
    texts = [f"{start}-{i % values}" + "x" * (i % 3) for i in n]
    long = [LONG_TEXTS[i % 40] if start == 0 and i < 41 else "" for i in n.tolist()]
    columns = [
        pa.array(n),
        pa.array(texts, mask=gap),
        pa.array([t.encode() for t in texts], mask=~gap),
        pa.nulls(size, pa.string()),
        pa.array([{"t": f"inner {i % 3}"} if i % 4 else None for i in n]),
        pa.array([f"outer {i % 3}" for i in n]),
        pa.array([f"{i * 7919}" for i in n]),
        pa.array(long),
    ]
    return pa.record_batch(
        [c.cast(f.type) for c, f in zip(columns, to_arrow_schema(SCHEMA), strict=True)], schema=to_arrow_schema(SCHEMA)
    )


STARTS = [0, *np.cumsum(SIZES).tolist()]
WHOLE = [block(a, z - a, values) for (a, z), values in zip(pairwise(STARTS), (40, 2, 3), strict=True)]
REF = write_part(STORE, SCHEMA, WHOLE, "dictionaries", page_rows=PAGE)


@pytest.fixture
def met(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The columns that are read as dictionaries."""
    names: list[str] = []

    def noted(field: pa.Field, chunks: Any) -> bool:
        found = is_dictionary_text(field, chunks)
        names.extend([field.name] * found)
        return found

    for module in (page_excerpt, parquet_part):
        monkeypatch.setattr(module, "is_dictionary_text", noted)
    return names


def plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pa.chunked_array([plain_array(c) for c in column.chunks])


def read(ids: list[int], rows: list[int] | None, ref: PartRef = REF) -> pa.Table:
    wanted = None if rows is None else np.array(rows, dtype=np.int64)
    return pa.Table.from_batches([p.batch for p in open_part(STORE, ref, SCHEMA).read(ids, [0, 1, 2], wanted)])


def test_all_rows_and_some_by_pages_or_by_chunks(met: list[str]) -> None:
    whole = pa.Table.from_batches(WHOLE)
    every = [f.id for f in SCHEMA]
    for rows in (None, [7], [7, 70, 400, STARTS[2] + 1], list(range(0, STARTS[3], 3)), list(range(STARTS[3]))):
        met.clear()
        found = read(every, rows)
        expected = whole if rows is None else whole.take(pa.array(rows))
        for f in SCHEMA:
            assert plain(found[str(f.id)]).to_pylist() == expected[f.name].to_pylist(), (f.name, rows)
            assert plain(found[str(f.id)]).type == expected[f.name].type
        kept = {f.name for f in SCHEMA if pa.types.is_dictionary(found[str(f.id)].type)}
        assert kept == (set() if rows and len(rows) < 5 else {"t"} | ({"none"} & set(met))), "of STRING columns alone"
        assert {"t", "b"} <= set(met) <= {"t", "b", "none"}, "not s.t, which might be another column's path"


@given(
    st.lists(st.lists(st.none() | st.sampled_from(["", "a", "ä", "bb"]), max_size=9), max_size=4),
    st.none() | st.sets(st.integers(0, 35)),
)
def test_values_are_those_of_the_dictionaries(chunks: list[list[str | None]], taken: set[int] | None) -> None:
    made = [pa.array(c, pa.string()).dictionary_encode() for c in chunks]
    column = pa.chunked_array(made, pa.dictionary(pa.int32(), pa.string()))
    values = [v for c in chunks for v in c]
    rows = None if taken is None else sorted(row for row in taken if row < len(values))
    for read_as in (plain_values, dictionary_values):
        found = read_as(taken_pieces(column, None if rows is None else np.array(rows, dtype=np.int64)))
        assert found.type == (pa.string() if read_as is plain_values else DICTIONARY_TEXT)
        assert found.to_pylist() == (values if rows is None else [values[row] for row in rows])


@given(st.lists(st.lists(st.lists(st.integers(0, 5), max_size=9), max_size=4), max_size=6), st.data())
def test_rows_of_many_columns_are_those_of_each(shapes: list[list[list[int]]], data: st.DataObject) -> None:
    """Texts with a dictionary in the same and in other pieces, numbers, NULLs, and no column at all."""
    length = sum(map(len, shapes[0])) if shapes else 0
    columns = []
    for shape in shapes:
        cuts = np.cumsum([len(piece) for piece in shape]).clip(max=length).tolist()
        ends = [0, *cuts, length]
        values = [data.draw(st.none() | st.sampled_from(["", "a", "bb"])) for _ in range(length)]
        pieces = [pa.array(values[a:z], pa.string()) for a, z in pairwise(ends)]
        encoded = pa.dictionary(pa.int32(), pa.string())
        columns.append(pa.chunked_array([p.dictionary_encode() for p in pieces] if length else [], encoded))
        columns.append(pa.chunked_array([pa.array([None if v is None else len(v) for v in values], pa.int64())]))
    rows = np.array(sorted(data.draw(st.sets(st.integers(0, max(length - 1, 0)), max_size=length))), dtype=np.int64)
    found = taken_columns(columns, rows)
    expected = [plain_values(taken_pieces(column, rows)) for column in columns]
    assert found is not None
    assert [a.type for a in found] == [a.type for a in expected]
    assert [a.to_pylist() for a in found] == [a.to_pylist() for a in expected]


def test_arrays_are_joined_with_and_without_dictionaries() -> None:
    encoded, other, without = pa.array(["a", None]).dictionary_encode(), pa.array(["b"]).dictionary_encode(), ["c"]
    assert joined_arrays([encoded, other]).to_pylist() == ["a", None, "b"]
    assert joined_arrays([encoded, pa.array(without), other]).equals(pa.array(["a", None, "c", "b"]))
    assert joined_arrays([encoded, other]).type == DICTIONARY_TEXT


@pytest.mark.parametrize("number", [2, -1])
def test_a_number_outside_of_the_dictionary_is_an_error(number: int) -> None:
    wrong = pa.DictionaryArray.from_arrays(pa.array([0, number], pa.int32()), pa.array(["a", "b"]), safe=False)
    for taken in (None, np.array([1])):
        with pytest.raises(pa.ArrowException):
            taken_pieces(pa.chunked_array([wrong]), taken)
    with pytest.raises(pa.ArrowException):
        plain_values(pa.chunked_array([wrong]))
    with pytest.raises(pa.ArrowException):
        taken_columns([pa.chunked_array([wrong])], np.array([1]))


@pytest.mark.parametrize("rows", [None, list(range(0, STARTS[3], 3))])
def test_a_number_outside_of_the_dictionary_is_read_once_more(
    rows: list[int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after an answer of the store that was wrong: the second decoding is sound."""
    decoded: list[int] = []

    def wrong_once(table: pa.Table) -> pa.Table:
        decoded.append(len(table))
        if len(decoded) > 1:
            return without_views(table)
        at = table.column_names.index("t")
        chunks = [
            pa.DictionaryArray.from_arrays(c.indices, c.dictionary[:-1], safe=False) for c in table.column(at).chunks
        ]
        return table.set_column(at, table.field(at), pa.chunked_array(chunks))

    expected = read([f.id for f in SCHEMA], rows)
    monkeypatch.setattr(parquet_part, "without_views", wrong_once)
    assert read([f.id for f in SCHEMA], rows).equals(expected)
    assert len(decoded) > 1


def test_a_dictionary_of_another_block_is_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its bytes have a sound checksum, but fewer values than the pages refer to."""
    original = Excerpt.decode

    def swapped(self: Excerpt, fetched: list[Any]) -> list[pa.Array] | None:
        (first, *_), (second, *_) = self._tables[0].columns[0].groups[:2]
        fetched = list(fetched)
        fetched[first] = fetched[second]
        return original(self, fetched)

    monkeypatch.setattr(Excerpt, "decode", swapped)
    with pytest.raises(CorruptData, match=REF.part_id):
        read([2], [7, 30, 400])


def test_a_flipped_bit_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    original = Excerpt.decode

    def flipped(self: Excerpt, fetched: list[Any]) -> list[pa.Array] | None:
        return original(self, [bytes(f[:-3]) + bytes([f[-3] ^ 1]) + bytes(f[-2:]) for f in fetched])

    monkeypatch.setattr(Excerpt, "decode", flipped)
    with pytest.raises(CorruptData, match=REF.part_id):
        read([2], [7])


def test_a_dictionary_that_was_given_up_is_read_plainly(monkeypatch: pytest.MonkeyPatch, met: list[str]) -> None:
    """A large one ends, and plain texts follow it in the chunk: the values are right, and no dictionary is made of them."""

    def values() -> list[str]:
        """Of all pieces, some of which have a dictionary."""
        pieces = open_part(STORE, REF, SCHEMA).read([9], [0, 1, 2], None)
        return [value for piece in pieces for value in piece.batch.column(0).to_pylist()]

    assert values() == pa.Table.from_batches(WHOLE)["long"].to_pylist()
    monkeypatch.setattr(dictionary_texts, "_LARGEST", 2**40)
    assert values() == pa.Table.from_batches(WHOLE)["long"].to_pylist()
