"""Filters of Spark as Tamis reads them."""

from __future__ import annotations

from typing import Any

from tamis.core.types import Schema
from tamis.spark.jvm_bridge.adapter import bridge_of
from tamis.spark.jvm_bridge.catalyst import Translation, known_nodes, translate_filters
from tamis.spark.jvm_bridge.node_settings import zone_table


def translated(frame: Any, condition: str, schema: Schema) -> Translation:
    """Translate a condition as Spark's optimizer leaves it. ``frame`` has the columns of ``schema``."""
    session = frame.sparkSession
    owner = bridge_of(session)
    # The tree is written under the settings of the active session.
    getattr(session._jvm, "org.apache.spark.sql.classic.SparkSession").setActiveSession(session._jsparkSession)
    plan = frame.where(condition)._jdf.queryExecution().optimizedPlan()
    while plan.getClass().getSimpleName() != "Filter":
        plan = plan.child()
    text = owner.helper("TreeText").render(owner.seq([plan.condition()]), known_nodes())
    return translate_filters(text, schema, zone_table(owner))
