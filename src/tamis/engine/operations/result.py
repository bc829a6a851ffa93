"""What a verb that changes a table answers: numbers, never None."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

Progress = Callable[[int, str], None]
"""Told of further bytes of the table that have been dealt with, and how."""


@dataclass(frozen=True, slots=True)
class Result:
    """The version that the change made (or met, where nothing changed), and how much of what.

    ``parts_removed`` are all that left the table, ``parts_rewritten`` those of them whose other rows stand in parts added.
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
    """Parts of which rows were looked at."""
    parts_thinned: int = 0
    """Parts that stay and have lost rows."""
    bytes_read: int = 0
    """Of data files and of parts of indexes, to find the rows; metadata is not counted."""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def metrics(self) -> dict[str, int]:
        """For the commit's operation: everything but the version, which is not known before."""
        return {name: value for name, value in asdict(self).items() if name != "version"}


def written(manifests: list[pa.Table]) -> tuple[int, int, int]:
    """Rows, parts and bytes of the parts that ``manifests`` list."""
    rows, size = (sum(int(pc.sum(m[name]).as_py() or 0) for m in manifests) for name in ("rows", "bytes"))
    return rows, sum(len(m) for m in manifests), size
