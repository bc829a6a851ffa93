"""Spark SQL text to a typed, bound, coerced tree.

sqlglot reads the text; what the words mean is the catalogue's alone: the dialect below knows no function, so every function comes out
under the name as written.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.dialects.databricks import Databricks
from sqlglot.errors import SqlglotError

from tamis.errors import InvalidInput, NotFound
from tamis.expr.catalogue import call, sql_name
from tamis.expr.frontend import bound
from tamis.expr.literals import interval, list_of, number, type_of
from tamis.expr.tree import Column, Expr, Literal, Mode, Opaque
from tamis.types import BINARY, BOOLEAN, NULL, STRING, TIMESTAMP, DataType, Schema, String


class SparkWords(Databricks):
    """Spark's grammar without a single function of its own."""

    class Parser(Databricks.Parser):  # type: ignore[misc,valid-type]
        """Functions come out under the name as written."""

        FUNCTIONS: dict[str, Callable[..., Any]] = {}  # noqa: RUF012


DEEPEST = 150
"""Levels of a filter: what walks trees by recursion must stay well below Python's limit."""

_MISSING = re.compile(r"Required keyword: '\w+' missing for <class '[^']*'>")
_NO_PREDICATE = (exp.Alias, exp.Select, exp.DDL, exp.DML, exp.Drop, exp.Command, exp.Set, exp.Star)


def read(text: str, schema: Schema, zone: str, ansi: bool) -> Expr:
    """See ``tamis.expr.parse``."""
    if any(0xD800 <= ord(c) <= 0xDFFF for c in text):
        raise _wrong(repr(text)[1:-1], "It holds half a character.")
    try:
        statements = sqlglot.parse(text, dialect=SparkWords)
    except (SqlglotError, RecursionError, ValueError) as error:
        message = re.sub(r"\x1b\[\d*m", "", str(error)).split("\n")[0]
        raise _wrong(text, _MISSING.sub("Something is missing", message)) from error
    parsed = statements[0] if len(statements) == 1 else None
    if parsed is None:
        raise _wrong(text, "It holds no predicate." if not any(statements) else "It holds more than one.")
    if isinstance(parsed, _NO_PREDICATE):
        raise _wrong(text, f"It holds no predicate ({type(parsed).__name__.upper()}).")
    try:
        out = Binder(schema, zone, Mode.ANSI if ansi else Mode.LEGACY).bind(parsed)
    except RecursionError as error:
        raise _wrong(text, "It is nested too deeply.") from error
    if _depth(out) > DEEPEST:
        raise _wrong(text, "It is nested too deeply.")
    if isinstance(out, Opaque) and out.type == NULL:
        out = replace(out, type=BOOLEAN)
    if isinstance(out, Literal) and out.value is None:
        out = Literal(BOOLEAN, None)
    if out.type != BOOLEAN:
        raise _wrong(text, f"Its type is {out.type}, not boolean.")
    return out


def _depth(tree: Expr) -> int:
    """Levels of ``tree``, found without recursion."""
    depth, level = 0, [tree]
    while level:
        depth, level = depth + 1, [child for node in level for child in node.children]
    return depth


def _wrong(text: str, message: str) -> InvalidInput:
    shown = text if len(text) < 200 else text[:200] + "…"
    return InvalidInput(f"{shown!r} is not a filter: {message}", code="PARSE_ERROR", name=shown, remedy="Write one Spark SQL predicate.")


_BINARY = {
    exp.EQ: "eq", exp.NEQ: "ne", exp.LT: "lt", exp.LTE: "le", exp.GT: "gt", exp.GTE: "ge", exp.NullSafeEQ: "null_safe_eq",
    exp.And: "and", exp.Or: "or", exp.Add: "add", exp.Sub: "subtract", exp.Mul: "multiply", exp.Div: "divide", exp.IntDiv: "div",
    exp.Mod: "remainder", exp.DPipe: "concat",
}  # fmt: skip


