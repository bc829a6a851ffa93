"""Constants of SQL text: numbers with Spark's types, intervals, type names, and IN lists as one array."""

from __future__ import annotations

import decimal
import re

import pyarrow as pa
from sqlglot import exp

from tamis.errors import InvalidInput
from tamis.expr.coerce import brought, narrowest, orders, widest
from tamis.expr.evaluate import cast_values
from tamis.expr.lists import Constants
from tamis.expr.tree import Expr, Literal, Literals, Mode
from tamis.types import DOUBLE, INTEGER, LONG, STRING, YEAR_MONTH, DataType, DayTimeInterval, Decimal, Time
from tamis.types.arrow import to_arrow_type
from tamis.types.logical import type_from_json


def number(text: str) -> Literal:
    """A number as Spark types it: INT, else BIGINT, else DECIMAL; with an exponent DOUBLE."""
    if re.search(r"[eE]", text):
        return Literal(DOUBLE, float(text))
    value = decimal.Decimal(text)
    if "." not in text:
        whole = int(text)
        if -(2**31) <= whole < 2**31:
            return Literal(INTEGER, whole)
        if -(2**63) <= whole < 2**63:
            return Literal(LONG, whole)
    scale = max(0, -int(value.as_tuple().exponent))
    digits = max(len(value.as_tuple().digits), scale)
    if digits > 38:
        raise InvalidInput(f"{text} has more than 38 digits.", code="PARSE_ERROR", name=text, remedy="Write it as a double: 1e0.")
    return Literal(Decimal(digits, scale), value)


_TYPES = {
    "tinyint": "byte", "smallint": "short", "int": "integer", "bigint": "long", "text": "string", "varchar": "string",
    "timestamptz": "timestamp", "timestampltz": "timestamp", "timestamp": "timestamp", "timestampntz": "timestamp_ntz", "decimal": "decimal(10,0)",
    "varbinary": "binary", "time": "time(6)",
}  # fmt: skip


def type_of(node: exp.DataType) -> DataType | None:
    """The type that a CAST names, or None if it is none of ours. Raises ``InvalidInput`` (``BAD_TYPE``) for parameters that it cannot have, as Spark does."""
    name = node.this.name.lower() if hasattr(node.this, "name") else str(node.this).lower()
    params = [p.name for p in node.expressions if isinstance(p, exp.DataTypeParam)]
    if node.expressions and len(params) != len(node.expressions):
        return None
    if name in {"varchar", "char"}:
        if not params:
            raise bad_type(node, f"a length is missing, as in {name.upper()}(10); text of any length is STRING")
        return None  # a cast to VARCHAR(n) pads or cuts
    if name == "decimal" and params:
        return _decimal(node, params)
    if params and not (name == "time" and params == ["6"]):
        raise bad_type(node, "a time of day has 6 digits" if name == "time" else "it takes no parameter")
    try:
        return type_from_json(_TYPES.get(name, name))
    except InvalidInput:
        return None


def _decimal(node: exp.DataType, params: list[str]) -> Decimal:
    numbers = [int(p) for p in params if p.isdecimal()]
    if len(numbers) != len(params) or len(numbers) > 2:
        raise bad_type(node, "it takes a precision and a scale, as in DECIMAL(10,2)")
    found = Decimal(numbers[0], numbers[1] if len(numbers) > 1 else 0)
    if not found.possible:
        raise bad_type(node, "the precision is 1 to 38, the scale 0 to the precision")
    return found


def bad_type(node: exp.DataType, why: str) -> InvalidInput:
    text = _OWN_WORD.sub(lambda m: {"TIMESTAMPTZ": "TIMESTAMP", "TEXT": "STRING"}[m[0]], node.sql()).replace(", ", ",")
    return InvalidInput(
        f"There is no type {text} here{why and ': ' + why}.",
        code="BAD_TYPE",
        name=text,
        remedy="Write a type of Spark's, such as BIGINT, DECIMAL(10,2), TIMESTAMP or STRING.",
    )


_OWN_WORD = re.compile(r"\b(TIMESTAMPTZ|TEXT)\b")
"""What sqlglot calls two of Spark's types."""


_MICROS = {"microsecond": 1, "millisecond": 1_000, "second": 10**6, "minute": 60 * 10**6, "hour": 3600 * 10**6, "day": 86_400 * 10**6}
_MICROS["week"] = 7 * _MICROS["day"]
_MONTHS = {"month": 1, "quarter": 3, "year": 12}


def interval(node: exp.Interval) -> Literal | None:
    """A constant interval: day-time in microseconds, or year-month in months; None for what mixes both or is not constant."""
    value, unit = node.this, node.args.get("unit")
    sign = 1
    if isinstance(value, exp.Neg):
        sign, value = -1, value.this
    if not isinstance(value, exp.Literal):
        return None
    if isinstance(unit, exp.IntervalSpan):
        return _span(value.name, unit.this.name.lower(), unit.expression.name.lower(), sign)
    if unit is None:
        return _words(value.name, sign)
    return _single(value.name, unit.name.lower(), sign)


