"""Translation of Catalyst trees to the filter language.

Invariant: translation never loses a possible result. Whatever is not known exactly (a function, a type, a
constant, the mode of a cast) becomes ``Opaque``, which may be any value, NULL or an error. No tree raises.

Conjuncts are returned in the order in which Spark's own operators evaluate them: those with Python functions
last, because Spark runs these functions above a filter of the other conjuncts. Tests ``x IS NOT
NULL`` go last, because Spark infers and moves them freely: such a test must never hide an error of another
conjunct.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tamis.core import expr
from tamis.core import types as t
from tamis.core.expr.coerce import is_text
from tamis.core.expr.functions.nested.constructed import each_item, item_of
from tamis.core.expr.functions.nested.nested_fields import field_of
from tamis.core.expr.registry import TOTAL_CLASSES
from tamis.core.expr.tree import Call, Cause, Column, Constructed, Element, Expr, Literal, Mode, Opaque, conjuncts_of
from tamis.core.types import Schema
from tamis.spark.jvm_bridge import catalyst_json as documents
from tamis.spark.jvm_bridge.catalyst_literals import Inexpressible, as_constant, data_type, list_constants, same_values
from tamis.spark.jvm_bridge.catalyst_patterns import read_like
from tamis.spark.jvm_bridge.node_settings import ZoneTable, mode_of, names_zone, other_setting, zones_by_name

Node = dict[str, Any]
Args = tuple[Expr, ...]
_TRANSPARENT = frozenset({"KnownNotNull", "KnownNullable", "KnownFloatingPointNormalized", "Alias"})
"""Classes whose value is that of their only child."""
_SATURATING = frozenset({"Floor", "Ceil"})
"""Classes that cannot fail in a Spark that gives them no mode: an older one than 4.3."""


@dataclass(frozen=True, slots=True)
class Translation:
    """Spark's filters as conjuncts, in evaluation order."""

    conjuncts: tuple[Expr, ...]


def translate_filters(text: str, schema: Schema, table: ZoneTable) -> Translation:
    """Translate the filters in ``text`` (from ``TreeText.java``) and bind them to ``schema`` by name.

    ``table`` gives the offsets of zones that the JVM has otherwise.
    """
    try:
        content = json.loads(text)
        reader = _Reader(schema, content["types"], zones_by_name(content["zones"], table))
        found = [_settled(c) for tree in content["trees"] for c in conjuncts_of(reader.expression(tree))]
    except RecursionError:
        return opaque_filter(schema, "a filter nested too deeply")
    return Translation(tuple(sorted(found, key=_place)))  # sorting is stable


def opaque_filter(schema: Schema, text: str) -> Translation:
    """An opaque conjunct over all columns, for a filter that could not be read at all."""
    every = tuple(expr.column_by_ids(schema, (f.id,)) for f in schema)
    return Translation((Opaque(t.BOOLEAN, text, every),))


def _place(tree: Expr) -> int:
    """Return 0, 1 for a null check, or 2 for a conjunct with a Python function.

    Spark evaluates conjuncts without Python functions below those with them.
    """
    if any(isinstance(node, Opaque) and node.cause is Cause.PYTHON for node in tree.walk()):
        return 2
    return int(_is_null_check(tree))


def _is_null_check(tree: Expr) -> bool:
    return isinstance(tree, Call) and tree.function == "is_not_null"


def _settled(tree: Expr) -> Expr:
    """Make a null check of something that can fail opaque.

    Spark may evaluate it first or last, so nothing is known except that it can fail.
    """
    if _is_null_check(tree) and expr.can_fail(tree):
        return Opaque(tree.type, expr.to_sql(tree), tree.children)
    return tree


