"""Texts that were once read otherwise than Spark reads them, or refused though Spark takes them; no Spark is needed to look at them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import tamis
from tamis import InvalidInput
from tamis.core import expr
from tamis.core.expr import Call, Column, Moving
from tamis.core.expr.syntax import SyntaxProblem
from tamis.core.expr.syntax import parse_expression as read
from tamis.core.expr.syntax.nodes import Name, walk_nodes
from tamis.core.types import BOOLEAN, DATE, INTEGER, STRING, Field, Schema
from tests.expr.grammar import shapes

SCHEMA = Schema(
    (Field("p", BOOLEAN, id=1), Field("q", BOOLEAN, id=2), Field("r", BOOLEAN, id=3), Field("s", STRING, id=4))
)
MEANS = [
    ("p = q < r", "(p = q) < r"),
    ("p < q = r", "(p < q) = r"),
    ("p = q = r", "(p = q) = r"),
    ("p <=> q > r", "(p <=> q) > r"),
    ("p = q AND r = s", "(p = q) AND (r = s)"),
    ("p OR q AND NOT r", "p OR (q AND (NOT r))"),
    ("NOT p = q", "NOT (p = q)"),
    ("s LIKE 'true' = p", "s LIKE ('true' = p)"),
    ("s LIKE 'a' || 'b' AND p", "(s LIKE ('a' || 'b')) AND p"),
    ("p BETWEEN q AND r = s AND p", "(p BETWEEN q AND (r = s)) AND p"),
    ("p = q IS NULL", "(p = q) IS NULL"),
    ("p IS DISTINCT FROM q = r", "p IS DISTINCT FROM (q = r)"),
    ("p | q ^ r & s << p + q * r", "p | (q ^ (r & (s << (p + (q * r)))))"),
    ("p || q + r", "(p || q) + r"),
    ("p - q - r", "(p - q) - r"),
    ("- p :: int", "- (p :: int)"),
    ("-1 :: string", "(-1) :: string"),
    ("NOT IN (p)", "NOT (in(p))"),
    ("p /* = /* q */ */ = -- < q\n r", "p = r"),
    ("p == q", "p = q"),
    ("p !> q", "p <= q"),
]
"""A text, and the same with parentheses around all that Spark's parser sees as one."""


@pytest.mark.parametrize(("text", "same"), MEANS, ids=[text for text, _ in MEANS])
def test_operators_bind_as_in_spark(text: str, same: str) -> None:
    assert shapes.ours(text) == shapes.ours(same)


DIFFERENT = [("p = q < r", "p = (q < r)"), ("s LIKE 'true' = p", "(s LIKE 'true') = p"), ("NOT p = q", "(NOT p) = q")]


@pytest.mark.parametrize(("text", "other"), DIFFERENT)
def test_parentheses_matter(text: str, other: str) -> None:
    assert shapes.ours(text) != shapes.ours(other)


REFUSED = [
    *(
        "p IS NULL = true",
        "p NOT IN (true) = true",
        "p BETWEEN q AND r IS NULL",
        "p IN ()",
        "s LIKE ANY ()",
        "s LIKE 'a' ESCAPE 'bc'",
    ),
    *(
        "p = = q",
        "p && q",
        "p ! IN (q)",
        "128Y = 1",
        "1e400 > 1",
        "s = x'zz'",
        "d = DATE 'no'",
        "foo 'x'",
        "p;",
        "(p",
        "p)",
        "'a",
        "p /* q",
    ),
    *(
        "INTERVAL 1 MONTH 2 DAYS",
        "INTERVAL 1.5 DAYS",
        "é = 1",
        "array(1)[0] >> 1 = 1",
        "date_add('DAY', 1, p)",
        "{{ p }}",
        "/*+ h */ p",
    ),
]


@pytest.mark.parametrize("text", REFUSED)
def test_what_spark_refuses_is_refused(text: str) -> None:
    with pytest.raises(SyntaxProblem):
        shapes.ours(text)


WORDS = [
    "fetch",
    "set",
    "comment",
    "use",
    "values",
    "outer",
    "case",
    "cast",
    "and",
    "or",
    "in",
    "is",
    "between",
    "like",
    "null_",
    "select",
    "from",
    "where",
    "table",
    "end",
    "when",
    "then",
    "else",
    "all",
    "any",
    "some",
    "distinct",
    "interval",
    "date",
    "timestamp",
    "time",
    "year",
    "day",
    "exists",
    "extract",
    "position",
    "substring",
    "trim",
    "overlay",
    "struct",
    "array",
    "map",
    "first",
    "last",
    "current_date",
    "current_timestamp",
    "current_user",
    "localtimestamp",
    "user",
    "left",
    "right",
    "full",
    "cross",
    "join",
    "union",
    "except",
    "order",
    "group",
    "having",
    "limit",
    "x",
    "y",
    "r",
    "lateral",
    "on",
    "using",
]


@pytest.mark.parametrize("word", WORDS)
def test_any_word_can_be_a_column(word: str) -> None:
    """With an operator behind it and before it, in a call, in a list, and as a struct's field."""
    for text in (
        f"{word} % 1",
        f"{word} = 1",
        f"1 < {word}",
        f"{word} IS NULL",
        f"f({word})",
        f"q IN ({word}, 1)",
        f"{word} = {word}",
        f"s.{word} = 1",
    ):
        names = [n.parts[-1] for n in _names(text)]
        assert word in names, text
    schema = Schema((Field(word, INTEGER, id=1),))
    assert expr.parse_predicate(f"{word} * 1 > 2", schema) == expr.parse_predicate(f"`{word}` * 1 > 2", schema)