def _single(text: str, unit: str, sign: int) -> Literal | None:
    unit = unit.removesuffix("s")
    try:
        amount = decimal.Decimal(text.strip()) * sign
    except decimal.InvalidOperation:
        return None
    if unit in _MONTHS:
        return Literal(YEAR_MONTH, int(amount) * _MONTHS[unit]) if amount == int(amount) else None
    if unit not in _MICROS or (unit != "second" and amount != int(amount)):
        return None
    field = {"week": "day", "millisecond": "second", "microsecond": "second"}.get(unit, unit)
    return Literal(DayTimeInterval(field, field), int(amount * _MICROS[unit]))


def _words(text: str, sign: int) -> Literal | None:
    """``'1 day 2 hours'``."""
    parts = re.findall(r"([+-]?\d+(?:\.\d+)?)\s*([A-Za-z]+)", text)
    singles = [_single(amount, unit.lower(), sign) for amount, unit in parts]
    if not parts or any(s is None for s in singles) or re.sub(r"[+-]?\d+(?:\.\d+)?\s*[A-Za-z]+|\s", "", text):
        return None
    kinds = {s.type == YEAR_MONTH for s in singles if s}
    if len(kinds) > 1:
        return None
    total = sum(s.value for s in singles if s)
    if kinds == {True}:
        return Literal(YEAR_MONTH, total)
    order = ["day", "hour", "minute", "second"]
    fields = sorted((s.type.start for s in singles if s and isinstance(s.type, DayTimeInterval)), key=order.index)
    return Literal(DayTimeInterval(fields[0], fields[-1]), total)


def _span(text: str, start: str, end: str, sign: int) -> Literal | None:
    """``'1 2:03:04.5' DAY TO SECOND``, ``'1-2' YEAR TO MONTH``."""
    text = text.strip()
    if (start, end) == ("year", "month"):
        m = re.fullmatch(r"([+-])?(\d+)-(\d+)", text)
        return Literal(YEAR_MONTH, (-sign if m[1] == "-" else sign) * (int(m[2]) * 12 + int(m[3]))) if m else None
    order = ["day", "hour", "minute", "second"]
    m = re.fullmatch(r"([+-])?(\d+)(?: (\d+))?((?::\d+)*)(?:\.(\d{1,9}))?", text)
    if not m or start not in order or end not in order:
        return None
    numbers = [int(m[2]), *([int(m[3])] if m[3] else []), *(int(p) for p in m[4].split(":")[1:])]
    names = order[order.index(start) : order.index(end) + 1]
    if len(numbers) != len(names):
        return None
    total = sum(n * _MICROS[u] for n, u in zip(numbers, names, strict=True)) + int((m[5] or "").ljust(6, "0")[:6] or 0)
    return Literal(DayTimeInterval(start, end), (-sign if m[1] == "-" else sign) * total)


_TIME_OF_DAY = re.compile(r"(\d{1,2}):(\d{1,2}):(\d{1,2})(?:\.(\d{1,6}))?")


def time_of_day(text: str) -> Literal | None:
    """``TIME'12:30:00.5'``; None for any other form."""
    m = _TIME_OF_DAY.fullmatch(text)
    if m is None or int(m[1]) > 23 or int(m[2]) > 59 or int(m[3]) > 59:
        return None
    micros = ((int(m[1]) * 60 + int(m[2])) * 60 + int(m[3])) * 10**6 + int((m[4] or "").ljust(6, "0"))
    return Literal(Time(), micros)


def list_of(value: Expr, options: list[Expr], mode: Mode, zone: str | None) -> Literals | None:
    """The options of an IN as one array of the type that they and the value are brought to; None if one is not a constant."""
    if not all(isinstance(o, Literal) for o in options):
        return None
    kinds = {o.type for o in options}
    decimals = any(isinstance(t, Decimal) for t in (value.type, *kinds))
    types = {value.type, *({narrowest(o) for o in options} if decimals else kinds)}
    target = widest(list(types), mode)
    if target is None or not orders(target):
        return None
    if len(kinds) == 1 and orders(source := kinds.pop()):
        array = pa.array([o.value for o in options if isinstance(o, Literal)], to_arrow_type(source))
        values = cast_values(array, source, target, mode, zone) if source != target else array
        return None if values is None else Literals(target, values)
    members = [o if o.type == target else brought(o, target, mode, zone) for o in options]
    constants = [m.value for m in members if isinstance(m, Literal)]
    return Literals(target, pa.array(constants, to_arrow_type(target))) if len(constants) == len(members) else None


def array_of(value: Expr, constants: Constants, mode: Mode, zone: str | None) -> Literals | None:
    """A whole list under the type that it and the value are brought to; None where each member has to be looked at (beside decimals)."""
    if isinstance(value.type, Decimal):
        return None
    target = widest([value.type, *constants.kinds], mode)
    if target is None or not orders(target) or isinstance(target, Decimal):
        return None
    source = STRING if STRING in constants.kinds else LONG
    values = constants.array if source == target else cast_values(constants.array, source, target, mode, zone)
    return None if values is None else Literals(target, values)
