"""The public ``Table`` object; it delegates all work to the engine."""

from tamis.engine.operations import Result
from tamis.table.adoption import adopt
from tamis.table.table import Table, create, open, scan_polars  # noqa: A004  # the public name, as in the design

__all__ = ["Result", "Table", "adopt", "create", "open", "scan_polars"]
