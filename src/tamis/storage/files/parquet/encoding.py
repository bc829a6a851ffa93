"""Chooses the encoding and compression of each column of a file from its first block.

The choice is the encoding that decodes fastest among those that Spark, pyarrow and other engines read and
whose size is within a tenth of the smallest. Mostly distinct columns get no dictionary: with row groups this
small it costs a third of the time and a fifth of the size. Numbers in arrays get none either
(``copied_arrays``), because Spark's reader would fail on it. Integers may be packed as differences
(``DELTA_BINARY_PACKED``), which seldom leaves anything to compress. Reading a page of numbers mostly waits for
decompression, so a column is compressed only if that saves enough on each page (docs/design/0014). Sizes are
measured, not estimated: on the rows of two pages, or on the block if a dictionary is in doubt, since a
dictionary weighs more the fewer rows it serves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tamis.storage.files.parquet.column_layout import leaf_fields
from tamis.storage.files.parquet.copied_arrays import copied_leaves

_CODEC, _LEVEL = "zstd", 1
_DIFFERENCES = "DELTA_BINARY_PACKED"
_FEW, _MANY = 0.05, 0.5
"""Shares of distinct values in the first block.

Up to the first a column surely gets a dictionary; above the second it gets none.
"""
_SAMPLED = 8
"""One in this many rows of a block is sampled before the whole block is counted."""
_MOSTLY_DISTINCT = 0.97
"""Share of distinct values in the sample from which the block is not counted.

If each value is as frequent as any other, more than three quarters of a block of 65,536 rows are distinct then.
"""
_PAGES = 2
"""Number of pages encoded on trial."""
_LEAST = 1024
"""Rows below which nothing is tried.

A trial would cost a fifth of their append, and so few rows are read at once in any encoding.
"""
_NEAR = 1.1
"""How many times the smallest size is accepted for faster decoding."""
_PAGE_SAVING = 4096
"""Bytes that compression must save on each page, unless it saves more than ``_LARGEST`` allows.

