"""Reads VARIANT's binary form for whole columns (the VARIANT format of Parquet and Spark, version 1).

A value begins with a byte: two bits of basic type (0 scalar, 1 short text, 2 object, 3 array), six of header.
Objects and arrays list their children by offsets, so a step down is a few gathers over all rows. Keys are
stored beside the value, in its metadata, which rows of one shape usually share.
"""

from __future__ import annotations

import decimal
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.core.expr.json_codec.json_path import Steps
from tamis.core.expr.json_codec.variant_bytes import (
    PADDING,
    Bools,
    Bytes,
    Ints,
    all_equal,
    bytes_at,
    little_endian,
    longs_at,
    places_at,
    rows_at,
    string_slices,
    words_at,
)

(
    MISSING,
    NULL,
    FALSE,
    TRUE,
    LONG,
    DOUBLE,
    DECIMAL,
    STRING,
    OBJECT,
    ARRAY,
    DATE,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    FLOAT,
    BINARY,
    OTHER,
) = range(-1, 15)
"""Kinds of values."""

_SCALARS = {
    0: NULL, 1: TRUE, 2: FALSE, 3: LONG, 4: LONG, 5: LONG, 6: LONG, 7: DOUBLE, 8: DECIMAL, 9: DECIMAL, 10: DECIMAL,
    11: DATE, 12: TIMESTAMP, 13: TIMESTAMP_NTZ, 14: FLOAT, 15: BINARY, 16: STRING,
}  # fmt: skip


def kind_of(header: int) -> int:
    """Return the kind encoded in a value's first byte."""
    basic = header & 3
    return {1: STRING, 2: OBJECT, 3: ARRAY}.get(basic, _SCALARS.get(header >> 2, OTHER))


_KINDS = np.array([kind_of(header) for header in range(256)], dtype=np.int8)
SEVEN_BYTES = 7 << 2 | 1
"""The header of a short string of seven bytes."""
_WIDTHS = {LONG: {3: 1, 4: 2, 5: 4, 6: 8}, DECIMAL: {8: 4, 9: 8, 10: 16}}


@dataclass(frozen=True, slots=True)
class Nodes:
    """One value per row: its position in ``data``, or -1 if there is none.

    ``names`` are the keys of each distinct metadata; ``shape`` gives each row's index in it.
    """

    data: Bytes
    at: Ints
    shape: Ints
    names: tuple[tuple[str, ...], ...]

    def __len__(self) -> int:
        return len(self.at)

    def kinds(self) -> np.ndarray[Any, np.dtype[np.int8]]:
        """Return the kind of each value."""
        found = _KINDS.take(bytes_at(self.data, self.at))
        return np.where(self.at < 0, np.int8(MISSING), found) if len(self.at) and self.at.min() < 0 else found

    def take(self, rows: Ints | Bools) -> Nodes:
        return Nodes(self.data, self.at[rows], self.shape[rows], self.names)

    def child(self, rows: Ints, at: Ints) -> Nodes:
        """Return the values at ``at``, which are below those of ``rows`` (ascending)."""
        return Nodes(self.data, at, self.shape if len(rows) == len(self) else self.shape[rows], self.names)

    def moved(self, at: Ints) -> Nodes:
        return Nodes(self.data, at, self.shape, self.names)


def nodes(array: pa.StructArray) -> Nodes:
    """Return the values of a VARIANT column."""
    count = len(array)
    values, metadata = array.field("value"), array.field("metadata")
    offsets = (
        np.frombuffer(values.buffers()[1], np.int32)[values.offset : values.offset + count + 1].astype(np.int64)
        if count
        else np.zeros(1, np.int64)
    )
    buffer = values.buffers()[2] if count else None
    used = (
        np.frombuffer(buffer, np.uint8)[offsets[0] : offsets[-1]]
        if buffer is not None and buffer.size
        else np.zeros(0, np.uint8)
    )
    offsets -= offsets[0]
    data = np.zeros(len(used) + PADDING, np.uint8)  # padded so that words can be read at every position
    data[: len(used)] = used
    at = offsets[:-1].copy()
    at[np.diff(offsets) == 0] = -1
    if array.null_count:
        at[np.asarray(array.is_null())] = -1
    if all_equal(metadata):
        return Nodes(data, at, np.zeros(count, np.int64), (names_of(metadata[0].as_py()),))
    coded = metadata.dictionary_encode()
    shape = np.asarray(coded.indices.fill_null(0)).astype(np.int64)
    return Nodes(data, at, shape, tuple(names_of(m or b"") for m in coded.dictionary.to_pylist()))


