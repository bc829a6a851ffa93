"""Time zones as tables of transitions: converts arrays of instants to local times and back, like Java.

As in Java's ``ZoneId``, a local time in a gap moves forward by the gap's length, and one that occurs twice is
the earlier instant. Neither direction is monotone (an autumn night repeats an hour), so bounds use envelopes:
``local_low(x)`` is the least local time at or after ``x``. All times are in microseconds.

Tables come from the TZif files of the ``tzdata`` package, which are built like Java's; those of a machine may give
several zones an older history of their own. Releases differ, too: a name may have its own table (``name_with_table``).
"""

from __future__ import annotations

import base64
import re
import struct
import zlib
import zoneinfo
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from tamis.core.expr.arrow_values import Numbers
from tamis.errors import InvalidInput

SECOND = 1_000_000
DAY = 86_400 * SECOND
_CYCLE_YEARS = 400
CALENDAR_CYCLE = 146_097 * DAY
"""After 400 years the calendar repeats, including weekdays, and so do a zone's recurring rules."""
_YEAR_2400 = 13_569_465_600
"""In seconds; every rule has recurred for centuries by then."""
_MANY, _BUCKET, _FEW = 1_000, 42, 8
_EDGE = np.iinfo(np.int64).min // 2


@dataclass(frozen=True)
class Shift:
    """A function ``x + offsets[i]`` between ascending ``starts``; ``starts[0]`` is minus infinity."""

    starts: Numbers
    offsets: Numbers

    def at(self, x: Numbers) -> Numbers:
        """Return the offset in force at ``x``."""
        if len(self.offsets) == 1:
            return np.full(np.shape(x), self.offsets[0], np.int64)
        if (runs := self._runs(x)) is not None:
            return _filled(x, runs, lambda _, at: self.offsets[at - 1])
        return np.asarray(self.offsets[self._index(x) - 1])

    def low(self, x: Numbers) -> Numbers:
        """Return the least value at or after ``x``; monotone."""
        if (runs := self._runs(x)) is not None:
            return _filled(x, runs, lambda part, at: np.minimum(part + self.offsets[at - 1], self._dips[at]))
        index = self._index(x)
        return np.asarray(np.minimum(x + self.offsets[index - 1], self._dips[index]))

    def high(self, x: Numbers) -> Numbers:
        """Return the greatest value at or before ``x``."""
        if (runs := self._runs(x)) is not None:
            return _filled(x, runs, lambda part, at: np.maximum(part + self.offsets[at - 1], self._peaks[at - 1]))
        index = self._index(x)
        return np.asarray(np.maximum(x + self.offsets[index - 1], self._peaks[index - 1]))

    def _runs(self, x: Numbers) -> list[tuple[slice, int]] | None:
        """Return the runs between shifts in many ascending values, with the index of each; else None.

        Values of parts clustered by time are ascending.
        """
        if np.ndim(x) != 1 or len(x) < _MANY or np.any(x[1:] < x[:-1]):
            return None
        first, last = (max(int(np.searchsorted(self.starts, end, side="right")), 1) for end in (x[0], x[-1]))
        edges = [0, *np.searchsorted(x, self.starts[first:last], side="left").tolist(), len(x)]
        return [(slice(a, b), first + at) for at, (a, b) in enumerate(pairwise(edges))]

    def _index(self, x: Numbers) -> Any:
        """Return the number of ``starts`` at or before ``x``.

        At least one, because the first stands for minus infinity.
        """
        if np.size(x) < _MANY:
            return np.maximum(np.searchsorted(self.starts, x, side="right"), 1)
        first, last = (max(int(np.searchsorted(self.starts, end, side="right")), 1) for end in (x.min(), x.max()))
        if last - first <= _FEW:  # a few years have few shifts: compare with each
            return first + sum((x >= self.starts[at] for at in range(first, last)), start=np.zeros((), np.intp))
        if self._buckets is None:
            return np.maximum(np.searchsorted(self.starts, x, side="right"), 1)
        base, before, following = self._buckets
        inside = np.clip(x, base, base + ((len(before) - 1) << _BUCKET))
        index = before[(inside - base) >> _BUCKET]
        return index + (inside >= following[index])

    @cached_property
    def _buckets(self) -> tuple[int, Numbers, Numbers] | None:
        """Index the starts by intervals of 51 days; None if an interval has two.

        Returns the base, the number of starts before each interval, and the starts with an end marker.
        """
        base = int(self.starts[1]) - 1
        count = ((int(self.starts[-1]) - base) >> _BUCKET) + 2
        edges = base + (np.arange(count, dtype=np.int64) << _BUCKET)
        before = np.maximum(np.searchsorted(self.starts, edges, side="left"), 1)
        if np.diff(before).max(initial=0) > 1 or count > 100_000:
            return None
        return base, before, np.concatenate([self.starts, [np.iinfo(np.int64).max]])

    @cached_property
    def _dips(self) -> Numbers:
        values = self.starts[1:] + self.offsets[1:]
        least = np.minimum.accumulate(values[::-1])[::-1]
        top = [np.iinfo(np.int64).max]
        return np.concatenate([[least[0] if len(least) else top[0]], least, top])

    @cached_property
    def _peaks(self) -> Numbers:
        values = self.starts[1:] - 1 + self.offsets[:-1]
        return np.concatenate([[np.iinfo(np.int64).min], np.maximum.accumulate(values)])


