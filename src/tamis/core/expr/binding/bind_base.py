"""The base of the binder: catalogue calls, comparisons, and unknown expressions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tamis.core.expr.binding.char_padding import is_char, padded_sides, unsure_padding
from tamis.core.expr.binding.unsupported_syntax import cause_of, infallible_operands, known_type, names_in
from tamis.core.expr.calls import make_call
from tamis.core.expr.coerce import beyond_longs
from tamis.core.expr.syntax.nodes import Cast, Name, Node
from tamis.core.expr.tree import Cause, Expr, Literal, Mode, Opaque
from tamis.core.types import BOOLEAN, NULL, DataType, Decimal, Schema


@dataclass(frozen=True)
class BinderBase:
    """The text to bind, with its schema, zone and mode."""

    schema: Schema
    zone: str
    mode: Mode
    text: str
    variables: Mapping[str, Expr] = field(default_factory=dict)
    """The bound value of each lambda variable, by its name in lower case."""

    def bind(self, node: Node) -> Expr:
        raise NotImplementedError

    def call(self, name: str, *args: Expr, data_type: DataType | None = None) -> Expr:
        return make_call(name, *args, mode=self.mode, zone=self.zone, type=data_type)

    def source_text(self, node: Node) -> str:
        """Return the node as written."""
        return self.text[node.start : node.end]

    def unknown(self, node: Node, cause: Cause | None = None) -> Opaque:
        """Return an opaque expression that only Spark understands.

        The columns in it are still checked, except those of an inner query.
        """
        inner = infallible_operands(node)
        args = tuple(self.bind(n) for n in (names_in(node) if inner is None else inner))
        kind = NULL if inner is None else known_type(node)
        return Opaque(kind, self.source_text(node), args, inner is not None, cause or cause_of(node))

    def predicate(self, expr: Expr) -> Expr:
        """Return ``expr`` as a boolean if its type is unknown."""
        return replace(expr, type=BOOLEAN) if isinstance(expr, Opaque) and expr.type == NULL else expr

    def negated(self, expr: Expr) -> Expr:
        return self.call("not", self.predicate(expr), data_type=BOOLEAN)

    def compare(self, name: str, a: Expr, b: Expr) -> Expr:
        return self.call(name, *self.pad_sides([a, b]), data_type=BOOLEAN)

    def bind_comparison(self, name: str, x: Node, y: Node) -> Expr:
        """Bind and compare two nodes.

        A decimal constant beyond BIGINT decides the comparison at once, unless it comes from a cast.
        """
        a, b = self.bind(x), self.bind(y)
        constant = x if isinstance(a, Literal) and isinstance(a.type, Decimal) else y
        known = None if isinstance(constant, Cast) else beyond_longs(name, a, b)
        if known is not None:
            return known
        if (is_char(a) and unsure_padding(y, b)) or (is_char(b) and unsure_padding(x, a)):
            return Opaque(BOOLEAN, self.text[x.start : y.end], (a, b))
        return self.call(name, a, b, data_type=BOOLEAN) if self.has_variable(x, y) else self.compare(name, a, b)

    def has_variable(self, *nodes: Node) -> bool:
        """Return whether a node is a lambda variable, which Spark never pads, not even for a CHAR column."""
        return any(isinstance(node, Name) and node.parts[0].lower() in self.variables for node in nodes)

    def pad_sides(self, sides: list[Expr]) -> list[Expr]:
        """Pad CHAR columns and the values compared with them to one length."""
        return padded_sides(sides, lambda side, length, blank: self.call("rpad", side, length, blank))
