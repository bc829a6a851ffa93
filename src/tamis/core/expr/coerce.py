"""Implicit casts, as Spark's analyser inserts them.

Source of the rules: Spark 4's ``AnsiTypeCoercion`` (and ``TypeCoercion`` where ANSI is off),
``DecimalPrecisionTypeCoercion``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby

from tamis.core.expr.calls import make_call
from tamis.core.expr.evaluate import cast_values, constant_value
from tamis.core.expr.to_sql import to_sql
from tamis.core.expr.tree import Cause, Constructed, Expr, Literal, Literals, Mode, Opaque
from tamis.core.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    INTEGRAL,
    LONG,
    NULL,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    YEAR_MONTH,
    DataType,
    DayTimeInterval,
    Decimal,
    String,
    Time,
)

_DIGITS = {BYTE: 3, SHORT: 5, INTEGER: 10, LONG: 20}
_NARROWED = (SHORT, INTEGER, LONG)
"""Types of which a literal beside a decimal has the precision of its digits; Spark leaves TINYINT out."""
MAX_PRECISION = 38
JAVA_CONTEXT_DIGITS = 34
"""Digits to which Spark rounds a decimal whose sign it changes: Scala's decimals have Java's DECIMAL128 as context."""


def is_numeric(data_type: DataType) -> bool:
    return data_type in INTEGRAL or data_type in {FLOAT, DOUBLE} or isinstance(data_type, Decimal)


def is_text(data_type: DataType) -> bool:
    return isinstance(data_type, String)


def is_instant(data_type: DataType) -> bool:
    """Whether the type is a date or a timestamp."""
    return data_type in {DATE, TIMESTAMP, TIMESTAMP_NTZ}


def has_order(data_type: DataType) -> bool:
    """Whether values of this type can be compared by the kernels here."""
    return (
        is_numeric(data_type)
        or is_text(data_type)
        or is_instant(data_type)
        or data_type in {BOOLEAN, BINARY, YEAR_MONTH}
        or isinstance(data_type, Time | DayTimeInterval)
    )


def as_decimal(data_type: DataType) -> Decimal | None:
    """The decimal that holds every value of an integer type, or the decimal itself."""
    if isinstance(data_type, Decimal):
        return data_type
    digits = _DIGITS.get(data_type)  # type: ignore[call-overload]
    return Decimal(digits, 0) if digits else None


def wider_decimal(a: Decimal, b: Decimal) -> Decimal:
    """Return the decimal that holds both, cut to 38 digits as Spark's ``boundedPreferIntegralDigits`` does."""
    scale, whole = max(a.scale, b.scale), max(a.precision - a.scale, b.precision - b.scale)
    if whole + scale <= MAX_PRECISION:
        return Decimal(whole + scale, scale)
    return Decimal(MAX_PRECISION, max(0, MAX_PRECISION - whole) if whole < MAX_PRECISION else 0)


def wider_numeric(a: DataType, b: DataType, mode: Mode) -> DataType | None:
    """Return the common type of two numeric types.

    FLOAT beside an integer type is DOUBLE with ANSI on, and FLOAT with ANSI off.
    """
    if a in INTEGRAL and b in INTEGRAL:
        return max(a, b, key=INTEGRAL.index)
    if isinstance(a, Decimal) or isinstance(b, Decimal):
        if a in {FLOAT, DOUBLE} or b in {FLOAT, DOUBLE}:
            return DOUBLE
        first, second = as_decimal(a), as_decimal(b)
        return wider_decimal(first, second) if first and second else None
    if {a, b} == {FLOAT}:
        return FLOAT
    return FLOAT if mode is Mode.LEGACY and DOUBLE not in {a, b} else DOUBLE


def common_type(a: DataType, b: DataType, mode: Mode = Mode.ANSI, *, sides: bool = False) -> DataType | None:
    """Return the common type of two sides of a comparison, or None if Spark refuses or it is unknown.

    Without ``sides``, the common type of list members or of CASE branches.
    """
    if a == b:
        return a
    if NULL in {a, b}:
        return b if a == NULL else a
    if is_numeric(a) and is_numeric(b):
        return wider_numeric(a, b, mode)
    if is_instant(a) and is_instant(b):
        return TIMESTAMP if TIMESTAMP in {a, b} else TIMESTAMP_NTZ
    if is_text(a) and is_text(b):
        return STRING
    if isinstance(a, DayTimeInterval) and isinstance(b, DayTimeInterval):
        return DayTimeInterval()
    if isinstance(a, Time) and isinstance(b, Time):
        return Time(max(a.precision, b.precision))
    if is_text(a) or is_text(b):
        return _wider_than_text(b if is_text(a) else a, mode, sides)
    return None