Spark's reader makes a decompressor for each page, which takes 20 µs: what a store needs for so many bytes.
"""
_LARGEST = 2.25
"""How many times its compressed size a column may have because its pages are small."""


@dataclass(frozen=True, slots=True)
class Encodings:
    """The leaves, by Parquet path, that have a dictionary, are packed as differences, or are uncompressed."""

    leaves: tuple[str, ...]
    dictionary: frozenset[str]
    differences: frozenset[str] = frozenset()
    uncompressed: frozenset[str] = frozenset()

    @staticmethod
    def of(first: pa.Table, page_rows: int) -> Encodings:
        """Choose the encodings of a file by its first block; its pages have ``page_rows`` rows."""
        named = Counter(path for path, _, _ in leaf_fields(first.schema))
        once = [
            f for f in first.schema if named[f.name] == 1
        ]  # "a.b" may be a column, and also a field of the column "a"
        sampled = _sampled_rows(len(first))
        shares = {f.name: _distinct_share(first.column(f.name), sampled) for f in once}
        dictionary = frozenset(path for path in named if shares.get(path, 0.0) <= _MANY) - frozenset(
            copied_leaves(first.schema)
        )
        if len(first) < _LEAST:
            return Encodings(tuple(named), dictionary)
        numbers = [f.name for f in once if shares[f.name] > _FEW and _is_whole(f.type)]
        in_doubt = [path for path in numbers if path in dictionary]
        sample = first.drop(in_doubt).slice(0, _PAGES * page_rows)
        surely = [p for p in numbers if p not in dictionary]
        chosen = {}
        for rows, whole in ((first.select(in_doubt), in_doubt), (sample, surely)):
            pages = -(-len(rows) // page_rows)
            for path, ways in _ways(rows, dictionary, whole, page_rows).items():
                if named[path] == 1:
                    chosen[path] = _fastest(ways, pages)
        return Encodings(
            tuple(named),
            frozenset(path for path in dictionary if path not in chosen or chosen[path].dictionary),
            frozenset(path for path, way in chosen.items() if way.differences),
            frozenset(path for path, way in chosen.items() if not way.compressed),
        )

    def options(self) -> Mapping[str, Any]:
        """Return the options for ``ParquetWriter``."""
        compressed = [path for path in self.leaves if path not in self.uncompressed]
        return {
            "use_dictionary": sorted(self.dictionary.intersection(self.leaves)),
            "column_encoding": dict.fromkeys(sorted(self.differences), _DIFFERENCES) or None,
            "compression": dict.fromkeys(self.leaves, "none") | dict.fromkeys(compressed, _CODEC),
            "compression_level": dict.fromkeys(compressed, _LEVEL),
        }


@dataclass(frozen=True, slots=True, order=True)
class _Way:
    """An encoding of a leaf, ordered by decoding speed."""

    compressed: bool
    differences: bool
    dictionary: bool


def _ways(
    sample: pa.Table, dictionary: frozenset[str], numbers: list[str], page_rows: int
) -> dict[str, list[tuple[int, _Way]]]:
    """Return the possible encodings of each leaf with their sizes in bytes.

    ``numbers`` are the leaves that may be packed as differences.
    """
    own = _tried(sample, Encodings(tuple(path for path, _, _ in leaf_fields(sample.schema)), dictionary), page_rows)
    packed = _tried(sample.select(numbers), Encodings(tuple(numbers), frozenset(), frozenset(numbers)), page_rows)
    return {
        path: [
            (size, _Way(compressed, differences, path in dictionary and not differences))
            for differences, chunk in ((False, own[path]), (True, packed.get(path)))
            if chunk is not None
            for compressed, size in ((False, chunk.total_uncompressed_size), (True, chunk.total_compressed_size))
        ]
        for path in own
    }


def _fastest(ways: list[tuple[int, _Way]], pages: int) -> _Way:
    """Return the encoding that decodes fastest for its size, which is that of ``pages`` pages."""
    fewest = min(size for size, _ in ways)
    chosen = min(way for size, way in ways if size <= _NEAR * fewest)
    sizes = {way: size for size, way in ways}
    plain = replace(chosen, compressed=False)
    pays = sizes[plain] - sizes[chosen] >= _PAGE_SAVING * pages or sizes[plain] > _LARGEST * sizes[chosen]
    return chosen if pays else plain


def _tried(sample: pa.Table, encodings: Encodings, page_rows: int) -> dict[str, Any]:
    """Encode ``sample`` and return its column chunks by leaf."""
    if not sample.num_columns:
        return {}
    sink = pa.BufferOutputStream()
    options = {
        "store_schema": False,
        "store_decimal_as_integer": True,
        "write_statistics": False,
        "max_rows_per_page": page_rows,
    }
    with pq.ParquetWriter(sink, sample.schema, **options, **encodings.options()) as writer:
        writer.write_table(sample)
    group = pq.read_metadata(pa.BufferReader(sink.getvalue())).row_group(0)
    chunks = [group.column(at) for at in range(group.num_columns)]
    return {chunk.path_in_schema: chunk for chunk in chunks}


def _sampled_rows(length: int) -> pa.Array | None:
    """Return ordinals of rows in no order that values could follow, always the same; None for a short block."""
    if length < _SAMPLED * _LEAST:
        return None
    chosen = np.random.default_rng(length).choice(length, length // _SAMPLED, replace=False)
    return pa.array(np.sort(chosen))


def _distinct_share(column: pa.ChunkedArray, sampled: pa.Array | None) -> float:
    """Return the share of distinct values; 0 for nested columns, which are not examined.

    A mostly distinct column is judged by the rows ``sampled``: its hash table would outgrow the processor's cache.
    """
    if not len(column) or pa.types.is_nested(column.type):
        return 0.0
    if pa.types.is_duration(column.type):
        column = column.cast(pa.int64())
    if sampled is not None:
        share = pc.count_distinct(column.take(sampled)).as_py() / len(sampled)
        if share >= _MOSTLY_DISTINCT:
            return float(share)
    return float(pc.count_distinct(column).as_py() / len(column))


def _is_whole(kind: pa.DataType) -> bool:
    """Whether Parquet stores the type as INT32 or INT64."""
    if pa.types.is_decimal(kind):
        return bool(kind.precision <= 18)
    return bool(pa.types.is_integer(kind) or pa.types.is_temporal(kind)) and not pa.types.is_interval(kind)
