"""Forms of ISO 8601 dates and times in the texts of JSON documents, and of times in VARIANT values.

A form is a set of bits that tells how all texts of a set look. Texts of one kind (date, local time, instant)
order by the time that they name, and a cast of them cannot fail.
"""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.expr.time_zones import SECOND

DATE_TEXT, LOCAL_TEXT, INSTANT_TEXT = 1, 2, 4
"""The kinds of text: ``2026-01-31``; with a time of day; with a time of day and a zone."""
BEFORE_TIME = {"T": 8, " ": 16}
"""The bits of what separates the date from the time of day."""
ZULU, OFFSET = 32, 64
"""The zone is written as ``Z``, or as an offset."""
DATE_VALUE, INSTANT_VALUE, LOCAL_VALUE = 1 << 20, 1 << 21, 1 << 22
"""The kinds of typed values that VARIANT has."""
NO_TIME = 1 << 30
"""Some text or value is no such time."""
KINDS = DATE_TEXT | LOCAL_TEXT | INSTANT_TEXT | DATE_VALUE | INSTANT_VALUE | LOCAL_VALUE | NO_TIME
FARTHEST_OFFSET = 18 * 3600 * SECOND
"""Microseconds by which a local time differs from its instant at most."""

_DATE = r"(?:000[1-9]|00[1-9]\d|0[1-9]\d\d|[1-9]\d{3})-\d\d-\d\d"
_CLOCK = r"(?P<separator>[T ])\d\d:\d\d:\d\d(?P<fraction>\.\d{1,9})?"
_ZONE = r"(?P<zone>Z|[+-](?:0\d|1[0-7]):[0-5]\d)?"
_TIME = rf"^{_DATE}(?:{_CLOCK}{_ZONE})?$"
_LONGEST = len("2026-01-31T00:00:00.123456789+00:00")


class Times(NamedTuple):
    """The form of times, and their bounds in microseconds: instants in UTC, local times and dates as written."""

    form: int
    lo: int | None = None
    hi: int | None = None

    def joined(self, other: Times) -> Times:
        """Return the form and bounds of both."""
        lows = [bound for bound in (self.lo, other.lo) if bound is not None]
        highs = [bound for bound in (self.hi, other.hi) if bound is not None]
        return Times(self.form | other.form, min(lows, default=None), max(highs, default=None))


NOTHING, NO_TIMES = Times(0), Times(NO_TIME)


def fraction_bit(digits: int) -> int:
    """Return the bit of a fraction of a second with this many digits, 0 to 9."""
    return 1 << (8 + digits)


def looks_like_time(text: str) -> bool:
    """Return whether the text may be an ISO date or time, by its length and first characters."""
    return 10 <= len(text) <= _LONGEST and text[4] == "-" == text[7] and text[:4].isdigit()


def times_of_texts(texts: pa.Array) -> Times:
    """Return the form and bounds of texts, ``NO_TIMES`` unless all are dates or times of one kind that exist."""
    if not len(texts):
        return NOTHING
    try:
        parts = pc.extract_regex(texts, _TIME)
        if parts.null_count or pc.any(pc.is_null(parts)).as_py():
            return NO_TIMES
        separators, fractions, zones = (pc.struct_field(parts, name) for name in ("separator", "fraction", "zone"))
        form = 0
        for separator in pc.unique(separators).to_pylist():
            form |= BEFORE_TIME[separator] if separator else DATE_TEXT
        for length in pc.unique(pc.binary_length(fractions)).to_pylist() if form != DATE_TEXT else ():
            form |= fraction_bit(max(length - 1, 0))
        for zone in pc.unique(zones).to_pylist() if form != DATE_TEXT else ():
            form |= (INSTANT_TEXT | (ZULU if zone == "Z" else OFFSET)) if zone else LOCAL_TEXT
        if (form & KINDS) not in (DATE_TEXT, LOCAL_TEXT, INSTANT_TEXT):
            return NO_TIMES
        # Arrow reads six digits of a fraction at most; Spark drops those beyond.
        short = pc.replace_substring_regex(texts, r"(\.\d{6})\d+", r"\1")
        zoned = pa.timestamp("us", "UTC") if form & INSTANT_TEXT else pa.timestamp("us")
        both = pc.min_max(short.cast(zoned).cast(pa.int64()))
    except (pa.ArrowException, KeyError):  # a day that does not exist, or a text that is not UTF-8
        return NO_TIMES
    return Times(form, both["min"].as_py(), both["max"].as_py())


def form_of_pattern(pattern: str) -> int | None:
    """Return the form of exactly the texts that a pattern of Spark reads as local times; None for others."""
    if pattern == "yyyy-MM-dd":
        return DATE_TEXT
    for separator, bit in ((" ", BEFORE_TIME[" "]), ("'T'", BEFORE_TIME["T"])):
        start = f"yyyy-MM-dd{separator}HH:mm:ss"
        if pattern.startswith(start):
            rest = pattern[len(start) :]
            kind, zone = (INSTANT_TEXT, ZULU) if rest.endswith("'Z'") else (LOCAL_TEXT, 0)
            digits = rest.removesuffix("'Z'")
            if digits in {"", *("." + "S" * count for count in range(1, 7))}:
                return kind | zone | bit | fraction_bit(max(len(digits) - 1, 0))
    return None
