"""Errors of Spark, as one line for people."""

from __future__ import annotations


def is_spark_error(error: Exception) -> bool:
    """Return whether PySpark or Py4J raised ``error``."""
    return type(error).__module__.startswith(("pyspark.", "py4j."))


def first_line(error: Exception) -> str:
    """Return the first line of a Spark error, which says what is wrong; the rest is plans and Java frames."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"[SPARK] {lines[0] if lines else type(error).__name__}"
