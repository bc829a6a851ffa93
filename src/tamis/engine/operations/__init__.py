"""The verbs that change a table's rows, one commit each, and the maintenance verbs."""

from tamis.engine.operations.layout.compact import Compacted, CompactionPlan, Limits, compact, plan_compaction
from tamis.engine.operations.layout.compaction_candidates import PartChoice
from tamis.engine.operations.result import Progress, Result
from tamis.engine.operations.retry import repeated
from tamis.engine.operations.rows.append import append
from tamis.engine.operations.rows.change_feed import Changes, FeedForm, changes
from tamis.engine.operations.rows.delete import delete
from tamis.engine.operations.rows.merge_and_upsert import merge_once, merge_rows
from tamis.engine.operations.rows.merge_plan import MergeClause
from tamis.engine.operations.rows.overwrite import overwrite
from tamis.engine.operations.rows.restore import restore
from tamis.engine.operations.rows.update import update
from tamis.engine.operations.upkeep.analyze import Analyzed, analyze
from tamis.engine.operations.upkeep.vacuum import Vacuumed, retention_of, vacuum
from tamis.engine.operations.upkeep.verify import Verification, verify

__all__ = [
    "Analyzed",
    "Changes",
    "Compacted",
    "CompactionPlan",
    "FeedForm",
    "Limits",
    "MergeClause",
    "PartChoice",
    "Progress",
    "Result",
    "Vacuumed",
    "Verification",
    "analyze",
    "append",
    "changes",
    "compact",
    "delete",
    "merge_once",
    "merge_rows",
    "overwrite",
    "plan_compaction",
    "repeated",
    "restore",
    "retention_of",
    "update",
    "vacuum",
    "verify",
]
