"""Rewriting of filters to read a part's leaves (``files.shredded_leaves``) instead of its documents.

Invariant: a filter over a leaf gives the same values and errors as over the document. If another expression
needs the whole document, it is read anyway, and its leaves are not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tamis.core.expr import Call, Column, Expr, Literal
from tamis.core.expr.functions.json.json_text import asked_path
from tamis.core.types import STRING, VARIANT
from tamis.storage.files.shredded_leaves import Leaf

_FUNCTION = {VARIANT: "variant_get", STRING: "get_json_object"}
_Keys = Mapping[tuple[tuple[int, ...], str, str], Leaf]


def rewrite_to_leaves(conjuncts: Sequence[Expr], leaves: Sequence[Leaf]) -> tuple[Expr, ...]:
    """Return the conjuncts reading leaves, except those of documents that some conjunct needs whole."""
    if not leaves:
        return tuple(conjuncts)
    keys: _Keys = {((leaf.column,), leaf.path, _FUNCTION[leaf.field.type]): leaf for leaf in leaves}
    everywhere = [_rewrite(c, keys) for c in conjuncts]
    needed = {node.ids[0] for c in everywhere for node in c.walk() if isinstance(node, Column)}
    return tuple(_rewrite(c, {key: leaf for key, leaf in keys.items() if leaf.column not in needed}) for c in conjuncts)


def _rewrite(expr: Expr, keys: _Keys) -> Expr:
    asked = asked_path(expr)
    leaf = None if asked is None else keys.get((asked[0], asked[1], asked[3]))
    if (
        leaf is not None
        and isinstance(expr, Call)
        and (leaf.field.type == VARIANT or expr.type == expr.args[0].type == STRING)
    ):
        held = Column(leaf.field.type, (leaf.field.id,), leaf.field.name)
        return replace(expr, args=(held, Literal(STRING, "$"))) if leaf.field.type == VARIANT else held
    return replace(expr, args=tuple(_rewrite(a, keys) for a in expr.args)) if isinstance(expr, Call) else expr
