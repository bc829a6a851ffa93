"""SQL scripts: texts of several statements, run one by one with results as ``spark-sql`` prints them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tamis.spark.jvm_bridge.adapter import Bridge, bridge

_STRINGS = "org.apache.spark.sql.catalyst.util.StringUtils"
_SPLITS = ("splitSemiColon", "splitSemiColonWithIndex")
"""The name of one function in Spark 4.3 and in releases before it."""


def split_statements(spark: Any, text: str) -> list[str]:
    """Split ``text`` at the semicolons outside of quotes, comments and ``BEGIN … END``, as ``spark-sql`` does."""
    java = bridge(spark)
    name = next(name for name in _SPLITS if java.offers(_STRINGS, name, 2))
    found = getattr(java.cls(_STRINGS), name)(text, True)
    return [statement for statement in java.texts(_collection(java, found)) if not is_blank(statement)]


def is_blank(statement: str) -> bool:
    """Return whether ``statement`` holds only white space and ``--`` comments."""
    return all(not line.strip() or line.strip().startswith("--") for line in statement.splitlines())


def run_statement(spark: Any, statement: str) -> Sequence[str]:
    """Run one statement; return its rows as tab-separated text. Collects all of them in the driver."""
    java = bridge(spark)
    plan = spark.sql(statement)._jdf.queryExecution().executedPlan()
    return java.texts(_collection(java, java.cls("org.apache.spark.sql.execution.HiveResult").hiveResultString(plan)))


def _collection(java: Bridge, sequence: Any) -> Any:
    return java.cls("scala.jdk.javaapi.CollectionConverters").asJava(sequence)
