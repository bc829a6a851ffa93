"""The public ``Table`` object; it delegates all work to the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.lazy_imports import lazy_attributes
from tamis.table.table import Table, create, open, scan_polars  # noqa: A004  # the public name, as in the design

if TYPE_CHECKING:
    from tamis.engine.operations import Result as Result
    from tamis.table.adoption import adopt as adopt
else:
    __getattr__ = lazy_attributes(__name__, {"Result": "tamis.engine.operations", "adopt": "tamis.table.adoption"})

__all__ = ["Result", "Table", "adopt", "create", "open", "scan_polars"]
