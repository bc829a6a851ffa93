"""The connector to Spark, without a JAR: Python objects behind Spark's own Java interfaces, Arrow on the executors."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tamis.spark.scan.scan_frame import to_spark as to_spark
    from tamis.spark.session import attach as attach

_HOME = {"attach": "tamis.spark.session", "to_spark": "tamis.spark.scan.scan_frame"}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'tamis.spark' has no attribute {name!r}")