class _Reader:
    """Reads the nodes of one text, children first."""

    def __init__(self, schema: Schema, types: list[Any], zones: Mapping[str, str]) -> None:
        self.schema = schema
        self.types = types
        self.zones = zones
        """Zones of which the JVM has other offsets, with the names that have them."""
        self.variables: dict[str, Expr] = {}

    def expression(self, node: Node) -> Expr:
        """The node as an expression; ``Opaque`` with its columns if anything about it is unknown."""
        name = node["c"]
        if name in {"ArrayExists", "ArrayForAll"} and (tested := self.tested(node)) is not None:
            return tested
        args = tuple(self.expression(k) for k in node.get("k", ()))
        if name not in {*_TRANSPARENT, "GetStructField"}:
            args = documents.without_structs(args)
        try:
            if (setting := other_setting(node.get("session", {}))) is not None:
                raise Inexpressible(f"{name} under {setting}")
            if name in _TRANSPARENT:
                return args[0]
            special = _SPECIAL.get(name)
            return special(self, node, args) if special is not None else self.call(_function(name), node, args)
        except Exception:  # noqa: BLE001  # a tree of a later Spark, a value out of range: may be anything
            return Opaque(
                self.any_type(node),
                node.get("s") or f"{name}({', '.join(expr.to_sql(a) for a in args)})",
                args,
                name in TOTAL_CLASSES,
            )

    def tested(self, node: Node) -> Expr | None:
        """A test of the elements of an array column, or None for any other lambda."""
        try:
            source, function = self.expression(node["k"][0]), node["k"][1]
            body, *variables = function["k"]
            if isinstance(source, Constructed):
                return self.tested_items(node, source, body, variables)
            plain = (
                isinstance(source, Column)
                and isinstance(source.type, t.Array)
                and len(variables) == 1
                and not self.variables
            )
            if (
                not plain
                or not isinstance(source, Column)
                or not isinstance(source.type, t.Array)
                or node["p"].get("followThreeValuedLogic") is False
            ):
                return None
            name, inner = variables[0]["p"]["name"], source.type.element
            self.variables[name] = Element(inner.type, (*source.ids, inner.id), name)
            try:
                test = self.expression(body)
            finally:
                self.variables.clear()
            found = expr.make_call(_function(node["c"]), source, test)
            return found if isinstance(found, Call) else None
        except (LookupError, TypeError, AttributeError, Inexpressible):
            return None

    def tested_items(self, node: Node, source: Constructed, body: Node, variables: list[Node]) -> Expr | None:
        """A test of each item of an array that the filter makes."""
        if len(variables) != 1 or self.variables or node["p"].get("followThreeValuedLogic") is False:
            return None
        name, tests = variables[0]["p"]["name"], []
        for item in source.args:
            self.variables[name] = item
            try:
                tests.append(self.expression(body))
            finally:
                self.variables.clear()
        return each_item(_function(node["c"]), source, tests)

    def variable(self, node: Node, _: Args) -> Expr:
        found = self.variables[node["p"]["name"]]
        if not same_values(found.type, self.type(node)):
            raise Inexpressible("another type than the element's")
        return found

    def type(self, node: Node) -> t.DataType:
        """The node's type in Spark."""
        if node["t"] < 0:
            raise Inexpressible("unresolved")
        return data_type(self.types[node["t"]])

    def any_type(self, node: Node) -> t.DataType:
        try:
            return self.type(node)
        except (Inexpressible, LookupError, TypeError):
            return t.NULL

    def call(self, function: str, node: Node, args: Args) -> Expr:
        """A catalogue function in the node's own mode and time zone.

        Raises ``Inexpressible`` if its type is not the node's type in Spark.
        """
        settings = node["p"]
        mode = mode_of(settings) or (Mode.LEGACY if node["c"] in _SATURATING else None)
        kind = self.type(node)
        made = expr.make_call(function, *args, mode=mode or Mode.ANSI, zone=self.zone(settings), type=kind)
        if isinstance(made, Opaque) or not same_values(made.type, kind):
            raise Inexpressible(f"{function} that gives {kind}")
        if self.zones and names_zone(made, self.zones):
            raise Inexpressible("a time zone with other offsets in the JVM")
        if function == "cast" and isinstance(kind, t.String) and kind.length is not None:
            raise Inexpressible("spark.sql.preserveCharVarcharTypeInfo, under which a cast pads, cuts and fails")
        if function == "cast" and args[0].type in (t.FLOAT, t.DOUBLE) and is_text(kind):
            # Before Java 19 the text of a floating-point number is not always the shortest one.
            return Opaque(kind, node.get("s") or expr.to_sql(made), args, True)
        if mode is None and isinstance(made, Call) and expr.function_entry(made.function).moded(made.args, made.type):
            raise Inexpressible("whether it can fail is not known")
        return made

    def zone(self, settings: Mapping[str, Any]) -> str | None:
        """Return the name of the node's zone that has the JVM's offsets."""
        name: str | None = settings.get("timeZoneId")
        return name if name is None else self.zones.get(name, name)

    def variant_get(self, node: Node, args: Args) -> Expr:
        return documents.variant_get(self.type(node), {**node["p"], "timeZoneId": self.zone(node["p"])}, args)

    def python_function(self, node: Node, args: Args) -> Expr:
        return Opaque(self.any_type(node), node.get("s") or "a Python function", args, cause=Cause.PYTHON)

    def column(self, node: Node, _: Args) -> Expr:
        found = self.schema.find(node["p"]["name"])[0]
        if not same_values(found.type, self.type(node)):
            raise Inexpressible("another type than the table's")
        return expr.column_by_ids(self.schema, (found.id,))

    def field(self, node: Node, args: Args) -> Expr:
        """A struct's field: its ordinal gives the name in Spark's type, and the name the table's field."""
        (parent,) = args
        if isinstance(parent, Element) and isinstance(parent.type, t.Struct):
            name = self._field_name(node)
            inner = next(f for f in parent.type.fields if f.name == name)
            return Element(inner.type, (*parent.ids, inner.id), f"{parent.name}.{inner.name}")
        if isinstance(parent, Constructed):
            return self._checked(item_of(parent, self._field_name(node)), node)
        inside = documents.json_field(parent, self._field_name(node), self.type(node))
        if inside is not None:
            return inside
        if isinstance(parent, Call) and (found_below := field_of(parent, self._field_name(node))) is not None:
            return self._checked(found_below, node)
        if not (isinstance(parent, Column) and isinstance(parent.type, t.Struct)):
            raise Inexpressible("a field of a computed struct")
        name = self._field_name(node)
        found = next(f for f in parent.type.fields if f.name == name)
        if not same_values(found.type, self.type(node)):
            raise Inexpressible("another type than the table's")
        return expr.column_by_ids(self.schema, (*parent.ids, found.id))

    def array_field(self, node: Node, args: Args) -> Expr:
        """A field of each struct of an array."""
        inner = self.types[node["k"][0]["t"]]["elementType"]["fields"]
        return self._checked(field_of(args[0], str(inner[node["p"]["ordinal"]]["name"])), node)

    def transformed(self, node: Node, args: Args) -> Expr:  # noqa: ARG002
        """``transform(array, x -> x.field)``: a field of each element."""
        source, function = node["k"]
        body, *variables = function["k"]
        if (
            body["c"] != "GetStructField"
            or len(variables) != 1
            or body["k"][0]["c"] != "NamedLambdaVariable"
            or self.variables
        ):
            raise Inexpressible("a computed array")
        return self._checked(field_of(self.expression(source), self._field_name(body)), node)

    def struct_made(self, node: Node, args: Args) -> Expr:
        """A struct of names and values, one after the other."""
        return Constructed(self.type(node), node.get("s") or "a struct", args[1::2], total=True)

    def array_made(self, node: Node, args: Args) -> Expr:
        return Constructed(self.type(node), node.get("s") or "an array", args, total=True)

    def _checked(self, found: Expr | None, node: Node) -> Expr:
        if found is None or not same_values(found.type, self.type(node)):
            raise Inexpressible("a field of something else")
        return found

    def _field_name(self, node: Node) -> str:
        return str(self.types[node["k"][0]["t"]]["fields"][node["p"]["ordinal"]]["name"])

    def static_invoke(self, node: Node, args: Args) -> Expr:
        if node["p"].get("functionName") == "readSidePadding":
            return self.padded(args)
        return documents.static_invoke(node["p"], args)

    def literal(self, node: Node, _: Args) -> Expr:
        return as_constant(self.type(node), node["v"])

    def in_list(self, node: Node, args: Args) -> Expr:
        value, *others = args
        if others and all(isinstance(o, Literal) for o in others):
            return self.call("in", node, (value, list_constants(others[0].type, [k["v"] for k in node["k"][1:]])))
        return self.call("in", node, args)

    def in_set(self, node: Node, args: Args) -> Expr:
        kind = self.type(node["k"][0])
        if isinstance(kind, t.Struct):
            return self.call("in", node, (args[0], *(as_constant(kind, value) for value in node["p"]["hset"])))
        return self.call("in", node, (args[0], list_constants(self.type(node["k"][0]), node["p"]["hset"])))

    def size(self, node: Node, args: Args) -> Expr:
        mode = Mode.LEGACY if node["p"]["legacySizeOfNull"] else Mode.ANSI
        made = expr.make_call("size", *args, mode=mode)
        if isinstance(made, Opaque):
            raise Inexpressible("the size of something else")
        return made

    def made_timestamp(self, node: Node, args: Args) -> Expr:
        """``MakeTimestamp``, whose type says whether it makes an instant or a local time."""
        return self.call("make_timestamp_ntz" if self.type(node) == t.TIMESTAMP_NTZ else "make_timestamp", node, args)

    def element_at(self, node: Node, args: Args) -> Expr:
        """``element_at``, or ``split_part``, which Spark plans as an element of its own split class."""
        if node["k"][0]["c"] == "StringSplitSQL":
            return self.call("split_part", node, (*args[0].children, args[1]))
        return self.call("element_at", node, args)

    def unit(self, node: Node, args: Args) -> Expr:
        """A function whose first argument is the name of a unit."""
        return self.call(_function(node["c"]), node, (Literal(t.STRING, node["p"]["unit"]), *args))

    def padded(self, args: Args) -> Expr:
        """The column itself for Spark's padding of a CHAR column, because values are written padded."""
        kind, length = args[0].type, args[1]
        whole = (
            isinstance(args[0], Column)
            and isinstance(kind, t.String)
            and kind.kind == "char"
            and isinstance(length, Literal)
            and kind.length == length.value
        )
        if not whole:
            raise Inexpressible("padding to another length")
        return args[0]

    def at_least(self, node: Node, args: Args) -> Expr:
        """``AtLeastNNonNulls``, which ``dropna`` becomes, if n is 1 or the number of arguments.

        All of the arguments, or one of them, must be neither NULL nor NaN.
        """
        tests = [_present(a) for a in args]
        if node["p"]["n"] == len(tests):
            return expr.make_call("and", *tests) if len(tests) > 1 else tests[0]
        if node["p"]["n"] == 1:
            return expr.make_call("or", *tests)
        raise Inexpressible("some of many")


