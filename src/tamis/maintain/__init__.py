"""The verbs that change a table's rows, each one commit, and those that tend it."""

from tamis.maintain.append import append
from tamis.maintain.changes import Changes, changes
from tamis.maintain.compact import Compacted, CompactionPlan, compact, plan_compaction
from tamis.maintain.delete import delete
from tamis.maintain.merge_plan import Asked
from tamis.maintain.overwrite import overwrite
from tamis.maintain.restore import restore
from tamis.maintain.result import Progress, Result
from tamis.maintain.retry import repeated
from tamis.maintain.update import update
from tamis.maintain.upsert import merge_once, merge_rows
from tamis.maintain.vacuum import Vacuumed, retention_of, vacuum
from tamis.maintain.verify import Verification, verify

__all__ = [
    "Asked",
    "Changes",
    "Compacted",
    "CompactionPlan",
    "Progress",
    "Result",
    "Vacuumed",
    "Verification",
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
