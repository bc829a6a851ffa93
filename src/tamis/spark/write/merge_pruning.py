"""Target pruning for MERGE: fetches the source's keys first and plans the target's scan again with them.

Invariant: only target rows that cannot affect the result are skipped, namely rows that match no source row in
a MERGE without NOT MATCHED BY SOURCE.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from tamis.core.expr import MOST_FETCHED_KEYS, Expr, equal_as_arrow, is_supported, key_filter
from tamis.errors import Conflict
from tamis.spark.jvm_bridge.adapter import Bridge
from tamis.spark.jvm_bridge.catalyst import known_nodes, translate_filters
from tamis.spark.jvm_bridge.node_settings import zone_table
from tamis.spark.jvm_bridge.spark_errors import text_with_causes
from tamis.spark.write.session_frames import python_frame

_LOST_BLOCK = re.compile(r"\[CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND\].*?\brdd_(\d+)_")
"""Spark's error for a missing block of a local checkpoint, and the number of its RDD."""

MOST_COMPUTATIONS = 4
"""How often the source of a MERGE is computed before the statement fails because its rows were lost each time."""

_T = TypeVar("_T")
_N = TypeVar("_N")


@dataclass(slots=True)
class HeldSource:
    """The rows of a source that was computed once: an RDD of blocks on the executors, or None if it can run twice."""

    rdd: Any = None

    def lost_by(self, error: Exception) -> bool:
        """Whether ``error`` says that blocks of these rows are gone."""
        return self.rdd is not None and str(self.rdd.id()) in _lost_rdds(error)

    def release(self) -> None:
        """Free the blocks."""
        if self.rdd is not None:
            self.rdd.unpersist(False)


def collect_pruned(df: Any, table: Any, scan: Any, collect: Callable[[Any], _T]) -> _T:
    """Return ``collect`` of the rows of ``df``, a MERGE, whose target ``scan`` is planned by the source's keys.

    If an executor is lost that held rows of the source, the source is computed again, and the target's scan is
    planned by its new keys: it may be another source each time. So ``collect`` must not commit. Raises ``Conflict``
    (``SOURCE_ROWS_LOST``) after ``MOST_COMPUTATIONS`` losses, or if rows are lost that the user has checkpointed.
    """
    attempt = 0
    while True:
        attempt, source = attempt + 1, HeldSource()
        try:
            return collect(prune_target(df, table, scan, source))
        except Exception as error:
            if attempt == MOST_COMPUTATIONS or not source.lost_by(error):
                if _lost_rdds(error):
                    raise _rows_lost(table.name()) from error
                raise
        finally:
            source.release()
        table.bridge.helper("RowLevel").forgetAnswers(df._jdf, scan.java_key)
        scan.apply_join_keys(())


class StaleSource(Exception):
    """Raised by the user of a held source whose rows are of an older version than the one to change."""

    def __init__(self, conflict: Conflict) -> None:
        super().__init__(str(conflict))
        self.conflict = conflict


def run_with_held_source(
    df: Any, bridge: Bridge, name: str, note: Callable[[Any], _N], run: Callable[[Any, _N], _T]
) -> _T:
    """Return ``run`` of the rows of ``df``, which are the same however often ``run`` reads them.

    They are computed once. They are computed again, with another ``run``, if an executor is lost that held some, or if
    ``run`` raises ``StaleSource``; so it must not have committed when it fails for that. ``note`` is called before each
    computation with the rows to compute, and ``run`` gets its result. Raises ``Conflict``: that of ``StaleSource``, or
    ``SOURCE_ROWS_LOST`` as ``collect_pruned``.
    """
    attempt, helper = 0, bridge.helper("RowLevel")
    while True:
        attempt, source, planned = attempt + 1, HeldSource(), helper.plannedAnew(df._jdf)
        noted = note(python_frame(planned))
        try:
            rows, source.rdd = helper.computedOnce(planned)
            return run(python_frame(rows), noted)
        except StaleSource as error:
            if attempt == MOST_COMPUTATIONS:
                raise error.conflict from None
        except Exception as error:
            named = isinstance(error, Conflict) and error.code == "SOURCE_ROWS_LOST"
            if attempt == MOST_COMPUTATIONS or source.rdd is None or not (named or source.lost_by(error)):
                if not named and _lost_rdds(error):
                    raise _rows_lost(name) from error
                raise
        finally:
            source.release()


def prune_target(df: Any, table: Any, scan: Any, source: HeldSource) -> Any:
    """Plan ``scan``, by which ``df`` reads the target, for the source's keys only.

    Returns the DataFrame to run instead of ``df``. Keys and rows come from one computation of the source, which
    ``source`` holds, unless it returns the same rows each time. If the keys cannot be fetched, the scan is unchanged.
    """
    if len(scan.plan.parts) < 2:
        return df
    helper = table.bridge.helper("RowLevel")
    found = helper.join(df._jdf, scan.java_key)
    if found is None:
        return df
    text = table.bridge.helper("TreeText").render(found[0], known_nodes())
    targets = translate_filters(text, scan.source.schema, zone_table(table.bridge)).conjuncts
    if len(targets) != found[0].size() or not any(_usable(tree) for tree in targets):
        return df
    once = helper.keys(df._jdf, found[1])
    if once is None:
        return df
    keys, rows, source.rdd = once
    values = _values(keys)
    if values is not None:
        made = (key_filter(tree, values.column(at)) for at, tree in enumerate(targets) if _usable(tree))
        scan.apply_join_keys(tuple(conjunct for conjunct in made if conjunct is not None))
    return python_frame(rows)


def _lost_rdds(error: Exception) -> list[str]:
    """The numbers of the local checkpoints of which blocks are gone."""
    return _LOST_BLOCK.findall(text_with_causes(error))


def _rows_lost(name: str) -> Conflict:
    return Conflict(
        f"Rows of the source of the MERGE into {name} are gone: their executor was lost, or they were unpersisted. "
        "Nothing was committed.",
        code="SOURCE_ROWS_LOST",
        name=name,
        remedy="Run the statement again. If its source is a DataFrame that you checkpointed, checkpoint it again.",
    )


def _usable(tree: Expr) -> bool:
    return is_supported(tree) and equal_as_arrow(tree.type)


def _values(java_df: Any) -> Any:
    """The source's distinct keys as an Arrow table, or None if there are more than ``MOST_FETCHED_KEYS``."""
    found = python_frame(java_df).distinct().limit(MOST_FETCHED_KEYS + 1).toArrow()
    return None if found.num_rows > MOST_FETCHED_KEYS else found
