"""State: store, log, manifests, snapshots, rollups. What a table is, and how it changes: one commit at a time."""

from tamis.state.conflict import StillValid
from tamis.state.creation import create
from tamis.state.heads import next_schema, ordered_now
from tamis.state.model import PART_COLUMNS, Head, IndexDefinition, IndexPath, Operation, ReadSet
from tamis.state.proposal import Proposal
from tamis.state.snapshot import SEGMENT_COLUMNS, Snapshot
from tamis.state.store import Entry, Io, Store, open_store
from tamis.state.transaction import commit
from tamis.state.versions import HISTORY, history, load

__all__ = [
    "HISTORY",
    "PART_COLUMNS",
    "SEGMENT_COLUMNS",
    "Entry",
    "Head",
    "IndexDefinition",
    "IndexPath",
    "Io",
    "Operation",
    "Proposal",
    "ReadSet",
    "Snapshot",
    "StillValid",
    "Store",
    "commit",
    "create",
    "history",
    "load",
    "next_schema",
    "open_store",
    "ordered_now",
]
