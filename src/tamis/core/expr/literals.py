"""Binds constants of SQL text: numbers with Spark's types, typed literals, intervals, and IN lists."""

from __future__ import annotations

import decimal
import math
import re

import pyarrow as pa

from tamis.core.expr.calls import make_call
from tamis.core.expr.coerce import fold_cast, has_order, implicit_cast, narrowest_type, widest_type
from tamis.core.expr.evaluate import cast_values
from tamis.core.expr.literal_lists import Constants
from tamis.core.expr.syntax import SyntaxProblem
from tamis.core.expr.syntax.nodes import Interval, Number, Typed
from tamis.core.expr.tree import Expr, Literal, Literals, Mode
from tamis.core.types import (
    BINARY,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    YEAR_MONTH,
    DataType,
    DayTimeInterval,
    Decimal,
    Time,
)
from tamis.core.types.arrow import to_arrow_type

_WHOLE = {"Y": (BYTE, 2**7), "S": (SHORT, 2**15), "L": (LONG, 2**63)}
_MOST_DIGITS = 38
_WIDE = decimal.Context(prec=_MOST_DIGITS)


_LONGEST = 4_000
"""Characters of a number, zeros at its beginning included."""


def bind_number(node: Number) -> Literal:
    """Bind a number as Spark types it: by its suffix, else INT, BIGINT or DECIMAL; DOUBLE with an exponent.

    Raises ``SyntaxProblem`` if it is out of range.
    """
    digits, suffix = node.digits, node.suffix
    whole = suffix in _WHOLE or (not suffix and digits.isdecimal())
    if whole and len(digits) > _LONGEST:  # Python refuses to read whole numbers of more digits
        raise SyntaxProblem(f"{digits[:40]}… has more than 38 digits", node.start)
    if suffix in _WHOLE:
        kind, limit = _WHOLE[suffix]
        if not -limit <= int(digits) < limit:
            raise SyntaxProblem(f"{digits}{suffix} is not a {kind}", node.start)
        return Literal(kind, int(digits))
    if suffix in {"D", "F"} or (not suffix and "e" in digits.lower()):
        value = pa.scalar(digits).cast(pa.float64() if suffix != "F" else pa.float32()).as_py()
        if math.isinf(value):
            raise SyntaxProblem(f"{digits}{suffix} is beyond a {FLOAT if suffix == 'F' else DOUBLE}", node.start)
        return Literal(FLOAT if suffix == "F" else DOUBLE, value)
    if not suffix and "." not in digits and -(2**63) <= int(digits) < 2**63:
        return Literal(INTEGER if -(2**31) <= int(digits) < 2**31 else LONG, int(digits))
    return _decimal(digits, node.start)


def _decimal(digits: str, start: int) -> Literal:
    value = decimal.Decimal(digits)
    exponent = int(value.as_tuple().exponent)
    scale = max(0, -exponent)
    length = max(len(value.as_tuple().digits) + max(0, exponent), scale)
    if length > _MOST_DIGITS:
        raise SyntaxProblem(f"{digits} has more than 38 digits: write it as a double, 1e0", start)
    return Literal(
        Decimal(length, scale), value if exponent <= 0 else value.quantize(decimal.Decimal(1), context=_WIDE)
    )


_TYPED = {"DATE": DATE, "TIMESTAMP": TIMESTAMP, "TIMESTAMP_LTZ": TIMESTAMP, "TIMESTAMP_NTZ": TIMESTAMP_NTZ}
_MOVING = re.compile(r"\s*(epoch|now|today|tomorrow|yesterday)\b", re.IGNORECASE)


def bind_typed(node: Typed, mode: Mode, zone: str) -> Expr | None:
    """Bind a typed literal; None if only Spark knows its value. Raises ``SyntaxProblem`` if it is invalid."""
    found: Expr | None
    match node.kind:
        case "X":
            padded = "0" * (len(node.text) % 2) + node.text
            found = Literal(BINARY, bytes.fromhex(padded)) if re.fullmatch("[0-9a-fA-F]*", padded) else None
        case "TIME":
            found = time_of_day(node.text)
        case "INTERVAL":
            found = _within_range(_words(node.text), node.start)
        case kind:
            if _MOVING.match(node.text):
                return None
            found = fold_cast(make_call("cast", Literal(STRING, node.text), mode=mode, zone=zone, type=_TYPED[kind]))
    if not isinstance(found, Literal) or found.value is None:
        kind = "row of hexadecimal digits" if node.kind == "X" else node.kind
        raise SyntaxProblem(f"{node.text!r} is not a {kind}", node.start)
    return found


