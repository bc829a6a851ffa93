"""Rows taken by their numbers are those rows, from whichever chunks, in pieces of bounded bytes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tamis.core.types.numbered_rows import NumberedRows

LIMIT = 300


def table(lengths: list[int]) -> pa.Table:
    """Chunks of these lengths; every fifth row is wide."""
    ids = pa.array(range(sum(lengths)))
    texts = pa.array([f"{i}" * (40 if i % 5 == 0 else 1) for i in range(sum(lengths))])
    structs = pa.StructArray.from_arrays([texts], names=["t"])
    ends = [0, *np.cumsum(lengths).tolist()]
    cut = [pa.table({"id": ids, "t": texts, "s": structs}).slice(a, n) for a, n in zip(ends, lengths, strict=False)]
    return pa.concat_tables(cut)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.data())
def test_pieces_are_these_rows_in_this_order(lengths: list[int], data: st.DataObject) -> None:
    whole = table(lengths)
    rows = np.array(data.draw(st.lists(st.integers(0, len(whole) - 1), max_size=40)), dtype=np.int64)
    found = NumberedRows(whole)
    pieces = list(found.pieces(rows, LIMIT, 9))
    assert [row for piece in pieces for row in piece.to_pylist()] == [whole.slice(i, 1).to_pylist()[0] for i in rows]
    assert all(len(piece) == 1 or (len(piece) <= 9 and piece.nbytes <= 2 * LIMIT) for piece in pieces)
    assert len(found.sizes) == len(whole)


def test_a_column_may_be_longer_than_an_array() -> None:
    """Its chunks are one and the same piece of memory."""
    wide = pa.record_batch({"t": ["a" * 2**25, "b" * 2**25], "n": [1, 2]})
    rows = NumberedRows(pa.Table.from_batches([wide] * 40))
    assert int(rows.sizes.sum()) > 2**31
    assert rows.take(np.array([79, 0])).column("n").to_pylist() == [2, 1]


def test_a_table_without_rows_has_no_pieces() -> None:
    rows = NumberedRows(pa.table({"t": pa.array([], pa.string())}))
    assert len(rows.sizes) == 0
    assert list(rows.pieces(np.zeros(0, dtype=np.int64), 1, 1)) == []
