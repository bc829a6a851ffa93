"""Which expressions have the same value in every release of Java, Unicode, time zones and Tamis."""

from __future__ import annotations

from tamis.core.expr import registry
from tamis.core.expr.coerce import JAVA_CONTEXT_DIGITS
from tamis.core.expr.tree import Call, Expr
from tamis.core.types import BOOLEAN, DATE, DOUBLE, FLOAT, INTEGRAL, DataType, Decimal

_WITHOUT_DIGITS = (*INTEGRAL, BOOLEAN, DATE)
"""Types of which the text of a double that releases print differently gives no value, or the same error."""


def is_portable(expr: Expr) -> bool:
    """Whether releases of Java and Python agree about an expression.

    They do not about the case of some letters, the digits of doubles, and local times in some regions. JSON holds
    doubles as text, and a VARIANT holds texts that become times. Older releases of Tamis stored the exact negative of a
    long decimal.
    """
    if not isinstance(expr, Call):
        return all(is_portable(child) for child in expr.children)
    if expr.function in {"negate", "abs"} and _is_long(expr.type):
        return False
    parts: tuple[Expr, ...] = expr.children
    if expr.function == "cast" and expr.type in _WITHOUT_DIGITS and prints_doubles(parts[0]):
        parts = parts[0].children
    elif prints_doubles(expr) or (
        registry.function_entry(expr.function).reliable is not None
        and not (expr.function in {"cast", "round", "bround"} and parts[0].type not in (FLOAT, DOUBLE))
    ):
        return False
    return all(is_portable(part) for part in parts)


def _is_long(data_type: DataType) -> bool:
    return isinstance(data_type, Decimal) and data_type.precision > JAVA_CONTEXT_DIGITS


def prints_doubles(expr: Expr) -> bool:
    """Whether a call gives values of JSON under a type that shows how a double was printed."""
    if not isinstance(expr, Call):
        return False
    if expr.function in {"variant_get", "from_json"}:
        return expr.type not in (*_WITHOUT_DIGITS, FLOAT, DOUBLE)
    return expr.function == "get_json_object"
