"""Binds syntax to a typed, coerced tree; the catalogue alone defines what names mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tamis.core.expr.binding.bind_names import BinderOfNames
from tamis.core.expr.binding.bind_predicates import BinderOfPredicates
from tamis.core.expr.binding.char_padding import is_char, unsure_padding
from tamis.core.expr.calls import make_call
from tamis.core.expr.coerce import fold_cast, is_numeric, is_text
from tamis.core.expr.functions.nested.constructed import each_item, struct_of
from tamis.core.expr.functions.nested.nested_fields import field_of
from tamis.core.expr.literals import bind_interval, bind_number, bind_typed, time_of_day
from tamis.core.expr.registry import sql_name
from tamis.core.expr.sql_types import type_of
from tamis.core.expr.syntax.nodes import (
    Alias,
    Binary,
    Case,
    Cast,
    Constant,
    Dot,
    Extract,
    Function,
    Interval,
    Lambda,
    Name,
    Named,
    Node,
    Number,
    Path,
    Predicate,
    Query,
    Row,
    Star,
    Subscript,
    Text,
    Trim,
    Typed,
    Unary,
)
from tamis.core.expr.tree import Call, Cause, Column, Constructed, Element, Expr, Literal, Mode, Opaque
from tamis.core.expr.unsupported_rows import can_fail
from tamis.core.types import BOOLEAN, FLOAT, NULL, STRING, YEAR_MONTH, Array, DayTimeInterval, Time

_OPERATORS = {
    "=": "eq", "<>": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge", "<=>": "null_safe_eq",
    "+": "add", "-": "subtract", "*": "multiply", "/": "divide", "DIV": "div", "%": "remainder", "||": "concat",
    "&": "bits_and", "|": "bits_or", "^": "bits_xor", "<<": "shift_left",
    ">>": "shift_right", ">>>": "shift_right_unsigned",
}  # fmt: skip
_TESTS = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "null_safe_eq"})
TRIED = {
    "try_add": "add",
    "try_subtract": "subtract",
    "try_multiply": "multiply",
    "try_divide": "divide",
    "try_mod": "remainder",
    "try_element_at": "element_at",
    "try_make_timestamp": "make_timestamp",
    "try_make_timestamp_ltz": "make_timestamp",
    "try_make_timestamp_ntz": "make_timestamp_ntz",
}
_ARITHMETIC = frozenset({"add", "subtract", "multiply", "divide", "remainder"})
_CHARACTERS_FIRST = frozenset({"trim", "ltrim", "rtrim"})
"""Functions that take the characters before the text; ``btrim`` takes them behind it."""


def _hides_errors(found: str, args: list[Expr]) -> bool:
    """Return whether a ``try_add`` or its like is NULL where an operand fails: if not all are numbers."""
    return found in _ARITHMETIC and not all(is_numeric(a.type) for a in args) and any(can_fail(a) for a in args)


def _coerced_by_mode(args: list[Expr]) -> bool:
    """Return whether a common type of these operands depends on ANSI mode, which the mode of ``try_add`` replaces."""
    kinds = {a.type for a in args}
    plain = all(is_numeric(k) or is_text(k) for k in kinds)
    return plain and len(kinds) > 1 and any(k == FLOAT or is_text(k) for k in kinds)


class Binder(BinderOfNames, BinderOfPredicates):
    """Turns syntax nodes into catalogue calls."""

    def bind(self, node: Node) -> Expr:
        handler = _HANDLERS.get(type(node))
        return handler(self, node) if handler is not None else self.unknown(node)

    def binary(self, node: Binary) -> Expr:
        if node.operator in {"AND", "OR"}:
            return self._joined(node)
        name = _OPERATORS.get(node.operator)
        if name is None:
            return self.unknown(node)
        if name in _TESTS:
            return self.bind_comparison(name, node.left, node.right)
        return self._chained(node)

    def _joined(self, node: Binary) -> Expr:
        """Bind a chain of AND or OR iteratively, since its tree is as deep as the chain is long."""
        parts: list[Node] = []
        inner: Node = node
        while isinstance(inner, Binary) and inner.operator == node.operator:
            parts.append(inner.right)
            inner = inner.left
        args = [self.predicate(self.bind(p)) for p in (inner, *reversed(parts))]
        return self.call(node.operator.lower(), *args, data_type=BOOLEAN)

    def _chained(self, node: Binary) -> Expr:
        """Bind a chain of arithmetic from its first operand, without recursion."""
        chain: list[Binary] = []
        inner: Node = node
        while isinstance(inner, Binary) and _OPERATORS.get(inner.operator, "eq") not in _TESTS:
            chain.append(inner)
            inner = inner.left
        out = self.bind(inner)
        for one in reversed(chain):
            out = self.call(_OPERATORS[one.operator], out, self.bind(one.right))
        return out

    def unary(self, node: Unary) -> Expr:
        if node.operator == "NOT":
            return self.negated(self.bind(node.operand))
        if node.operator == "-":
            return self.call("negate", self.bind(node.operand))
        if node.operator == "~":
            return self.call("bits_not", self.bind(node.operand))
        if node.operator == "+":
            inner = self.bind(node.operand)
            plain = is_numeric(inner.type) or isinstance(inner.type, DayTimeInterval) or inner.type == YEAR_MONTH
            if isinstance(inner, Literal):
                inner = replace(inner, narrows=False)  # Spark sees an expression, not a literal
            return inner if plain else self.unknown(node)
        return self.unknown(node)

    def cast(self, node: Cast) -> Expr:
        """Bind ``CAST``, ``TRY_CAST`` or ``x::type``."""
        value, target = self.bind(node.value), type_of(node.type, self.text)
        if target is None:
            return self.unknown(node, Cause.TYPE)
        if isinstance(target, Time) and isinstance(value, Literal) and isinstance(value.value, str):
            return time_of_day(value.value) or self.unknown(node)
        out = make_call("cast", value, mode=Mode.TRY if node.tries else self.mode, zone=self.zone, type=target)
        return fold_cast(out) if isinstance(value, Literal) and not isinstance(out, Opaque) else out

    def literal(self, node: Typed) -> Expr:
        """Bind a typed literal; words such as ``DATE 'today'`` are left to Spark."""
        return bind_typed(node, self.mode, self.zone) or self.unknown(node)

    def interval(self, node: Interval) -> Expr:
        return bind_interval(node) or self.unknown(node)

    def case(self, node: Case) -> Expr:
        args: list[Expr] = []
        subject = self.bind(node.subject) if node.subject is not None else None
        for condition, result in node.branches:
            tested = self.bind(condition)
            if subject is not None and is_char(subject) and unsure_padding(condition, tested):
                return self.unknown(node)
            args.append(self.compare("eq", subject, tested) if subject is not None else self.predicate(tested))
            args.append(self.bind(result))
        args.append(self.bind(node.default) if node.default is not None else Literal(NULL, None))
        return self.call("case", *args)

    def function(self, node: Function) -> Expr:
        """Bind a function by the name as written."""
        name, mode = node.name[-1].lower(), self.mode
        if name == "struct" and len(node.name) == 1 and not node.beside:
            return self._struct(node, node.args)
        if len(node.name) > 1 or node.beside or any(isinstance(a, Named | Alias) for a in node.args):
            return self.unknown(node)
        if name == "transform":
            return self._each_field(node)
        found = sql_name(name)
        if found is None and name in TRIED:
            found, mode = TRIED[name], Mode.TRY
        if found in {"exists", "forall"}:
            return self._tested(found, node)
        if found is None or found in {"and", "or", "cast"} or any(isinstance(a, Lambda) for a in node.args):
            return self.unknown(node)
        return self._called(found, node, mode)

    def row(self, node: Row) -> Expr:
        return self._struct(node, node.items)

    def _struct(self, node: Node, items: tuple[Node, ...]) -> Expr:
        """Bind ``struct(a, b AS c)`` or ``(a, b)``; a field has the name of its column or alias."""
        if not items or any(isinstance(item, _NO_FIELDS) for item in items):
            return self.unknown(node)
        names, args = [], []
        for position, item in enumerate(items, 1):
            value = item.value if isinstance(item, Alias) else item
            names.append(
                item.names[0]
                if isinstance(item, Alias)
                else item.parts[-1]
                if isinstance(item, Name)
                else f"col{position}"
            )
            args.append(self.bind(value))
        if any(arg.type == NULL for arg in args):
            return self.unknown(node)
        return struct_of(tuple(names), tuple(args), self.source_text(node))

    def _called(self, found: str, node: Function, mode: Mode) -> Expr:
        if found == "null_safe_eq" and len(node.args) == 2:  # equal_null
            return self.bind_comparison(found, *node.args)
        args = [self.bind(a) for a in node.args]
        if mode is Mode.TRY and (_hides_errors(found, args) or (self.mode is Mode.LEGACY and _coerced_by_mode(args))):
            return self.unknown(node)
        if node.unit:
            args.insert(0, Literal(STRING, node.unit))
        if node.name[-1].lower() in _CHARACTERS_FIRST:
            args.reverse()
        if found == "case":
            args = (
                [self.predicate(args[0]), *args[1:], *([Literal(NULL, None)] if len(args) == 2 else [])]
                if args
                else args
            )
        out = make_call(found, *args, mode=mode, zone=self.zone)
        if isinstance(out, Call) and out.function == "cast":  # ``double('NaN')``
            return fold_cast(out)
        return replace(out, text=self.source_text(node)) if isinstance(out, Opaque) else out

    def _tested(self, name: str, node: Function) -> Expr:
        """Bind ``exists(array, x -> …)``, where the variable is the element."""
        test = node.args[1] if len(node.args) == 2 else None
        if not isinstance(test, Lambda) or len(test.names) != 1 or self.variables:
            return self.unknown(node)
        source = self.bind(node.args[0])
        if isinstance(source, Constructed):
            variable = test.names[0].lower()
            tests = [replace(self, variables={variable: item}).bind(test.body) for item in source.args]
            return each_item(name, source, [self.predicate(one) for one in tests]) or self.unknown(node)
        if not isinstance(source, Column) or not isinstance(source.type, Array):
            return self.unknown(node)
        variable, inner = test.names[0], source.type.element
        stands = Element(inner.type, (*source.ids, inner.id), variable)
        body = replace(self, variables={variable.lower(): stands}).bind(test.body)
        return self.call(name, source, self.predicate(body), data_type=BOOLEAN)

    def _each_field(self, node: Function) -> Expr:
        """Bind ``transform(array, x -> x.field)``."""
        test = node.args[1] if len(node.args) == 2 else None
        if not isinstance(test, Lambda) or len(test.names) != 1 or not isinstance(test.body, Name) or self.variables:
            return self.unknown(node)
        parts = test.body.parts
        if len(parts) != 2 or parts[0].lower() != test.names[0].lower():
            return self.unknown(node)
        return field_of(self.bind(node.args[0]), parts[1]) or self.unknown(node)

    def extract(self, node: Extract) -> Expr:
        return self.call("extract", Literal(STRING, node.field), self.bind(node.source))

    def trim(self, node: Trim) -> Expr:
        taken = [self.bind(node.characters)] if node.characters is not None else []
        name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(node.side, "trim")
        return self.call(name, self.bind(node.source), *taken)


_NO_FIELDS = (Named, Lambda, Query, Star)
_HANDLERS: dict[type[Node], Callable[[Binder, Any], Expr]] = {
    Name: Binder.name,
    Dot: Binder.dot,
    Path: Binder.path,
    Row: Binder.row,
    Subscript: Binder.subscript,
    Text: lambda _b, n: Literal(STRING, n.value),
    Number: lambda _b, n: bind_number(n),
    Constant: lambda _b, n: Literal(NULL if n.value is None else BOOLEAN, n.value),
    Typed: Binder.literal,
    Interval: Binder.interval,
    Binary: Binder.binary,
    Unary: Binder.unary,
    Predicate: Binder.test,
    Cast: Binder.cast,
    Case: Binder.case,
    Function: Binder.function,
    Extract: Binder.extract,
    Trim: Binder.trim,
}