@dataclass(frozen=True)
class Binder:
    """Turns sqlglot's nodes into calls of the catalogue."""

    schema: Schema
    zone: str
    mode: Mode

    def bind(self, node: Any) -> Expr:
        kind = type(node)
        if any(value not in _NOTHING and key not in _ASKED and key not in _ALSO_ASKED.get(kind, ()) for key, value in node.args.items()):
            return self.unknown(node)  # sqlglot said something that no handler here asks about
        if kind in _BINARY:
            return self._binary(node)
        handler = _HANDLERS.get(kind)
        if handler is not None:
            return handler(self, node)
        return self.unknown(node)

    def call(self, name: str, *args: Expr, data_type: DataType | None = None) -> Expr:
        return call(name, *args, mode=self.mode, zone=self.zone, type=data_type)

    def unknown(self, node: Any) -> Opaque:
        """Something that only Spark understands; the columns in it are still checked."""
        args = tuple(self.bind(c) for c in node.find_all(exp.Column)) if isinstance(node, exp.Expression) else ()
        return Opaque(NULL, node.sql(dialect="databricks"), args)

    def _binary(self, node: Any) -> Expr:
        """Chains of one operator are as deep as they are long: unrolled here."""
        kind, name = type(node), _BINARY[type(node)]
        if kind in (exp.And, exp.Or):
            parts: list[Any] = []
            while isinstance(node, kind):
                parts.append(node.expression)
                node = node.this
            args = [self._predicate(self.bind(p)) for p in (node, *reversed(parts))]
            return self.call(name, *args, data_type=BOOLEAN)
        if name in _TESTS:
            return self.compared(name, self.bind(node.this), self.bind(node.expression))
        return self.call(name, self.bind(node.this), self.bind(node.expression))

    def compared(self, name: str, a: Expr, b: Expr) -> Expr:
        return self.call(name, *self.even([a, b]), data_type=BOOLEAN)

    def even(self, sides: list[Expr]) -> list[Expr]:
        """CHAR columns and constants that are compared, padded to the longest of them, as Spark does (columns only, not fields of structs)."""
        lengths = [_char_length(s) for s in sides]
        if not any(_is_char(s) for s in sides) or any(n is None for n in lengths):
            return sides
        longest = max(n for n in lengths if n is not None)
        return [self._padded(s, longest - (n or 0)) for s, n in zip(sides, lengths, strict=True)]

    def _padded(self, side: Expr, missing: int) -> Expr:
        if missing <= 0 or (isinstance(side, Literal) and side.value is None):
            return side
        blanks = " " * missing
        return replace(side, value=side.value + blanks) if isinstance(side, Literal) else self.call("concat", side, Literal(STRING, blanks))

    def _predicate(self, expr: Expr) -> Expr:
        return replace(expr, type=BOOLEAN) if isinstance(expr, Opaque) and expr.type == NULL else expr

    def column(self, node: exp.Column) -> Expr:
        """A name of one or more parts: a top-level column, and struct fields below it."""
        parts = tuple(p.name for p in node.parts)
        return self.field(parts)

    def field(self, parts: tuple[str, ...]) -> Expr:
        fields = self.schema.find(parts)
        return bound(self.schema, tuple(f.id for f in fields))

    def dot(self, node: exp.Dot) -> Expr:
        parts = [p.name for p in node.parts]
        try:
            return self.field(tuple(parts))
        except NotFound:
            if all(isinstance(p, exp.Identifier | exp.Column) for p in node.parts):
                raise
            return self.unknown(node)

    def literal(self, node: exp.Literal) -> Expr:
        return Literal(STRING, node.name) if node.is_string else number(node.name)

    def negative(self, node: exp.Neg) -> Expr:
        if isinstance(node.this, exp.Literal) and not node.this.is_string:
            return number("-" + node.this.name)
        if isinstance(node.this, exp.Cast) and isinstance(node.this.this, exp.Literal) and node.this.args.get("_type") is not None:
            literal = node.this.copy()
            literal.this.set("this", "-" + literal.this.name)
            return self.cast(literal)
        return self.call("negate", self.bind(node.this))

    def cast(self, node: Any) -> Expr:
        """``cast``, ``try_cast``, ``x::type``, and typed literals, which sqlglot writes as casts."""
        value, target = self.bind(node.this), type_of(node.to)
        if target is None:
            return self.unknown(node)
        mode = Mode.TRY if isinstance(node, exp.TryCast) else self.mode
        out = call("cast", value, mode=mode, zone=self.zone, type=target)
        if isinstance(value, Literal) and not isinstance(out, Opaque):
            from tamis.expr.coerce import folded

            folded_ = folded(out)
            if node.args.get("_type") is not None and not isinstance(folded_, Literal) and isinstance(node.this, exp.Literal):
                text = node.this.name
                if node.this.is_string and target in (TIMESTAMP,):
                    return out
                if node.this.is_string is False:
                    raise InvalidInput(f"{text} does not fit {target}.", code="PARSE_ERROR", name=text, remedy="Use a wider type.")
            return folded_
        return out

    def listed(self, node: exp.In) -> Expr:
        if node.args.get("query") is not None or node.args.get("unnest") is not None:
            return self.unknown(node)
        value, *options = self.even([self.bind(node.this), *(self.bind(o) for o in node.expressions)])
        array = list_of(value, options, self.mode, self.zone)
        if array is not None:
            return self.call("in", value, array, data_type=BOOLEAN)
        return self.call("in", value, *options, data_type=BOOLEAN)

    def between(self, node: exp.Between) -> Expr:
        value, low, high = (self.bind(node.args[k]) for k in ("this", "low", "high"))
        if _is_char(value):
            return self.call("and", self.compared("ge", value, low), self.compared("le", value, high), data_type=BOOLEAN)
        return self.call("between", value, low, high, data_type=BOOLEAN)

    def test(self, node: exp.Is) -> Expr:
        value, what = self.bind(node.this), node.expression
        if isinstance(what, exp.Null):
            return self.call("is_null", value)
        if isinstance(what, exp.Boolean):
            return self.call("is_true" if what.this else "is_false", self._predicate(value))
        return self.unknown(node)

    def like(self, node: Any) -> Expr:
        escape: tuple[Expr, ...] = ()
        if isinstance(node, exp.Escape):
            escape, node = (self.bind(node.expression),), node.this
        if not isinstance(node, exp.Like):
            return self.unknown(node)
        found = self.call("like", self.bind(node.this), self.bind(node.expression), *escape, data_type=BOOLEAN)
        return self.call("not", found, data_type=BOOLEAN) if node.args.get("negate") else found

    def case(self, node: exp.Case) -> Expr:
        args: list[Expr] = []
        subject = self.bind(node.this) if node.this is not None else None
        for branch in node.args["ifs"]:
            condition = self.bind(branch.this)
            args.append(self.compared("eq", subject, condition) if subject is not None else self._predicate(condition))
            args.append(self.bind(branch.args["true"]))
        default = node.args.get("default")
        args.append(self.bind(default) if default is not None else Literal(NULL, None))
        return self.call("case", *args)

    def when(self, node: exp.If) -> Expr:
        other = node.args.get("false")
        return self.call(
            "case",
            self._predicate(self.bind(node.this)),
            self.bind(node.args["true"]),
            self.bind(other) if other is not None else Literal(NULL, None),
        )

    def named(self, node: exp.Anonymous) -> Expr:
        """A function under the name as written. A word that is no column may be a unit (``timestampdiff(DAY, …)``)."""
        name, mode = str(node.this), self.mode
        if name.lower().startswith("try_") and sql_name(name) is None:
            found, mode = _TRIES.get(name.lower()), Mode.TRY
        else:
            found = sql_name(name)
        if found is None:
            return self.unknown(node)
        args = tuple(self.bind(a) for a in node.expressions)
        if found in {"and", "cast"}:
            return self.unknown(node)
        out = call(found, *args, mode=mode, zone=self.zone)
        return replace(out, text=node.sql(dialect="databricks")) if isinstance(out, Opaque) else out

    def extracted(self, node: exp.Extract) -> Expr:
        return self.call("extract", Literal(STRING, node.this.name), self.bind(node.expression))

    def interval(self, node: exp.Interval) -> Expr:
        return interval(node) or self.unknown(node)

    def trimmed(self, node: exp.Trim) -> Expr:
        if node.expression is not None:
            return self.unknown(node)
        name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position") or "").upper(), "trim")
        return self.call(name, self.bind(node.this))

    def sliced(self, node: exp.Substring) -> Expr:
        rest = [node.args[k] for k in ("start", "length") if node.args.get(k) is not None]
        return self.call("substring", self.bind(node.this), *(self.bind(r) for r in rest))

    def rounded(self, node: Any) -> Expr:
        if node.args.get("decimals") is not None or node.args.get("to") is not None:
            return self.unknown(node)
        return self.call("floor" if isinstance(node, exp.Floor) else "ceil", self.bind(node.this))

    def adjacent(self, node: exp.Concat) -> Expr:
        return self.call("concat", *(self.bind(e) for e in node.expressions))


