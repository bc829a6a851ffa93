"""Numbers, booleans and nulls of JSON text, read for whole arrays of places: eight digits by one word.

Law: what is valid here is a scalar of JSON's grammar and has the value that Python's parser gives it; numbers of more than 18 digits, or 15 with a point, or an exponent are left to that one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tamis.stats.path_rows import FALSE, HI_EXACT, LO_EXACT, LONG, REAL, TRUE, PathStatistics

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Data = npt.NDArray[np.uint8]
_ZEROS, _ABOVE, _TOPS = (np.uint64(int(two * 8, 16)) for two in ("30", "76", "80"))
_FEW, _MANY = 15, 18
"""Digits: of a number with a point (a quotient of two exact doubles, and its shortest text), and of an integer."""
_INTEGER, _REAL, _NULL, _FALSE, _TRUE = range(1, 6)


def words(data: Data, at: Ints) -> npt.NDArray[np.uint64]:
    """The eight bytes at each place, first byte lowest."""
    return np.ndarray((len(data) - 7,), "V8", data, 0, (1,))[at].view("<u8")  # as plain bytes: numbers would be aligned first


@dataclass(frozen=True)
class Numbers:
    """Scalars: a row for each place of a template, a column for each document."""

    kind: npt.NDArray[np.uint8]
    longs: Ints
    reals: npt.NDArray[np.float64]

    @property
    def valid(self) -> Flags:
        return self.kind > 0

    def statistics(self, place: int, rows: Flags) -> PathStatistics:
        """Of one place, in these documents."""
        kinds = self.kind[place][rows]
        out = PathStatistics()
        for kind in np.unique(kinds).tolist():
            mine = kinds == kind
            count = int(mine.sum())
            if kind == _INTEGER:
                longs = self.longs[place][rows][mine]
                out.add(PathStatistics(LONG, count, 0, long=(int(longs.min()), int(longs.max()))))
            elif kind == _REAL:
                reals = self.reals[place][rows][mine]
                out.add(PathStatistics(REAL | LO_EXACT | HI_EXACT, count, 0, real=(float(reals.min()), float(reals.max()))))
            elif kind == _NULL:
                out.add(PathStatistics(0, 0, count))
            else:
                out.add(PathStatistics(TRUE if kind == _TRUE else FALSE, count, 0))
        return out


def numbers(data: Data, begins: Ints, ends: Ints) -> Numbers:
    """What lies between these places."""
    begins = np.clip(begins, 0, len(data) - 8)
    negative = data[begins] == ord("-")
    starts = begins + negative
    longs, valid = _digits(data, starts, ends)
    valid &= (data[starts] != ord("0")) | (ends - starts == 1)
    kind = valid.astype(np.uint8)
    reals = np.zeros(longs.shape if not valid.all() else (1, 1))
    other = np.nonzero(~valid)
    if len(other[0]):
        values, real = _decimals(data, starts[other], ends[other])
        reals[other] = np.where(negative[other], -values, values)
        kind[other] = np.where(real, _REAL, _literals(data, begins[other], ends[other]))
    return Numbers(kind, np.where(negative, -longs, longs), reals)


def _digits(data: Data, starts: Ints, ends: Ints) -> tuple[Ints, Flags]:
    """The value of digits, and whether there are 1 to 18, and nothing else."""
    size = ends - starts
    valid = (size > 0) & (size <= _MANY)
    total = np.zeros(size.shape, np.int64)
    for word in range((int(size[valid].max()) + 7) // 8 if valid.any() else 0):
        here = np.clip(size - 8 * word, 0, 8)
        drop = (8 * (8 - here)).astype(np.uint64) & np.uint64(63)
        found = words(data, np.clip(ends - 8 * word - 8, 0, len(data) - 8)) ^ _ZEROS
        found = (found >> drop) << drop
        if word:
            found[here == 0] = 0  # a shift by a whole word is not defined; in the first word it is no number at all
        valid &= ((found + _ABOVE) | found) & _TOPS == 0
        total += _eight(found) * 10 ** (8 * word)
    return total, valid


def _eight(digits: npt.NDArray[np.uint64]) -> Ints:
    """The number of eight digits, the first in the lowest byte: neighbours are joined three times."""
    for step, mask in ((8, 0x00FF00FF00FF00FF), (16, 0x0000FFFF0000FFFF), (32, 0xFFFFFFFF)):
        digits = (digits * np.uint64(10 ** (step // 8)) + (digits >> np.uint64(step))) & np.uint64(mask)
    return digits.astype(np.int64)


def _decimals(data: Data, starts: Ints, ends: Ints) -> tuple[npt.NDArray[np.float64], Flags]:
    """Digits, a point, digits."""
    scale = np.zeros(len(starts), np.int64)
    for place in range(1, _FEW):
        hit = (scale == 0) & (ends - 1 - place > starts - 1) & (data[np.maximum(ends - 1 - place, 0)] == ord("."))
        scale[hit] = place
        if (scale > 0).all():
            break
    point = ends - 1 - scale
    whole, left = _digits(data, starts, point)
    fraction, right = _digits(data, point + 1, ends)
    size = point - starts
    valid = left & right & (scale > 0) & (size + scale <= _FEW) & ((data[starts] != ord("0")) | (size == 1))
    power = np.where(valid, scale, 0)
    unscaled = np.where(valid, whole, 0) * 10**power + np.where(valid, fraction, 0)
    return unscaled / 10.0**power, valid


def _literals(data: Data, begins: Ints, ends: Ints) -> npt.NDArray[np.uint8]:
    found = words(data, begins)
    out = np.zeros(len(begins), np.uint8)
    for text, kind in ((b"null", _NULL), (b"false", _FALSE), (b"true", _TRUE)):
        same = found & np.uint64((1 << 8 * len(text)) - 1) == np.uint64(int.from_bytes(text, "little"))
        out[same & (ends - begins == len(text))] = kind
    return out
