"""Date and time by pattern: DATE_FORMAT, FROM_UNIXTIME, and text to dates by a pattern.

If a pattern sorts (``pattern_fields``), formatting rises with the time, and parsing with the text. Other patterns are
computed for single values only.
"""

from __future__ import annotations

import re
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.expr.arrow_values import (
    Datum,
    Evaluated,
    Mask,
    Numbers,
    build_array,
    full_length,
    is_true,
    mode_outcome,
    null_mask,
    null_where,
)
from tamis.core.expr.coerce import implicit_cast, is_instant, is_numeric, is_text
from tamis.core.expr.far_times import local_parts
from tamis.core.expr.functions.datetime.clock_columns import (
    HOUR,
    MINUTE,
    field_of_days,
    month_days,
    month_start,
    trunc_days,
)
from tamis.core.expr.functions.datetime.pattern_fields import (
    Token,
    has_letters,
    larger_field,
    pattern_sorts,
    pattern_tokens,
)
from tamis.core.expr.functions.datetime.time_units import int64_numbers
from tamis.core.expr.functions.logic.comparisons import compare_values
from tamis.core.expr.registry import (
    Bounds,
    Claim,
    Function,
    Partial,
    Signature,
    declare_function,
    declare_overload,
)
from tamis.core.expr.time_zones import DAY, SECOND, zone_named
from tamis.core.expr.tree import Call, Expr, Literal, Mode
from tamis.core.types import LONG, STRING, TIMESTAMP, TIMESTAMP_NTZ
from tamis.core.types.arrow import to_arrow_type

_MONTHS = [
    "January", "February", "March", "April", "May", "June", "July",
    "August", "September", "October", "November", "December",
]  # fmt: skip
_DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_897
"""Years of one to four digits: 0001-01-01, and the day after 9999-12-31."""


def _larger(local: Numbers, missing_fields: int) -> Numbers:
    """Return the year, month, … or second in which a local time lies."""
    days = local // DAY
    if missing_fields <= 2:
        return trunc_days(days, ["year", "month"][missing_fields - 1])
    return local // [DAY, HOUR, MINUTE, SECOND][missing_fields - 3]


def _constant_pattern(arg: Expr) -> bool:
    return isinstance(arg, Literal) and isinstance(arg.value, str) and pattern_tokens(arg.value) is not None


def _pattern(call_: Call) -> str:
    arg = call_.args[1]
    assert isinstance(arg, Literal)
    return str(arg.value)


def _rendered(days: Numbers, clock: Numbers, pattern: str) -> Datum:
    """Format local times, whole columns at a time."""
    parts = [
        pa.repeat(text, len(days)) if not kind else _field(days, clock, text, kind)
        for text, kind in pattern_tokens(pattern) or ()
    ]
    return pc.binary_join_element_wise(*parts, "")


