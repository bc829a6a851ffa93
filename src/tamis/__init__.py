"""Tamis: a table format for Spark that reads only what a query needs, and is never wrong about it.

Importing this package loads nothing heavy: the names below are imported on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tamis.lazy_imports import lazy_attributes

if TYPE_CHECKING:
    from tamis.core import schema as schema
    from tamis.engine.scan import CommitReport as CommitReport
    from tamis.engine.scan import Plan as Plan
    from tamis.engine.scan import Report as Report
    from tamis.engine.scan import Scan as Scan
    from tamis.engine.scan import on_report as on_report
    from tamis.engine.scan import reports as reports
    from tamis.errors import *  # noqa: F403  # the error names are re-exported for type checkers
    from tamis.spark import attach as attach
    from tamis.table import Table as Table  # the public name, as in the design
    from tamis.table import adopt as adopt
    from tamis.table import create as create
    from tamis.table import open as open  # noqa: A004  # the public name, as in the design
    from tamis.table import scan_polars as scan_polars

_HOME = {
    "Table": "tamis.table",
    "adopt": "tamis.table",
    "create": "tamis.table",
    "open": "tamis.table",
    "scan_polars": "tamis.table",
    "Scan": "tamis.engine.scan",
    "Plan": "tamis.engine.scan",
    "Report": "tamis.engine.scan",
    "CommitReport": "tamis.engine.scan",
    "on_report": "tamis.engine.scan",
    "reports": "tamis.engine.scan",
    "attach": "tamis.spark",
    "TamisError": "tamis.errors",
    "NotFound": "tamis.errors",
    "AlreadyExists": "tamis.errors",
    "Conflict": "tamis.errors",
    "SchemaMismatch": "tamis.errors",
    "SchemaFenced": "tamis.errors",
    "IncompatibleSchema": "tamis.errors",
    "InvalidInput": "tamis.errors",
    "CorruptData": "tamis.errors",
    "StoreUnavailable": "tamis.errors",
}

__version__ = "0.1.0"
__all__ = [*_HOME, "schema"]  # noqa: PLE0604  # names resolved by __getattr__


_from_home = lazy_attributes(__name__, _HOME)


def __getattr__(name: str) -> Any:
    if name == "schema":
        return importlib.import_module("tamis.core.schema")
    return _from_home(name)


def __dir__() -> list[str]:
    return sorted(__all__)
