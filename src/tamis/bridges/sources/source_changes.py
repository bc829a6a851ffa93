"""What happened to a followed source between two of its versions."""

from __future__ import annotations

from dataclasses import dataclass, field

from tamis.bridges.sources.source_table import SourceTable
from tamis.errors import CorruptData

ANY_TIME = 2**63 - 1
"""The last time of all, for ``SourceChange.restores_until``."""


def or_any_time(micros: int | None) -> int:
    """Return a time, or the last of all if it is unknown."""
    return ANY_TIME if micros is None else micros


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
    known_since: int | None = None
    """Files that were written after this time (microseconds, of the store's clock) were in no version before."""
    restores_until: int | None = None
    """Files that were written up to this time may have been in an earlier version; None: none of them was."""


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