def _field(days: Numbers, clock: Numbers, text: str, kind: str) -> Datum:
    if kind == "fraction":
        micros = pc.utf8_lpad(pa.array(clock % SECOND).cast(pa.string()), 6, "0")
        return pc.utf8_slice_codeunits(pc.utf8_rpad(micros, 9, "0"), 0, len(text))
    if kind == "month name":
        return _named(_MONTHS, field_of_days(days, "month") - 1, text, 4)
    if kind == "weekday name":
        return _named(_DAYS, field_of_days(days, "weekday"), text, 4)
    if kind == "half":
        return pa.array(["AM", "PM"]).take(pa.array(clock // (12 * HOUR)))
    number = {
        "hour": lambda: clock // HOUR,
        "minute": lambda: clock // MINUTE % 60,
        "second": lambda: clock // SECOND % 60,
        "hour of half": lambda: (clock // HOUR + 11) % 12 + 1,
        "short year": lambda: field_of_days(days, "year") % 100,
    }.get(kind, lambda: field_of_days(days, kind))()
    out = pa.array(np.asarray(number, np.int64)).cast(pa.string())
    return pc.utf8_lpad(out, len(text), "0") if len(text) > 1 else out


def _named(names: list[str], index: Numbers, text: str, whole: int) -> Datum:
    return pa.array([n if len(text) >= whole else n[:3] for n in names]).take(pa.array(np.asarray(index, np.int64)))


def _plain_years(call_: Call, bounds: Bounds) -> Mask:
    """Return where all years have four digits and the pattern sorts, always or within these bounds."""
    missing_fields = larger_field(_pattern(call_))
    ok: Mask = np.asarray(missing_fields is not None)
    least, beyond = (_FIRST_DAY + 1) * DAY, (_LAST_DAY - 1) * DAY
    for bound in bounds[0]:
        values, mask = int64_numbers(bound), null_mask(bound)
        ok = ok & (values >= least) & (values < beyond) & (True if mask is None else ~mask)
    if not missing_fields or not ok.any():
        return ok
    z = zone_named(call_.zone or "UTC")
    first, last = (_larger(z.local(np.where(ok, int64_numbers(b), 0)), missing_fields) for b in bounds[0])
    return np.asarray(ok & (first == last))


def _formatted(call_: Call, args: list[Datum]) -> Evaluated:
    z, array = zone_named(call_.zone or "UTC"), full_length(args[0], 1)
    values = int64_numbers(array)
    if call_.function == "from_unixtime":
        values = values * SECOND
    days, clock = local_parts(z, values)
    outside: Mask = (days < _FIRST_DAY) | (days >= _LAST_DAY)
    texts = _rendered(np.where(outside, 0, days), clock, _pattern(call_))
    if outside.any():
        texts = pa.array(
            [
                _far(days[at : at + 1], clock[at : at + 1], _pattern(call_)) if far else text
                for at, (far, text) in enumerate(zip(outside.tolist(), texts.to_pylist(), strict=True))
            ]
        )
    return Evaluated(null_where(texts.cast(pa.string()), null_mask(array)))


def _far(days: Numbers, clock: Numbers, pattern: str) -> str:
    """Format a time outside years 1 to 9999: longer years and those before 0 have a sign.

    Spark's ``y`` is Java's proleptic ``u``.
    """
    month, _ = month_start(days)
    year = int(month[0]) // 12 + 1970
    out = ""
    for text, kind in pattern_tokens(pattern) or ():
        if kind == "year":
            digits = str(abs(year)).rjust(len(text), "0")
            out += ("+" if len(text) == 4 and year > 9999 else "-" if year < 0 else "") + digits
        elif kind == "short year":
            out += f"{abs(year) % 100:02d}"
        else:
            out += text if not kind else _field(days, clock, text, kind)[0].as_py()
    return out


def _format_resolve(args: tuple[Expr, ...], mode: Mode, zone_name: str | None) -> Signature | None:
    if len(args) != 2 or not (is_instant(args[0].type) or is_text(args[0].type)) or not _constant_pattern(args[1]):
        return None
    return Signature((implicit_cast(args[0], TIMESTAMP, mode, zone_name), args[1]), STRING)


declare_function(
    Function(
        "date_format",
        _format_resolve,
        _formatted,
        sql=("date_format",),
        catalyst=("DateFormatClass",),
        claims=lambda _: (Claim.UP, Claim.FIXED),
        guard=_plain_years,
        zoned=lambda _args, _type: True,
        local=True,
        note="patterns that sort (yyyy-MM-dd HH:mm:ss, or the first fields of it)",
    )
)


def _seconds_resolve(args: tuple[Expr, ...], mode: Mode, zone_name: str | None) -> Signature | None:
    if len(args) not in (1, 2) or not is_numeric(args[0].type):
        return None
    pattern = args[1] if len(args) == 2 else Literal(STRING, "yyyy-MM-dd HH:mm:ss")
    return (
        Signature((implicit_cast(args[0], LONG, mode, zone_name), pattern), STRING)
        if _constant_pattern(pattern)
        else None
    )


def _near(call_: Call, bounds: Bounds) -> Mask:  # noqa: ARG001
    """Return where seconds are times that Java can hold: beyond that, Spark's multiplication wraps."""
    ok: Mask = np.ones((), bool)
    for bound in bounds[0]:
        mask = null_mask(bound)
        ok = ok & (np.abs(int64_numbers(bound)) < 2**42) & (True if mask is None else ~mask)
    return ok


declare_function(
    Function(
        "from_unixtime",
        _seconds_resolve,
        _formatted,
        sql=("from_unixtime",),
        catalyst=("FromUnixTime",),
        guard=_near,
        reliable=_near,
        rule="from_unixtime",
        zoned=lambda _args, _type: True,
    )
)


# Text to times by a pattern


@lru_cache(maxsize=256)
def _regex(pattern: str) -> str | None:
    """Return the regular expression that Java's strict parser accepts.

    None for patterns with fields that are not numbers of fixed width.
    """
    out, seen = "", set()
    for text, kind in pattern_tokens(pattern) or ():
        if not kind:
            if re.search(r"[\d+-]", text) and text != "-":
                return None
            out += f"(?i:{re.escape(text)})"
            continue
        name = "f" if kind == "fraction" else text
        if name not in ("yyyy", "MM", "dd", "HH", "mm", "ss", "f") or name in seen or len(text) > 6:
            return None
        seen.add(name)
        if name == "yyyy":
            out += r"(?P<yyyy>-?\d{4}|[+-]\d{5,6})"
        else:  # Spark reads fractions of fewer digits, too
            out += rf"(?P<{name}>\d{{{'1,' * (name == 'f')}{len(text)}}})"
    return f"^{out}$" if "yyyy" in seen and _has_fixed_widths(pattern_tokens(pattern) or ()) else None


def _has_fixed_widths(found: tuple[Token, ...]) -> bool:
    """Return whether every field's digits can be told from their number.

    A fraction of several letters may have one digit only. So Java does not count it when it cuts a year off the fields
    that follow it without a text between, and it takes the digits of a field right behind it.
    """
    letters = {"year": "y", "": " "}
    shape = "".join("F" if kind == "fraction" and len(text) > 1 else letters.get(kind, "d") for text, kind in found)
    return re.search("yd*F|F[yd]", shape) is None


def _parsable(arg: Expr) -> bool:
    return isinstance(arg, Literal) and isinstance(arg.value, str) and _regex(arg.value) is not None


def _parse_resolve(args: tuple[Expr, ...], mode: Mode, zone_name: str | None) -> Signature | None:  # noqa: ARG001
    if len(args) != 2 or not is_text(args[0].type) or not _parsable(args[1]):
        return None
    return Signature(args, TIMESTAMP)


def _number(parts: Datum, name: str, default: int) -> Numbers:
    if parts.type.get_field_index(name) < 0:
        return np.full(len(parts), default, np.int64)
    digits = pc.utf8_ltrim(pc.struct_field(parts, name).fill_null(str(default)), "+")
    return np.asarray(digits.cast(pa.int64()).to_numpy(zero_copy_only=False))


def _parsed(call_: Call, args: list[Datum]) -> Evaluated:
    pattern = _pattern(call_)
    text = full_length(args[0], 1)
    parts = pc.extract_regex(text, _regex(pattern))
    null, bad = null_mask(text), np.asarray(parts.is_null().to_numpy(zero_copy_only=False))
    year, month, day = _number(parts, "yyyy", 1970), _number(parts, "MM", 1), _number(parts, "dd", 1)
    hour, minute, second = (_number(parts, n, 0) for n in ("HH", "mm", "ss"))
    no_year = (year == 0) & is_true(pc.starts_with(pc.struct_field(parts, "yyyy"), "-"))  # Java knows no -0000
    good = (
        (month >= 1)
        & (month <= 12)
        & (day >= 1)
        & (hour < 24)
        & (minute < 60)
        & (second < 60)
        & (np.abs(year) < 290_000)
        & ~no_year
    )
    index = np.where(good, (year - 1970) * 12 + month - 1, 0)
    first = month_days(index)
    good &= day <= month_days(index + 1) - first
    micros = np.zeros(len(parts), np.int64)
    if parts.type.get_field_index("f") >= 0:
        digits = pc.utf8_rpad(pc.struct_field(parts, "f").fill_null("0"), 6, "0")
        micros = np.asarray(digits.cast(pa.int64()).to_numpy(zero_copy_only=False))
    local = np.where(good, (first + day - 1) * DAY + hour * HOUR + minute * MINUTE + second * SECOND + micros, 0)
    bad = (bad | ~good) if null is None else (bad | ~good) & ~null
    out = zone_named(call_.zone or "UTC").instants(local)
    values = build_array(out, null, to_arrow_type(TIMESTAMP))
    return mode_outcome(values, bad, call_.mode, f"[CANNOT_PARSE_TIMESTAMP] The text does not have the form {pattern}.")


def _digits_first(call_: Call, bounds: Bounds) -> Mask:
    """Return where the pattern sorts and no text can begin with the sign of a five-digit year.

    A fraction must come last: it has one digit or more, so that ``.5Z`` sorts after ``.59Z``.
    Letters between fields are read in either case, so that ``T23`` sorts before ``t01``: see ``sorted_prefix``.
    """
    found = pattern_tokens(_pattern(call_)) or ()
    last = max((at for at, (_, kind) in enumerate(found) if kind), default=0)
    sorting = (
        pattern_sorts(_pattern(call_))
        and found[0][1] == "year"
        and all(kind != "fraction" for _, kind in found[:-1])
        and not any(has_letters(text) for text, kind in found[:last] if not kind)
    )
    return np.asarray(sorting & is_true(compare_values("ge", bounds[0][0], pa.scalar("0"))))


declare_function(
    Function(
        "timestamp_of_text",
        _parse_resolve,
        _parsed,
        catalyst=("GetTimestamp",),
        claims=lambda _: (Claim.UP, Claim.FIXED),
        partial=lambda _: Partial.ANYWHERE,
        guard=_digits_first,
        moded=lambda _args, _type: True,
        lenient=True,
        zoned=lambda _args, _type: True,
        rule="timestamp_of_text",
        local=True,
        note="patterns that sort; those with letters between fields (yyyy-MM-dd'T'HH) by the fields before",
    )
)


@declare_overload("timestamp_of_text")
def _already_one(args: tuple[Expr, ...], mode: Mode, zone_name: str | None) -> Expr | None:
    """Ignore the pattern for an argument that is already a time. Spark takes a local time as if it were of UTC."""
    if len(args) != 2 or not is_instant(args[0].type):
        return None
    return implicit_cast(args[0], TIMESTAMP, mode, "UTC" if args[0].type == TIMESTAMP_NTZ else zone_name)
