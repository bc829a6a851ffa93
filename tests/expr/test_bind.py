"""What the parser says beside a node's operands is never lost: it is understood, or makes the node unknown."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tamis.core import expr
from tamis.core.expr.evaluate import constant_value
from tamis.core.expr.tree import Constructed
from tamis.core.pruning import decide
from tamis.core.types import INTEGER, LONG, STRING, Field, Schema, String
from tests.expr.coercions import (
    DECIMALS,
    FLOATS,
    MIXED,
    MIXED_LEGACY,
    MIXED_ROWS,
    MIXED_SCHEMA,
    ROWS,
    SCHEMA,
    WIDE,
    WIDE_LEGACY,
    WIDE_ROWS,
    WIDE_SCHEMA,
    found,
)
from tests.expr.oracle import bound
from tests.pruning.evidence_of import RowsEvidence


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
    assert not expr.is_supported(bound(text, "UTC"))


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
        ("c IN ('a', NULL)", []),
        ("c IN ('a', CAST(NULL AS STRING))", [0]),
        ("c IN ('a', d)", []),
        ("c IN (d)", [0, 1]),
        ("c BETWEEN 'ab' AND 'ab'", []),
        ("c BETWEEN 'a' AND 'ab'", [0]),
        ("c NOT BETWEEN 'a' AND 'ab'", [1, 2]),
        ("c >= 'a' AND c <= 'ab'", [0, 1]),
        ("c = concat('a', '')", [0]),
        ("exists(array('a'), e -> e = c)", []),
        ("exists(array(c, d), e -> e IN ('a'))", []),
        ("exists(array('b'), e -> c = 'ab')", [1]),
        ("CAST(c AS STRING) = 'a'", []),
        ("nullif(c, 'a') <> 'b'", [0, 1, 2]),
        ("CASE c WHEN 'a' THEN true END", [0]),
        ("c = d", [0, 1]),
        ("c = ''", []),
        ("v = 'a '", []),
        ("c LIKE 'a'", []),
        ("equal_null(c, d)", [0, 1]),
        ("equal_null(c, 'a')", [0]),
        ("c <=> CAST(NULL AS STRING)", [3]),
        ("c = coalesce('a', 'b')", [0]),
    ],
)
def test_char_is_compared_as_in_spark(text: str, rows: list[int]) -> None:
    """Values lie padded in the table; constants and shorter columns are padded as Spark pads them."""
    data = {"c": ["a  ", "ab ", "b  ", None], "d": ["a    ", "ab   ", "c    ", "d    "], "v": ["a", "ab", "b", None]}
    kinds = {"c": String("char", 3), "d": String("char", 5), "v": String("varchar", 3)}
    schema = Schema(tuple(Field(name, kind, id=i) for i, (name, kind) in enumerate(kinds.items(), 1)))
    tree = expr.parse_predicate(text, schema)
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
        ("i < 1e30BD", [0, 1, 2]),
        ("l > 12.5e36BD", []),
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
        [expr.parse_predicate(text, schema)], {1: pa.array([1, None, 5], pa.int32()), 2: pa.array([1, None, 5])}, 3
    )
    assert keep.nonzero()[0].tolist() == rows


@pytest.mark.parametrize("text", DECIMALS)
@pytest.mark.parametrize("ansi", [True, False])
def test_an_integer_beside_a_decimal_has_the_digits_of_its_type(text: str, ansi: bool) -> None:
    """Except in comparisons and arithmetic, where a literal has its own digits."""
    assert found(text, ansi) == DECIMALS[text]


@pytest.mark.parametrize("text", FLOATS)
def test_a_float_beside_an_integer_is_a_double_in_ansi_mode_only(text: str) -> None:
    assert found(text, True) == FLOATS[text][0]
    assert found(text, False) in (FLOATS[text][1], None if text.startswith("try_") else FLOATS[text][1])


@pytest.mark.parametrize("text", WIDE)
@pytest.mark.parametrize("ansi", [True, False])
def test_long_decimals_are_rounded_wrapped_and_compared_as_in_spark(text: str, ansi: bool) -> None:
    assert found(text, ansi, WIDE_SCHEMA, WIDE_ROWS) == WIDE[text][not ansi]


@pytest.mark.parametrize("text", WIDE_LEGACY)
def test_text_beside_a_decimal_without_places_takes_its_type_with_ansi_off(text: str) -> None:
    assert found(text, False, WIDE_SCHEMA, WIDE_ROWS) == WIDE_LEGACY[text]


@pytest.mark.parametrize("text", MIXED)
@pytest.mark.parametrize("ansi", [True, False])
def test_a_text_between_numbers_and_a_tinyint_beside_a_decimal_have_the_types_of_spark(text: str, ansi: bool) -> None:
    """With ANSI on, the types are folded in the order in which they are written."""
    assert found(text, ansi, MIXED_SCHEMA, MIXED_ROWS) == MIXED[text][not ansi]


@pytest.mark.parametrize("text", MIXED_LEGACY)
def test_a_text_that_is_no_truth_value_is_neither_true_nor_false_with_ansi_off(text: str) -> None:
    assert found(text, False, MIXED_SCHEMA, MIXED_ROWS) == MIXED_LEGACY[text]
    with pytest.raises(AssertionError, match="CAST_INVALID_INPUT"):
        _without_failure(text)


def _without_failure(text: str) -> None:
    """Raise ``AssertionError`` if the filter fails with ANSI on."""
    tree = expr.parse_predicate(text, MIXED_SCHEMA)
    _, failed, error = expr.filter_mask([tree], {f.id: MIXED_ROWS.column(f.name) for f in MIXED_SCHEMA}, 5)
    assert not failed.any(), error


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("trim('x', 'xabcx')", "abc"),
        ("trim('xabcx', 'x')", ""),
        ("ltrim('x', 'xabcx')", "abcx"),
        ("rtrim('x', 'xabcx')", "xabc"),
        ("btrim('xabcx', 'x')", "abc"),
        ("trim(' a ')", "a"),
        ("trim(BOTH 'x' FROM 'xabcx')", "abc"),
    ],
)
def test_the_characters_that_trim_removes_come_first(text: str, value: str) -> None:
    """These values are Spark's."""
    assert constant_value(bound(text, "UTC")) == expr.Literal(STRING, value)


