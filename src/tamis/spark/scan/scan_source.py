"""The source of a Spark scan: one snapshot under one schema."""

from __future__ import annotations

from dataclasses import dataclass, field

from tamis.core.types import Schema
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
