"""What a Spark scan reads."""

from __future__ import annotations

from dataclasses import dataclass, field

from tamis.spark.metrics import Opening
from tamis.state import Snapshot, Store
from tamis.types import Schema


@dataclass(frozen=True, slots=True)
class Source:
    """One snapshot of a table under the reader's schema. ``name`` is the table's name, ``opening`` what opening it cost."""

    name: str
    store: Store
    snapshot: Snapshot
    schema: Schema
    opening: Opening = field(default_factory=Opening)
