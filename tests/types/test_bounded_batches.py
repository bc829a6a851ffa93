"""Pieces whose bytes are bounded: the same rows in the same order, none larger than asked unless it is a single row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.core.types.bounded_batches import joined_batches, row_sizes, slices_within, spans_within

SCHEMA = pa.schema(
    {
        "n": pa.int64(),
        "t": pa.string(),
        "s": pa.struct({"b": pa.binary(), "n": pa.int8()}),
        "l": pa.list_(pa.list_(pa.string())),
        "m": pa.map_(pa.string(), pa.large_string()),
    }
)
FIXED = 8 + 4 + 4 + 1 + 4 + 4
"""Bytes of a row without any values: numbers, and offsets of texts, lists and maps."""
TEXT = st.none() | st.integers(0, 60).map(lambda n: "é" * n)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "n": st.none() | st.integers(0, 9),
            "t": TEXT,
            "s": st.none() | st.fixed_dictionaries({"b": TEXT.map(lambda t: t and t.encode()), "n": st.just(1)}),
            "l": st.none() | st.lists(st.none() | st.lists(TEXT, max_size=3), max_size=3),
            "m": st.none() | st.lists(st.tuples(st.just("kk"), TEXT), max_size=3),
        }
    ),
    max_size=30,
)


def nested(values: list[dict[str, Any]], skipped: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"t": "before"}] * skipped + values, SCHEMA).slice(skipped)


def measured(value: Any) -> int:
    """The bytes of the texts in a value, and of an offset for each text, list and map in lists and maps."""
    if isinstance(value, dict):
        return sum(measured(v) for v in value.values())
    if isinstance(value, list | tuple):
        offsets = sum(4 for v in value if not isinstance(value, tuple)) if value and isinstance(value[0], list) else 0
        return offsets + sum(measured(v) for v in value)
    return len(value.encode()) if isinstance(value, str) else len(value) if isinstance(value, bytes) else 0


@given(ROWS, st.integers(0, 2))
def test_sizes_count_what_rows_hold(values: list[dict[str, Any]], skipped: int) -> None:
    batch = nested(values, skipped)
    sizes = row_sizes(batch.columns, len(batch))
    texts = [measured(row) for row in batch.to_pylist()]
    inner = 4 * (1 + 3 * 2 + 3 * 3)  # at most so many offsets are within a row's lists and maps
    assert len(sizes) == len(batch)
    assert all(text + FIXED <= size <= text + FIXED + inner for text, size in zip(texts, sizes.tolist(), strict=True))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pa.array(["aa", None, "b" * 9]).dictionary_encode(), [6, 0, 13]),
        (pa.array([1, None], pa.int16()).dictionary_encode(), [2, 2]),
        (pa.array(["a", None], pa.large_string()), [5, 4]),
        (pa.array([[1, 2], [], None], pa.large_list(pa.int32())), [12, 4, 4]),
        (pa.array([True, False]), [1, 1]),
        (pa.array([b"abc"], pa.binary(3)), [3]),
        (pa.nulls(2), [0, 0]),
        (pa.array([[1, 2], [3, 4]], pa.list_(pa.int64(), 2)), [16, 16]),
        (pa.array(["a" * 40] * 2, pa.string_view()), [56, 56]),
    ],
)
def test_sizes_of_each_type(values: pa.Array, expected: list[int]) -> None:
    assert row_sizes([values], len(values)).tolist() == expected


@given(st.lists(st.integers(0, 20), max_size=30), st.integers(1, 40), st.integers(1, 9))
def test_spans_are_as_long_as_the_limits_allow(sizes: list[int], most_bytes: int, most_rows: int) -> None:
    spans = list(spans_within(np.array(sizes, dtype=np.int64), most_bytes, most_rows))
    assert [at for span in spans for at in range(span.start, span.stop)] == list(range(len(sizes)))
    for span in spans:
        assert span.stop == span.start + 1 or sum(sizes[span]) <= most_bytes
        assert 1 <= span.stop - span.start <= most_rows
        full = span.stop - span.start == most_rows or sum(sizes[span.start : span.stop + 1]) > most_bytes
        assert full or span.stop == len(sizes)


@given(ROWS, st.integers(0, 2), st.integers(100, 2_000))
def test_slices_are_the_same_rows(values: list[dict[str, Any]], skipped: int, most: int) -> None:
    batch = nested(values, skipped)
    slices = list(slices_within(batch, most))
    assert [row for piece in slices for row in piece.to_pylist()] == batch.to_pylist()
    bitmaps = 2 * len(SCHEMA) * (len(batch) // 8 + 8)  # which sizes leave out
    assert all(len(piece) <= 1 or piece.nbytes <= most + bitmaps for piece in slices)


@given(ROWS, st.lists(st.integers(0, 9), max_size=12), st.integers(1, 9), st.integers(1, 2_000))
def test_neighbours_are_joined_within_both_limits(
    values: list[dict[str, Any]], lengths: list[int], enough: int, most: int
) -> None:
    whole, cuts = nested(values, 0), [0, *np.cumsum(lengths).tolist()]
    given = [whole.slice(start, length) for start, length in zip(cuts, [*lengths, len(whole)], strict=True)]
    joined = list(joined_batches(given, enough, most))
    assert [row for piece in joined for row in piece.to_pylist()] == whole.to_pylist()
    pieces = [piece for piece in given if len(piece)]
    for batch in joined:
        ends = np.cumsum([len(piece) for piece in pieces]).tolist()
        count = ends.index(len(batch)) + 1
        size = sum(piece.nbytes for piece in pieces[:count])
        assert count == 1 or size <= most
        assert count == 1 or ends[count - 2] < enough
        assert len(batch) >= enough or count == len(pieces) or size + pieces[count].nbytes > most
        pieces = pieces[count:]
