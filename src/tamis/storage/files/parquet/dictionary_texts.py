"""Texts that a column chunk holds as a dictionary, decoded as one.

The library makes plain texts of a dictionary value by value. Reading numbers of values and taking these from the
dictionary costs half, and less where few rows are wanted.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.types.dictionary_arrays import LARGEST_ARRAY, joined_arrays, longest_value, plain_array
from tamis.storage.files.parquet.page_offsets import Chunk, Ordinals

_LARGEST = 64 * 2**10
"""Bytes of a stored dictionary up to which a chunk is read as one.

From 1 MiB on, before compression, the writer ends the dictionary and stores the rest as plain texts, of which the
library would have to make a dictionary.
"""


def is_dictionary_text(field: pa.Field, chunks: Sequence[Chunk]) -> bool:
    """Whether the chunks of this column without nesting are better read as dictionaries.

    The library finds columns by their path, in which a dot may also stand between a struct and its field.
    """
    if "." in field.name or not (pa.types.is_string(field.type) or pa.types.is_binary(field.type)):
        return False
    return all(c.dictionary >= 0 and c.begin - c.dictionary <= _LARGEST for c in chunks)


def dictionary_values(column: pa.ChunkedArray) -> pa.DictionaryArray:
    """Return a column's values as one array with one dictionary."""
    return column.unify_dictionaries().combine_chunks()


def plain_values(column: pa.ChunkedArray) -> pa.Array:
    """Return a column's values as one array without a dictionary.

    Raises ``pa.ArrowException`` if a number is none of its dictionary, or if the values do not fit into one array.
    """
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    return _joined([plain_array(c) for c in column.chunks], kind)


def taken_columns(columns: Sequence[pa.ChunkedArray], taken: Ordinals) -> list[pa.Array] | None:
    """Return the rows ``taken`` (ascending) of columns of equal length, each as one array without a dictionary.

    One call of the library takes them from many columns: where few rows are taken, a call for each column costs
    more than its values, and threads wait for each other after every call. Returns None if the values of a column
    may not fit into one array. Raises ``pa.ArrowException`` if a number is none of its dictionary.
    """
    alike: dict[tuple[int, ...] | None, list[int]] = {}  # by the lengths of a dictionary's chunks
    for at, column in enumerate(columns):
        encoded = pa.types.is_dictionary(column.type)
        alike.setdefault(tuple(map(len, column.chunks)) if encoded else None, []).append(at)
    found: dict[int, pa.Array] = {}
    for lengths, places in alike.items():
        some = [columns[at] for at in places]
        arrays = _taken_plain(some, taken) if lengths is None else _taken_texts(some, lengths, taken)
        if arrays is None:
            return None
        found.update(zip(places, arrays, strict=True))
    return [found[at] for at in range(len(columns))]


def taken_pieces(column: pa.ChunkedArray, taken: Ordinals | None) -> pa.ChunkedArray:
    """Return a column, or its rows ``taken`` (ascending), in the pieces and with the dictionaries that it has.

    Raises ``pa.ArrowInvalid`` if a number is none of its dictionary, which the library does not check.
    """
    if pa.types.is_dictionary(column.type):
        _check_numbers(column)
    if taken is None:
        return column
    ends = np.cumsum([len(c) for c in column.chunks])
    cuts = np.searchsorted(taken, [0, *ends]).tolist()
    found = [
        chunk.take(pa.array(taken[a:z] - (end - len(chunk))))
        for chunk, (a, z), end in zip(column.chunks, pairwise(cuts), ends.tolist(), strict=True)
        if a < z
    ]
    return pa.chunked_array(found, column.type)


def _check_numbers(column: pa.ChunkedArray) -> None:
    for chunk in column.chunks:
        ends = pc.min_max(chunk.indices)
        if ends["min"].is_valid and not 0 <= ends["min"].as_py() <= ends["max"].as_py() < len(chunk.dictionary):
            raise pa.ArrowInvalid(f"a value has a number that its dictionary of {len(chunk.dictionary)} lacks")


def _taken_plain(columns: Sequence[pa.ChunkedArray], taken: Ordinals) -> list[pa.Array] | None:
    """Return the rows ``taken`` of columns without a dictionary."""
    whole = [column.chunk(0) for column in columns if column.num_chunks == 1]
    rows = iter(_taken_rows(whole, taken) if whole else ())
    found = []
    for column in columns:
        if column.num_chunks == 1:
            found.append(next(rows))
            continue
        pieces = taken_pieces(column, taken)
        if pieces.nbytes > LARGEST_ARRAY:
            return None
        found.append(_joined(pieces.chunks, column.type))
    return found


def _taken_rows(arrays: Sequence[pa.Array], taken: Ordinals) -> list[pa.Array]:
    rows = pa.RecordBatch.from_arrays(arrays, names=[str(at) for at in range(len(arrays))])
    columns: list[pa.Array] = rows.take(pa.array(taken)).columns
    return columns


def _taken_texts(columns: Sequence[pa.ChunkedArray], lengths: Sequence[int], taken: Ordinals) -> list[pa.Array] | None:
    """Return the rows ``taken`` of dictionary columns whose chunks have these ``lengths``."""
    largest = max((c.dictionary.nbytes for column in columns for c in column.chunks), default=0)
    exact = len(taken) * largest > LARGEST_ARRAY
    pieces: list[list[pa.Array]] = [[] for _ in columns]
    ends = np.cumsum(lengths)
    cuts = np.searchsorted(taken, [0, *ends]).tolist()
    for number, (a, z) in enumerate(pairwise(cuts)):
        if a == z:
            continue
        chunks = [column.chunk(number) for column in columns]
        first = int(ends[number]) - lengths[number]
        places = _taken_rows([chunk.indices for chunk in chunks], taken[a:z] - first)
        if exact and any(len(taken) * longest_value(c.dictionary) > LARGEST_ARRAY for c in chunks):
            return None
        for piece, chunk, place in zip(pieces, chunks, places, strict=True):
            piece.append(chunk.dictionary.take(place))
    return [_joined(piece, column.type.value_type) for piece, column in zip(pieces, columns, strict=True)]


def _joined(arrays: Sequence[pa.Array], data_type: pa.DataType) -> pa.Array:
    if not arrays:
        return pa.nulls(0, data_type)
    return joined_arrays(arrays)
