"""Our parser and Spark's read the same texts alike, and refuse the same ones."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

from tamis.core.expr.syntax import SyntaxProblem
from tamis.errors import InvalidInput
from tests.expr.grammar import shapes
from tests.expr.grammar.texts import Texts
from tests.spark.capabilities import has_views

pytestmark = pytest.mark.spark

COUNT = max(1_000, settings().max_examples * 20)
SEED = 7 if settings().derandomize else int(np.random.SeedSequence().generate_state(1)[0])


@pytest.fixture(scope="module")
def parser(spark: Any) -> Any:
    return getattr(spark._jvm.org.apache.spark.sql.catalyst.parser, "CatalystSqlParser$").__getattr__("MODULE$")


def read_here(text: str) -> object:
    try:
        return shapes.ours(text)
    except (SyntaxProblem, InvalidInput):
        return "refused"


def read_by_spark(parser: Any, text: str) -> object:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        return shapes.theirs(parser.parseExpression(text).toJSON())
    except (Py4JJavaError, PySparkException):
        return "refused"


def _unread(text: str, mine: object) -> bool:
    return "'query'" in str(mine) or re.search(r"LIKE (ANY|SOME|ALL)\b", text, re.IGNORECASE) is not None


def differences(parser: Any, texts: list[str]) -> list[str]:
    """Where the two differ. A query is recognised here and not read, and constant patterns of LIKE ANY and ALL are not computed
    while text is parsed: what Spark refuses there does not count."""
    found = ((text, read_here(text), read_by_spark(parser, text)) for text in texts)
    wrong = (
        (text, mine, other)
        for text, mine, other in found
        if mine != other and not (other == "refused" and _unread(text, mine))
    )
    return [f"{text}\n  ours  {mine}\n  Spark {other}" for text, mine, other in wrong]


@pytest.mark.merge
def test_random_texts_are_read_as_spark_reads_them(parser: Any, spark: Any) -> None:
    if not has_views(spark):
        pytest.skip(
            "SQL text of ours is read as the newest Spark reads it: 4.1 takes `semi` as a name where 4.3 does not"
        )
    source = Texts(SEED)
    texts = [source.text() for _ in range(COUNT)]
    different = differences(parser, texts)
    assert not different, f"seed {SEED}: {len(different)} of {COUNT}\n" + "\n".join(different[:20])
    taken = sum(read_here(text) != "refused" for text in texts)
    assert COUNT * 0.3 < taken < COUNT * 0.9


def test_texts_that_were_read_otherwise_once(parser: Any) -> None:
    """An alias that names columns makes ``( from NOT IN ( b , div ) )`` a query; with a number in the list it is a predicate."""
    assert not differences(parser, ["( from NOT IN ( b , div ) ) AND a", "( from NOT IN ( b , 1 ) ) AND a"])
