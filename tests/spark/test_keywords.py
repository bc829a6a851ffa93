"""A column may be named by any keyword of Spark's: bare and quoted, at every depth, an embedded filter reads the column that Spark reads."""

from __future__ import annotations

from typing import Any

import pytest

from tamis.core import expr
from tamis.core.expr.tree import Column, Opaque
from tamis.core.types import INTEGER, Field, Schema, Struct
from tamis.errors import TamisError

pytestmark = pytest.mark.spark

FORMS = ["{0} = 7", "{0}.{0} = 7", "{0}.{0}.{0} = 7", "plain.{0} = 7", "plain.{0}.{0} = 7"]
"""Paths with a keyword at each depth, the first step among them."""


def schema_of(word: str) -> Schema:
    """A column ``word``, or structs with fields of that name: three deep, below a plain name too."""

    def nested(name: str, first: int, depth: int) -> Field:
        kind = INTEGER if depth == 0 else Struct((nested(word, first + 1, depth - 1),))
        return Field(name, kind, True, first)

    return Schema((nested(word, 1, 2), nested("plain", 10, 2)))


def keywords(spark: Any) -> list[str]:
    return [row[0].lower() for row in spark.sql("SELECT keyword FROM sql_keywords()").collect()]


def as_spark_reads(spark: Any, text: str) -> tuple[str, ...] | None:
    """The one name in the text as Spark's parser reads it; None if it reads none, or something else."""
    try:
        tree = spark._jsparkSession.sessionState().sqlParser().parseExpression(text)
    except Exception:
        return None
    left = tree.children().apply(0) if tree.children().size() else tree
    if left.getClass().getSimpleName() != "UnresolvedAttribute":
        return None
    parts = left.nameParts()
    return tuple(parts.apply(n) for n in range(parts.size()))


def as_we_read(text: str, word: str) -> tuple[str, ...] | None:
    """The one column in the text; None if there is none, or it is left to Spark."""
    depth = text.count(".")
    whole = schema_of(word)
    kinds = {
        0: Schema((Field(word, INTEGER, True, 1),)),
        1: Schema(
            (
                Field(word, Struct((Field(word, INTEGER, True, 2),)), True, 1),
                Field("plain", Struct((Field(word, INTEGER, True, 11),)), True, 10),
            )
        ),
    }
    try:
        tree = expr.parse_predicate(text, kinds.get(depth, whole))
    except TamisError:
        return None
    nodes = list(tree.walk())
    columns = [node for node in nodes if isinstance(node, Column)]
    return columns[0].path if len(columns) == 1 and not any(isinstance(n, Opaque) for n in nodes) else None


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("quoted", [False, True])
@pytest.mark.push_cases(2)
def test_a_keyword_names_the_column_that_spark_reads(spark: Any, form: str, quoted: bool) -> None:
    words = keywords(spark)
    assert len(words) > 300
    wrong, read = [], 0
    for word in words:
        text = form.format(f"`{word}`" if quoted else word)
        theirs = as_spark_reads(spark, text)
        ours = as_we_read(text, word)
        read += theirs is not None
        if theirs is not None and (ours is None or tuple(p.lower() for p in ours) != tuple(p.lower() for p in theirs)):
            wrong.append(f"{text}: Spark reads {theirs}, we read {ours}")
    assert not wrong, "\n".join(wrong)
    assert read > 300, "Spark reads hardly any of them: the question is wrong"
