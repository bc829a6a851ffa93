"""Steps into JSON documents as Spark SQL text says them: ``v:a.b[0]`` and ``from_json(s, 'a STRUCT<b: INT>').a.b``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.dialects.databricks import Databricks
from sqlglot.errors import SqlglotError

from tamis.errors import InvalidInput
from tamis.expr.documents.paths import Step, Steps
from tamis.expr.functions import documents, variants
from tamis.expr.literals import type_of
from tamis.expr.tree import Expr, Mode
from tamis.types import VARIANT, DataType, Field, Struct


def extract(value: Expr, path: Any, mode: Mode, zone: str) -> Expr | None:
    """``value:path``; None where it is not understood."""
    steps = _steps(path)
    return None if steps is None else variants.get(value, steps, VARIANT, mode, zone)


def _steps(path: Any) -> Steps | None:
    """The steps of sqlglot's path; None where it holds more than keys and positions."""
    if not isinstance(path, exp.JSONPath) or not path.expressions or not isinstance(path.expressions[0], exp.JSONPathRoot):
        return None
    steps: list[Step] = []
    for part in path.expressions[1:]:
        if not isinstance(part, exp.JSONPathKey | exp.JSONPathSubscript) or not isinstance(part.this, str | int) or part.this == "*":
            return None
        steps.append(part.this)
    return tuple(steps)


def from_json_field(node: exp.Dot, bind: Callable[[Any], Expr]) -> Expr | None:
    """``from_json(text, schema).a.b``; None for any other dot, or what is not computed here."""
    names: list[str] = []
    below: Any = node
    while isinstance(below, exp.Dot):
        if not isinstance(below.expression, exp.Identifier):
            return None
        names.insert(0, below.expression.name)
        below = below.this
    if not isinstance(below, exp.Anonymous) or str(below.this).lower() != "from_json" or len(below.expressions) != 2:
        return None
    text, schema = below.expressions
    kind = struct_of(schema.name) if isinstance(schema, exp.Literal) and schema.is_string else None
    steps: list[str] = []
    for name in names:
        fields = [f for f in kind.children if f.name.lower() == name.lower()] if isinstance(kind, Struct) else []
        if len(fields) != 1:
            return None
        steps.append(fields[0].name)
        kind = fields[0].type
    return None if kind is None or isinstance(kind, Struct) else documents.from_json(bind(text), tuple(steps), kind)


def struct_of(text: str) -> DataType | None:
    """The struct whose fields a schema's text lists (``a INT, b STRUCT<c: STRING>``); None where it is not understood."""
    try:
        parsed = sqlglot.parse_one(f"CAST(NULL AS STRUCT<{text}>)", dialect=Databricks)
        return _type(parsed.to) if isinstance(parsed, exp.Cast) else None
    except (SqlglotError, InvalidInput):  # no SQL, or a type that cannot be
        return None


def _type(node: Any) -> DataType | None:
    if node.this != exp.DataType.Type.STRUCT:
        return type_of(node)
    fields = []
    for part in node.expressions:
        kind = _type(part.args["kind"]) if isinstance(part, exp.ColumnDef) and part.args.get("kind") is not None else None
        if kind is None or part.args.get("constraints"):
            return None
        fields.append(Field(part.name, kind))
    return Struct(tuple(fields))
