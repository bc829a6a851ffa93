"""Encodes rows as one ORC stripe, by the library, and takes the stripe apart.

The library ends a stripe of a file only where a buffer of 64 KiB is full. Each stripe is therefore written as a file
of its own, whose stripe is then put into the part: offsets in a stripe are relative to it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import orc

from tamis.errors import InvalidInput
from tamis.storage.files.orc.orc_tail import BLOCK, unpacked_chunks
from tamis.storage.files.orc.protobuf import message_fields

_MOST_METADATA = 2**30
STRIDE = 10_000
"""Rows of a row group, of which the indexes in a stripe say something. This reader has no use for them."""
_DICTIONARY = 0.5
"""Share of distinct values up to which the library keeps the dictionary that it has made of a column."""
_REPEATED = 0.25
"""Share of distinct values of some text column from which no dictionaries are made at all.

To make and sort one that is dropped, or hardly pays, takes longer than to write the texts (docs/design/0014).
"""


@dataclass(frozen=True, slots=True)
class Stripe:
    """The description of an encoded stripe. Lists of streams and encodings are in the stripe's order."""

    lengths: tuple[int, int, int]
    """Bytes of its indexes, its data and its footer."""
    rows: int
    kinds: list[int] = field(repr=False)
    columns: list[int] = field(repr=False)
    """Type id of each stream's column."""
    sizes: list[int] = field(repr=False)
    """Bytes of each stream."""
    encodings: list[int] = field(repr=False)
    """Kind of encoding, for each type."""
    dictionaries: list[int] = field(repr=False)
    """Entries of the dictionary, for each type; 0 if it has none."""
    zone: bytes
    statistics: bytes = field(repr=False)
    """The message with the stripe's statistics."""


def dictionary_threshold(table: pa.Table) -> float:
    """Return the library's threshold for dictionaries, which holds for all columns; ``table`` shows what they hold."""
    texts = [c for c in table.columns if pa.types.is_string(c.type) or pa.types.is_binary(c.type)]
    repeated = any(pc.count_distinct(c).as_py() < _REPEATED * len(c) for c in texts)
    return _DICTIONARY if repeated else 0.0


def types_of(table: pa.Table) -> list[bytes]:
    """Return the types of the columns: messages, by type id."""
    return _Written(table, _DICTIONARY).types


def encode_stripe(table: pa.Table, threshold: float) -> tuple[list[bytes], memoryview, Stripe]:
    """Return the types of the columns (``types_of``), the stripe's bytes, and their description."""
    file = _Written(table, threshold)
    if len(file.stripes) != 1:
        raise InvalidInput(
            f"The ORC library wrote {len(file.stripes)} stripes where one was asked for.",
            code="UNSUPPORTED_LIBRARY",
            name="pyarrow",
            remedy="Use the format parquet, or another version of pyarrow.",
        )
    start, index, content, footer, rows = (file.stripes[0][at] for at in range(1, 6))
    end = start + index + content + footer
    kinds, columns, sizes, encodings, dictionaries = [], [], [], [], []
    zone = b""
    for at, value in message_fields(unpacked_chunks(file.data[end - footer : end], _MOST_METADATA)):
        if at == 1:
            stream = dict(message_fields(value))
            kinds.append(stream.get(1, 0))
            columns.append(stream.get(2, 0))
            sizes.append(stream.get(3, 0))
        elif at == 2:
            encoding = dict(message_fields(value))
            encodings.append(encoding.get(1, 0))
            dictionaries.append(encoding.get(2, 0))
        elif at == 3:
            zone = value
    described = Stripe(
        (index, content, footer), rows, kinds, columns, sizes, encodings, dictionaries, zone, file.statistics
    )
    return file.types, file.data[start:end], described


class _Written:
    """The file that the library makes of a table, in one call, and what its end says."""

    def __init__(self, table: pa.Table, threshold: float) -> None:
        sink = pa.BufferOutputStream()
        with orc.ORCWriter(
            sink,
            batch_size=max(len(table), 1),
            stripe_size=1,
            compression="zstd",
            compression_block_size=BLOCK,
            row_index_stride=STRIDE,
            dictionary_key_size_threshold=threshold,
        ) as writer:
            writer.write(table)
        self.data = memoryview(sink.getvalue()).cast("B")
        end = len(self.data) - 1 - self.data[-1]
        postscript = dict(message_fields(bytes(self.data[end:-1])))
        start = end - postscript[1]
        footer = list(message_fields(unpacked_chunks(self.data[start:end], _MOST_METADATA)))
        self.types = [value for at, value in footer if at == 4]
        self.stripes: list[dict[int, int]] = [dict(message_fields(value)) for at, value in footer if at == 3]
        self.statistics = unpacked_chunks(self.data[start - postscript[5] : start], _MOST_METADATA)
