"""Syntax as nested tuples in the words of Catalyst's parser, ours and Spark's, so that the two compare."""

from __future__ import annotations

import json
from typing import Any

from tamis.core.expr.literals import bind_interval, bind_number, bind_typed
from tamis.core.expr.sql_types import column_type
from tamis.core.expr.syntax import nodes as n
from tamis.core.expr.syntax import parse_expression
from tamis.core.expr.tree import Literal, Mode

Shape = tuple[Any, ...]
_BINARY = {
    "=": "EqualTo", "<": "LessThan", "<=": "LessThanOrEqual", ">": "GreaterThan", ">=": "GreaterThanOrEqual", "<=>": "EqualNullSafe",
    "+": "Add", "-": "Subtract", "*": "Multiply", "/": "Divide", "DIV": "IntegralDivide", "%": "Remainder", "||": "Concat",
    "&": "BitwiseAnd", "|": "BitwiseOr", "^": "BitwiseXor", "<<": "ShiftLeft", ">>": "ShiftRight", ">>>": "ShiftRightUnsigned",
    "AND": "And", "OR": "Or",
}  # fmt: skip
_UNARY = {"-": "UnaryMinus", "+": "UnaryPositive", "~": "BitwiseNot", "NOT": "Not"}
_TRIMS = {"LEADING": "StringTrimLeft", "TRAILING": "StringTrimRight"}
_WITH_UNIT = {"TIMESTAMPADD": "TimestampAdd", "DATEADD": "TimestampAdd", "DATE_ADD": "TimestampAdd"}
_NO_VALUE = ("date", "timestamp", "timestamp_ntz", "time(6)", "binary", "double", "float")
"""Types whose literals are compared by type only: Spark's JSON writes them for people."""


def ours(text: str) -> Shape:
    """What our parser reads. Raises where it refuses."""
    return flat(_node(parse_expression(text), text))


def theirs(as_json: str) -> Shape:
    """What Spark's parser read, from ``Expression.toJSON``."""
    return flat(_spark(iter(json.loads(as_json))))


def flat(shape: Shape) -> Shape:
    """Chains of AND and OR in one: Spark halves them, which means the same."""
    if shape[0] == "unnamed":  # a path to which Spark gave no alias
        shape = shape[1:]
    if shape[0] in {"And", "Or"}:
        parts = [flat(p) for p in shape[1:]]
        return (shape[0], *(q for p in parts for q in (p[1:] if p[0] == shape[0] else (p,))))
    return tuple(flat(p) if isinstance(p, tuple) and p else p for p in shape)


def _node(node: n.Node, text: str) -> Shape:  # noqa: C901  (one line for each construct)
    def of(*nodes: n.Node) -> Shape:
        return tuple(_node(x, text) for x in nodes)

    match node:
        case n.Name(parts=parts):
            return ("name", parts)
        case n.Number() | n.Typed() | n.Interval():
            return _literal(node)
        case n.Text(value=value):
            return ("literal", "string", value)
        case n.Constant(value=value):
            return ("literal", "void", None) if value is None else ("literal", "boolean", str(value).lower())
        case n.Parameter():
            return ("parameter",)
        case n.Star():
            return ("star",)
        case n.Query():
            return ("query",)
        case n.Unary(operator=operator, operand=operand):
            return (_UNARY[operator], *of(operand))
        case n.Binary(operator="<>", left=left, right=right):
            return ("Not", ("EqualTo", *of(left, right)))
        case n.Binary(operator=operator, left=left, right=right):
            return (_BINARY[operator], *of(left, right))
        case n.Predicate():
            return _predicate(node, text)
        case n.Case(subject=subject, branches=branches, default=default):
            tests = [c if subject is None else n.Binary(0, 0, "=", subject, c) for c, _ in branches]
            pairs = [x for test, (_, result) in zip(tests, branches, strict=True) for x in (test, result)]
            return ("CaseWhen", *of(*pairs, *([default] if default is not None else [])))
        case n.Cast(value=value, type=kind):
            return (
                "Cast",
                _type(column_type(kind, text)) if kind.name not in {"VOID", "INTERVAL"} else "?",
                *of(value),
            )
        case n.Function():
            return _function(node, text)
        case n.Named(name=name, value=value):
            return ("NamedArgumentExpression", name, *of(value))
        case n.Alias(value=value, names=names):
            return ("Alias", *names, *of(value))
        case n.Row(items=items):
            return ("struct", *of(*items))
        case n.Lambda(names=names, body=body):
            return ("LambdaFunction", *of(body), *(("name", (name,)) for name in names))
        case n.Subscript(value=value, at=at):
            return ("UnresolvedExtractValue", *of(value, at))
        case n.Dot(value=value, field=field):
            return ("UnresolvedExtractValue", *of(value), ("literal", "string", field))
        case n.Path(value=value, steps=steps):
            return ("path", len(steps), *of(value))
        case n.Collate(value=value, name=name):
            return ("Collate", name, *of(value))
        case n.Extract(field=field, source=source):
            return ("call", ("extract",), False, ("literal", "string", field), *of(source))
        case n.Trim(side=side, characters=characters, source=source):
            return (_TRIMS.get(side, "StringTrim"), *of(source, *([characters] if characters is not None else [])))
    raise AssertionError(node)