@lru_cache(maxsize=1024)
def names_of(metadata: bytes) -> tuple[str, ...]:
    """Return the keys in metadata; none if it is damaged."""
    if not metadata:
        return ()
    size = (metadata[0] >> 6) + 1
    count = int.from_bytes(metadata[1 : 1 + size], "little")
    if metadata[0] & 15 != 1 or len(metadata) < 1 + size * (count + 2):
        return ()
    ends = [int.from_bytes(metadata[1 + size * (i + 1) : 1 + size * (i + 2)], "little") for i in range(count + 1)]
    if any(a > b for a, b in pairwise(ends)):  # names that overlap could take any memory
        return ()
    start = 1 + size * (count + 2)
    return tuple(metadata[start + a : start + b].decode(errors="replace") for a, b in pairwise(ends))


def at_path(found: Nodes, steps: Steps) -> Nodes:
    """Return the values at ``steps`` in each value; none if a step finds nothing."""
    for step in steps:
        found = _member(found, step) if isinstance(step, str) else _element(found, step)
    return found


def _member(found: Nodes, key: str) -> Nodes:
    """Return the value under ``key`` of each object."""
    out = np.full(len(found), -1, np.int64)
    ids = np.array([names.index(key) if key in names else -1 for names in found.names] or [-1], np.int64)[found.shape]
    for rows, layout in _objects(found, np.flatnonzero(ids >= 0)):
        if not layout.ids.shape[1]:
            continue
        hit = layout.ids == ids[rows][:, None]
        there = hit.any(axis=1)
        out[rows[there]] = layout.children(hit.argmax(axis=1))[there]
    return found.moved(out)


def _element(found: Nodes, index: int) -> Nodes:
    out = np.full(len(found), -1, np.int64)
    rows = np.flatnonzero(found.kinds() == ARRAY)
    for some, count, start, size, first in _arrays(found, rows):
        fits = count > index
        out[some[fits]] = first[fits] + little_endian(found.data, start[fits] + index * size, size)
    return found.moved(out)


@dataclass(frozen=True, slots=True)
class Layout:
    """Objects with one header and number of fields.

    It holds their field ids (a matrix), and where offsets and children begin.
    """

    data: Bytes
    ids: Any
    offsets: Ints
    offset_size: int
    first: Ints

    def lines(self, fields: Ints) -> Ints:
        """Return the positions of several fields' values, with a line for each field."""
        offsets = rows_at(self.data, self.offsets, self.ids.shape[1], self.offset_size)
        out: Ints = np.add(offsets.T[fields], self.first, dtype=np.int64)
        return out

    def children(self, field: Ints | int) -> Ints:
        """Return the positions of one field's values in each object."""
        return self.first + little_endian(
            self.data, self.offsets + np.asarray(field) * self.offset_size, self.offset_size
        )


def _objects(found: Nodes, rows: Ints) -> Iterator[tuple[Ints, Layout]]:
    """Yield the objects among ``rows``, by layout."""
    header = bytes_at(found.data, found.at[rows])
    usable = (found.at[rows] >= 0) & (_KINDS[header] == OBJECT)
    rows, header = rows[usable], header[usable]
    for one in _distinct(header):
        some = rows[header == one] if len(rows) else rows
        id_size, offset_size, large = ((one >> 4) & 3) + 1, ((one >> 2) & 3) + 1, (one >> 6) & 1
        wide = 4 if large else 1
        count = little_endian(found.data, found.at[some] + 1, wide)
        there = count <= (len(found.data) - found.at[some]) // (id_size + offset_size)  # damaged ones may say more
        some, count = some[there], count[there]
        for group, fields in _groups_of(some, count):
            ids_at = found.at[group] + 1 + wide
            ids = rows_at(found.data, ids_at, fields, id_size)
            offsets = ids_at + fields * id_size
            yield group, Layout(found.data, ids, offsets, offset_size, offsets + (fields + 1) * offset_size)


