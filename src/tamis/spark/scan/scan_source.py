"""What a Spark scan reads: one snapshot under one schema, and what Spark asked of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tamis.core.types import Schema
from tamis.spark.jvm_bridge.catalyst import Translation
from tamis.spark.scan.pushdown import NOTHING, Pushed
from tamis.spark.scan.scan_metrics import Opening
from tamis.storage.commit_log import Snapshot
from tamis.storage.object_store import Store


@dataclass(frozen=True, slots=True)
class Source:
    """One snapshot of a table under the reader's schema. ``opening`` is the cost of opening it."""

    name: str
    store: Store
    snapshot: Snapshot
    schema: Schema
    opening: Opening = field(default_factory=Opening)
    pinned: bool = field(default=False, compare=False)
    """Whether the query asks for this version or time."""

    @property
    def by_path(self) -> bool:
        """Whether the table was opened by its path, and not by a name in a catalog."""
        return self.name == self.store.url


@dataclass(frozen=True, slots=True)
class ScanRequest:
    """What Spark pushed down to a scan: ``required`` is Spark's type of the rows, ``selected`` ours."""

    filters: Translation
    selected: Schema
    required: Any
    pushed: Pushed = NOTHING
    positions: bool = False
    """Whether rows come with their positions."""
    metadata: tuple[str, ...] = ()
    """The fields of ``_metadata`` that rows come with."""
    changes_rows: bool = False
    """Whether this is the target of an UPDATE, MERGE or DELETE, which needs every part of the plan."""
    keyed: bool = False
    """Whether few join keys will narrow the scan, so that Spark's own reader would read too much."""
    cost_based: bool = False
    """Whether Spark's cost-based optimizer wants column statistics."""
