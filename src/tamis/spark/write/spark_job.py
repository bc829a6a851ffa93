"""How Tamis runs its own Spark jobs: with a description for Spark's UI and event log, and with errors of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tamis.core.types.printable import printable
from tamis.spark.executors.executor_function import executor_error

_DESCRIPTION = "spark.job.description"


@contextmanager
def spark_job(spark: Any, verb: str, url: str) -> Iterator[None]:
    """Describe the jobs that this thread runs in the block: ``verb``, then the table's location.

    A description that the user, or a streaming query, has set stays. Raises ``InvalidInput`` (``MISSING_PACKAGE``,
    ``VERSION_DIFFERS``) where executors cannot run Tamis, and otherwise what Spark raises.
    """
    context = spark.sparkContext
    described = context.getLocalProperty(_DESCRIPTION) is not None
    if not described:
        context.setLocalProperty(_DESCRIPTION, printable(f"Tamis: {verb} {url}"))
    try:
        yield
    except Exception as error:
        if ours := executor_error(error):
            raise ours from error
        raise
    finally:
        if not described:
            context.setLocalProperty(_DESCRIPTION, None)
