"""SQL scripts: texts of several statements, run one by one with results as ``spark-sql`` prints them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import ParseException

from tamis.spark.jvm_bridge.adapter import Bridge, bridge_of
from tamis.spark.sql.statement_splitting import split_at_semicolons

_COMPOUND = re.compile(r"(?:\s|--[^\n]*\n|/\*(?:[^*]|\*(?!/))*+\*/)*+BEGIN\b", re.IGNORECASE)


def split_statements(spark: Any, text: str) -> list[str]:
    """Split ``text`` at the semicolons outside of quotes, comments and ``BEGIN … END``.

    A compound statement that has no end is one statement up to the end of ``text``.
    """
    parser = spark._jsparkSession.sessionState().sqlParser()
    statements: list[str] = []
    rest = split_at_semicolons(text)
    while rest:
        length = _compound_length(parser, rest) if _COMPOUND.match(rest[0]) else 1
        statements.append(";".join(rest[:length]))
        rest = rest[length:]
    return statements


def _compound_length(parser: Any, pieces: Sequence[str]) -> int:
    """Return how many ``pieces`` make the compound statement that the first one begins: all if it has no end."""
    for count in range(2, len(pieces) + 1):
        if re.search(r"\bEND\b", pieces[count - 1], re.IGNORECASE) and _parses(parser, ";".join(pieces[:count])):
            return count
    return len(pieces)


def _parses(parser: Any, statement: str) -> bool:
    try:
        parser.parsePlan(statement)
    except (
        ParseException,
        Py4JJavaError,
    ):  # Spark 4.0 has an error of its own for scripts, which PySpark does not know
        return False
    return True


def run_statement(spark: Any, statement: str) -> Sequence[str]:
    """Run one statement; return its rows as tab-separated text. Collects all of them in the driver."""
    java = bridge_of(spark)
    plan = spark.sql(statement)._jdf.queryExecution().executedPlan()
    return java.texts(_collection(java, java.cls("org.apache.spark.sql.execution.HiveResult").hiveResultString(plan)))


def _collection(java: Bridge, sequence: Any) -> Any:
    return java.cls("scala.jdk.javaapi.CollectionConverters").asJava(sequence)
