"""An excerpt of an ORC part: a small ORC file in memory, of chosen stripes and columns.

Invariant: an excerpt consists of streams whose bytes were verified, described by footers made from the part's layout.
Streams are copied as they are. The library decodes all of an excerpt with one call; in the part itself, each stripe
would cost a call, several requests, and the parsing of a footer that names every column.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tamis.storage.files.orc.orc_tail import MAGIC, tail_bytes, whole_chunks
from tamis.storage.files.orc.protobuf import bytes_field, encode_varint, message_fields, number_records, packed_numbers
from tamis.storage.files.orc.stripe_layout import Numbers, StripeLayout

_INDEXES = (6, 7, 8)
"""The kinds of streams that are indexes: of rows, and Bloom filters of two kinds."""
_NAMES = "c{}"


class ColumnsExcerpt:
    """The chosen top-level columns, by their positions in the file (ascending), of any stripes."""

    def __init__(self, layout: StripeLayout, places: Sequence[int]) -> None:
        self._layout = layout
        chosen = [layout.top_columns[place] for place in places]
        ids = np.concatenate([np.zeros(1, dtype=np.int64), *(np.arange(first, end) for first, end in chosen)])
        self._ids: Numbers = ids.astype(np.int64)
        self._types = _types(layout, chosen)
        renamed = np.full(len(layout.types), -1, dtype=np.int64)
        renamed[self._ids] = np.arange(len(self._ids))
        self._columns = renamed[layout.columns]
        self._wanted = (self._columns >= 0) & ~np.isin(layout.kinds, _INDEXES)

    def streams(self, stripes: Sequence[int]) -> list[Numbers]:
        """Return the wanted streams of each stripe."""
        cuts = self._layout.cuts
        return [np.flatnonzero(self._wanted[cuts[s] : cuts[s + 1]]) + cuts[s] for s in stripes]

    def ranges(self, streams: Sequence[Numbers]) -> list[tuple[int, int]]:
        """Return the (offset, length) ranges of these streams, adjacent ones joined within a stripe; none is empty."""
        found: list[tuple[int, int]] = []
        for some in streams:
            begin, size = self._layout.offsets[some], self._layout.sizes[some]
            first = np.flatnonzero(np.concatenate([[True], begin[1:] != begin[:-1] + size[:-1]])[: len(begin)])
            last = np.concatenate([first[1:], [len(begin)]])[: len(first)] - 1
            found += zip(begin[first].tolist(), (begin[last] + size[last] - begin[first]).tolist(), strict=True)
        return [(offset, length) for offset, length in found if length]

    def file(self, stripes: Sequence[int], streams: Sequence[Numbers], data: Sequence[Any]) -> bytes:
        """Return the ORC file; ``data`` are the bytes of ``ranges(streams)``, in order."""
        layout = self._layout
        every = np.concatenate([np.zeros(0, dtype=np.int64), *streams])
        described = number_records(1, (1, layout.kinds[every]), (2, self._columns[every]), (3, layout.sizes[every]))
        cuts = np.cumsum([0, *(len(some) for some in streams)])
        sizes = np.diff(np.concatenate([[0], np.cumsum(layout.sizes[every])])[cuts])
        encodings = self._encodings(stripes)
        pieces, at = [MAGIC], 0
        info = np.zeros((len(stripes), 5), dtype=np.int64)
        offset = len(MAGIC)
        for n, stripe in enumerate(stripes):
            end, left = at, int(sizes[n])
            while left > 0:
                left -= len(data[end])
                end += 1
            footer = whole_chunks(described[cuts[n] : cuts[n + 1]].tobytes() + encodings[n])
            pieces += [*data[at:end], footer]
            info[n] = offset, 0, sizes[n], len(footer), layout.rows[stripe]
            offset, at = offset + int(sizes[n]) + len(footer), end
        pieces.append(tail_bytes(self._types, info))
        return b"".join(pieces)

    def _encodings(self, stripes: Sequence[int]) -> list[bytes]:
        """Return what the footers of these stripes say of their columns."""
        grid = np.ix_(np.array(stripes, dtype=np.int64), self._ids)
        kinds, sizes = self._layout.encodings[grid], self._layout.dictionaries[grid]
        described = number_records(2, (1, kinds.ravel()), (2, sizes.ravel())).tobytes()
        size, zone = len(described) // max(len(stripes), 1), bytes_field(3, self._layout.zone)
        return [described[n * size : (n + 1) * size] + zone for n in range(len(stripes))]


def _types(layout: StripeLayout, chosen: Sequence[tuple[int, int]]) -> list[bytes]:
    """Return the types of these columns under a root, numbered anew."""
    found: list[bytes] = []
    starts: list[int] = []
    for first, end in chosen:
        start = 1 + len(found)
        starts.append(start)
        found += [_moved(layout.types[at], start - first) for at in range(first, end)]
    names = (bytes_field(3, _NAMES.format(place).encode()) for place in range(len(chosen)))
    root = b"".join((b"\x08\x0c", bytes_field(2, b"".join(encode_varint(at) for at in starts)), *names))
    return [root, *found]


def _moved(message: bytes, by: int) -> bytes:
    """Return a type whose children have ids that are larger by ``by``."""
    if not by or not any(at == 2 for at, _ in message_fields(message)):
        return message
    parts: list[bytes] = []
    for at, value in message_fields(message):
        if at == 2:
            below = packed_numbers(value) if isinstance(value, bytes) else [value]
            parts.append(bytes_field(2, b"".join(encode_varint(child + by) for child in below)))
        else:
            parts.append(
                bytes_field(at, value) if isinstance(value, bytes) else encode_varint(at << 3) + encode_varint(value)
            )
    return b"".join(parts)
