"""Descriptions of Tamis's own Spark jobs, as the Spark UI and the event log show them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tamis.core.types.printable import printable

_DESCRIPTION = "spark.job.description"


@contextmanager
def described(spark: Any, verb: str, url: str) -> Iterator[None]:
    """Describe the jobs that this thread runs in the block: ``verb``, then the table's location.

    A description that the user, or a streaming query, has set stays.
    """
    context = spark.sparkContext
    if context.getLocalProperty(_DESCRIPTION) is not None:
        yield
        return
    context.setLocalProperty(_DESCRIPTION, printable(f"Tamis: {verb} {url}"))
    try:
        yield
    finally:
        context.setLocalProperty(_DESCRIPTION, None)