_MICROS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 10**6,
    "minute": 60 * 10**6,
    "hour": 3600 * 10**6,
    "day": 86_400 * 10**6,
}
_MICROS["week"] = 7 * _MICROS["day"]
_MONTHS = {"month": 1, "quarter": 3, "year": 12}


def bind_interval(node: Interval) -> Literal | None:
    """Bind a constant interval: day-time in microseconds, or year-month in months.

    Raises ``SyntaxProblem`` if Spark rejects it.
    """
    if node.to:
        text, unit = node.amounts[0]
        found = _span(text, unit.lower(), node.to.lower())
    else:
        found = _summed([_single(amount, unit.lower()) for amount, unit in node.amounts], node.start)
    if found is None:
        raise SyntaxProblem(
            "An interval in it is none: amounts are whole numbers, of seconds also fractions", node.start
        )
    return _within_range(found, node.start)


def _within_range(found: Literal | None, start: int) -> Literal | None:
    """Return the interval. Raises ``SyntaxProblem`` if it has more months or microseconds than Spark stores."""
    if found is not None:
        bits = 32 if found.type == YEAR_MONTH else 64
        if not -(2 ** (bits - 1)) <= found.value < 2 ** (bits - 1):
            raise SyntaxProblem("An interval in it is out of range: months must fit 32 bits, microseconds 64", start)
    return found


def _summed(singles: list[Literal | None], start: int) -> Literal | None:
    """Combine amounts in several units into one interval."""
    known = [s for s in singles if s is not None]
    if len(known) != len(singles):
        return None
    kinds = {s.type == YEAR_MONTH for s in known}
    if len(kinds) > 1:
        raise SyntaxProblem("An interval in it mixes months with days: add two intervals instead", start)
    total = sum(s.value for s in known)
    if kinds == {True}:
        return Literal(YEAR_MONTH, total)
    order = ["day", "hour", "minute", "second"]
    fields = sorted((s.type.start for s in known if isinstance(s.type, DayTimeInterval)), key=order.index)
    return Literal(DayTimeInterval(fields[0], fields[-1]), total)


def _single(text: str, unit: str) -> Literal | None:
    unit = unit.removesuffix("s")
    if not _NUMBER.fullmatch(text.strip()) or ("." in text and unit != "second"):
        return None
    amount = decimal.Decimal(text.strip())
    if unit in _MONTHS:
        return Literal(YEAR_MONTH, int(amount) * _MONTHS[unit]) if amount == int(amount) else None
    if unit not in _MICROS or (unit != "second" and amount != int(amount)):
        return None
    field = {"week": "day", "millisecond": "second", "microsecond": "second"}.get(unit, unit)
    return Literal(DayTimeInterval(field, field), int(amount * _MICROS[unit]))


def _words(text: str) -> Literal | None:
    """Parse ``'1 day 2 hours'`` or ``'interval 1 day'``."""
    whole = re.fullmatch(rf"\s*(?:interval\s+)?((?:{_AMOUNT}\s*)+)", text, re.IGNORECASE | re.ASCII)
    parts = re.findall(_AMOUNT, whole[1], re.ASCII) if whole else []
    return _summed([_single(amount, unit.lower()) for amount, unit in parts], 0) if parts else None


_AMOUNT = r"([+-]?\d+(?:\.\d+)?)\s*([A-Za-z]+)"
_NUMBER = re.compile(r"[+-]?(?:\d{1,19}(?:\.\d{0,9})?|\.\d{1,9})", re.ASCII)
"""An amount in ASCII digits; ``Decimal`` alone would accept exponents, underscores and other scripts."""
_FIELD_LIMITS = {"hour": 23, "minute": 59, "second": 59}
"""The greatest value of a field behind a larger one."""


