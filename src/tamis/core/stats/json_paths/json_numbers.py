"""Parses numbers, booleans and nulls of JSON text at whole arrays of positions, eight digits per word.

Invariant: a valid result is a scalar of JSON's grammar with the value that Python's parser gives it. Numbers
with more than 18 digits, more than 15 with a point, or an exponent are left to that parser.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tamis.core.stats.json_paths.path_rows import FALSE, HI_EXACT, LO_EXACT, LONG, REAL, TRUE, PathStatistics

Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Reals = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Kinds = npt.NDArray[np.uint8]
Data = npt.NDArray[np.uint8]
_ZEROS, _ABOVE, _TOPS, _ONES, _POINTS = (np.uint64(int(two * 8, 16)) for two in ("30", "76", "80", "01", "1e"))
_FEW, _MANY = 15, 18
"""Most digits of a number with a point and of an integer.

With a point, the number is a quotient of two exact doubles and its text is the shortest.
"""
_INTEGER, _REAL, _NULL, _FALSE, _TRUE = range(1, 6)
_LAST = np.array([2**64 - 2 ** (8 * (8 - count)) for count in range(9)], np.uint64)
"""By count: the mask of a word's last bytes."""
_LEAST = np.array([0, 0, *(10**count for count in range(1, _MANY))], np.int64)
"""By number of digits: the least integer without a leading zero."""
_LEADING = np.array([0, 0, *(1 << 8 * count for count in range(1, 8))], np.uint64)
"""By number of digits, the first in the highest byte used: the least word without a leading zero."""
_TENS = np.array([10.0**count for count in range(8)])


def words_at(data: Data, at: Ints) -> Words:
    """Return the eight bytes at each position, first byte lowest."""
    return np.ndarray((len(data) - 7,), "V8", data, 0, (1,))[at].view(
        "<u8"
    )  # as plain bytes: numbers would be aligned first


@dataclass(frozen=True)
class Numbers:
    """The scalars at one place of a template, one per document; kind 0 is invalid."""

    kind: Kinds
    longs: Ints
    reals: Reals

    @property
    def valid(self) -> Flags:
        return self.kind > 0

    def take(self, rows: Flags) -> Numbers:
        """Return the scalars of these documents."""
        longs, reals = self.longs, self.reals
        return Numbers(self.kind[rows], longs[rows] if len(longs) else longs, reals[rows] if len(reals) else reals)

    def statistics(self) -> PathStatistics:
        if self.kind.min() == self.kind.max():
            return _statistics(int(self.kind[0]), len(self.kind), self.longs, self.reals)
        out = PathStatistics()
        for kind in np.unique(self.kind).tolist():
            mine = self.take(self.kind == kind)
            out.add(_statistics(kind, len(mine.kind), mine.longs, mine.reals))
        return out


def _statistics(kind: int, count: int, longs: Ints, reals: Reals) -> PathStatistics:
    """Return the statistics of scalars of one kind."""
    if kind == _INTEGER:
        return PathStatistics(LONG, count, 0, long=(int(longs.min()), int(longs.max())))
    if kind == _REAL:
        return PathStatistics(REAL | LO_EXACT | HI_EXACT, count, 0, real=(float(reals.min()), float(reals.max())))
    return PathStatistics(0, 0, count) if kind == _NULL else PathStatistics(TRUE if kind == _TRUE else FALSE, count, 0)


def lines_of_integers(data: Data, begins: Ints, ends: Ints) -> list[PathStatistics | None]:
    """Return the least and greatest integer of each line of positions, without parsing the others.

    None for a line unless all its texts are one to eight digits and nothing else. No text may be empty.
    """
    size = ends - begins
    short = size.max(axis=1) <= 8  # one word
    if not short.all():
        size = np.minimum(size, 8)
    found = _last_bytes(data, ends, size)
    above = found + _ABOVE
    above |= found
    strange = np.bitwise_or.reduce(above, axis=1) & _TOPS
    found.byteswap(inplace=True)  # most significant digit first, so that words sort like their numbers
    plain: Flags = short & (strange == 0) & (found >= _LEADING[size]).all(axis=1)
    low, high = (_eight(ends.byteswap()).tolist() for ends in (found.min(axis=1), found.max(axis=1)))
    count = found.shape[1]
    return [
        PathStatistics(LONG, count, 0, long=(low[i], high[i])) if good else None
        for i, good in enumerate(plain.tolist())
    ]


def lines_of_reals(data: Data, begins: Ints, ends: Ints) -> list[PathStatistics | None]:
    """Return the same for decimals with a point of at most eight bytes."""
    values, valid = _short_decimals(data, begins, ends)
    plain = np.asarray(valid.all(axis=1))
    low, high = values.min(axis=1).tolist(), values.max(axis=1).tolist()
    kinds, count = REAL | LO_EXACT | HI_EXACT, values.shape[1]
    return [
        PathStatistics(kinds, count, 0, real=(low[i], high[i])) if good else None
        for i, good in enumerate(plain.tolist())
    ]


def parse_numbers(data: Data, begins: Ints, ends: Ints, example: bytes) -> Numbers:
    """Parse the non-empty texts at these positions, first assuming the kind of ``example``."""
    none, reals = np.empty(0, np.int64), np.empty(0)
    if b"." in example:
        reals, valid = _short_decimals(data, begins, ends)
        kind = np.full(len(begins), _REAL, np.uint8)
    elif example[:1].isalpha():
        kind = _literals(data, begins, ends)
        valid = kind > 0
    else:
        longs, valid = _digits(data, begins, ends)
        if valid.all():
            return Numbers(np.full(len(begins), _INTEGER, np.uint8), longs, reals)
    return Numbers(kind, none, reals) if valid.all() else _any(data, begins, ends)


