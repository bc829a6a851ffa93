"""Casts between text and other types, as Spark does; parsing uses regular expressions over whole columns."""

from __future__ import annotations

import decimal
import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.expr.arrow_values import (
    Datum,
    Evaluated,
    Mask,
    Numbers,
    any_set,
    build_array,
    mode_outcome,
    null_mask,
    null_where,
    stored_numbers,
)
from tamis.core.expr.far_times import local_parts
from tamis.core.expr.functions.datetime.clock_columns import HOUR, MINUTE, month_days
from tamis.core.expr.java_doubles import LEFT_TO_SPARK, is_left_to_spark, unsure_doubles
from tamis.core.expr.time_zones import DAY, SECOND, zone_in_data, zone_named
from tamis.core.expr.tree import Call, Mode
from tamis.core.types import BOOLEAN, DATE, DOUBLE, FLOAT, TIMESTAMP, TIMESTAMP_NTZ, Decimal
from tamis.core.types.arrow import to_arrow_type
from tamis.errors import InvalidInput
from tamis.world import world

_WHOLE = r"^[+-]?\d+$"
_WHOLE_LEGACY = r"^[+-]?(\d+(\.\d*)?|\.\d*)$"
_REAL = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[dDfF]?$"
_HEX = r"^[+-]?0[xX]([0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?\d+[dDfF]?$"
"""Java also reads such hexadecimal reals: ``0x1.8p1`` is 3."""
_JAVA_SPACE = "".join(chr(c) for c in range(33))
"""The characters that Java's ``trim`` removes."""
_SPACE = _JAVA_SPACE + "\x7f"
_TRUE, _FALSE = ("t", "true", "y", "yes", "1"), ("f", "false", "n", "no", "0")


def parse(call: Call, x: Datum) -> Evaluated:
    """Cast text to a number, boolean, date or timestamp, ignoring surrounding white space."""
    target = call.type
    text = pc.utf8_trim(x, _SPACE)
    if target == BOOLEAN:
        return _boolean(call, text)
    if target in (FLOAT, DOUBLE):
        return _real(call, pc.utf8_trim(x, _JAVA_SPACE))
    if target in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
        return _instant(call, text)
    return _integer(call, text)


def _bad(call: Call) -> str:
    return f"[CAST_INVALID_INPUT] The text is not a {call.type}."


def _matches(text: Datum, pattern: str) -> Mask:
    return np.asarray(pc.match_substring_regex(text, pattern).fill_null(True).to_numpy(zero_copy_only=False))


def _boolean(call: Call, text: Datum) -> Evaluated:
    lower = pc.ascii_lower(text)
    yes = pc.is_in(lower, value_set=pa.array(_TRUE)).to_numpy(zero_copy_only=False)
    no = pc.is_in(lower, value_set=pa.array(_FALSE)).to_numpy(zero_copy_only=False)
    null = null_mask(text)
    bad = ~(yes | no) if null is None else ~(yes | no | null)
    return mode_outcome(build_array(yes, null, pa.bool_()), bad, call.mode, _bad(call))


def _integer(call: Call, text: Datum) -> Evaluated:
    """Cast digits to an integer; LEGACY also accepts (and drops) decimal places."""
    legacy = call.mode is Mode.LEGACY
    good = _matches(text, _WHOLE_LEGACY if legacy else _WHOLE)
    digits = null_where(text, ~good)
    if legacy:
        digits = pc.replace_substring_regex(pc.replace_substring_regex(digits, r"\..*$", ""), r"^([+-]?)$", r"\1" + "0")
    digits = pc.replace_substring_regex(digits, r"^(\+)?(-)?0*(\d)", r"\2\3")
    long = np.asarray(pc.greater(pc.utf8_length(digits), 30).fill_null(False).to_numpy(zero_copy_only=False))
    wide = null_where(digits, long).cast(pa.decimal128(38, 0))
    arrow = to_arrow_type(call.type)
    limits = np.iinfo(arrow.to_pandas_dtype())
    least, greatest = (pa.scalar(int(v), pa.int64()).cast(wide.type) for v in (limits.min, limits.max))
    outside = pc.or_(pc.less(wide, least), pc.greater(wide, greatest)).fill_null(False)
    bad = ~good | long | np.asarray(outside.to_numpy(zero_copy_only=False))
    return mode_outcome(null_where(wide, bad).cast(arrow), bad, call.mode, _bad(call))


