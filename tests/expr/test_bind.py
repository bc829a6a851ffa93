"""What the parser says beside a node's operands is never lost: it is understood, or makes the node unknown."""

from __future__ import annotations

import pytest

from tamis import expr
from tests.expr.oracle import bound


@pytest.mark.parametrize("text", ["string0 NOT LIKE 'a%'", "string0 NOT LIKE 'a!%' ESCAPE '!'", "NOT string0 LIKE 'a%'"])
def test_not_like(text: str) -> None:
    tree = bound(text, "UTC")
    assert isinstance(tree, expr.Call)
    assert tree.function == "not"


@pytest.mark.parametrize("text", ["integer0 BETWEEN SYMMETRIC 5 AND 1", "string0 NOT ILIKE 'a%'"])
def test_what_no_handler_asks_about_is_unknown(text: str) -> None:
    assert not expr.supported(bound(text, "UTC"))