def _is_char(side: Expr) -> bool:
    return isinstance(side, Column) and len(side.ids) == 1 and isinstance(side.type, String) and side.type.kind == "char"


def _char_length(side: Expr) -> int | None:
    """Of a CHAR column or a constant text (NULL: 0); None for anything else, beside which nothing is padded."""
    if _is_char(side):
        assert isinstance(side.type, String)
        return side.type.length
    if isinstance(side, Literal):
        return len(side.value) if isinstance(side.value, str) else 0 if side.value is None else None
    return None


_NOTHING: tuple[object, ...] = (None, False, [])
_ASKED = frozenset({"this", "expression", "expressions"})
_ALSO_ASKED: dict[type, frozenset[str]] = {
    exp.Column: frozenset({"table", "db", "catalog"}),
    exp.Literal: frozenset({"is_string"}),
    exp.Cast: frozenset({"to", "_type"}),
    exp.TryCast: frozenset({"to", "safe"}),
    exp.Div: frozenset({"typed", "safe"}),  # how other dialects divide; Spark's way is the catalogue's
    exp.In: frozenset({"query", "unnest"}),
    exp.Between: frozenset({"low", "high"}),
    exp.Like: frozenset({"negate"}),
    exp.Case: frozenset({"ifs", "default"}),
    exp.If: frozenset({"true", "false"}),
    exp.Interval: frozenset({"unit"}),
    exp.Trim: frozenset({"position"}),
    exp.Substring: frozenset({"start", "length"}),
    exp.Floor: frozenset({"decimals", "to"}),
    exp.Ceil: frozenset({"decimals", "to"}),
    exp.Concat: frozenset({"safe", "coalesce"}),
    exp.DPipe: frozenset({"safe"}),
}
"""What of sqlglot's nodes is understood. Law: whatever else a node carries (a later release may move a NOT into one) makes it unknown."""
_TESTS = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "null_safe_eq"})
_TRIES = {"try_add": "add", "try_subtract": "subtract", "try_multiply": "multiply", "try_divide": "divide", "try_mod": "remainder"}
_HANDLERS: dict[type, Callable[[Binder, Any], Expr]] = {
    exp.Paren: lambda b, n: b.bind(n.this),
    exp.Column: Binder.column,
    exp.Dot: Binder.dot,
    exp.Literal: Binder.literal,
    exp.RawString: lambda _b, n: Literal(STRING, n.name),
    exp.HexString: lambda _b, n: Literal(BINARY, bytes.fromhex(("0" if len(n.name) % 2 else "") + n.name)),
    exp.Null: lambda _b, _n: Literal(NULL, None),
    exp.Boolean: lambda _b, n: Literal(BOOLEAN, bool(n.this)),
    exp.Neg: Binder.negative,
    exp.Not: lambda b, n: b.call("not", b._predicate(b.bind(n.this)), data_type=BOOLEAN),
    exp.Cast: Binder.cast,
    exp.TryCast: Binder.cast,
    exp.In: Binder.listed,
    exp.Between: Binder.between,
    exp.Is: Binder.test,
    exp.Like: Binder.like,
    exp.Escape: Binder.like,
    exp.NullSafeNEQ: lambda b, n: b.call("not", b.compared("null_safe_eq", b.bind(n.this), b.bind(n.expression))),
    exp.Case: Binder.case,
    exp.If: Binder.when,
    exp.Anonymous: Binder.named,
    exp.Extract: Binder.extracted,
    exp.Interval: Binder.interval,
    exp.Trim: Binder.trimmed,
    exp.Substring: Binder.sliced,
    exp.Floor: Binder.rounded,
    exp.Ceil: Binder.rounded,
    exp.Concat: Binder.adjacent,
    exp.CurrentDate: lambda b, _n: b.call("current_date"),
    exp.CurrentTimestamp: lambda b, _n: b.call("current_timestamp"),
}
