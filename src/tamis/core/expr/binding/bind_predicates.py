"""Binds the postfix predicates: BETWEEN, IN, LIKE, RLIKE, IS."""

from __future__ import annotations

from collections.abc import Sequence

from tamis.core.expr.binding.bind_base import BinderBase
from tamis.core.expr.binding.char_padding import is_char, unsure_padding
from tamis.core.expr.coerce import beyond_longs, fold_cast, implicit_cast
from tamis.core.expr.literal_lists import Constants
from tamis.core.expr.literals import constants_array, options_array
from tamis.core.expr.syntax.nodes import Cast, Node, Predicate, Query, Values
from tamis.core.expr.tree import Expr, Literal
from tamis.core.types import BOOLEAN, NULL, STRING


class BinderOfPredicates(BinderBase):
    """Binds ``Predicate`` nodes."""

    def test(self, node: Predicate) -> Expr:
        """Bind a predicate, negated if it is written with NOT."""
        if isinstance(node.others[0] if node.others else None, Query):
            return self.unknown(node)
        match node.kind:
            case "BETWEEN":
                found = self._between(node)
            case "IN":
                found = self._in(node)
            case "LIKE" | "ILIKE" if node.quantifier:
                return self._like_many(node)
            case "LIKE" | "ILIKE":
                found = self._like(node, node.others[0])
            case "RLIKE":
                found = self.call("rlike", self.bind(node.value), self.bind(node.others[0]), data_type=BOOLEAN)
            case "DISTINCT" if node.negated:
                return self.bind_comparison("null_safe_eq", node.value, node.others[0])
            case "DISTINCT":
                return self.negated(self.bind_comparison("null_safe_eq", node.value, node.others[0]))
            case _:
                found = self._is(node)
        return self.negated(found) if node.negated else found

    def _is(self, node: Predicate) -> Expr:
        value = self.bind(node.value)
        if node.kind == "NULL":
            return self.call("is_null", value)
        value = self.predicate(value)
        if node.kind == "UNKNOWN":
            return self.call("is_null", value) if value.type in {BOOLEAN, NULL} else self.unknown(node)
        return self.call("is_true" if node.kind == "TRUE" else "is_false", value)

    def _between(self, node: Predicate) -> Expr:
        value, low, high = (self.bind(n) for n in (node.value, *node.others))
        if beyond_longs("ge", value, low) or beyond_longs("le", value, high):
            sides = (
                self.bind_comparison(name, node.value, other)
                for name, other in zip(("ge", "le"), node.others, strict=True)
            )
            return self.call("and", *sides, data_type=BOOLEAN)
        return self.call("between", value, low, high, data_type=BOOLEAN)

    def _in(self, node: Predicate) -> Expr:
        value, first = self.bind(node.value), node.others[0]
        if isinstance(first, Values):
            return self._in_constants(value, first.constants)
        options = [self.bind(o) for o in node.others]
        if is_char(value) and _unsure_list(node.others, options):
            return self.unknown(node)
        if not self.has_variable(node.value, *node.others):
            value, *options = self._pad_list(value, options)
        return self._in_options(value, options)

    def _in_constants(self, value: Expr, constants: Constants) -> Expr:
        """Bind IN over a list that was read as one array."""
        array = None if is_char(value) else constants_array(value, constants, self.mode, self.zone)
        if array is not None:
            return self.call("in", value, array, data_type=BOOLEAN)
        value, *options = self._pad_list(value, constants.literals())
        return self._in_options(value, options)

    def _in_options(self, value: Expr, options: list[Expr]) -> Expr:
        """Bind IN over ``options``; constants become one array in the common type, to which the value is cast."""
        array = options_array(value, options, self.mode, self.zone)
        if array is None:
            return self.call("in", value, *options, data_type=BOOLEAN)
        return self.call("in", implicit_cast(value, array.type, self.mode, self.zone), array, data_type=BOOLEAN)

    def _pad_list(self, value: Expr, options: Sequence[Expr]) -> list[Expr]:
        """Pad the list of IN, which must be all constants or all CHAR columns, beside a CHAR column."""
        sides = [value, *options]
        mixed = len({is_char(option) for option in options}) > 1
        return sides if mixed or not is_char(value) else self.pad_sides(sides)

    def _like(self, node: Predicate, other: Node) -> Expr:
        escape = () if node.escape is None else (Literal(STRING, node.escape),)
        text, pattern = self.bind(node.value), self.bind(other)
        if node.kind == "ILIKE":
            pattern = self.call("lower", pattern)
            text, pattern = self.call("lower", text), fold_cast(pattern)
        return self.call("like", text, pattern, *escape, data_type=BOOLEAN)

    def _like_many(self, node: Predicate) -> Expr:
        """Bind ``LIKE ANY (…)`` or ``LIKE ALL (…)``; each pattern is bound, and negated, separately."""
        tried = [self._like(node, other) for other in node.others]
        if node.negated:
            tried = [self.negated(one) for one in tried]
        if len(tried) == 1:
            return tried[0]
        return self.call("and" if node.quantifier == "ALL" else "or", *tried, data_type=BOOLEAN)


def _unsure_list(nodes: Sequence[Node], options: Sequence[Expr]) -> bool:
    """Return whether Spark's padding of a list is unknown: it drops as many options at the end as there are NULLs."""
    typed_null = False
    for node, option in zip(nodes, options, strict=True):
        null = isinstance(option, Literal) and option.value is None
        if (typed_null and not null) or unsure_padding(node, option):
            return True
        typed_null |= null and isinstance(node, Cast)
    return False
