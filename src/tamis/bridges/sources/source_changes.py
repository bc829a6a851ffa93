"""What happened to a followed source between two of its versions."""

from __future__ import annotations

from dataclasses import dataclass, field

from tamis.bridges.sources.source_table import SourceTable
from tamis.errors import CorruptData


@dataclass(frozen=True, slots=True)
class SourceChange:
    """One version of a followed source, as the difference from the version before.

    ``table`` has the schema and name of the version. Its files are those that were added, or whose deletion vector
    changed; all live files if ``whole``.
    """

    table: SourceTable
    removed: tuple[str, ...] = field(default=(), repr=False)
    """Paths of files that are gone and not among those of ``table``."""
    whole: bool = False
    rearranges: bool = False
    """The source says that its rows are the same as before."""
    may_restore: bool = False
    """Files may be added that an earlier version had."""
    returned: frozenset[int] = frozenset()
    """Columns that the table's schema lacked and its files may hold; then the change is ``whole``."""
    names_moved: bool = False
    """The table's files may hold columns under other names than before; then the change is ``whole``."""


def history_gone(name: str, version: str, why: str) -> CorruptData:
    """Return the error of a source whose versions since ``version`` cannot be followed one by one."""
    return CorruptData(
        f"The source {name} cannot be followed from its version {version}: {why}.",
        code="SOURCE_HISTORY_GONE",
        name=name,
        remedy="Take its newest version in one commit, without those between: sync(skip_history=True).",
    )


def source_replaced(name: str, why: str) -> CorruptData:
    """Return the error of a source that is another table now."""
    return CorruptData(
        f"The source {name} is not the table that was adopted: {why}.",
        code="SOURCE_REPLACED",
        name=name,
        remedy="Adopt it again, as a new table.",
    )
