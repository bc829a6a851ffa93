"""The layout of an ORC part, kept in its seal: where each stream of each stripe is, and how columns are encoded.

With it a reader needs neither the file's footer nor those of its stripes.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.core.types.bounded_decoding import read_stream
from tamis.storage.files.orc.orc_tail import MAGIC
from tamis.storage.files.orc.protobuf import message_fields, packed_numbers
from tamis.storage.files.orc.stripe_encoding import Stripe

Numbers = np.ndarray[Any, np.dtype[np.int64]]

_PER_STRIPE = ("rows", "lengths", "streams")
_PER_STREAM = ("kinds", "columns", "sizes")
_PER_TYPE = ("encodings", "dictionaries")


@dataclass(frozen=True)
class StripeLayout:
    """Streams are numbered through the file; ``encodings`` and ``dictionaries`` have a row per stripe."""

    types: tuple[bytes, ...] = field(repr=False)
    """Messages of type Type, by type id."""
    zone: bytes
    """The time zone that every stripe's footer names."""
    rows: Numbers = field(repr=False)
    """Rows of each stripe."""
    lengths: Numbers = field(repr=False)
    """Bytes of each stripe, which follow one another."""
    streams: Numbers = field(repr=False)
    """Number of streams of each stripe."""
    kinds: Numbers = field(repr=False)
    columns: Numbers = field(repr=False)
    sizes: Numbers = field(repr=False)
    encodings: Numbers = field(repr=False)
    dictionaries: Numbers = field(repr=False)

    @staticmethod
    def of(types: Sequence[bytes], stripes: Sequence[Stripe]) -> StripeLayout:
        def numbers(found: list[Any]) -> Numbers:
            return np.array(found, dtype=np.int64)

        def joined(name: str) -> Numbers:
            return np.concatenate([np.zeros(0, dtype=np.int64), *(getattr(s, name) for s in stripes)]).astype(np.int64)

        return StripeLayout(
            tuple(types),
            stripes[0].zone if stripes else b"",
            numbers([s.rows for s in stripes]),
            numbers([sum(s.lengths) for s in stripes]),
            numbers([len(s.kinds) for s in stripes]),
            *(joined(name) for name in _PER_STREAM),
            *(joined(name).reshape(len(stripes), len(types)) for name in _PER_TYPE),
        )

    def pack(self) -> bytes:
        lists = {name: getattr(self, name).ravel() for name in (*_PER_STRIPE, *_PER_STREAM, *_PER_TYPE)}
        columns = {
            name: pa.ListArray.from_arrays(np.array([0, len(found)], dtype=np.int32), pa.array(found))
            for name, found in lists.items()
        }
        ends = np.array([0, len(self.types)], dtype=np.int32)
        columns["types"] = pa.ListArray.from_arrays(ends, pa.array(self.types, pa.binary()))
        table = pa.table(columns | {"zone": pa.array([self.zone], pa.binary())})
        stream = io.BytesIO()
        with pa.ipc.new_stream(stream, table.schema) as writer:
            writer.write_table(table)
        return stream.getvalue()

    @staticmethod
    def unpack(raw: bytes, blocks: Sequence[int], size: int) -> StripeLayout:
        """Decode the output of ``pack`` for a file proper of ``size`` bytes whose blocks have these rows.

        Raises ``ValueError``, ``KeyError`` or ``pa.ArrowException`` if it is not the layout of such a file.
        """
        table = read_stream(raw)
        if len(table) != 1:
            raise ValueError(f"{len(table)} layouts")

        def numbers(name: str) -> Numbers:
            found = table[name].chunk(0).flatten()
            if found.type != pa.int64() or found.null_count:
                raise ValueError(f"{name} of type {found.type}")
            return np.asarray(found.to_numpy())

        types = tuple(bytes(one) for one in table["types"].chunk(0).flatten().to_pylist())
        per_stripe = [numbers(name) for name in _PER_STRIPE]
        grids = [numbers(name).reshape(len(per_stripe[0]), len(types)) for name in _PER_TYPE]
        found = StripeLayout(
            types, bytes(table["zone"][0].as_py()), *per_stripe, *(numbers(name) for name in _PER_STREAM), *grids
        )
        found.check(blocks, size)
        return found

    def check(self, blocks: Sequence[int], size: int) -> None:
        """Raise ``ValueError`` if the numbers contradict each other, the blocks' rows or the file's size."""
        numbers = [getattr(self, name) for name in (*_PER_STRIPE, *_PER_STREAM, *_PER_TYPE)]
        if any(len(found) and found.min() < 0 for found in numbers):
            raise ValueError("a negative number")
        if len({len(getattr(self, name)) for name in _PER_STRIPE}) != 1:
            raise ValueError("other numbers of stripes")
        if {len(getattr(self, name)) for name in _PER_STREAM} != {int(self.streams.sum())}:
            raise ValueError("other numbers of streams")
        if len(self.columns) and int(self.columns.max()) >= len(self.types):
            raise ValueError("a stream of a column that is not there")
        if not np.isin(np.cumsum(np.asarray(blocks, dtype=np.int64)), np.cumsum(self.rows)).all():
            raise ValueError("a block that does not end with a stripe")
        if int(self.rows.sum()) != sum(blocks) or len(MAGIC) + int(self.lengths.sum()) > size:
            raise ValueError("stripes of another file")
        ends = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(self.sizes)])
        if np.any(np.diff(ends[self.cuts]) >= self.lengths):
            raise ValueError("a stripe that is shorter than its streams")
        bounds = [at for first, end in self.top_columns for at in (first, end)]
        if not self.types or len(self.names) != len(self.top_columns) or bounds != sorted(bounds):
            raise ValueError("types that are not those of a table")

    @property
    def nbytes(self) -> int:
        """Bytes that it takes in memory."""
        numbers = (getattr(self, name).nbytes for name in (*_PER_STRIPE, *_PER_STREAM, *_PER_TYPE))
        return 2 * int(sum(numbers)) + sum(len(one) for one in self.types)

    @cached_property
    def cuts(self) -> Numbers:
        """The first stream of each stripe, and the end."""
        return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(self.streams)])

    @cached_property
    def begins(self) -> Numbers:
        """The offset of each stripe, and the end of the last."""
        return len(MAGIC) + np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(self.lengths)])

    @cached_property
    def offsets(self) -> Numbers:
        """The offset of each stream in the file: streams follow one another in their stripe."""
        before = np.cumsum(self.sizes) - self.sizes
        first = before[np.minimum(self.cuts[:-1], max(len(before) - 1, 0))] if len(before) else self.cuts[:-1]
        return before + np.repeat(self.begins[:-1] - first, self.streams)

    @cached_property
    def top_columns(self) -> list[tuple[int, int]]:
        """The type ids of each top-level column and all below it, as (first, last + 1)."""
        first: list[int] = []
        for at, value in message_fields(self.types[0]):
            if at == 2:
                first += packed_numbers(value) if isinstance(value, bytes) else [value]
        return list(zip(first, [*first[1:], len(self.types)], strict=True))

    @cached_property
    def names(self) -> list[str]:
        """The names of the top-level columns."""
        return [value.decode() for at, value in message_fields(self.types[0]) if at == 3]