def _real(call: Call, text: Datum) -> Evaluated:
    lower = pc.ascii_lower(text)
    special = {
        "nan": np.nan,
        "+nan": np.nan,
        "-nan": np.nan,
        "inf": np.inf,
        "+inf": np.inf,
        "infinity": np.inf,
        "+infinity": np.inf,
        "-inf": -np.inf,
        "-infinity": -np.inf,
    }
    index = pc.index_in(lower, value_set=pa.array(list(special))).fill_null(-1).to_numpy(zero_copy_only=False)
    strict = _matches(
        text, r"^([+-]?NaN|[^+-].*|[+-][^nN].*)$"
    )  # Java itself reads a sign before NaN, in one spelling only
    index = np.where(strict, index, -1)
    good = _matches(text, _REAL)
    digits = pc.replace_substring_regex(null_where(text, ~good | (index >= 0)), r"(^\+|[dDfF]$)", "")
    arrow = to_arrow_type(call.type)
    values = np.array(stored_numbers(digits.cast(arrow)))
    values = np.where(index >= 0, np.array(list(special.values()))[index], values).astype(values.dtype)
    for row in np.flatnonzero(_matches(text, _HEX) & ~good & (index < 0)):
        values[row], good[row] = _from_hex(text[int(row)].as_py()), True
    return mode_outcome(build_array(values, null_mask(text), arrow), ~good & (index < 0), call.mode, _bad(call))


def _from_hex(text: str) -> float:
    try:
        return float.fromhex(text.rstrip("dDfF") if text[-1] in "dDfF" else text)
    except OverflowError:
        return -np.inf if text.startswith("-") else np.inf


_DATE = r"(?s)^(?P<y>[+-]?\d{4,7})(?:-(?P<m>\d{1,2})(?:-(?P<d>\d{1,2})(?:[ T].*)?)?)?$"
_TIMESTAMP = (
    r"(?s)^(?:(?P<y>[+-]?\d{4,6})(?:-(?P<m>\d{1,2})(?:-(?P<d>\d{1,2})(?:[ T]"
    r"(?P<H>\d{1,2})(?::(?P<M>\d{1,2})(?::(?P<S>\d{1,2})(?:\.(?P<f>\d*))?(?P<z>\D.*)?)?)?)?)?)?)$"
)
_TIME = (
    r"(?s)^(?:T\d{1,2}(?::\d{1,2}(?::\d{1,2}(?:\.\d*)?(?:\D.*)?)?)?|\d{1,2}:\d{1,2}(?::\d{1,2}(?:\.\d*)?(?:\D.*)?)?)$"
)
"""A time of day alone, to which Spark adds today's date."""


def _instant(call: Call, text: Datum) -> Evaluated:
    """Cast ``yyyy[-m[m][-d[d][ hh:mm:ss[.ffffff][zone]]]]`` to an instant.

    The session's zone applies if the text names none.
    """
    if call.type == TIMESTAMP:
        text = _with_today(text, call.zone or "UTC")
    parts = pc.extract_regex(text, _DATE if call.type == DATE else _TIMESTAMP)
    null, bad = null_mask(text), np.asarray(parts.is_null().to_numpy(zero_copy_only=False))
    piece = {f.name: pc.struct_field(parts, f.name) for f in parts.type}
    years, months, day = _whole(piece["y"], 1970), _whole(piece["m"], 1), _whole(piece["d"], 1)
    ok = (months >= 1) & (months <= 12) & (day >= 1)
    month = np.where(ok, (years - 1970) * 12 + months - 1, 0)
    first = month_days(month)
    ok &= day <= month_days(month + 1) - first
    days = first + day - 1
    if call.type == DATE:
        ok &= (days >= -(2**31)) & (days < 2**31)
    bad = bad | ~ok if null is None else (bad | ~ok) & ~null
    if call.type == DATE:
        return mode_outcome(
            build_array(np.where(bad, 0, days).astype(np.int32), null, pa.date32()), bad, call.mode, _bad(call)
        )
    return _timestamp(call, piece, days, bad, null)


def of_today(text: Datum) -> Mask:
    """Return where a text is a time of day alone."""
    if isinstance(text, pa.Scalar):
        return np.asarray(bool(text.is_valid and _matches(pa.repeat(text, 1), _TIME).any()))
    there: Mask = np.asarray(text.is_valid().to_numpy(zero_copy_only=False))
    return there & _matches(text, _TIME)


