"""Target pruning for MERGE: fetches the source's keys first and plans the target's scan again with them.

Invariant: only target rows that cannot affect the result are skipped, namely rows that match no source row in
a MERGE without NOT MATCHED BY SOURCE.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tamis.core.expr import MOST_FETCHED_KEYS, Expr, equal_as_arrow, key_filter, supported
from tamis.errors import Conflict
from tamis.spark.jvm_bridge.catalyst import known, translate
from tamis.spark.jvm_bridge.node_settings import zone_table
from tamis.spark.jvm_bridge.spark_errors import text_with_causes
from tamis.spark.write.session_frames import dataframe

_LOST_BLOCK = "CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND"
"""Spark's error condition for a missing block of a local checkpoint."""


@contextmanager
def lost_source_as_conflict(name: str) -> Iterator[None]:
    """Raise ``Conflict`` (``SOURCE_ROWS_LOST``) if rows of a local checkpoint are gone. ``name``: the target.

    Computing the source again here might give other rows, which the target's scan was not planned for. The commit is
    the last step of the block that needs Spark, so nothing was committed.
    """
    try:
        yield
    except Exception as error:
        if _LOST_BLOCK not in text_with_causes(error):
            raise
        raise Conflict(
            f"Rows of the source of the MERGE into {name} are gone: their executor was lost, or they were unpersisted. "
            "Nothing was committed.",
            code="SOURCE_ROWS_LOST",
            name=name,
            remedy="Run the statement again. If its source is a DataFrame that you checkpointed, checkpoint it again.",
        ) from error


def narrow(df: Any, table: Any, scan: Any) -> Any:
    """Plan ``scan``, by which ``df`` reads the target, for the source's keys only.

    Returns the DataFrame to run instead of ``df``. Keys and rows come from one computation of the source,
    unless it returns the same rows each time. If the keys cannot be fetched, the scan is unchanged.
    """
    if len(scan.plan.parts) < 2:
        return df
    helper = table.bridge.helper("RowLevel")
    found = helper.join(df._jdf, scan.java_key)
    if found is None:
        return df
    text = table.bridge.helper("TreeText").render(found[0], known())
    targets = translate(text, scan.source.schema, zone_table(table.bridge)).conjuncts
    if len(targets) != found[0].size() or not any(_usable(tree) for tree in targets):
        return df
    once = helper.keys(df._jdf, found[1])
    if once is None:
        return df
    keys, rows = once
    values = _values(keys)
    if values is not None:
        made = (key_filter(tree, values.column(at)) for at, tree in enumerate(targets) if _usable(tree))
        scan.narrow(tuple(conjunct for conjunct in made if conjunct is not None))
    return dataframe(rows)


def _usable(tree: Expr) -> bool:
    return supported(tree) and equal_as_arrow(tree.type)


def _values(java_df: Any) -> Any:
    """The source's distinct keys as an Arrow table, or None if there are more than ``MOST_FETCHED_KEYS``."""
    found = dataframe(java_df).distinct().limit(MOST_FETCHED_KEYS + 1).toArrow()
    return None if found.num_rows > MOST_FETCHED_KEYS else found
