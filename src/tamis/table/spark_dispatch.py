"""Which module of ``tamis.spark.write`` runs a row verb of ``Table`` on Spark."""

from __future__ import annotations

import importlib
from typing import Any

from tamis.engine.operations import Result

_BY_SPARK = {
    "append": "insert_by_path",
    "overwrite": "insert_by_path",
    "delete": "dml_by_path",
    "update": "dml_by_path",
    "merge": "dml_by_path",
}
"""The module of ``tamis.spark.write`` that runs each verb on Spark."""


def run_on_spark(verb: str, table: Any, data: Any, **arguments: Any) -> Result:
    """Run ``verb`` on the executors; ``data`` is a DataFrame, or the session for a verb without data."""
    result: Result = getattr(importlib.import_module(f"tamis.spark.write.{_BY_SPARK[verb]}"), verb)(
        table, data, **arguments
    )
    return result