def _filled(x: Numbers, runs: list[tuple[slice, int]], value: Callable[[Numbers, int], Any]) -> Numbers:
    """Compute a value for each run."""
    out = np.empty(len(x), np.int64)
    for where, at in runs:
        out[where] = value(x[where], at)
    return out


@dataclass(frozen=True)
class Zone:
    """One time zone: maps instants to local times, and back to the earlier or later candidate."""

    name: str
    to_local: Shift
    earlier: Shift
    later: Shift
    recurs: bool = False
    """Whether the table ends with 400 years of a recurring rule."""

    @cached_property
    def checksum(self) -> int:
        """CRC-32 of the offsets up to the year 2400, by which another table is known to be the same one."""
        shift = self.to_local
        starts = (shift.starts[1:] // SECOND).tolist()
        offsets = (shift.offsets // SECOND).tolist()
        pairs = (f"{at}:{after}" for at, after in zip(starts, offsets[1:], strict=True) if at < _YEAR_2400)
        return zlib.crc32(",".join((str(offsets[0]), *pairs)).encode())

    @property
    def fixed(self) -> int | None:
        """The offset, if there is only one."""
        return int(self.to_local.offsets[0]) if len(self.to_local.offsets) == 1 else None

    def local(self, instants: Numbers) -> Numbers:
        """Return local times. They wrap near the ends of 64 bits, as ``instants`` do; ``far_times`` does not."""
        return instants + self._fold(self.to_local, instants)

    def instants(self, local: Numbers, preferred: Numbers | None = None) -> Numbers:
        """Return the instants of local times.

        Of two candidates, the one with the ``preferred`` offset is taken if there is one, else the earlier.
        """
        out = local + self._fold(self.earlier, local)
        if preferred is None or self.fixed is not None:
            return out
        candidate = local - preferred
        return np.where(self.local(candidate) == local, candidate, out)

    def gap_start(self, local: Numbers, instants: Numbers) -> Numbers:
        """Return ``instants``, with those whose local time falls into a gap replaced by the gap's instant."""
        skipped = self.local(instants) != local
        if not np.any(skipped):
            return instants
        over = self._over(self.to_local, instants)
        starts = self.to_local.starts
        return np.where(skipped, starts[np.searchsorted(starts, instants - over, side="right") - 1] + over, instants)

    def offset(self, instants: Numbers) -> Numbers:
        """Return local time minus instant."""
        return self._fold(self.to_local, instants)

    def local_low(self, instants: Numbers) -> Numbers:
        return self._enveloped(self.to_local, instants, self.to_local.low)

    def local_high(self, instants: Numbers) -> Numbers:
        return self._enveloped(self.to_local, instants, self.to_local.high)

    def instants_low(self, local: Numbers) -> Numbers:
        return self._enveloped(self.earlier, local, self.earlier.low)

    def instants_high(self, local: Numbers) -> Numbers:
        return self._enveloped(self.later, local, self.later.high)

    def _fold(self, shift: Shift, x: Numbers) -> Numbers:
        """Return the offset at ``x``; beyond the table, by the 400-year cycle."""
        if len(shift.offsets) == 1:
            return shift.offsets[0]  # type: ignore[no-any-return]
        over = self._over(shift, x)
        return shift.at(x - over if over.ndim else x)

    def _over(self, shift: Shift, x: Numbers) -> Numbers:
        """Return the whole cycles by which ``x`` lies beyond the table, in microseconds."""
        if not self.recurs or not np.size(x) or np.max(x) <= shift.starts[-1]:
            return np.zeros((), np.int64)
        late = x > shift.starts[-1]
        return np.where(late, ((x - shift.starts[-1]) // CALENDAR_CYCLE + 1) * CALENDAR_CYCLE, 0)

    def _enveloped(self, shift: Shift, x: Numbers, envelope: Any) -> Numbers:
        if len(shift.offsets) == 1:
            return x + shift.offsets[0]  # type: ignore[no-any-return]
        over = self._over(shift, x)
        return envelope(x - over) + over if over.ndim else envelope(x)  # type: ignore[no-any-return]


def _make(name: str, starts: list[int], offsets: list[int], recurs: bool = False) -> Zone:
    """Build a zone from its transitions (instants in seconds) and offsets (seconds, one more)."""
    at = np.array(starts, np.int64) * SECOND
    offset = np.array(offsets, np.int64) * SECOND
    before, after = offset[:-1], offset[1:]
    edge = np.array([_EDGE])
    return Zone(
        name,
        Shift(np.concatenate([edge, at]), offset),
        Shift(np.concatenate([edge, at + np.maximum(before, after)]), -offset),
        Shift(np.concatenate([edge, at + after]), -offset),
        recurs,
    )


_FIXED = re.compile(
    r"Z|(?:UTC|GMT|UT)(?!.)|(?:UTC|GMT|UT)?([+-])(?:(\d{1,2})|(\d\d):?(\d\d)|(\d\d):(\d\d):(\d\d)|(\d\d)(\d\d)(\d\d))"
)
_SHORT = {
    "ACT": "Australia/Darwin", "AET": "Australia/Sydney", "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo", "AST": "America/Anchorage", "BET": "America/Sao_Paulo", "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare", "CNT": "America/St_Johns", "CST": "America/Chicago", "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa", "ECT": "Europe/Paris", "IET": "America/Indiana/Indianapolis", "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo", "MIT": "Pacific/Apia", "NET": "Asia/Yerevan", "NST": "Pacific/Auckland",
    "PLT": "Asia/Karachi", "PNT": "America/Phoenix", "PRT": "America/Puerto_Rico", "PST": "America/Los_Angeles",
    "SST": "Pacific/Guadalcanal", "VST": "Asia/Ho_Chi_Minh",
    "EST": "-05:00", "MST": "-07:00", "HST": "-10:00",
}  # fmt: skip
"""Java's ``ZoneId.SHORT_IDS``, in which Spark looks up names."""
_NOT_JAVAS = frozenset({"Factory", "ROC", "localtime", "posixrules"})


def _offset(name: str) -> int | None:
    """Parse a fixed offset in seconds like Java's ``ZoneOffset``; None if it is not one."""
    m = _FIXED.fullmatch(name)
    if m is None:
        return None
    hours, minutes, seconds = (
        int(next((g for g in groups if g), 0)) for groups in (m.group(2, 3, 5, 8), m.group(4, 6, 9), m.group(7, 10))
    )
    total = hours * 3600 + minutes * 60 + seconds
    if minutes > 59 or seconds > 59 or total > 18 * 3600:
        return None
    return -total if m[1] == "-" else total


@lru_cache(maxsize=64)
def zone_named(name: str) -> Zone:
    """Return the zone of this name or offset (``Europe/Berlin``, ``+02:00``, ``UTC``), as Spark reads it.

    A name may have a table of its own behind it (``name_with_table``). Raises ``InvalidInput`` if there is none.
    """
    plain, _, table = name.partition(_TABLE)
    if table:
        try:
            return _from_table(plain, zlib.decompress(base64.b64decode(table)).decode())
        except (ValueError, zlib.error):
            raise _unknown_zone(name) from None
    padded = re.sub(r"([+-])(\d\d):(\d)$", r"\1\2:0\3", re.sub(r"([+-])(\d):", r"\g<1>0\2:", name, count=1), count=1)
    read = _SHORT.get(padded, padded)
    if (seconds := _offset(read)) is not None:
        return _make(name, [], [seconds])
    try:
        return _make(name, *_expanded(*_read(_data(read))))
    except (OSError, ValueError, KeyError, struct.error, zoneinfo.ZoneInfoNotFoundError) as error:
        raise _unknown_zone(name) from error


def zone_in_data(name: str) -> Zone:
    """Return the zone of a name from data, which cannot bring a table. Raises ``InvalidInput`` if there is none."""
    if _TABLE in name:
        raise _unknown_zone(name)
    return zone_named(name)


def _unknown_zone(name: str) -> InvalidInput:
    return InvalidInput(
        f"Time zone {name!r} is not known.",
        code="UNKNOWN_TIME_ZONE",
        name=name,
        remedy="Use a name such as Europe/Berlin, or an offset such as +02:00.",
    )


_TABLE = "="


def name_with_table(name: str, table: str) -> str:
    """Return a name for ``zone`` that stands for these offsets, whatever the name's own are.

    ``table`` has the first offset and each ``instant:offset`` to the year 2500, in seconds, between commas.
    """
    return f"{name}{_TABLE}{base64.b64encode(zlib.compress(table.encode())).decode()}"


def _from_table(name: str, table: str) -> Zone:
    first, *others = table.split(",")
    pairs = [(int(at), int(offset)) for at, offset in (pair.split(":") for pair in others)]
    recurs = bool(pairs) and pairs[-1][0] > _YEAR_2400
    return _make(name, [at for at, _ in pairs], [int(first), *(offset for _, offset in pairs)], recurs)


def _data(name: str) -> bytes:
    if name in _NOT_JAVAS or name not in zoneinfo.available_timezones():
        raise ValueError(name)
    packaged = resources.files("tzdata").joinpath("zoneinfo", *name.split("/"))
    folders = (Path(folder, name) for folder in zoneinfo.TZPATH)
    return next(place for place in (packaged, *folders) if place.is_file()).read_bytes()


def _read(data: bytes) -> tuple[list[int], list[int], str]:
    """Read the transitions, offsets and recurring rule of a TZif file (RFC 8536), version 2 or later."""

    def header(at: int) -> tuple[int, ...]:
        return struct.unpack(">6l", data[at + 20 : at + 44])

    utc, std, leap, times, types, chars = header(0)
    at = 44 + times * 5 + types * 6 + chars + leap * 8 + std + utc
    utc, std, leap, times, types, chars = header(at)
    body = at + 44
    starts = list(struct.unpack(f">{times}q", data[body : body + times * 8]))
    kinds = data[body + times * 8 : body + times * 9]
    table = [struct.unpack(">l", data[body + times * 9 + i * 6 :][:4])[0] for i in range(types)]
    rule = data[body + times * 9 + types * 6 + chars + leap * 12 + std + utc :].decode().strip()
    return starts, [table[0], *(table[k] for k in kinds)], rule


_RULE = re.compile(r"(?:<[^>]+>|[A-Za-z]+)([-+:\d]+)(?:(?:<[^>]+>|[A-Za-z]+)([-+:\d]+)?,([^,]+),([^,]+))?")


def _expanded(starts: list[int], offsets: list[int], rule: str) -> tuple[list[int], list[int], bool]:
    """Append 400 years of the recurring rule to the table, and drop transitions without effect."""
    m = _RULE.fullmatch(rule)
    if m and m[3]:
        standard = -_clock(m[1])
        summer = -_clock(m[2]) if m[2] else standard + 3600
        last = starts[-1] if starts else -(2**40)
        first_year = max(1970, 1970 + last // 31_556_952)
        for year in range(first_year, max(first_year, 2037) + _CYCLE_YEARS + 2):
            pair = sorted([(_moment(year, m[3], standard), summer), (_moment(year, m[4], summer), standard)])
            for at, offset in pair:
                if at > last:
                    starts.append(at)
                    offsets.append(offset)
    kept = [i for i in range(len(starts)) if offsets[i + 1] != offsets[i]]
    return [starts[i] for i in kept], [offsets[0], *(offsets[i + 1] for i in kept)], bool(m and m[3])


def _clock(text: str) -> int:
    """Parse ``[+-]h[:mm[:ss]]`` into seconds."""
    sign = -1 if text.startswith("-") else 1
    parts = [int(p) for p in text.lstrip("+-").split(":")]
    return sign * sum(p * s for p, s in zip(parts, (3600, 60, 1), strict=False))


def _moment(year: int, text: str, offset: int) -> int:
    """Return the instant (seconds) of a POSIX rule such as ``M3.5.0/2`` in a year.

    ``offset`` is the offset in force.
    """
    day, _, clock = text.partition("/")
    seconds = _clock(clock) if clock else 7200
    start = _days(year, 1)
    if day.startswith("M"):
        month, week, weekday = (int(p) for p in day[1:].split("."))
        first = _days(year, month)
        date = first + (weekday - (first + 4)) % 7 + 7 * (week - 1)
        end = _days(year + month // 12, month % 12 + 1)
        date = date - 7 if date >= end else date
    elif day.startswith("J"):
        number = int(day[1:])
        leap = _days(year, 3) - start == 60
        date = start + number - 1 + (1 if leap and number >= 60 else 0)
    else:
        date = start + int(day)
    return date * 86_400 + seconds - offset


def _days(year: int, month: int) -> int:
    """Return the days from the epoch to the first of a month."""
    return int(np.datetime64(f"{year:04d}-{month:02d}-01", "D").astype(np.int64))