def _with_today(text: Datum, session: str) -> Datum:
    """Prepend today's date to times of day, in the text's zone or else the session's."""
    alone = of_today(text)
    if not alone.any():
        return text
    now, out = np.array(world().now_micros(), np.int64), text.to_pylist()
    for row in np.flatnonzero(alone):
        time = out[row].removeprefix("T")
        name = re.sub(r"(?s)^[\d:]*(\.\d*)?", "", time).strip(_JAVA_SPACE)
        try:
            today = _dates(np.array([int((zone_in_data(name) if name else zone_named(session)).local(now)) // DAY]))[0]
        except InvalidInput:
            continue
        out[row] = f"{today} {time}"
    return pa.array(out, pa.string())


def _timestamp(call: Call, piece: dict[str, Any], days: Numbers, bad: Mask, null: Mask | None) -> Evaluated:
    hour, minute, second = (_whole(piece[k], 0) for k in "HMS")
    fraction = _whole(pc.utf8_slice_codeunits(pc.utf8_rpad(piece["f"].fill_null(""), 6, "0"), 0, 6), 0)
    outside = (hour > 23) | (minute > 59) | (second > 59) | (np.abs(days) > _LAST_DAY)
    bad = bad | outside if null is None else (bad | outside) & ~null
    clock = hour * HOUR + minute * MINUTE + second * SECOND + fraction
    names = pc.utf8_trim(piece["z"].fill_null(""), _JAVA_SPACE)
    last = (
        np.where(bad, 0, np.sign(days) * (np.abs(days) == _LAST_DAY)) * DAY
    )  # only part of this day fits: compute one day nearer to the epoch
    local = np.where(bad, 0, days) * DAY - last + clock
    values, unknown, named = _zoned(local, names, call.zone or "UTC")
    if call.type == TIMESTAMP_NTZ:
        values = local  # a zone in the text must be valid, but has no effect
    with np.errstate(over="ignore"):
        moved = values + last
    over = ((last > 0) & (moved < values)) | ((last < 0) & (moved > values))
    left = named & ~bad if is_left_to_spark() else np.zeros(len(bad), bool)
    bad = (bad | unknown | over) & ~left
    found = mode_outcome(build_array(moved, null, to_arrow_type(call.type)), bad, call.mode, _bad(call))
    return found if not left.any() else left_to_spark(found, left)


_LAST_DAY = 106_751_991
"""The last day, counted from 1970 in either direction, that fits 64 bits of microseconds in part."""


def left_to_spark(found: Evaluated, left: Mask) -> Evaluated:
    """Return what was found, with the rows ``left`` failing: Spark computes them."""
    failed = left if found.failed is None else left | found.failed
    return Evaluated(null_where(found.values, left), failed, found.error or LEFT_TO_SPARK)


_LETTERS = r"(?s):\d{1,2}(?:\.\d*)?[^\d:]*[A-Za-z]"
"""Letters behind a clock: a region, or what ``_OFFSET`` has."""
_OFFSET = r":\d{1,2}(?:\.\d*)?\s*(?:Z|UTC|GMT|UT)(?:[+-][\d:]*)?\s*$"


def names_region(text: Datum) -> Mask:
    """Return where a time may name a region, whose offsets the JVM may have otherwise."""
    if isinstance(text, pa.Scalar):
        return np.asarray(bool(text.is_valid and names_region(pa.repeat(text, 1)).any()))
    there: Mask = np.asarray(text.is_valid().to_numpy(zero_copy_only=False))
    return there & _matches(text, _LETTERS) & ~_matches(text, _OFFSET)


def _zoned(local: Numbers, names: Datum, session: str) -> tuple[Numbers, Mask, Mask]:
    """Return the instants of local times in the zones that the texts name.

    Also where a zone is unknown, and where a text names a zone of which the JVM may know more, or other offsets.
    """
    encoded = names.dictionary_encode()
    index = np.asarray(encoded.indices.to_numpy(zero_copy_only=False))
    out = np.zeros(len(local), np.int64)
    unknown, named = np.zeros((2, len(local)), bool)
    for number, name in enumerate(encoded.dictionary.to_pylist()):
        here = index == number
        try:
            own = zone_in_data(name) if name else zone_named(session)
        except InvalidInput:
            unknown |= here
            named |= here
            continue
        out[here] = own.instants(local[here])
        if name and own.fixed is None:
            named |= here
    return out, unknown, named


def _whole(text: Datum, default: int) -> Numbers:
    """Convert digits to integers; ``default`` where the group is empty."""
    filled = pc.if_else(pc.fill_null(pc.equal(pc.utf8_length(text), 0), True), pa.scalar(str(default)), text)
    return np.array(stored_numbers(pc.replace_substring_regex(filled, r"^\+", "").cast(pa.int64())))


def by_decimal(call: Call, x: Datum) -> Evaluated:
    """Cast floats and text to a decimal, value by value.

    Uses the decimal text that Java prints for a float, not its binary value.
    """
    target = call.type
    assert isinstance(target, Decimal)
    unit, limit = decimal.Decimal(1).scaleb(-target.scale), decimal.Decimal(10) ** (target.precision - target.scale)
    out: list[decimal.Decimal | None] = []
    bad = np.zeros(len(x), bool)
    with decimal.localcontext(decimal.Context(prec=400, rounding=decimal.ROUND_HALF_UP, Emax=10_000, Emin=-10_000)):
        for row, value in enumerate(x.to_pylist()):
            number = _number(value)
            if number == 0:  # its exponent may exceed the context
                number = decimal.Decimal(0)
            small = number is not None and number.is_finite() and number.adjusted() <= target.precision
            if number is not None and small:
                number = number.quantize(unit)
            fits = number is not None and small and abs(number) < limit
            out.append(number if fits else None)
            infinite = (
                isinstance(value, float) and number is not None and not number.is_finite()
            )  # NULL in Spark in every mode
            bad[row] = value is not None and not fits and not infinite
    found = mode_outcome(pa.array(out, to_arrow_type(target)), bad, call.mode, _bad(call))
    left = any_set(unsure_doubles(stored_numbers(x), target.scale)) if pa.types.is_floating(x.type) else None
    return found if left is None else left_to_spark(found, left)


_DECIMAL = re.compile(r"[+-]?(\d+(?:\.\d*)?|\.\d+)([eE][+-]?\d+)?")  # in time linear in the length


def _number(value: str | float | None) -> decimal.Decimal | None:
    """Parse a number: a float by its text, text like Java's ``BigDecimal``, whose exponent has 32 bits."""
    if value is None:
        return None
    if not isinstance(value, str):
        return decimal.Decimal(repr(value))
    text = value.strip(_JAVA_SPACE)
    if not _DECIMAL.fullmatch(text):
        return None
    try:
        number = decimal.Decimal(text)
    except decimal.InvalidOperation:
        return None
    exponent = number.as_tuple().exponent
    return number if isinstance(exponent, int) and abs(exponent) < 2**31 else None


def render(call: Call, x: Datum) -> Evaluated:
    """Cast booleans, numbers, dates and timestamps to text."""
    source = call.args[0].type
    if source in (FLOAT, DOUBLE):
        return Evaluated(null_where(pa.array([_java_text(v) for v in stored_numbers(x)], pa.string()), null_mask(x)))
    if isinstance(source, Decimal):
        # outside of ANSI, Spark prints what Java's BigDecimal prints: small numbers with an exponent, as Python's str
        shown = str if call.mode is Mode.LEGACY else _plain
        return Evaluated(pa.array([None if v is None else shown(v) for v in x.to_pylist()], pa.string()))
    if source not in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
        return Evaluated(x.cast(pa.string()))
    values, null = stored_numbers(x).astype(np.int64), null_mask(x)
    if source == DATE:
        text = _dates(values)
    else:
        days, clock = local_parts(zone_named(call.zone or "UTC"), values)
        text = [
            f"{d} {c // HOUR:02d}:{c // MINUTE % 60:02d}:{c // SECOND % 60:02d}"
            + (f".{f:06d}".rstrip("0") if (f := c % SECOND) else "")
            for d, c in zip(_dates(days), clock.tolist(), strict=True)
        ]
    return Evaluated(null_where(pa.array(text, pa.string()), null))


def _plain(value: decimal.Decimal) -> str:
    return format(value, "f")


def _java_text(value: Any) -> str:
    """Format a float as Java 19 and later do: ``1.0``, ``1.0E10``, ``4.9E-324``.

    This is the shortest text that reads back, with at least two digits, and the nearest such text.
    """
    if np.isnan(value) or np.isinf(value):
        return "NaN" if np.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "-0.0" if np.signbit(value) else "0.0"
    if 1e-3 <= abs(value) < 1e7:
        return str(np.format_float_positional(value, unique=True, trim="0"))
    text = np.format_float_scientific(value, unique=True, trim="0")
    if text.lstrip("-")[1:4] == ".0e":  # one digit: the second one is that of the nearest text
        text = np.format_float_scientific(value, unique=False, precision=1)
    digits, exponent = text.split("e")
    return f"{digits}E{int(exponent)}"


def _dates(days: Numbers) -> list[str]:
    """Format dates as ``yyyy-MM-dd``, with + for years of more than four digits and - before year 0."""
    months = days.astype("M8[D]").astype("M8[M]")
    year, month = months.astype(np.int64) // 12 + 1970, months.astype(np.int64) % 12 + 1
    day = days - months.astype("M8[D]").astype(np.int64) + 1
    return [
        f"{'+' if y > 9999 else '-' if y < 0 else ''}{abs(y):04d}-{m:02d}-{d:02d}"
        for y, m, d in zip(year.tolist(), month.tolist(), day.tolist(), strict=True)
    ]
