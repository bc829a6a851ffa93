"""Binds steps into JSON documents: ``v:a.b[0]`` and ``from_json(s, 'a STRUCT<b: INT>').a.b``."""

from __future__ import annotations

from collections.abc import Callable

from tamis.core.expr.functions.json import json_text, variant_values
from tamis.core.expr.json_codec.json_path import Steps
from tamis.core.expr.sql_types import type_of
from tamis.core.expr.syntax import SyntaxProblem, data_type
from tamis.core.expr.syntax.nodes import Dot, Function, Node, Text, Type
from tamis.core.expr.tree import Expr, Mode
from tamis.core.types import VARIANT, DataType, Field, Struct
from tamis.errors import InvalidInput

CORRUPT_RECORD = "_corrupt_record"
"""The field in which Spark keeps the text of a document that does not fit; a session may name another."""


def extract(value: Expr, steps: Steps, mode: Mode, zone: str) -> Expr | None:
    """Bind ``value:path``; None if it is not supported."""
    return variant_values.get(value, steps, VARIANT, mode, zone)


def from_json_field(node: Dot, bind: Callable[[Node], Expr]) -> Expr | None:
    """Bind ``from_json(text, schema).a.b``; None for any other dot, or if it is not computed here."""
    names: list[str] = []
    below: Node = node
    while isinstance(below, Dot):
        names.insert(0, below.field)
        below = below.value
    if (
        not isinstance(below, Function)
        or [n.lower() for n in below.name] != ["from_json"]
        or len(below.args) != 2
        or below.beside
    ):
        return None
    text, schema = below.args
    kind = struct_of(schema.value) if isinstance(schema, Text) else None
    if isinstance(kind, Struct) and CORRUPT_RECORD in {f.name for f in kind.children}:
        return None
    steps: list[str] = []
    for name in names:
        fields = [f for f in kind.children if f.name.lower() == name.lower()] if isinstance(kind, Struct) else []
        if len(fields) != 1:
            return None
        steps.append(fields[0].name)
        kind = fields[0].type
    return None if kind is None or isinstance(kind, Struct) else json_text.from_json(bind(text), tuple(steps), kind)


def struct_of(text: str) -> DataType | None:
    """Parse a schema's text (``a INT, b STRUCT<c: STRING>``) into a struct; None if it is not supported."""
    whole = f"STRUCT<{text}>"
    try:
        return _type(data_type(whole), whole)
    except (SyntaxProblem, InvalidInput):  # not SQL, or an invalid type
        return None


def _type(node: Type, text: str) -> DataType | None:
    if not node.fields:
        return None if node.name in {"CHAR", "CHARACTER", "VARCHAR"} else type_of(node, text)
    fields = []
    for part in node.fields:
        kind = _type(part.type, text)
        if kind is None or not part.nullable or part.comment is not None:
            return None
        fields.append(Field(part.name, kind))
    return Struct(tuple(fields))
