"""Which statistics of Parquet files are right, by the writer that the footer names.

A footer's ``created_by`` is all that is known of a writer. What is listed here was found in the sources and the issues
of the writers; a writer that is not listed orders no texts as Spark does, and counts NULLs right in top-level columns.
"""

from __future__ import annotations

import re
from enum import Enum

_TEXT_WRITERS = {
    "parquet-cpp-arrow": (12, 0),
    "parquet-mr": (1, 10),
    "parquet-rs": (20, 0),
    "delta-rs": (0, 0),
}
"""Since which version a writer's bounds of texts and binaries are in the order of unsigned bytes, and of all values.

Before Arrow 12, bounds of a column written from a dictionary may be those of its first chunk (its issue 15042), and a
file does not show whether it was.
"""
_DECIMAL_WRITERS = {"parquet-cpp-arrow": (4, 0), "parquet-mr": (1, 10)}
"""Since which version a writer's bounds of decimals in binaries are in the order of numbers.

Those of parquet-rs are not, in binaries of different lengths (its issues 10860 and 11073).
"""
_NESTED_COUNTERS = {"parquet-mr": (1, 10), "parquet-rs": (20, 0), "delta-rs": (0, 0)}
"""Writers whose number of NULLs of a struct's field includes the rows in which the struct is NULL.

Arrow leaves them out where it writes from a dictionary; others have left them out in some versions.
"""


class NullCounts(Enum):
    """Which numbers of NULLs in a footer are to be believed."""

    ALL = "all"
    ZERO = "zero"
    """Only that there are none: Polars has multiplied the number by that of the pages (its issue 29321)."""
    NONE = "none"

    def include(self, count: int) -> bool:
        return self is NullCounts.ALL or (self is NullCounts.ZERO and count == 0)


def orders_texts(writer: str) -> bool:
    """Whether the writer's bounds of texts and binaries hold in the order of unsigned bytes."""
    return _at_least(writer, _TEXT_WRITERS)


def orders_decimals(writer: str) -> bool:
    """Whether the writer's bounds of decimals in binaries hold in the order of numbers."""
    return _at_least(writer, _DECIMAL_WRITERS)


def trusted_null_counts(writer: str, *, texts: bool, nested: bool) -> NullCounts:
    """Return which of the writer's numbers of NULLs are right, for ``texts`` or binaries, and for ``nested`` fields."""
    if nested and not _at_least(writer, _NESTED_COUNTERS):
        return NullCounts.NONE
    if texts and writer.startswith("parquet-cpp") and not orders_texts(writer):  # none are counted in a dictionary
        return NullCounts.NONE
    return NullCounts.ZERO if writer.lower().startswith("polars") else NullCounts.ALL


def _at_least(writer: str, since: dict[str, tuple[int, int]]) -> bool:
    match = re.match(r"([\w-]+) version (?:[a-z]+-)?(\d+)\.(\d+)", writer)
    return match is not None and match[1] in since and (int(match[2]), int(match[3])) >= since[match[1]]
