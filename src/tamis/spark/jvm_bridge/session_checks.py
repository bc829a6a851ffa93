"""Tells classic Spark sessions, which have a JVM, from Spark Connect's."""

from __future__ import annotations

from typing import Any

from tamis.errors import InvalidInput


def is_connect(session_or_df: Any) -> bool:
    return any(c.__module__.startswith("pyspark.sql.connect.") for c in type(session_or_df).__mro__)


def check_classic(spark: Any) -> None:
    """Raise ``InvalidInput`` (``SPARK_CONNECT``, ``BAD_SESSION``) unless ``spark`` is a classic session."""
    if is_connect(spark):
        raise InvalidInput(
            "A session of Spark Connect has no JVM to attach a catalog to.",
            code="SPARK_CONNECT",
            name="spark",
            remedy="Read by tamis.open(path).scan(filter).to_spark(spark), or attach in a classic session.",
        )
    if not hasattr(spark, "_jsparkSession"):
        raise no_session(spark)


def no_session(given: Any) -> InvalidInput:
    return InvalidInput(
        f"A {type(given).__name__} is not a SparkSession.",
        code="BAD_SESSION",
        name="spark",
        remedy="Give the session: SparkSession.builder.getOrCreate().",
    )