def _any(data: Data, begins: Ints, ends: Ints) -> Numbers:
    """Parse scalars of mixed kinds, with their signs."""
    negative = data[begins] == ord("-")
    starts = begins + negative
    longs, valid = _digits(data, starts, ends)
    kind = valid.astype(np.uint8)
    reals = np.zeros(len(begins))
    other = np.flatnonzero(~valid)
    if len(other):
        values, real = _short_decimals(data, starts[other], ends[other])
        if not real.all():
            values, real = _decimals(data, starts[other], ends[other])
        reals[other] = np.where(negative[other], -values, values)
        kind[other] = np.where(real, _REAL, _literals(data, begins[other], ends[other]))
    return Numbers(kind, np.where(negative, -longs, longs), reals)


def _digits(data: Data, starts: Ints, ends: Ints, *, padded: bool = False) -> tuple[Ints, Flags]:
    """Return the value of digits, and whether there are 1 to 18 of them and nothing else.

    A leading zero is invalid unless ``padded``.
    """
    size = ends - starts
    most = int(size.max())
    valid = size > 0
    if most > _MANY or not valid.all():
        valid &= size <= _MANY
        size = np.where(valid, size, 0)
        most = int(size.max())
    total = np.zeros(len(size), np.int64)
    for word in range((most + 7) // 8):
        here = size if most <= 8 else np.clip(size - 8 * word, 0, 8)
        found = _last_bytes(data, ends - 8 * word, here)
        valid &= _are_digits(found)
        total += _eight(found) * np.int64(10 ** (8 * word)) if word else _eight(found)
    return total, valid if padded else valid & (total >= _LEAST[size])


def _last_bytes(data: Data, ends: Ints, size: Ints) -> Words:
    """Return up to eight bytes before these positions as digit values; the rest is zero."""
    at = ends - 8
    found = words_at(data, np.maximum(at, 0, out=at))
    found ^= _ZEROS
    found &= _LAST[size]
    return found


def _are_digits(found: Words) -> Flags:
    """Return whether each byte is at most nine.

    The lowest byte that is not is always detected, because nothing carries into it.
    """
    above = found + _ABOVE
    above |= found
    above &= _TOPS
    return np.asarray(above == 0)


def _eight(digits: Words) -> Ints:
    """Return the number of eight digits, the first in the lowest byte.

    Adjacent digits are joined in three steps.
    """
    for step, mask in ((8, 0x00FF00FF00FF00FF), (16, 0x0000FFFF0000FFFF), (32, 0xFFFFFFFF)):
        right = digits >> np.uint64(step)
        right += digits * np.uint64(10 ** (step // 8))
        right &= np.uint64(mask)
        digits = right
    return digits.view(np.int64)


def _short_decimals(data: Data, starts: Ints, ends: Ints) -> tuple[Reals, Flags]:
    """Parse decimals with a point of at most eight bytes."""
    size = ends - starts
    valid = (size > 2) & (size <= 8)
    size = np.where(valid, size, 3)
    found = _last_bytes(data, ends, size)
    point = found ^ _POINTS
    borrowed = point - _ONES
    point = np.bitwise_and(borrowed, np.invert(point, out=point), out=borrowed)
    point &= _TOPS
    point &= -point  # keep the lowest point byte: bytes below it cannot cause a false match
    behind = ~((point << np.uint64(1)) - np.uint64(1))
    found = ((found & ((point >> np.uint64(7)) - np.uint64(1))) << np.uint64(8)) | (found & behind)
    unscaled = _eight(found)
    scale = 7 - (np.bitwise_count(point - np.uint64(1)) >> 3).astype(np.int64)
    whole = size - 1 - scale
    valid &= _are_digits(found) & (point != 0) & (scale > 0) & (whole > 0)
    valid &= (whole == 1) | (unscaled >= _LEAST[size - 1])
    return unscaled / _TENS[np.maximum(scale, 0)], valid


def _decimals(data: Data, starts: Ints, ends: Ints) -> tuple[Reals, Flags]:
    """Parse decimals with a point."""
    scale = np.zeros(len(starts), np.int64)
    for place in range(1, _FEW):
        hit = (scale == 0) & (ends - 1 - place > starts - 1) & (data[np.maximum(ends - 1 - place, 0)] == ord("."))
        scale[hit] = place
        if (scale > 0).all():
            break
    point = ends - 1 - scale
    whole, left = _digits(data, starts, point)
    fraction, right = _digits(data, point + 1, ends, padded=True)
    valid = left & right & (scale > 0) & (point - starts + scale <= _FEW)
    power = np.where(valid, scale, 0)
    unscaled = np.where(valid, whole, 0) * 10**power + np.where(valid, fraction, 0)
    return unscaled / 10.0**power, valid


def _literals(data: Data, begins: Ints, ends: Ints) -> Kinds:
    found = words_at(data, begins)
    out = np.zeros(len(begins), np.uint8)
    for text, kind in ((b"null", _NULL), (b"false", _FALSE), (b"true", _TRUE)):
        same = found & np.uint64((1 << 8 * len(text)) - 1) == np.uint64(int.from_bytes(text, "little"))
        out[same & (ends - begins == len(text))] = kind
    return out