def _wider_than_text(other: DataType, mode: Mode, sides: bool) -> DataType | None:
    if mode is Mode.LEGACY and not sides:
        return None if other in {BOOLEAN, BINARY} else STRING
    if mode is Mode.LEGACY:
        if isinstance(other, Decimal) and other.scale > 0:
            return DOUBLE
        return other if is_numeric(other) or is_instant(other) or other == BOOLEAN else None
    if other in INTEGRAL:
        return LONG
    if is_numeric(other):
        return DOUBLE
    return other if is_instant(other) or other in {BOOLEAN, BINARY} else None


def widest_type(types: Iterable[DataType], mode: Mode = Mode.ANSI, *, sides: bool = False) -> DataType | None:
    """Return the ``common_type`` of many: folded in their order, and outside of ANSI texts first, as Spark does.

    The order counts: an INT and a text are a BIGINT, which with a decimal is a decimal; a decimal and a text are a
    DOUBLE.
    """
    ordered = sorted(types, key=lambda t: not is_text(t)) if mode is Mode.LEGACY else types
    out: DataType | None = NULL
    for data_type, _ in groupby(ordered):  # a long list mostly has one type
        out = common_type(out, data_type, mode, sides=sides) if out is not None else None
    return out


_LESS, _GREATER, _INT64 = ("lt", "le"), ("gt", "ge"), range(-(2**63), 2**63)


def beyond_longs(name: str, a: Expr, b: Expr) -> Literal | None:
    """Return how an integer compares with a constant beyond 64 bits.

    Spark's analyzer decides it without reading the value, so it holds for NULL and for failing values too.
    """
    if isinstance(b, Literal) and isinstance(b.type, Decimal) and a.type in INTEGRAL:
        constant, less = b.value, name in _LESS
    elif isinstance(a, Literal) and isinstance(a.type, Decimal) and b.type in INTEGRAL:
        constant, less = a.value, name in _GREATER
    else:
        return None
    if name not in _LESS + _GREATER or constant is None or _INT64[0] <= constant <= _INT64[-1]:
        return None
    return Literal(BOOLEAN, (constant > 0) is less)


def narrowest_type(expr: Expr) -> DataType:
    """Return the type of ``expr`` as an operand of a comparison or of arithmetic with a decimal.

    An integer literal has the precision of its own digits there, but a TINYINT has that of its type. Elsewhere
    (COALESCE, CASE, IN …) each has that of its type.
    """
    if isinstance(expr, Literal) and expr.narrows and expr.type in _NARROWED and expr.value is not None:
        return Decimal(max(1, len(str(abs(expr.value)))), 0)
    return expr.type


def implicit_cast(expr: Expr, data_type: DataType, mode: Mode, zone: str | None) -> Expr:
    """Cast ``expr`` to ``data_type`` implicitly if its type differs. Constants are converted at once.

    An opaque expression of unknown type takes the type, and may fail: Spark may have to cast it.
    """
    if expr.type == data_type:
        return expr
    if isinstance(expr, Opaque) and expr.type == NULL and not isinstance(expr, Constructed):
        return replace(expr, type=data_type, total=False)
    if isinstance(expr, Literal) and expr.value is None:
        return Literal(data_type, None)
    if is_text(data_type) and is_text(expr.type) and not isinstance(expr, Literals):
        return expr if data_type == STRING else replace(expr, type=data_type) if isinstance(expr, Literal) else expr
    if isinstance(expr, Literals):
        return _bring_literals(expr, data_type, mode, zone)
    return fold_cast(_cast(expr, data_type, mode, zone))


def _cast(expr: Expr, data_type: DataType, mode: Mode, zone: str | None) -> Expr:
    return make_call("cast", expr, mode=mode, zone=zone, type=data_type)


def fold_cast(expr: Expr) -> Expr:
    """Fold a cast of a constant, unless it fails: then it must fail at run time."""
    if not expr.children or not isinstance(expr.children[0], Literal):
        return expr
    value = constant_value(expr)
    return replace(value, narrows=False) if value else expr


def _bring_literals(expr: Literals, data_type: DataType, mode: Mode, zone: str | None) -> Expr:
    """Convert the list to another type; opaque if a member has no value in that type."""
    values = cast_values(expr.array, expr.type, data_type, mode, zone)
    return Literals(data_type, values) if values is not None else Opaque(data_type, to_sql(expr), cause=Cause.ARGUMENTS)


def cast_to_common(
    args: tuple[Expr, ...], mode: Mode, zone: str | None, *, sides: bool = False
) -> tuple[tuple[Expr, ...], DataType] | None:
    """Cast all arguments to one type; None if no ordered type fits all. See ``common_type``.

    Only the sides of a comparison narrow an integer literal beside a decimal.
    """
    types: list[DataType] = [a.type for a in args]
    if sides and any(isinstance(t, Decimal) for t in types):
        types = [narrowest_type(a) for a in args]
    target = types[0] if len(set(types)) == 1 else widest_type(types, mode, sides=sides)
    if target is None:
        return None
    if is_text(target):
        target = STRING
    return tuple(implicit_cast(a, target, mode, zone) for a in args), target
