"""sqlglot's nodes to a typed, bound, coerced tree. What words mean is the catalogue's alone (see ``reading``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sqlglot import exp

from tamis.errors import NotFound
from tamis.expr import bind_documents as documents
from tamis.expr.catalogue import call, sql_name
from tamis.expr.coerce import beyond_longs, folded
from tamis.expr.frontend import bound
from tamis.expr.functions.inside import field_of
from tamis.expr.lists import Constants
from tamis.expr.literals import array_of, interval, list_of, number, time_of_day, type_of
from tamis.expr.nodes import cause_of, dotted, never_fails, no_word, operands, says_more, shown
from tamis.expr.padding import is_char, padded
from tamis.expr.tree import Cause, Column, Element, Expr, Literal, Mode, Opaque
from tamis.types import BINARY, BOOLEAN, NULL, STRING, Array, DataType, Decimal, Map, Schema, Struct, Time

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
    variables: Mapping[str, Expr] = field(default_factory=dict)
    """What the variable of a lambda stands for, by its name in lower case."""
    lists: Mapping[str, Constants] = field(default_factory=dict)
    """Long lists that were taken out of the text, by the names that stand for them."""

    def bind(self, node: Any) -> Expr:
        kind = type(node)
        if says_more(node):
            return self.unknown(node)
        if kind in _BINARY:
            return self._binary(node)
        handler = _HANDLERS.get(kind)
        return handler(self, node) if handler is not None else self.unknown(node)

    def call(self, name: str, *args: Expr, data_type: DataType | None = None) -> Expr:
        return call(name, *args, mode=self.mode, zone=self.zone, type=data_type)

    def unknown(self, node: Any) -> Opaque:
        """Something that only Spark understands; the columns in it are still checked, but for those of a query inside."""
        cause = cause_of(node)
        nodes = node.find_all(exp.Column) if isinstance(node, exp.Expression) and cause is not Cause.SUBQUERY else ()
        local = {v.name.lower() for f in node.find_all(exp.Lambda) for v in f.expressions} if isinstance(node, exp.Expression) else set()
        args = tuple(self.bind(c) for c in nodes if c.parts[0].name.lower() not in local and c.name not in self.lists)
        text = shown(node)
        for name, constants in self.lists.items():
            text = text.replace(f"`{name}`", constants.text)
        total = isinstance(node, exp.Expression) and never_fails(node)
        return Opaque(NULL, text, args if not total else tuple(self.bind(n) for n in operands(node)), total, cause)

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
            return self.ordered(name, node.this, node.expression)
        return self.call(name, self.bind(node.this), self.bind(node.expression))

    def compared(self, name: str, a: Expr, b: Expr) -> Expr:
        return self.call(name, *self.even([a, b]), data_type=BOOLEAN)

    def ordered(self, name: str, x: Any, y: Any) -> Expr:
        """Two nodes compared; a constant that no cast makes is looked at first."""
        a, b = self.bind(x), self.bind(y)
        constant = x if isinstance(a, Literal) and isinstance(a.type, Decimal) else y
        cast = isinstance(constant, exp.Cast) and not constant.this.is_string  # 1BD comes as a cast of text
        return (None if cast else beyond_longs(name, a, b)) or self.compared(name, a, b)

    def even(self, sides: list[Expr]) -> list[Expr]:
        return padded(sides, lambda side, blanks: self.call("concat", side, blanks))

    def _predicate(self, expr: Expr) -> Expr:
        return replace(expr, type=BOOLEAN) if isinstance(expr, Opaque) and expr.type == NULL else expr

    def column(self, node: exp.Column) -> Expr:
        """A name of one or more parts: a top-level column, and struct fields below it."""
        parts = tuple(p.name for p in node.parts)
        if parts[0].lower() in self.variables:
            return self._of_variable(parts) or self.unknown(node)
        return self.field(parts)

    def _of_variable(self, parts: tuple[str, ...]) -> Expr | None:
        out: Expr | None = self.variables[parts[0].lower()]
        for name in parts[1:]:
            kind = out.type if isinstance(out, Element) else None
            found = next((f for f in kind.fields if f.name.lower() == name.lower()), None) if isinstance(kind, Struct) else None
            out = Element(found.type, (*out.ids, found.id), f"{out.name}.{found.name}") if found and isinstance(out, Element) else None
        return out

    def bracket(self, node: exp.Bracket) -> Expr:
        """``array[0]``, ``map['key']``."""
        if len(node.expressions) != 1:
            return self.unknown(node)
        source, at = self.bind(node.this), self.bind(node.expressions[0])
        if isinstance(at, Literal) and isinstance(at.value, str) and isinstance(source.type, Struct | Array):
            return field_of(source, at.value) or self.unknown(node)
        return self.call("map_value" if isinstance(source.type, Map) else "element", source, at)

    def tested(self, name: str, node: exp.Anonymous) -> Expr:
        """``exists(array, x -> …)``: the variable is the element."""
        source, test = self.bind(node.expressions[0]), node.expressions[1]
        simple = isinstance(source, Column) and isinstance(source.type, Array) and len(test.expressions) == 1 and not self.variables
        if not simple or not isinstance(source, Column) or not isinstance(source.type, Array):
            return self.unknown(node)
        variable, inner = test.expressions[0].name, source.type.element
        stands = Element(inner.type, (*source.ids, inner.id), variable)
        body = replace(self, variables={variable.lower(): stands}).bind(test.this)
        return self.call(name, source, self._predicate(body), data_type=BOOLEAN)

    def each_field(self, node: exp.Transform) -> Expr:
        """``transform(array, x -> x.field)``."""
        test = node.expression
        body = dotted(test.this) if isinstance(test, exp.Lambda) and len(test.expressions) == 1 and not self.variables else None
        if body is None or len(body) != 2 or body[0].lower() != test.expressions[0].name.lower():
            return self.unknown(node)
        return field_of(self.bind(node.this), body[1]) or self.unknown(node)

    def field(self, parts: tuple[str, ...]) -> Expr:
        try:
            fields = self.schema.find(parts[:1])
        except NotFound as error:
            raise self._missing(parts, error) from None
        if len(parts) == 2 and isinstance(fields[0].type, Map):  # ``map.key``
            return self.call("map_value", bound(self.schema, (fields[0].id,)), Literal(STRING, parts[1]))
        if len(parts) > 1 and isinstance(fields[0].type, Array):  # ``array.field``: of each element
            found = field_of(bound(self.schema, (fields[0].id,)), parts[1]) if len(parts) == 2 else None
            if found is not None:
                return found
        fields = self.schema.find(parts)
        if any(isinstance(f.type, Array | Map) for f in fields[:-1]):
            raise NotFound(
                f"There is no column {'.'.join(parts)!r}.", code="COLUMN_NOT_FOUND", name=".".join(parts), remedy="Use element_at."
            )
        return bound(self.schema, tuple(f.id for f in fields))

    def _missing(self, parts: tuple[str, ...], error: NotFound) -> NotFound:
        """The error for a name that is no column, with what was perhaps meant."""
        remedy = error.remedy
        if len(parts) > 1 and any(f.name.lower() == name.lower() for f in self.schema for name in parts[1:]):
            remedy = f"In {'.'.join(parts)!r}, leave the table's name out. {remedy}"
        elif parts[0].lower() == "nan":
            remedy = "Write isnan(x); the value itself is CAST('NaN' AS DOUBLE)."
        elif len(parts) == 1 and self.schema.fields:
            remedy += f" Text stands in quotes: '{parts[0]}'."
        return NotFound(error.message, code=error.code, name=error.name, remedy=remedy)

    def extract(self, node: exp.JSONExtract) -> Expr:
        """``v:a.b[0]``: steps into a VARIANT."""
        return documents.extract(self.bind(node.this), node.expression, self.mode, self.zone) or self.unknown(node)

    def dot(self, node: exp.Dot) -> Expr:
        if (found := documents.from_json_field(node, self.bind)) is not None:
            return found
        if (parts := dotted(node)) is None:
            inner = self.bind(node.this) if isinstance(node.expression, exp.Identifier) else None
            return (inner and field_of(inner, node.expression.name)) or self.unknown(node)
        if parts[0].lower() in self.variables:
            return self._of_variable(tuple(parts)) or self.unknown(node)
        return self.field(tuple(parts))

    def literal(self, node: exp.Literal) -> Expr:
        return Literal(STRING, node.name) if node.is_string else number(node.name)

    def negative(self, node: exp.Neg) -> Expr:
        if isinstance(node.this, exp.Literal) and not node.this.is_string:
            return number("-" + node.this.name)
        if (
            isinstance(node.this, exp.Cast)
            and isinstance(node.this.this, exp.Literal)
            and not node.this.this.is_string
            and no_word(node.this)
        ):
            literal = node.this.copy()
            literal.this.set("this", "-" + literal.this.name)
            return self.cast(literal)
        return self.call("negate", self.bind(node.this))

    def cast(self, node: Any) -> Expr:
        """``cast``, ``try_cast``, ``x::type``, and typed literals, which sqlglot writes as casts."""
        value, target = self.bind(node.this), type_of(node.to)
        if target is None:
            return replace(self.unknown(node), cause=Cause.TYPE)
        if isinstance(target, Time) and isinstance(value, Literal) and isinstance(value.value, str):
            return time_of_day(value.value) or self.unknown(node)
        mode = Mode.TRY if isinstance(node, exp.TryCast) else self.mode
        out = call("cast", value, mode=mode, zone=self.zone, type=target)
        if isinstance(value, Literal) and not isinstance(out, Opaque):
            return folded(out)
        return out

    def listed(self, node: exp.In) -> Expr:
        if node.args.get("query") is not None or node.args.get("unnest") is not None:
            return self.unknown(node)
        if len(node.expressions) == 1 and (constants := self.lists.get(node.expressions[0].name)) is not None:
            return self._listed(self.bind(node.this), constants)
        value, *options = self.even([self.bind(node.this), *(self.bind(o) for o in node.expressions)])
        array = list_of(value, options, self.mode, self.zone)
        if array is not None:
            return self.call("in", value, array, data_type=BOOLEAN)
        return self.call("in", value, *options, data_type=BOOLEAN)

    def _listed(self, value: Expr, constants: Constants) -> Expr:
        """A list taken out of the text."""
        array = None if is_char(value) else array_of(value, constants, self.mode, self.zone)
        if array is not None:
            return self.call("in", value, array, data_type=BOOLEAN)
        value, *options = self.even([value, *constants.literals()])
        array = list_of(value, options, self.mode, self.zone)
        return self.call("in", value, *((array,) if array is not None else options), data_type=BOOLEAN)

    def between(self, node: exp.Between) -> Expr:
        value, low, high = (self.bind(node.args[k]) for k in ("this", "low", "high"))
        if is_char(value) or beyond_longs("ge", value, low) or beyond_longs("le", value, high):
            return self.call(
                "and", *(self.ordered(n, node.this, node.args[k]) for n, k in (("ge", "low"), ("le", "high"))), data_type=BOOLEAN
            )
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
        if not isinstance(node, exp.Like | exp.ILike):
            return self.unknown(node)
        text, pattern = self.bind(node.this), self.bind(node.expression)
        if isinstance(node, exp.ILike):
            pattern = self.call("lower", pattern)
            text, pattern = self.call("lower", text), folded(pattern)
        found = self.call("like", text, pattern, *escape, data_type=BOOLEAN)
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
        if found in {"exists", "forall"} and len(node.expressions) == 2 and isinstance(node.expressions[1], exp.Lambda):
            return self.tested(found, node)
        args = self._arguments(found, list(node.expressions))
        if found in {"and", "cast"}:
            return self.unknown(node)
        if found in {"ltrim", "rtrim"}:
            args = args[::-1]  # the characters come first there
        out = call(found, *args, mode=mode, zone=self.zone)
        return replace(out, text=shown(node)) if isinstance(out, Opaque) else out

    def _arguments(self, name: str, nodes: list[Any]) -> tuple[Expr, ...]:
        """Bound arguments; a bare word that leads three of them is a unit (``timestampdiff(DAY, …)``)."""
        first: tuple[Expr, ...] = ()
        if name in _WITH_UNIT and len(nodes) == 3 and isinstance(nodes[0], exp.Column | exp.Var):
            first, nodes = (Literal(STRING, nodes[0].name),), nodes[1:]
        return (*first, *(self.bind(a) for a in nodes))

    def extracted(self, node: exp.Extract) -> Expr:
        return self.call("extract", Literal(STRING, node.this.name), self.bind(node.expression))

    def interval(self, node: exp.Interval) -> Expr:
        return interval(node) or self.unknown(node)

    def trimmed(self, node: exp.Trim) -> Expr:
        taken = [self.bind(node.expression)] if node.expression is not None else []
        name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position") or "").upper(), "trim")
        return self.call(name, self.bind(node.this), *taken)

    def overlaid(self, node: exp.Overlay) -> Expr:
        rest = [node.args[k] for k in ("from_", "for_") if node.args.get(k) is not None]
        return self.call("overlay", self.bind(node.this), self.bind(node.expression), *(self.bind(r) for r in rest))

    def found_at(self, node: exp.StrPosition) -> Expr:
        return self.call("instr", self.bind(node.this), self.bind(node.args["substr"]))

    def sliced(self, node: exp.Substring) -> Expr:
        rest = [node.args[k] for k in ("start", "length") if node.args.get(k) is not None]
        return self.call("substring", self.bind(node.this), *(self.bind(r) for r in rest))

    def rounded(self, node: Any) -> Expr:
        if node.args.get("to") is not None:
            return self.unknown(node)
        places = [self.bind(node.args["decimals"])] if node.args.get("decimals") is not None else []
        return self.call("floor" if isinstance(node, exp.Floor) else "ceil", self.bind(node.this), *places)

    def adjacent(self, node: exp.Concat) -> Expr:
        """``'a' 'b'``: one constant."""
        parts = [self.bind(e) for e in node.expressions]
        if all(isinstance(p, Literal) and isinstance(p.value, str) for p in parts):
            return Literal(STRING, "".join(p.value for p in parts if isinstance(p, Literal)))
        return self.call("concat", *parts)


_TESTS = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "null_safe_eq"})
_TRIES = {
    "try_add": "add",
    "try_subtract": "subtract",
    "try_multiply": "multiply",
    "try_divide": "divide",
    "try_mod": "remainder",
    "try_element_at": "element_at",
}
_WITH_UNIT = frozenset({"timestampdiff", "timestampadd", "datediff", "date_add", "dateadd"})
_HANDLERS: dict[type, Callable[[Binder, Any], Expr]] = {
    exp.Paren: lambda b, n: b.bind(n.this),
    exp.Column: Binder.column,
    exp.Dot: Binder.dot,
    exp.JSONExtract: Binder.extract,
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
    exp.Bracket: Binder.bracket,
    exp.Identifier: lambda b, n: b.variables.get(n.name.lower()) or b.unknown(n),
    exp.Between: Binder.between,
    exp.Is: Binder.test,
    exp.RegexpLike: lambda b, n: b.call("rlike", b.bind(n.this), b.bind(n.expression), data_type=BOOLEAN),
    exp.Like: Binder.like,
    exp.ILike: Binder.like,
    exp.Escape: Binder.like,
    exp.NullSafeNEQ: lambda b, n: b.call("not", b.compared("null_safe_eq", b.bind(n.this), b.bind(n.expression))),
    exp.Case: Binder.case,
    exp.If: Binder.when,
    exp.Anonymous: Binder.named,
    exp.Extract: Binder.extracted,
    exp.Transform: Binder.each_field,
    exp.Interval: Binder.interval,
    exp.Trim: Binder.trimmed,
    exp.Substring: Binder.sliced,
    exp.Overlay: Binder.overlaid,
    exp.StrPosition: Binder.found_at,
    exp.Floor: Binder.rounded,
    exp.Ceil: Binder.rounded,
    exp.Concat: Binder.adjacent,
    exp.CurrentDate: lambda b, _n: b.call("current_date"),
    exp.CurrentTimestamp: lambda b, _n: b.call("current_timestamp"),
}
