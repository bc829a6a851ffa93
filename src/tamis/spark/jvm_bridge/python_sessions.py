"""PySpark's sessions over those of the JVM."""

from __future__ import annotations

import threading
from typing import Any

_binding = threading.Lock()


def python_session(java_session: Any) -> Any:
    """Return a PySpark session over a Java one. ``RDD.toDF`` stays that of the user's session.

    PySpark binds ``RDD.toDF``, for the whole process, to each session that is made.
    """
    from pyspark import RDD, SparkContext
    from pyspark.sql import SparkSession

    with _binding:
        bound = RDD.__dict__.get("toDF")
        made = SparkSession(SparkContext._active_spark_context, java_session)
        if bound is not None:
            setattr(RDD, "toDF", bound)  # noqa: B010  # mypy takes an assignment for an error
        return made
