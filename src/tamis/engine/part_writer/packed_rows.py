"""Sorting of whole rows that fit into 64-bit words: nothing but the words is held, and no row is looked up.

An index over whole numbers has such entries: a value, a part, and a row. ``external_sort`` sorts any rows, and is the
reference for what this module does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.types import Schema
from tamis.core.types.arrow import to_arrow_schema
from tamis.engine.part_writer.external_sort import OUT_ROWS, sorted_batches
from tamis.engine.part_writer.packed_sort import WORD_BITS, Words, integers_of, is_packable, offset_words
from tamis.engine.part_writer.stream_spool import gather_batches

_WORD_BYTES = WORD_BITS // 8


def sorted_rows(
    batches: Iterable[pa.RecordBatch], schema: Schema, cluster_by: Sequence[tuple[int, ...]], memory_bytes: int
) -> Iterator[pa.RecordBatch]:
    """Sort ``batches`` (in the schema's Arrow form) by the first columns, which are ``cluster_by``; NULLs first.

    Unlike ``sorted_batches`` it may order rows with equal keys by their other columns. Holds about ``memory_bytes``.
    """
    target, source = to_arrow_schema(schema), iter(batches)
    if not all(is_packable(kind) for kind in target.types):
        yield from sorted_batches(source, schema, cluster_by, memory_bytes)
        return
    width = sum(kind.bit_width for kind in target.types) // 8
    held, ended = gather_batches(source, memory_bytes * width // (width + _WORD_BYTES))
    packing = _Packing.of(held, target) if ended else None
    if packing is None:
        yield from sorted_batches(chain(_released(held), source), schema, cluster_by, memory_bytes)
        return
    words = packing.pack(held)
    words.sort()
    for start in range(0, len(words), OUT_ROWS):
        yield packing.unpack(words[start : start + OUT_ROWS])


@dataclass(frozen=True, slots=True)
class _Place:
    """The place of a column in a word. The code of a value is its distance from ``base``, that of NULL is zero."""

    base: int
    bits: int
    nullable: bool


@dataclass(frozen=True, slots=True)
class _Packing:
    """How the rows of some batches are packed: the first column into the highest bits."""

    schema: pa.Schema
    places: Sequence[_Place]

    @staticmethod
    def of(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> _Packing | None:
        """Return a packing for the rows of ``batches``, or None if they take more than 64 bits."""
        places = [_place([batch.column(at) for batch in batches]) for at in range(len(schema))]
        return _Packing(schema, places) if sum(place.bits for place in places) <= WORD_BITS else None

    def pack(self, batches: list[pa.RecordBatch]) -> Words:
        """Return a word per row; clears the list to free memory."""
        words = np.zeros(sum(len(batch) for batch in batches), dtype=np.uint64)
        start = 0
        for batch in _released(batches):
            piece = words[start : start + len(batch)]
            for column, place in zip(batch.columns, self.places, strict=True):
                if place.bits < WORD_BITS:  # else it is the only column with bits, and nothing precedes it
                    piece <<= np.uint64(place.bits)
                piece |= offset_words(column, place.base)
            start += len(batch)
        return words

    def unpack(self, words: Words) -> pa.RecordBatch:
        """Return the rows of ``words``."""
        columns: list[pa.Array] = []
        for field, place in zip(reversed(self.schema), reversed(self.places), strict=True):
            codes = words & np.uint64((1 << place.bits) - 1)
            if place.bits < WORD_BITS:
                words = words >> np.uint64(place.bits)
            columns.append(_values(codes, place, field.type))
        return pa.RecordBatch.from_arrays(columns[::-1], schema=self.schema)


def _place(pieces: Sequence[pa.Array]) -> _Place:
    bounds = [pc.min_max(integers_of(piece)) for piece in pieces]
    lows = [found["min"].as_py() for found in bounds if found["min"].is_valid]
    highs = [found["max"].as_py() for found in bounds if found["max"].is_valid]
    nullable = any(piece.null_count for piece in pieces)
    base = min(lows, default=0) - nullable
    return _Place(base, (max(highs, default=base) - base).bit_length(), nullable)


def _values(codes: Words, place: _Place, kind: pa.DataType) -> pa.Array:
    values = (codes + np.uint64(place.base % (1 << WORD_BITS))).view(np.int64)
    whole: Any = values if kind.bit_width == WORD_BITS else values.astype(f"int{kind.bit_width}")
    return pa.array(whole, mask=codes == 0 if place.nullable else None).view(kind)


def _released(batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the batches in order and clear the list, so that a batch is freed when it has been used."""
    batches.reverse()
    while batches:
        yield batches.pop()
