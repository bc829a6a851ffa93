"""Whether an expression has the same value in all releases of Java, Unicode and time zones, and of Tamis."""

from __future__ import annotations

from tamis.core.expr import registry
from tamis.core.expr.coerce import JAVA_CONTEXT_DIGITS, is_text
from tamis.core.expr.functions.cast.java_decimals import goes_through_double, prints_exponents
from tamis.core.expr.functions.json.json_text import known_steps
from tamis.core.expr.functions.numeric.decimals import may_be_impossible
from tamis.core.expr.tree import Call, Expr, Literal, Literals, Mode
from tamis.core.types import (
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    INTEGRAL,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    Decimal,
)

_WITHOUT_DIGITS = (*INTEGRAL, BOOLEAN, DATE)
"""Types of which the text of a double that releases print differently gives no value, or the same error."""
_TINYINT = Decimal(3, 0)
"""The type of a TINYINT beside decimals."""
_FOLDING = frozenset({"coalesce", "case", "in", "array", "greatest", "least"})
"""Functions whose values have the common type of three or more."""


def is_portable(expr: Expr) -> bool:
    """Whether releases of Java and Python agree about an expression.

    They do not about the case of some letters, the digits of doubles, and local times in some regions. JSON holds
    doubles as text, and a VARIANT holds texts that become times.
    """
    if not isinstance(expr, Call):
        return all(is_portable(child) for child in expr.children)
    parts: tuple[Expr, ...] = expr.children
    if expr.function == "cast" and _prints_or_rounds(parts[0].type, expr):
        return False
    if expr.function == "cast" and expr.type in _WITHOUT_DIGITS and prints_doubles(parts[0]):
        parts = parts[0].children
    elif prints_doubles(expr) or (
        registry.function_entry(expr.function).reliable is not None
        and not (expr.function in {"cast", "round", "bround"} and parts[0].type not in (FLOAT, DOUBLE))
    ):
        return False
    return all(is_portable(part) for part in parts)


def may_differ_from_older_releases(expr: Expr) -> bool:
    """Whether older releases of Tamis may have stored another value of an expression."""
    return any(_may_have_differed(node) for node in expr.walk())


def _may_have_differed(node: Expr) -> bool:
    """Whether older releases may have computed another value for a node.

    They negated long decimals exactly, cut them to integers, printed small ones without an exponent, divided those of
    which Spark finds no rest, and gave a TINYINT beside a decimal the precision of its digits. They knew no byte of 128
    to 255 in JSON, and no field of a malformed document. Numbers beside a text could be of another type, a date
    moved by a computed interval was a time. Local times were moved by the zone before they were taken as of UTC, and
    instants beyond an INT wrapped.
    """
    if isinstance(node, Literal):
        return node.type == _TINYINT and node.value is not None and abs(node.value) < 100
    if not isinstance(node, Call):
        return False
    match node.function:
        case "negate" | "abs":
            return isinstance(node.type, Decimal) and node.type.precision > JAVA_CONTEXT_DIGITS
        case "cast":
            return _prints_or_rounds(node.args[0].type, node) or _takes_time_otherwise(node)
        case "from_json":
            return node.type == BYTE or len(known_steps(node)) > 1
        case "unix_seconds" | "unix_millis" | "unix_micros":
            return node.args[0].type == TIMESTAMP_NTZ
        case "date_add" | "date_sub":
            return any(isinstance(arg, Call) and arg.function == "interval_days" for arg in node.args)
    return (node.function in _FOLDING and _may_mix_texts(node)) or may_be_impossible(node)


def _takes_time_otherwise(cast: Call) -> bool:
    """Whether a cast takes a local time as UTC, as in ``to_date`` with a pattern, or an instant to an INT."""
    source = cast.args[0].type
    if cast.type == TIMESTAMP:
        return source == TIMESTAMP_NTZ and cast.zone == "UTC"
    return source == TIMESTAMP and cast.type == INTEGER and cast.mode is Mode.LEGACY


def _may_mix_texts(call: Call) -> bool:
    """Whether a text, a whole number and a decimal may be among a call's values; constants lost their own types."""
    if len(call.args) < 3 and not any(isinstance(arg, Literals) for arg in call.args):
        return False
    numbers = any(arg.type == DOUBLE or isinstance(arg.type, Decimal) for arg in call.args)
    return numbers and any(
        isinstance(arg, Call) and arg.function == "cast" and (is_text(arg.args[0].type) or arg.args[0].type in INTEGRAL)
        for arg in call.args
    )


def needs_spark(expr: Expr) -> bool:
    """Whether only Spark knows the value for some rows: releases differ, or the JVM may know other time zones."""
    return not is_portable(expr) or any(_may_name_zone(node) for node in expr.walk())


def _may_name_zone(node: Expr) -> bool:
    """Whether a node reads times from text, which may name a region."""
    return isinstance(node, Call) and node.function == "cast" and node.type == TIMESTAMP and is_text(node.args[0].type)


def _prints_or_rounds(source: DataType, cast: Call) -> bool:
    """Whether a cast of decimals is one that older releases of Tamis did otherwise."""
    return goes_through_double(source, cast.type, cast.mode) or (
        prints_exponents(source, cast.type) and cast.mode is not Mode.ANSI
    )


def prints_doubles(expr: Expr) -> bool:
    """Whether a call gives values of JSON under a type that shows how a double was printed."""
    if not isinstance(expr, Call):
        return False
    if expr.function in {"variant_get", "from_json"}:
        return expr.type not in (*_WITHOUT_DIGITS, FLOAT, DOUBLE)
    return expr.function == "get_json_object"