def _span(text: str, start: str, end: str) -> Literal | None:
    """Parse ``'1 2:03:04.5' DAY TO SECOND`` or ``'1-2' YEAR TO MONTH``."""
    text = text.strip()
    if (start, end) == ("year", "month"):
        m = re.fullmatch(r"([+-])?(\d{1,19})-(\d{1,19})", text, re.ASCII)
        if not m or int(m[3]) > 11:
            return None
        return Literal(YEAR_MONTH, (-1 if m[1] == "-" else 1) * (int(m[2]) * 12 + int(m[3])))
    order = ["day", "hour", "minute", "second"]
    if start not in order or end not in order or order.index(start) > order.index(end):
        return None
    names = order[order.index(start) : order.index(end) + 1]
    joined = (" " if start == "day" else ":", *[":"] * (len(names) - 2))
    pattern = r"([+-])?(\d{1,19})" + "".join(rf"{separator}(\d{{1,2}})" for separator in joined[: len(names) - 1])
    pattern += r"(?:\.(\d{1,9}))?" if end == "second" else "()"
    m = re.fullmatch(pattern, text, re.ASCII)
    if not m or len(names) < 2:
        return None
    sign, *numbers, fraction = m.groups()
    amounts = [int(number) for number in numbers]
    if any(n > _FIELD_LIMITS[u] for n, u in zip(amounts[1:], names[1:], strict=True)):
        return None
    total = sum(n * _MICROS[u] for n, u in zip(amounts, names, strict=True)) + int((fraction or "").ljust(6, "0")[:6])
    return Literal(DayTimeInterval(start, end), (-1 if sign == "-" else 1) * total)


_TIME_OF_DAY = re.compile(r"(\d{1,2}):(\d{1,2}):(\d{1,2})(?:\.(\d{1,6}))?")


def time_of_day(text: str) -> Literal | None:
    """Parse the text of ``TIME'12:30:00.5'``; None for any other form."""
    m = _TIME_OF_DAY.fullmatch(text)
    if m is None or int(m[1]) > 23 or int(m[2]) > 59 or int(m[3]) > 59:
        return None
    micros = ((int(m[1]) * 60 + int(m[2])) * 60 + int(m[3])) * 10**6 + int((m[4] or "").ljust(6, "0"))
    return Literal(Time(), micros)


def options_array(value: Expr, options: list[Expr], mode: Mode, zone: str | None) -> Literals | None:
    """Return the options of an IN as one array in the common type with the value.

    Returns None if an option is not a constant.
    """
    if not all(isinstance(o, Literal) for o in options):
        return None
    kinds = {o.type for o in options}
    target = _list_type(value, options, mode)
    if target is None or not has_order(target):
        return None
    if len(kinds) == 1 and has_order(source := kinds.pop()):
        array = pa.array([o.value for o in options if isinstance(o, Literal)], to_arrow_type(source))
        values = cast_values(array, source, target, mode, zone) if source != target else array
        return None if values is None else Literals(target, values)
    members = [o if o.type == target else implicit_cast(o, target, mode, zone) for o in options]
    constants = [m.value for m in members if isinstance(m, Literal)]
    return Literals(target, pa.array(constants, to_arrow_type(target))) if len(constants) == len(members) else None


def _list_type(value: Expr, options: list[Expr], mode: Mode) -> DataType | None:
    """Return the common type of a value and its options.

    Beside a decimal, integer literals have the digits of their type, which can round the value. They have only their
    own digits if the scale stays the same: no outcome differs, and the value's own type is often wide enough.
    """
    target = widest_type([value.type, *(o.type for o in options)], mode)
    if not isinstance(target, Decimal):
        return target
    narrow = widest_type([value.type, *(narrowest_type(o) for o in options)], mode)
    return narrow if isinstance(narrow, Decimal) and narrow.scale == target.scale else target


def constants_array(value: Expr, constants: Constants, mode: Mode, zone: str | None) -> Literals | None:
    """Return a whole list in the common type with the value; None if members need separate treatment.

    That is the case beside decimals.
    """
    if isinstance(value.type, Decimal):
        return None
    target = widest_type([value.type, *constants.kinds], mode)
    if target is None or not has_order(target) or isinstance(target, Decimal):
        return None
    source = STRING if STRING in constants.kinds else LONG
    values = constants.array if source == target else cast_values(constants.array, source, target, mode, zone)
    return None if values is None else Literals(target, values)
