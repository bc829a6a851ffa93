"""The verbs that change a table's rows, each one commit."""

from tamis.maintain.append import append
from tamis.maintain.overwrite import overwrite
from tamis.maintain.result import Result

__all__ = ["Result", "append", "overwrite"]
