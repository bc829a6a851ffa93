"""The results of verbs: numbers, never None."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

Progress = Callable[[int, str], None]
"""Callback that receives further bytes of the table that have been processed, and how."""


@dataclass(frozen=True, slots=True)
class Result:
    """The version a change made (or found, if nothing changed), and its counts.

    ``parts_removed`` counts all parts that left the table, ``parts_rewritten`` those whose remaining rows
    moved to added parts.
    """

    version: int
    rows_inserted: int = 0
    rows_updated: int = 0
    rows_deleted: int = 0
    parts_added: int = 0
    parts_removed: int = 0
    parts_rewritten: int = 0
    bytes_written: int = 0
    parts_read: int = 0
    """Parts whose rows were read."""
    parts_thinned: int = 0
    """Parts that stay and have lost rows."""
    bytes_read: int = 0
    """Bytes of data files and index parts read to find the rows; excludes metadata."""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def metrics(self) -> dict[str, int]:
        """Return the counts for the commit's operation, without the version, which is not known yet."""
        return {name: value for name, value in asdict(self).items() if name != "version"}


def written_counts(manifests: list[pa.Table]) -> tuple[int, int, int]:
    """Return the rows, parts and bytes of the parts in ``manifests``."""
    rows, size = (sum(int(pc.sum(m[name]).as_py() or 0) for m in manifests) for name in ("rows", "bytes"))
    return rows, sum(len(m) for m in manifests), size
