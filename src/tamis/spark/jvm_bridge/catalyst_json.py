"""Translation of Catalyst's JSON and VARIANT functions. Raises ``Inexpressible`` for unsupported forms."""

from __future__ import annotations

from typing import Any

from tamis.core import expr
from tamis.core import types as t
from tamis.core.expr.functions.json import json_text, variant_values
from tamis.core.expr.json_codec.json_path import steps_of
from tamis.core.expr.tree import Call, Expr, Literal, Mode, Opaque
from tamis.spark.jvm_bridge.catalyst_literals import Inexpressible

Args = tuple[Expr, ...]
_EVALUATION = "org.apache.spark.sql.catalyst.expressions.variant.VariantExpressionEvalUtils$"


def variant_get(kind: t.DataType, settings: dict[str, Any], args: Args) -> Expr:
    """``VariantGet(value, path, targetType, failOnError, timeZoneId)``."""
    value, path = args
    steps = steps_of(path.value) if isinstance(path, Literal) and isinstance(path.value, str) else None
    mode = {True: Mode.ANSI, False: Mode.TRY}[settings["failOnError"]]
    found = None if steps is None else variant_values.get(value, steps, kind, mode, settings.get("timeZoneId"))
    if found is None:
        raise Inexpressible("a step into VARIANT")
    return found


def static_invoke(settings: dict[str, Any], args: Args) -> Expr:
    """``parse_json`` and ``is_variant_null``, which Catalyst holds as ``StaticInvoke``."""
    name = settings.get("functionName") if settings.get("staticObject") == _EVALUATION else None
    if name == "isVariantNull" and len(args) == 1:
        return expr.make_call("is_variant_null", *args)
    if (
        name == "parseJson"
        and len(args) >= 3
        and all(isinstance(a, Literal) and isinstance(a.value, bool) for a in args[1:])
    ):
        duplicates, fails = (a.value for a in args[1:3] if isinstance(a, Literal))
        if not duplicates:
            return expr.make_call("parse_json", args[0], mode=Mode.ANSI if fails else Mode.TRY)
    raise Inexpressible(f"static method {settings.get('functionName')}")


def json_to_structs(kind: t.DataType, settings: dict[str, Any], session: dict[str, str], args: Args) -> Expr:
    """``from_json`` without options, before a field is selected.

    The field for documents that do not fit holds their text, not the value of its key. Spark's optimizer leaves the one
    field that is asked for; without it, the other fields decide what is kept of malformed documents.
    """
    if settings.get("options") != {} or not isinstance(kind, t.Struct):
        raise Inexpressible("options of from_json")
    if session["spark.sql.columnNameOfCorruptRecord"] in {f.name for f in kind.fields}:
        raise Inexpressible("the text of documents that do not fit")
    if len(kind.fields) > 1 and any(f.type == t.STRING or f.type.children for f in kind.fields):
        raise Inexpressible("fields that Spark keeps of documents that do not fit")
    found = json_text.from_json(args[0], (), kind)
    if found is None:
        raise Inexpressible("from_json")
    return found


def without_structs(args: Args) -> Args:
    """Return arguments in which structs of ``from_json`` are opaque: only their fields are computed here."""
    return tuple(
        Opaque(a.type, expr.to_sql(a), a.children, total=True)
        if isinstance(a, Call) and a.function == "from_json" and isinstance(a.type, t.Struct)
        else a
        for a in args
    )


def json_field(parent: Expr, name: str, kind: t.DataType) -> Expr | None:
    """A field of a ``from_json`` result, or None for any other parent."""
    if not (isinstance(parent, Call) and parent.function == "from_json"):
        return None
    found = json_text.from_json(parent.args[0], (*json_text.known_steps(parent), name), kind)
    if found is None:
        raise Inexpressible(f"a field of type {kind}")
    return found
