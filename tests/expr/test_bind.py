"""What the parser says beside a node's operands is never lost: it is understood, or makes the node unknown."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tamis import expr
from tamis.types import Field, Schema, String
from tests.expr.oracle import bound


@pytest.mark.parametrize("text", ["string0 NOT LIKE 'a%'", "string0 NOT LIKE 'a!%' ESCAPE '!'", "NOT string0 LIKE 'a%'"])
def test_not_like(text: str) -> None:
    tree = bound(text, "UTC")
    assert isinstance(tree, expr.Call)
    assert tree.function == "not"


@pytest.mark.parametrize("text", ["integer0 BETWEEN SYMMETRIC 5 AND 1", "string0 NOT RLIKE '(?i)(a|b)'"])
def test_what_no_handler_asks_about_is_unknown(text: str) -> None:
    assert not expr.supported(bound(text, "UTC"))


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("c = 'a'", [0]),
        ("c = 'a      '", [0]),
        ("c <> 'a'", [1, 2]),
        ("c > 'a'", [1, 2]),
        ("c <=> 'a'", [0]),
        ("c IS DISTINCT FROM 'a'", [1, 2, 3]),
        ("c IN ('a', 'b      ')", [0, 2]),
        ("c IN ('a', NULL)", [0]),
        ("c BETWEEN 'ab' AND 'ab'", [1]),
        ("CASE c WHEN 'a' THEN true END", [0]),
        ("c = d", [0, 1]),
        ("c = ''", []),
        ("v = 'a '", []),
        ("c LIKE 'a'", []),
    ],
)
def test_char_is_compared_as_in_spark(text: str, rows: list[int]) -> None:
    """Values lie padded in the table; constants and shorter columns are padded as Spark pads them."""
    data = {"c": ["a  ", "ab ", "b  ", None], "d": ["a    ", "ab   ", "c    ", "d    "], "v": ["a", "ab", "b", None]}
    kinds = {"c": String("char", 3), "d": String("char", 5), "v": String("varchar", 3)}
    schema = Schema(tuple(Field(name, kind, id=i) for i, (name, kind) in enumerate(kinds.items(), 1)))
    tree = expr.parse(text, schema)
    keep, _, _ = expr.filter_mask([tree], {i: pa.array(v) for i, v in enumerate(data.values(), 1)}, 4)
    assert keep.nonzero()[0].tolist() == rows