def _literal(node: n.Number | n.Typed | n.Interval) -> Shape:
    found = (
        bind_number(node)
        if isinstance(node, n.Number)
        else bind_interval(node)
        if isinstance(node, n.Interval)
        else bind_typed(node, Mode.ANSI, "UTC")
    )
    assert isinstance(found, Literal)
    kind = str(found.type).replace("bigint", "long").replace("smallint", "short").replace("tinyint", "byte")
    kind = "integer" if kind == "int" else kind
    if kind.startswith(("interval year", "interval month")):
        kind = "months"
    return ("literal", kind, None if kind in _NO_VALUE else str(found.value))


def _predicate(node: n.Predicate, text: str) -> Shape:
    value, others = _node(node.value, text), tuple(_node(o, text) for o in node.others)
    found: Shape
    match node.kind:
        case "NULL":
            return ("IsNotNull" if node.negated else "IsNull", value)
        case "UNKNOWN":
            return ("IsNotNull" if node.negated else "IsNull", value)
        case "TRUE" | "FALSE":
            found = ("EqualNullSafe", value, ("literal", "boolean", node.kind.lower()))
        case "DISTINCT":
            found = ("EqualNullSafe", value, *others)
            return found if node.negated else ("Not", found)
        case "BETWEEN":
            found = ("call", ("between",), False, value, *others)
        case "IN" if value[0] == "struct" and others[0] == ("query",):
            found = ("In", *value[1:], *others)
        case "IN":
            found = ("In", value, *others)
        case "RLIKE":
            found = ("RLike", value, *others)
        case _ if node.quantifier:
            return _like_many(node, value, others)
        case kind:
            found = ("Like" if kind == "LIKE" else "ILike", value, *others)
    return ("Not", found) if node.negated else found


def _like_many(node: n.Predicate, value: Shape, others: tuple[Shape, ...]) -> Shape:
    """Spark keeps constant patterns beside the tree, where its JSON does not show them."""
    if all(_constant(o) for o in node.others):
        name = ("Not" if node.negated else "") + ("LikeAll" if node.quantifier == "ALL" else "LikeAny")
        return (name, value if node.kind == "LIKE" else ("Lower", value))
    tests: list[Shape] = [("Like" if node.kind == "LIKE" else "ILike", value, o) for o in others]
    if node.negated:
        tests = [("Not", t) for t in tests]
    return tests[0] if len(tests) == 1 else ("And" if node.quantifier == "ALL" else "Or", *tests)


def _called(names: tuple[str, ...], distinct: bool, args: tuple[Shape, ...]) -> Shape:
    """A call; STRUCT is a form of the grammar and a function."""
    return ("struct", *args) if names == ("struct",) and not distinct else ("call", names, distinct, *args)


def _constant(node: n.Node) -> bool:
    """Whether it is a text without columns."""
    match node:
        case n.Unary(operator="+", operand=inner):
            return _constant(inner)
        case n.Binary(operator="||", left=left, right=right):
            return _constant(left) and _constant(right)
        case n.Cast(value=value, type=n.Type(name="STRING")):
            return _constant(value) or isinstance(value, n.Number | n.Constant | n.Typed | n.Interval)
        case n.Collate(value=value):
            return _constant(value)
    return isinstance(node, n.Text)


def _function(node: n.Function, text: str) -> Shape:
    args = tuple(_node(a, text) for a in node.args)
    names = tuple(p.lower() for p in node.name)
    if node.unit:
        return (_WITH_UNIT.get(names[0].upper(), "TimestampDiff"), node.unit.lower(), *args)
    if names == ("count",) and len(args) == 1 and args[0] == ("star",) and text[node.args[0].start] == "*":
        args = (("literal", "integer", "1"),)
    if names == ("identifier",) and len(args) == 1:
        return ("ExpressionWithUnresolvedIdentifier", *args)
    filters = tuple(_node(o, text) for o in node.others)
    found = _called(names, "DISTINCT" in node.beside, (*args, *filters))
    return ("WindowExpression", found) if "OVER" in node.beside else found