def _function(class_name: str) -> str:
    name = expr.catalyst_name(class_name)
    if name is None:
        raise Inexpressible(f"class {class_name}")
    return name


def _present(arg: Expr) -> Expr:
    there = expr.make_call("is_not_null", arg)
    return (
        expr.make_call("and", there, expr.make_call("not", expr.make_call("is_nan", arg)))
        if arg.type in {t.FLOAT, t.DOUBLE}
        else there
    )


_SPECIAL: dict[str, Callable[[_Reader, Node, Args], Expr]] = {
    "AttributeReference": _Reader.column,
    "PythonUDF": _Reader.python_function,
    "GetArrayStructFields": _Reader.array_field,
    "ArrayTransform": _Reader.transformed,
    "GetStructField": _Reader.field,
    "CreateNamedStruct": _Reader.struct_made,
    "CreateArray": _Reader.array_made,
    "Literal": _Reader.literal,
    "In": _Reader.in_list,
    "InSet": _Reader.in_set,
    "Like": read_like,
    "ElementAt": _Reader.element_at,
    "MakeTimestamp": _Reader.made_timestamp,
    "Size": _Reader.size,
    "TimestampDiff": _Reader.unit,
    "TimestampAdd": _Reader.unit,
    "NamedLambdaVariable": _Reader.variable,
    "AtLeastNNonNulls": _Reader.at_least,
    "VariantGet": _Reader.variant_get,
    "StaticInvoke": _Reader.static_invoke,
    "JsonToStructs": lambda read, node, args: documents.json_to_structs(
        read.type(node), node["p"], node["session"], args
    ),
}


def known_nodes() -> str:
    """The class names that are understood, comma-separated. Only other nodes need their SQL text."""
    special = _SPECIAL.keys() - {"StaticInvoke", "PythonUDF"}
    return ",".join(sorted({*special, *_TRANSPARENT, *(name for f in expr.all_entries() for name in f.catalyst)}))
