"""Reads Catalyst's LIKE."""

from __future__ import annotations

from typing import Any, Protocol

from tamis.core import types as t
from tamis.core.expr.tree import Expr, Literal
from tamis.spark.jvm_bridge.catalyst_literals import Inexpressible


class _Reader(Protocol):
    def call(self, function: str, node: dict[str, Any], args: tuple[Expr, ...], /) -> Expr: ...


def read_like(reader: _Reader, node: dict[str, Any], args: tuple[Expr, ...]) -> Expr:
    """Return LIKE as a call; its escape character is no argument in Catalyst.

    Raises ``Inexpressible`` for a pattern with a character of two UTF-16 units: releases of Spark before SPARK-55453
    quote its halves one by one, and then find it nowhere.
    """
    pattern, escape = args[1], node["p"].get("escapeChar", "\\")
    if isinstance(pattern, Literal) and isinstance(pattern.value, str) and max(pattern.value, default="") > "\uffff":
        raise Inexpressible("a pattern about which releases of Spark differ")
    return reader.call("like", node, args if escape == "\\" else (*args, Literal(t.STRING, escape)))
