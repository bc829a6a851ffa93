"""The one object that a user holds; it delegates, and decides nothing."""

from tamis.engine.operations import Result
from tamis.table.table import Table, create, open  # noqa: A004  # the public name, as in the design

__all__ = ["Result", "Table", "create", "open"]