def _type(kind: Any) -> str:
    return str(kind).replace(" ", "")


def _spark(nodes: Any) -> Shape:
    node = next(nodes)
    name = node["class"].rpartition(".")[2]
    kids = [_spark(nodes) for _ in range(node["num-children"])]
    return _spark_shape(name.partition("$")[0], node, kids)


def _parts(text: str) -> tuple[str, ...]:
    return tuple(text[1:-1].split(", "))


def _spark_shape(name: str, node: dict[str, Any], kids: list[Shape]) -> Shape:  # noqa: C901  (one line for each class)
    match name:
        case "UnresolvedAttribute" | "UnresolvedNamedLambdaVariable":
            return ("name", _parts(node["nameParts"]))
        case "CurrentPath":
            return ("call", ("current_path",), False)
        case "Literal":
            kind = str(node["dataType"])
            kind = "months" if kind.startswith(("interval year", "interval month")) else kind
            return ("literal", kind, None if kind in _NO_VALUE else node["value"])
        case "PosParameter" | "NamedParameter":
            return ("parameter",)
        case "UnresolvedStar" | "UnresolvedStarExceptOrReplace":
            return ("star",)
        case "ScalarSubquery" | "Exists" | "ListQuery":
            return ("query",)
        case "InSubquery":
            return ("In", *kids)
        case "Cast":
            return ("Cast", _spark_type(node["dataType"]), *kids)
        case "UnresolvedFunction":
            filters = node.get("filter")
            count = len(node["arguments"]) + bool(filters)
            return _called(tuple(p.lower() for p in _parts(node["nameParts"])), node["isDistinct"], tuple(kids[:count]))
        case "WindowExpression":
            return ("WindowExpression", kids[0])
        case "UnresolvedWindowExpression":
            return ("WindowExpression", kids[0])
        case "AggregateExpression":
            return kids[0]
        case "First" | "Last" | "AnyValue":
            return ("call", ({"AnyValue": "any_value"}.get(name, name.lower()),), False, kids[0])
        case "CreateNamedStruct":
            return ("struct", *kids[1::2])
        case "CreateStruct":
            return ("struct", *kids)
        case "Alias" if kids[0][0] == "unnamed":
            return kids[0][1:]
        case "Alias":
            return ("Alias", node["name"], *kids)
        case "MultiAlias":
            return ("Alias", *_parts(node["names"]), *kids)
        case "SemiStructuredExtract":
            return ("unnamed", "path", _steps(node["field"]), *kids)
        case "Collate":
            return ("Collate", kids[1][1], kids[0])
        case "UnresolvedCollation":
            return ("collation", _parts(node["collationName"]))
        case "NamedArgumentExpression":
            return (name, node["key"], *kids)
        case "TimestampAdd" | "TimestampDiff":
            return (name, node["unit"].lower(), *kids)
        case "Substring":
            return (
                "call",
                ("substring",),
                False,
                *(kids if kids[2] != ("literal", "integer", "2147483647") else kids[:2]),
            )
        case "Overlay":
            return ("call", ("overlay",), False, *(kids if kids[3] != ("literal", "integer", "-1") else kids[:3]))
        case "StringLocate":
            return ("call", ("instr",), False, kids[1], kids[0])
    return (
        {"IsUnknown": "IsNull", "IsNotUnknown": "IsNotNull"}.get(name, name),
        *kids,
    )  # copies of them lose their names


def _steps(path: str) -> int:
    """How many steps ``$.a[0]['x']`` has."""
    return path.count(".") + path.count("[")


def _spark_type(kind: Any) -> str:
    if kind == []:
        return "struct<>"
    if not isinstance(kind, dict):
        plain = {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint"}.get(
            str(kind), str(kind)
        ).replace(" ", "")
        return "?" if plain == "void" or plain.startswith("interval") else plain
    if kind["type"] == "array":
        return f"array<{_spark_type(kind['elementType'])}>"
    if kind["type"] == "map":
        return f"map<{_spark_type(kind['keyType'])},{_spark_type(kind['valueType'])}>"
    inner = (f"{f['name']}:{_spark_type(f['type'])}{'' if f['nullable'] else 'notnull'}" for f in kind["fields"])
    return f"struct<{','.join(inner)}>"
