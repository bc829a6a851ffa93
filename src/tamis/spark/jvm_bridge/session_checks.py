"""Checks of a given session: a classic one, which has a JVM, of a release of Spark that Tamis supports."""

from __future__ import annotations

import re
from typing import Any

from tamis.errors import InvalidInput

OLDEST_SPARK, NEWEST_SPARK = (4, 0), (4, 3)
"""The supported lines of Spark. What a line can do is probed in its classes (``Bridge.has_method``), not concluded."""


def is_connect(session_or_df: Any) -> bool:
    return any(c.__module__.startswith("pyspark.sql.connect.") for c in type(session_or_df).__mro__)


def check_classic(spark: Any) -> None:
    """Raise ``InvalidInput`` unless ``spark`` is a classic session of a supported Spark.

    Codes: ``SPARK_CONNECT``, ``BAD_SESSION``, ``UNSUPPORTED_SPARK``.
    """
    if is_connect(spark):
        raise InvalidInput(
            "A session of Spark Connect has no JVM to attach a catalog to.",
            code="SPARK_CONNECT",
            name="spark",
            remedy=(
                "Start the server by `tamis spark connect --warehouse NAME=PLACE`. On another server that has tamis: "
                "from tamis.spark.connect import TamisDataSource; spark.dataSource.register(TamisDataSource); "
                'spark.read.format("tamis").load(PATH).'
            ),
        )
    if not hasattr(spark, "_jsparkSession"):
        raise no_session(spark)
    check_version(str(spark.version))


def check_version(version: str) -> None:
    """Raise ``InvalidInput`` (``UNSUPPORTED_SPARK``) unless this is a Spark that Tamis runs on.

    ``version`` may have a vendor's suffix, such as 4.0.2-amzn-1. Called before any Java is compiled.
    """
    found = re.match(r"(\d+)\.(\d+)", version)
    if found is None or not OLDEST_SPARK <= (int(found[1]), int(found[2])) <= NEWEST_SPARK:
        raise InvalidInput(
            f"Tamis needs Spark 4.0 to 4.3; this is {version}.",
            code="UNSUPPORTED_SPARK",
            name=version,
            remedy="Install one: pip install 'tamis[spark]'. Without Spark, tamis.open(path) reads and writes tables.",
        )


def no_session(given: Any) -> InvalidInput:
    return InvalidInput(
        f"A {type(given).__name__} is not a SparkSession.",
        code="BAD_SESSION",
        name="spark",
        remedy="Give the session: SparkSession.builder.getOrCreate().",
    )
