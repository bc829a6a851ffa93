"""Formats expressions as Spark SQL, for messages and for the log; ``to_sql`` inverts ``parse``."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from dataclasses import replace
from typing import Any

from tamis.core.expr.arrow_values import plain_value
from tamis.core.expr.json_codec.json_path import steps_of
from tamis.core.expr.tree import Call, Column, Element, Expr, Literal, Literals, Mode, Moving, Opaque
from tamis.core.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    VARIANT,
    DataType,
    DayTimeInterval,
    Decimal,
    String,
    Time,
)
from tamis.core.types.identifiers import backquote

_INFIX = {
    "eq": "=", "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "null_safe_eq": "<=>",
    "and": "AND", "or": "OR",
    "bits_and": "&", "bits_or": "|", "bits_xor": "^",
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "div": "div", "remainder": "%",
    "timestamp_add": "+", "subtract_timestamps": "-", "subtract_dates": "-",
    "interval_multiply": "*", "interval_divide": "/",
    "interval_add": "+", "interval_subtract": "-", "months_add": "+", "months_subtract": "-",
}  # fmt: skip
_NAMES = {
    "round_floor": "floor",
    "round_ceil": "ceil",
    "is_nan": "isnan",
    "shift_left": "shiftleft",
    "shift_right": "shiftright",
    "shift_right_unsigned": "shiftrightunsigned",
    "timestamp_of_text": "to_timestamp",
    "starts_with": "startswith",
    "ends_with": "endswith",
    "date_from_unix_date": "date_from_unix_date",
}
_FORMS = {
    "raised": "power({0}, {1})", "matches": "({0} RLIKE {1})",
    "not": "(NOT {0})", "is_null": "({0} IS NULL)", "is_not_null": "({0} IS NOT NULL)", "in": "({0} IN ({rest}))",
    "like": "({0} LIKE {1} ESCAPE {2})", "negate": "(- {0})", "bits_not": "(~ {0})",
    "interval_negate": "(- {0})", "months_of": "{0}",
    "trim": "trim(BOTH {1} FROM {0})", "ltrim": "trim(LEADING {1} FROM {0})", "rtrim": "trim(TRAILING {1} FROM {0})",
    "element": "{0}[{1}]", "map_value": "{0}[{1}]", "array_size": "array_size({0})",
    "yearofweek": "extract(YEAROFWEEK FROM {0})", "second_with_fraction": "extract(SECOND FROM {0})",
    "interval_days": "extract(DAY FROM {0})", "interval_hours": "extract(HOUR FROM {0})",
    "interval_minutes": "extract(MINUTE FROM {0})", "interval_seconds": "extract(SECOND FROM {0})",
}  # fmt: skip
_TRIES = {
    "add": "try_add",
    "subtract": "try_subtract",
    "multiply": "try_multiply",
    "divide": "try_divide",
    "remainder": "try_mod",
}
_SUFFIX = {BYTE: "Y", SHORT: "S", LONG: "L"}
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001  (local arithmetic only)


def to_sql(expr: Expr) -> str:
    """Format ``expr`` as Spark SQL."""
    match expr:
        case Column():
            return ".".join(_quoted(part) for part in expr.path) or expr.name
        case Literal(data_type, value):
            return literal(value, data_type)
        case Literals(data_type, array):
            return ", ".join(_member(array[i], data_type) for i in range(len(array)))
        case Moving():
            return f"{expr.name}()"
        case Element():
            return expr.name
        case Opaque():
            return expr.text
        case Call():
            return _call(expr)
    return str(expr)


def call_text(name: str, args: tuple[Expr, ...], data_type: DataType | None = None) -> str:
    """Format a function call as Spark SQL, even for arguments that it does not take."""
    texts = [to_sql(a) for a in args]
    if name == "cast" and data_type is not None:
        return f"cast({', '.join(texts)} AS {type_sql(data_type)})"
    if name in _INFIX and len(args) > 1:
        return "(" + f" {_INFIX[name]} ".join(texts) + ")"
    try:
        return _FORMS[name].format(*texts, rest=", ".join(texts[1:]))
    except (KeyError, IndexError):  # no special form, or too few arguments for it
        return f"{_NAMES.get(name, name)}({', '.join(texts)})"


def short_sql(expr: Expr, limit: int = 120) -> str:
    """Format ``expr`` for a report, shortened; of a long list only the first values are written."""
    text = to_sql(_abridged(expr))
    if (
        isinstance(expr, Call)
        and expr.function == "in"
        and isinstance(expr.args[1], Literals)
        and len(expr.args[1].array) > _LISTED
    ):
        return text[1:-1]
    return text if len(text) <= limit else text[: limit - 1] + "…"


_LISTED = 5
"""Largest number of list values shown in full in a report."""


def _abridged(expr: Expr) -> Expr:
    """Shorten the long lists in ``expr``."""
    if isinstance(expr, Literals) and len(expr.array) > _LISTED:
        return Opaque(expr.type, f"{to_sql(Literals(expr.type, expr.array[:3]))}, … {len(expr.array)} values")
    if isinstance(expr, Call) and any(isinstance(node, Literals) for node in expr.walk()):
        return replace(expr, args=tuple(_abridged(a) for a in expr.args))
    return expr


def _quoted(name: str) -> str:
    plain = name.isascii() and name.replace("_", "a").isalnum() and not name[0].isdigit()
    return name if plain and name.upper() not in _RESERVED else backquote(name)


_RESERVED = frozenset(
    [
        "ALL",
        "AND",
        "ANY",
        "ARRAY",
        "AS",
        "BETWEEN",
        "BY",
        "CASE",
        "CAST",
        "CURRENT_DATE",
        "CURRENT_PATH",
        "CURRENT_TIMESTAMP",
        "DATE",
        "DISTINCT",
        "DIV",
        "ELSE",
        "END",
        "ESCAPE",
        "EXISTS",
        "EXTRACT",
        "FALSE",
        "FROM",
        "GROUP",
        "IF",
        "ILIKE",
        "IN",
        "INTERVAL",
        "INTO",
        "IS",
        "JOIN",
        "LEFT",
        "LIKE",
        "MAP",
        "NOT",
        "NULL",
        "ON",
        "OR",
        "ORDER",
        "REGEXP",
        "RIGHT",
        "RLIKE",
        "SELECT",
        "STRUCT",
        "TABLE",
        "THEN",
        "TIMESTAMP",
        "TRUE",
        "UNION",
        "VALUES",
        "WHEN",
        "WHERE",
        "WITH",
    ]
)


_ACCESS = frozenset({"element", "element_at", "map_value"})


def _access(expr: Call) -> str | None:
    """Format an access into an array or a map and what follows it; None for anything else."""
    name, args = expr.function, expr.args
    if name == "array_field" or (name in _ACCESS and len(args) == 3):
        *above, last = args
        inner = to_sql(replace(expr, args=tuple(above))) if len(above) > 1 else to_sql(above[0])
        return f"{inner}.{last.value if isinstance(last, Literal) else last}"
    return f"get({to_sql(args[0])}, {to_sql(args[1])})" if name == "element" and expr.mode is Mode.TRY else None


def _call(expr: Call) -> str:
    name, args = expr.function, expr.args
    if (inside := _access(expr)) is not None:
        return inside
    if expr.mode is Mode.TRY and name in _TRIES:
        return f"{_TRIES[name]}({', '.join(to_sql(a) for a in args)})"
    if name in _INFIX or name in _FORMS:
        return call_text(name, args)
    match name:
        case "cast":
            return f"{'try_cast' if expr.mode is Mode.TRY else 'cast'}({to_sql(args[0])} AS {type_sql(expr.type)})"
        case "case":
            pairs = " ".join(f"WHEN {to_sql(c)} THEN {to_sql(v)}" for c, v in zip(args[:-1:2], args[1::2], strict=True))
            return f"CASE {pairs} ELSE {to_sql(args[-1])} END"
        case "timestamp_add_months":
            return f"({to_sql(args[0])} + {_months(args[1])})"
        case "add_months" if _is_interval(args[1]):
            return f"({to_sql(args[0])} + {_months(args[1])})"
        case "timestampdiff":
            assert isinstance(args[0], Literal)
            return f"timestampdiff({args[0].value}, {to_sql(args[1])}, {to_sql(args[2])})"
        case "element_at":
            return f"{'try_' if expr.mode is Mode.TRY else ''}element_at({to_sql(args[0])}, {to_sql(args[1])})"
        case "exists" | "forall":
            variable = next((n.name.partition(".")[0] for n in args[1].walk() if isinstance(n, Element)), "x")
            return f"{name}({to_sql(args[0])}, {variable} -> {to_sql(args[1])})"
        case "variant_get" | "parse_json" | "from_json":
            return _document(expr)
        case "timestamp_of_text":
            return f"{'try_' if expr.mode is Mode.TRY else ''}to_timestamp({to_sql(args[0])}, {to_sql(args[1])})"
    return f"{_NAMES.get(name, name)}({', '.join(to_sql(a) for a in args)})"


def _is_interval(months: Expr) -> bool:
    """Return whether a number of months came from an interval."""
    return any(isinstance(n, Call) and n.function == "months_of" for n in months.walk())


def _months(months: Expr) -> str:
    if isinstance(months, Literal):
        return f"INTERVAL '{months.value}' MONTH" if months.value is not None else "make_ym_interval(0, NULL)"
    return to_sql(months) if _is_interval(months) else f"make_ym_interval(0, {to_sql(months)})"


def _document(expr: Call) -> str:
    """Format a step into a JSON document with its type."""
    args = ", ".join(to_sql(a) for a in expr.args)
    prefix = "try_" if expr.mode is Mode.TRY else ""
    if expr.function == "parse_json":
        return f"{prefix}parse_json({args})"
    if expr.function == "variant_get":
        kind = "" if expr.type == VARIANT else f", {literal(type_sql(expr.type).lower(), STRING)}"
        return f"{prefix}variant_get({args}{kind})"
    steps = steps_of(expr.args[1].value) if isinstance(expr.args[1], Literal) else None
    names = [_quoted(str(step)) for step in steps or ()]
    kind = type_sql(expr.type)
    for name in reversed(names[1:]):
        kind = f"STRUCT<{name}: {kind}>"
    return (
        f"from_json({to_sql(expr.args[0])}, {literal(f'{names[0]} {kind}', STRING)}).{'.'.join(names)}"
        if names
        else f"from_json({args})"
    )


def type_sql(data_type: DataType) -> str:
    """Format a type as ``CAST`` takes it."""
    return str(data_type).upper()


def _member(scalar: Any, data_type: DataType) -> str:
    try:
        return literal(plain_value(scalar), data_type)
    except UnicodeDecodeError:  # a text that is not UTF-8
        return f"CAST(X'{scalar.as_buffer().to_pybytes().hex()}' AS {type_sql(data_type)})"


def literal(value: Any, data_type: DataType) -> str:
    """Format a constant as Spark SQL of exactly its type."""
    if value is None:
        return f"cast(NULL AS {type_sql(data_type)})" if str(data_type) not in {"void", "boolean"} else "NULL"
    if data_type == BOOLEAN:
        return "true" if value else "false"
    if isinstance(data_type, String):
        return (
            "'"
            + str(value)
            .replace("\\", "\\\\")
            .replace("'", "\\'")
            .replace("\n", "\\n")
            .replace("\r", "\\r")
            .replace("\t", "\\t")
            + "'"
        )
    if data_type == BINARY:
        return f"X'{value.hex().upper()}'"
    if data_type in (FLOAT, DOUBLE):
        return _float(value, data_type)
    if isinstance(data_type, Decimal):
        return f"cast('{format(decimal.Decimal(value), 'f')}' AS {type_sql(data_type)})"
    if data_type == DATE:
        return f"DATE'{_date(value)}'" if -719_162 <= value <= 2_932_896 else f"date_from_unix_date({value})"
    if isinstance(data_type, DayTimeInterval):
        return f"INTERVAL '{_interval(value)}' DAY TO SECOND"
    if isinstance(data_type, Time):
        return f"TIME'{_clock(value)}'"
    if str(data_type).startswith("timestamp"):
        return _timestamp(value, data_type)
    if str(data_type) == "interval year to month":
        return f"INTERVAL '{value}' MONTH"
    return f"{value}{_SUFFIX.get(data_type, '')}"  # type: ignore[call-overload]


def _float(value: float, data_type: DataType) -> str:
    name = type_sql(data_type)
    if math.isnan(value) or math.isinf(value):
        return f"cast('{'NaN' if math.isnan(value) else 'Infinity' if value > 0 else '-Infinity'}' AS {name})"
    return f"{value!r}D" if data_type == DOUBLE else f"cast({value!r}D AS FLOAT)"


def _date(days: int) -> str:
    return (_EPOCH + dt.timedelta(days=days)).date().isoformat()


def _timestamp(micros: int, data_type: DataType) -> str:
    if not -62_135_596_800_000_000 <= micros < 253_402_300_800_000_000:
        return (
            f"timestamp_micros({micros}L)"
            if data_type == TIMESTAMP
            else f"cast(timestamp_micros({micros}L) AS TIMESTAMP_NTZ)"
        )
    text = (_EPOCH + dt.timedelta(microseconds=micros)).isoformat(" ")
    return f"TIMESTAMP'{text}+00:00'" if data_type == TIMESTAMP else f"TIMESTAMP_NTZ'{text}'"


def _clock(micros: int) -> str:
    return (_EPOCH + dt.timedelta(microseconds=micros)).time().isoformat()


def _interval(micros: int) -> str:
    sign, rest = ("-" if micros < 0 else ""), abs(micros)
    seconds, fraction = divmod(rest, 1_000_000)
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    return f"{sign}{days} {hour:02d}:{minute:02d}:{second:02d}.{fraction:06d}"
