"""The verbs that change a table's rows, one commit each, and the maintenance verbs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.lazy_imports import lazy_attributes

if TYPE_CHECKING:
    from tamis.engine.operations.layout.compact import Compacted as Compacted
    from tamis.engine.operations.layout.compact import CompactionPlan as CompactionPlan
    from tamis.engine.operations.layout.compact import Limits as Limits
    from tamis.engine.operations.layout.compact import compact as compact
    from tamis.engine.operations.layout.compact import plan_compaction as plan_compaction
    from tamis.engine.operations.layout.compaction_candidates import PartChoice as PartChoice
    from tamis.engine.operations.layout.curve_clustering import layout_of as layout_of
    from tamis.engine.operations.result import Progress as Progress
    from tamis.engine.operations.result import Result as Result
    from tamis.engine.operations.retry import retry_conflicts as retry_conflicts
    from tamis.engine.operations.rows.append import append as append
    from tamis.engine.operations.rows.change_feed import Changes as Changes
    from tamis.engine.operations.rows.change_feed import FeedForm as FeedForm
    from tamis.engine.operations.rows.change_feed import changes as changes
    from tamis.engine.operations.rows.delete import delete as delete
    from tamis.engine.operations.rows.merge_and_upsert import merge_once as merge_once
    from tamis.engine.operations.rows.merge_and_upsert import merge_rows as merge_rows
    from tamis.engine.operations.rows.merge_plan import MergeClause as MergeClause
    from tamis.engine.operations.rows.overwrite import overwrite as overwrite
    from tamis.engine.operations.rows.restore import restore as restore
    from tamis.engine.operations.rows.update import update as update
    from tamis.engine.operations.upkeep.analyze import Analyzed as Analyzed
    from tamis.engine.operations.upkeep.analyze import analyze as analyze
    from tamis.engine.operations.upkeep.part_analysis import learn_here as learn_here
    from tamis.engine.operations.upkeep.vacuum import Vacuumed as Vacuumed
    from tamis.engine.operations.upkeep.vacuum import retention_of as retention_of
    from tamis.engine.operations.upkeep.vacuum import vacuum as vacuum
    from tamis.engine.operations.upkeep.verify import Verification as Verification
    from tamis.engine.operations.upkeep.verify import verify as verify
else:
    __getattr__ = lazy_attributes(
        __name__,
        {
            "Analyzed": "tamis.engine.operations.upkeep.analyze",
            "Changes": "tamis.engine.operations.rows.change_feed",
            "Compacted": "tamis.engine.operations.layout.compact",
            "CompactionPlan": "tamis.engine.operations.layout.compact",
            "FeedForm": "tamis.engine.operations.rows.change_feed",
            "Limits": "tamis.engine.operations.layout.compact",
            "MergeClause": "tamis.engine.operations.rows.merge_plan",
            "PartChoice": "tamis.engine.operations.layout.compaction_candidates",
            "Progress": "tamis.engine.operations.result",
            "Result": "tamis.engine.operations.result",
            "Vacuumed": "tamis.engine.operations.upkeep.vacuum",
            "Verification": "tamis.engine.operations.upkeep.verify",
            "analyze": "tamis.engine.operations.upkeep.analyze",
            "append": "tamis.engine.operations.rows.append",
            "changes": "tamis.engine.operations.rows.change_feed",
            "compact": "tamis.engine.operations.layout.compact",
            "delete": "tamis.engine.operations.rows.delete",
            "layout_of": "tamis.engine.operations.layout.curve_clustering",
            "learn_here": "tamis.engine.operations.upkeep.part_analysis",
            "merge_once": "tamis.engine.operations.rows.merge_and_upsert",
            "merge_rows": "tamis.engine.operations.rows.merge_and_upsert",
            "overwrite": "tamis.engine.operations.rows.overwrite",
            "plan_compaction": "tamis.engine.operations.layout.compact",
            "retry_conflicts": "tamis.engine.operations.retry",
            "restore": "tamis.engine.operations.rows.restore",
            "retention_of": "tamis.engine.operations.upkeep.vacuum",
            "update": "tamis.engine.operations.rows.update",
            "vacuum": "tamis.engine.operations.upkeep.vacuum",
            "verify": "tamis.engine.operations.upkeep.verify",
        },
    )