@pytest.mark.parametrize("text", ["trim('b', string0)", "btrim(string0, 'b')", "trim(BOTH 'b' FROM string0)"])
def test_a_text_without_characters_is_read_back_and_prunes(text: str) -> None:
    tree = bound(text, "UTC")
    assert expr.is_supported(tree)
    assert bound(expr.to_sql(tree), "UTC") == tree == bound("btrim(string0, 'b')", "UTC")
    schema = Schema((Field("string0", STRING, id=1),))
    pieces = [pa.table({"string0": values}) for values in (["cb", "d"], ["x", "y"], ["b", "x"])]
    found_ = decide([expr.parse_predicate(f"{text} = 'c'", schema)], RowsEvidence(schema, pieces), strict=True)
    assert found_.none.tolist() == [False, True, False]


def test_characters_of_a_column_are_left_to_spark() -> None:
    assert not expr.is_supported(bound("trim(string0, 'x')", "UTC"))


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("try_add(string0, cast(string1 AS INT))", False),
        ("try_divide(cast(string1 AS INT), string0)", False),
        ("try_mod(NULL, cast(string1 AS INT))", False),
        ("try_add(date0, cast(string1 AS INT))", False),
        ("try_add(string0, integer0)", True),
        ("try_add(integer0, cast(string1 AS INT))", True),
        ("try_add(string0, try_cast(string1 AS INT))", True),
        ("try_element_at(array(integer0, 5), cast(string1 AS INT))", False),
    ],
)
def test_only_spark_tries_an_operand_that_fails_beside_other_than_numbers(text: str, read: bool) -> None:
    """There, Spark's ``try_add`` is NULL where an operand fails; beside numbers, it fails."""
    assert expr.is_supported(bound(text, "UTC")) is read


@pytest.mark.parametrize("ansi", [True, False])
@pytest.mark.parametrize(
    "text", ["greatest(t, 5) > 1", "least(k, '5') = 5", "greatest(k, NULL, '5') > 1", "least(t, m) > 1"]
)
def test_text_beside_another_type_is_refused(text: str, ansi: bool) -> None:
    """As by Spark: DATATYPE_MISMATCH."""
    assert found(text, ansi) is None
    assert found("least(t, '5', NULL) = '5' OR greatest(k, l, NULL) > 1", ansi) is not None


def test_only_a_division_by_zero_is_called_so() -> None:
    for divisor, code in (("0", "DIVIDE_BY_ZERO"), ("0.0000001BD", "NUMERIC_VALUE_OUT_OF_RANGE")):
        tree = expr.parse_predicate(f"w div {divisor} > 0", WIDE_SCHEMA, ansi=True)
        _, failed, error = expr.filter_mask([tree], {f.id: WIDE_ROWS.column(f.name) for f in WIDE_SCHEMA}, 9)
        assert failed.nonzero()[0].tolist() == ([*range(8)] if divisor == "0" else [5])
        assert code in str(error)


@pytest.mark.parametrize(
    ("text", "may_fail"),
    [
        ("initcap(t) = 1", True),
        ("soundex(t) < DATE'2024-01-01'", True),
        ("coalesce(initcap(t), 1) = 1", True),
        ("hash(t) = 1L", False),
        ("hash(t) = 0.5", False),
        ("initcap(t) = 'a'", False),
    ],
)
def test_an_implicit_cast_of_a_total_function_may_fail(text: str, may_fail: bool) -> None:
    """The error that Spark raises is not hidden by another conjunct."""
    tree = expr.parse_predicate(f"{text} AND id < 0", SCHEMA, ansi=True)
    decision = decide(expr.conjuncts_of(tree), RowsEvidence(SCHEMA, [ROWS]), strict=True)
    assert bool(decision.none[0]) is not may_fail


def test_a_struct_in_an_array_keeps_its_type() -> None:
    tree = expr.parse_predicate("array(struct(k), 'a')[0] = 'x'", SCHEMA, ansi=False)
    assert not any(isinstance(node, Constructed) and node.type == STRING for node in tree.walk())
