"""What the parser says beside a node's operands is never lost: it is understood, or makes the node unknown."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tamis.core import expr
from tamis.core.types import INTEGER, LONG, Field, Schema, String
from tests.expr.oracle import bound


@pytest.mark.parametrize(
    "text", ["string0 NOT LIKE 'a%'", "string0 NOT LIKE 'a!%' ESCAPE '!'", "NOT string0 LIKE 'a%'"]
)
def test_not_like(text: str) -> None:
    tree = bound(text, "UTC")
    assert isinstance(tree, expr.Call)
    assert tree.function == "not"


@pytest.mark.parametrize(
    "text", ["length(DISTINCT string0)", "length(string0) OVER w", "string0 NOT RLIKE '(?i)(a|b)'"]
)
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


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("i <= 9223372036854775808", [0, 1, 2]),
        ("NOT (l > 9223372036854775808)", [0, 1, 2]),
        ("9223372036854775808 >= i", [0, 1, 2]),
        ("i > -9223372036854775809", [0, 1, 2]),
        ("i < 9.3e18BD", [0, 1, 2]),
        ("i <= 9223372036854775807.5", [0, 1, 2]),
        ("i BETWEEN 0 AND 9223372036854775808", [0, 2]),
        ("l NOT BETWEEN 9223372036854775808 AND 9223372036854775809", [0, 1, 2]),
        ("i >= 9223372036854775808", []),
        ("i <= 9223372036854775807.0", [0, 2]),
        ("i <> 9223372036854775808", [0, 2]),
        ("i <= CAST(9223372036854775808 AS DECIMAL(30, 0))", [0, 2]),
        ("CAST(i AS DECIMAL(20, 0)) <= 9223372036854775808", [0, 2]),
    ],
)
def test_integers_beside_constants_beyond_them(text: str, rows: list[int]) -> None:
    """Spark's analyser makes these comparisons constants, of NULL too (random cases found it)."""
    schema = Schema((Field("i", INTEGER, id=1), Field("l", LONG, id=2)))
    keep, _, _ = expr.filter_mask(
        [expr.parse(text, schema)], {1: pa.array([1, None, 5], pa.int32()), 2: pa.array([1, None, 5])}, 3
    )
    assert keep.nonzero()[0].tolist() == rows