def _groups_of(rows: Ints, count: Ints) -> Iterator[tuple[Ints, int]]:
    """Yield rows by their number of fields, which may be made up: at most ``_MOST_IDS`` fields at once."""
    for fields in _distinct(count):
        same = rows[count == fields]
        step = max(1, _MOST_IDS // max(fields, 1))
        for start in range(0, len(same), step):
            yield same[start : start + step], fields


def members(found: Nodes) -> Iterator[tuple[list[str], Ints, Ints]]:
    """Yield (keys, rows, positions with a line for each key) of all objects, grouped by layout.

    A key occurs once per group. Raises ``ValueError`` if objects share their bytes, or say more than there is.
    """
    left, unread = len(found.data), int((found.kinds() == OBJECT).sum())
    for rows, layout in _objects(found, np.arange(len(found))):
        unread -= len(rows)
        shapes = found.shape[rows]
        if not layout.ids.shape[1]:
            continue
        left -= layout.ids.size
        if left < 0:
            raise ValueError("objects that share their bytes")
        if (shapes == shapes[0]).all() and (layout.ids == layout.ids[0]).all():
            names, ids = found.names[shapes[0]], layout.ids[0]
            fields = np.flatnonzero(ids < len(names))
            yield [names[i] for i in ids[fields].tolist()], rows, layout.lines(fields)
            continue
        wide = int(layout.ids.max()) + 1
        keyed = shapes[:, None] * wide + layout.ids
        children = np.stack([layout.children(field) for field in range(layout.ids.shape[1])], axis=1)
        order = np.argsort(keyed, axis=None, kind="stable")
        distinct, starts = np.unique(keyed.ravel()[order], return_index=True)
        for key, hit in zip(distinct.tolist(), np.split(order, starts[1:]), strict=True):
            names, identifier = found.names[key // wide], key % wide
            if identifier < len(names):
                yield [names[identifier]], rows[hit // keyed.shape[1]], children.ravel()[hit][None]
    if unread:
        raise ValueError("objects with more fields than bytes")


_MOST_IDS = 2**24
"""Ids of fields that are read at once."""


def elements(found: Nodes) -> tuple[Ints, Ints, Ints]:
    """Return the elements of all arrays: their rows, their places in the data, and their positions in the array."""
    out_rows, out_at, out_nth = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for some, count, start, size, first in _arrays(found, np.flatnonzero(found.kinds() == ARRAY)):
        if int(count.sum()) > len(found.data):  # each element has bytes of its own: these are shared, perhaps by many
            raise ValueError("elements of arrays that share their bytes")
        owner = np.repeat(np.arange(len(some)), count)
        nth = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
        out_rows.append(some[owner])
        out_at.append(first[owner] + little_endian(found.data, start[owner] + nth * size, size))
        out_nth.append(nth)
    return np.concatenate(out_rows), np.concatenate(out_at), np.concatenate(out_nth)


def _arrays(found: Nodes, rows: Ints) -> Iterator[tuple[Ints, Ints, Ints, int, Ints]]:
    """Yield arrays by header: rows, numbers of elements, start and size of offsets, start of elements."""
    header = bytes_at(found.data, found.at[rows])
    for one in _distinct(header):
        some = rows[header == one]
        size, wide = ((one >> 2) & 3) + 1, 4 if (one >> 4) & 1 else 1
        count = little_endian(found.data, found.at[some] + 1, wide)
        count = np.minimum(count, len(found.data))
        start = found.at[some] + 1 + wide
        yield some, count, start, size, start + (count + 1) * size


def headers(data: Bytes, at: Ints) -> tuple[Ints, Bytes, np.ndarray[Any, np.dtype[np.int8]]]:
    """Return the eight bytes at the beginning of values, the first of them, and the values' kinds."""
    words = words_at(data, at)
    found = words.astype(np.uint8)  # the lowest byte
    return words, found, _KINDS.take(found)


def longs(found: Nodes) -> Ints:
    """Return the values of integers."""
    return longs_at(found.data, found.at, bytes_at(found.data, found.at))


def fixed(found: Nodes, dtype: str) -> Any:
    """Return scalars of one width that follow the header."""
    width = np.dtype(dtype).itemsize
    return np.ascontiguousarray(bytes_at(found.data, found.at[:, None] + 1 + np.arange(width))).view(dtype).reshape(-1)


def decimals(found: Nodes) -> list[decimal.Decimal]:
    """Return the values of decimals."""
    header = bytes_at(found.data, found.at) >> 2
    scale = bytes_at(found.data, found.at + 1)
    out = []
    for at, kind, digits in zip(found.at.tolist(), header.tolist(), scale.tolist(), strict=True):
        width = _WIDTHS[DECIMAL][kind]
        unscaled = int.from_bytes(found.data[at + 2 : at + 2 + width].tobytes(), "little", signed=True)
        out.append(decimal.Decimal(unscaled).scaleb(-digits, EVERY_DIGIT))
    return out


EVERY_DIGIT = decimal.Context(prec=60)
"""A context in which no digit of a decimal is lost."""


def texts(found: Nodes) -> pa.Array:
    """Return the values of strings (or of BINARY, as unchecked text)."""
    starts, lengths = places(found)
    return string_slices(found.data, starts, lengths)


def places(found: Nodes) -> tuple[Ints, Ints]:
    """Return where strings begin, and their lengths in bytes."""
    return places_at(found.data, found.at, bytes_at(found.data, found.at))


def _distinct(values: Any) -> list[int]:
    """Return the distinct values of a small range, in order."""
    if not len(values):
        return []
    first = values[0]
    return [int(first)] if (values == first).all() else np.unique(values).tolist()
