"""The log of a table: commits, rollups, snapshots, transactions and conflict checks."""

from tamis.storage.commit_log.conflict import StillValid
from tamis.storage.commit_log.creation import create
from tamis.storage.commit_log.external_sources import EXTERNAL_COLUMNS, Source
from tamis.storage.commit_log.head_schema import next_schema, ordered_now
from tamis.storage.commit_log.model import (
    PART_COLUMNS,
    Head,
    IndexDefinition,
    IndexPath,
    Operation,
    ReadSet,
    StreamEpoch,
)
from tamis.storage.commit_log.proposal import Proposal
from tamis.storage.commit_log.snapshot import SEGMENT_COLUMNS, Snapshot
from tamis.storage.commit_log.table_constraints import Constraint
from tamis.storage.commit_log.transaction import commit
from tamis.storage.commit_log.version_loading import HISTORY, history, load, version_after

__all__ = [
    "EXTERNAL_COLUMNS",
    "HISTORY",
    "PART_COLUMNS",
    "SEGMENT_COLUMNS",
    "Constraint",
    "Head",
    "IndexDefinition",
    "IndexPath",
    "Operation",
    "Proposal",
    "ReadSet",
    "Snapshot",
    "Source",
    "StillValid",
    "StreamEpoch",
    "commit",
    "create",
    "history",
    "load",
    "next_schema",
    "ordered_now",
    "version_after",
]
