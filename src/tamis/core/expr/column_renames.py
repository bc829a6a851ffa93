"""Stored expressions through schema changes: their text after a rename, and whether they still mean the same.

Invariant: the text is only a proposal. Callers parse it, and compare the trees by ``same_meaning``: a text that
this module rewrites badly is refused, and is never stored.
"""

from __future__ import annotations

import math
from dataclasses import replace

from tamis.core.expr import syntax
from tamis.core.expr.syntax.nodes import Name, walk_nodes
from tamis.core.expr.to_sql import to_sql
from tamis.core.expr.tree import Call, Column, Element, Expr, Literal, Literals
from tamis.core.types import DOUBLE, FLOAT, INTEGRAL, NULL, Array, DataType, Decimal, Field, Schema, Struct
from tamis.core.types.identifiers import dotted_path


def rename_columns(text: str, before: Schema, after: Schema) -> str:
    """Return ``text``, which names columns as ``before`` does, with the names that they have in ``after``.

    The rest of the text stays as it is written.
    """
    out, at = [], 0
    nodes = [node for node in walk_nodes(syntax.parse_expression(text)) if isinstance(node, Name)]
    for node in sorted(nodes, key=lambda node: node.start):
        parts = _names(node.parts, before, after)
        if parts != node.parts:
            out += [text[at : node.start], to_sql(Column(NULL, (), dotted_path(parts)))]
            at = node.end
    return "".join([*out, text[at:]])


def _names(parts: tuple[str, ...], before: Schema, after: Schema) -> tuple[str, ...]:
    """Return a path's names in ``after``; from the first that is no field of ``before`` on, they stay."""
    fields, out = before.fields, list(parts)
    for at, part in enumerate(parts):
        field = _field(fields, part)
        now = None if field is None else after.by_id.get(field.id)
        if field is None or now is None:
            break
        if now.name != field.name:
            out[at] = now.name
        fields = _below(field.type)
    return tuple(out)


def _field(fields: tuple[Field, ...], name: str) -> Field | None:
    exact = [f for f in fields if f.name == name]
    return next(iter(exact or [f for f in fields if f.name.lower() == name.lower()]), None)


def _below(data_type: DataType) -> tuple[Field, ...]:
    inner = data_type.element.type if isinstance(data_type, Array) else data_type
    return inner.fields if isinstance(inner, Struct) else ()


def same_meaning(before: Expr, after: Expr) -> bool:
    """Return whether two trees are equal but for the names and the nullability of columns."""
    return _unnamed(before) == _unnamed(after)


def _unnamed(expr: Expr) -> Expr:
    match expr:
        case Column():
            return replace(expr, name="", nullable=True)
        case Element():
            return replace(expr, name="")
        case Call():
            return replace(expr, args=tuple(_unnamed(arg) for arg in expr.args))
        case Literal(value=float(value)) if math.isnan(value):
            return replace(expr, value="NaN")  # which is equal to itself
    return expr


_MOST_DIGITS = 38
_COMPARING = frozenset(
    ["and", "or", "not", "eq", "ne", "lt", "le", "gt", "ge", "null_safe_eq", "in", "is_null", "is_not_null"]
)


def same_when_widened(before: Expr, after: Expr) -> bool:
    """Return whether a predicate keeps its value for all values of the old types, where columns were widened.

    So it is for plain comparisons of whole numbers, FLOAT and DOUBLE. Arithmetic may round or overflow in another
    place, and text of a FLOAT is not that of a DOUBLE.
    """
    old, new = ([node for node in tree.walk() if isinstance(node, Column)] for tree in (before, after))
    return (
        _compares(before)
        and _compares(after)
        and len(old) == len(new)
        and all(a.ids == b.ids and _exact(a.type, b.type) for a, b in zip(old, new, strict=True))
    )


def _exact(old: DataType, new: DataType) -> bool:
    return old == new or (old in INTEGRAL and new in INTEGRAL) or (old, new) == (FLOAT, DOUBLE)


def _compares(node: Expr) -> bool:
    if isinstance(node, Column | Literal | Literals):
        return True
    if not isinstance(node, Call):
        return False
    if node.function == "cast":
        kind = node.type
        whole = kind in INTEGRAL or kind == DOUBLE or (isinstance(kind, Decimal) and kind.precision < _MOST_DIGITS)
        return whole and _compares(node.args[0])
    return node.function in _COMPARING and all(_compares(arg) for arg in node.args)
