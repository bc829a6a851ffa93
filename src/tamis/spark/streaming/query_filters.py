"""The filters and columns of a stream's query: of the micro-batch that is being planned, and of the whole query."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tamis.core.expr import Expr
from tamis.core.types import Schema
from tamis.spark.jvm_bridge.adapter import Bridge
from tamis.spark.jvm_bridge.catalyst import known_nodes, opaque_filter, translate_filters
from tamis.spark.jvm_bridge.node_settings import zone_table
from tamis.spark.streaming.running_query import running_query


def translated_filters(owner: Bridge, trees: Any, schema: Schema) -> tuple[Expr, ...]:
    """Translate the filters above a streaming relation (a Scala Seq) to conjuncts on ``schema``."""
    from py4j.protocol import Py4JError

    try:
        text = owner.helper("TreeText").render(trees, known_nodes())
    except Py4JError:  # a tree nested too deeply for Java to walk: it may mean anything
        return opaque_filter(schema, "a filter that could not be read").conjuncts
    return translate_filters(text, schema, zone_table(owner)).conjuncts


def current_filters(owner: Bridge, key: str, schema: Schema) -> list[tuple[Expr, ...]] | None:
    """Return the filters above each scan of a stream if its query's next micro-batch were planned now.

    Call it in the thread of the query. ``key`` is that of the stream's Java object. None if the query's plan
    cannot be found or optimised.
    """
    found = _of_query_plan(owner, lambda plan: owner.helper("StreamFilters").now(plan, key))
    return None if found is None else [translated_filters(owner, trees, schema) for trees in found]


def referenced_columns(owner: Bridge, key: str) -> frozenset[str] | None:
    """Return the names of a stream's columns that its query refers to as it was analyzed; None if they are not known.

    Call it in the thread of the query. ``key`` is that of the stream's Java object.
    """
    found = _of_query_plan(owner, lambda plan: owner.helper("StreamColumns").referenced(plan, key))
    return None if found is None else frozenset(owner.texts(found))


def _of_query_plan(owner: Bridge, ask: Callable[[Any], Any]) -> Any:
    """Return ``ask`` of the analyzed plan of this thread's streaming query; None if it cannot be found or read."""
    from py4j.protocol import Py4JError

    running = running_query(owner)
    try:
        return None if running is None else ask(running.logicalPlan())
    except Py4JError:
        return None