@pytest.mark.parametrize(
    "word", [*WORDS, "not", "ilike", "regexp", "rlike", "current_path", "div", "null", "true", "escape", "collate"]
)
def test_a_filter_over_any_name_is_written_so_that_it_is_read_again(word: str) -> None:
    schema = Schema((Field(word, INTEGER, id=1), Field("a", INTEGER, id=2)))
    for text in (
        "{} - 1 > 2",
        "NOT {} = a",
        "a BETWEEN {} AND {}",
        "{} IN (1, {})",
        "- {} < a",
        "CASE WHEN {} IS NULL THEN {} ELSE {} END = 1",
    ):
        tree = expr.parse_predicate(text.replace("{}", f"`{word}`"), schema)
        assert expr.parse_predicate(expr.to_sql(tree), schema) == tree, expr.to_sql(tree)


def _names(text: str) -> list[Name]:
    return [n for n in walk_nodes(read(text)) if isinstance(n, Name)]


@pytest.mark.parametrize("name", ["current_date", "current_timestamp", "localtimestamp", "CURRENT_DATE"])
def test_a_column_comes_before_a_function_without_parentheses(name: str) -> None:
    with_column = Schema((Field(name.lower(), DATE, id=1), Field("d", DATE, id=2)))
    without = Schema((Field("d", DATE, id=2),))
    assert isinstance(expr.parse_value(name, with_column), Column)
    assert isinstance(expr.parse_value(name, without), Moving | Call)
    assert isinstance(expr.parse_value(f"{name}()", with_column), Moving | Call)


def test_the_user_is_no_column_and_no_function_here() -> None:
    with pytest.raises(InvalidInput, match="current_user"):
        expr.check_readable([expr.parse_predicate("s = current_user", SCHEMA)], 0)
    assert isinstance(expr.parse_value("current_user", Schema((Field("current_user", STRING, id=1),))), Column)


def test_null_is_compared_with_null() -> None:
    """Random filters found it: Arrow orders no values that have no type."""
    for text in ("NULL < NULL", "NULL = NULL", "NULL >= NULL = p"):
        keep, _, _ = expr.filter_mask([expr.parse_predicate(text, SCHEMA)], {1: pa.array([True, None])}, 2)
        assert not keep.any(), text
    keep, _, _ = expr.filter_mask([expr.parse_predicate("NULL <=> NULL AND NULL IS UNKNOWN", SCHEMA)], {}, 2)
    assert keep.all()


def test_a_delete_deletes_the_rows_that_spark_would(tmp_path: Path) -> None:
    """Once ``p = q < r`` was read as ``p = (q < r)``."""
    table = tamis.create(tmp_path, pa.schema([(name, pa.bool_()) for name in "pqr"]))
    values = [False, True]
    rows = [{"p": p, "q": q, "r": r} for p in values for q in values for r in values]
    table.append(pa.Table.from_pylist(rows))
    table.delete("p = q < r")
    assert table.scan().to_arrow().to_pylist() == [row for row in rows if not (row["p"] == row["q"]) < row["r"]]


def test_deep_text_is_refused_by_name() -> None:
    for text in (
        "(" * 3_000 + "p" + ")" * 3_000,
        "NOT " * 3_000 + "p",
        "- " * 3_000 + "1 = 1",
        "f(" * 2_000 + "p" + ")" * 2_000,
        "CASE " * 2_000,
    ):
        with pytest.raises(InvalidInput, match=r"nested too deeply|missing|cannot be read"):
            expr.parse_predicate(text, SCHEMA)
    with pytest.raises(InvalidInput, match="nested too deeply"):
        expr.parse_predicate("(" * 3_000 + "p" + ")" * 3_000, SCHEMA)


def test_fifty_levels_are_read() -> None:
    assert expr.parse_predicate("(" * 50 + "p" + ")" * 50, SCHEMA) == expr.parse_predicate("p", SCHEMA)
    assert expr.parse_predicate("NOT (" * 50 + "p" + ")" * 50, SCHEMA).type == BOOLEAN


def test_long_chains_are_read() -> None:
    text = " OR ".join(f"s = 'v{i}' AND p" for i in range(3_000))
    assert len(expr.parse_predicate(text, SCHEMA).children) == 3_000


def test_text_that_fails_late_does_not_take_for_ever() -> None:
    """Every way of reading is looked at once: words that begin many constructs, and a last token that fits none."""
    for text in (
        "case not in is " * 40 + ")",
        "substring(trim(cast(" * 15 + "p" + ")))" * 15 + " )",
        "(" * 25 + "p" + ", q)" * 25 + " x y",
    ):
        with pytest.raises(InvalidInput):
            expr.parse_predicate(text, SCHEMA)


LATE = [
    ("p = q r s", "'s' on (column 9)"),
    ("p =", "missing at its end (column 4)"),
    ("p = = q", "'=' on (column 5)"),
    ("p\n= )", "')' on (line 2, column 3)"),
]


@pytest.mark.parametrize(("text", "words"), LATE)
def test_an_error_says_where(text: str, words: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        expr.parse_predicate(text, SCHEMA)
    assert words in str(caught.value)
    assert caught.value.code == "PARSE_ERROR"
    assert caught.value.remedy
