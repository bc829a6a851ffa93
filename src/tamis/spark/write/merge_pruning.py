"""Target pruning for MERGE: fetches the source's keys first and plans the target's scan again with them.

Invariant: only target rows that cannot affect the result are skipped, namely rows that match no source row in
a MERGE without NOT MATCHED BY SOURCE.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.expr import Expr, Literals, call, supported
from tamis.core.types import BINARY_COLLATION, DOUBLE, FLOAT, String
from tamis.core.types.arrow import to_arrow_type
from tamis.sizes import SIZES
from tamis.spark.jvm_bridge.catalyst import known, translate
from tamis.spark.write.session_frames import dataframe

MOST_KEYS = SIZES.spark_merge_keys
"""Maximum number of distinct source keys to fetch: they are sent with every task."""


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
    targets = translate(table.bridge.helper("TreeText").render(found[0], known()), scan.source.schema).conjuncts
    if len(targets) != found[0].size() or not any(_usable(tree) for tree in targets):
        return df
    once = helper.keys(df._jdf, found[1])
    if once is None:
        return df
    keys, rows = once
    values = _values(keys)
    if values is not None:
        made = (_among(tree, values.column(at)) for at, tree in enumerate(targets) if _usable(tree))
        scan.narrow(tuple(conjunct for conjunct in made if conjunct is not None))
    return dataframe(rows)


def _among(target: Expr, values: pa.ChunkedArray) -> Expr | None:
    """An IN conjunct for the source's keys, or None if the key types differ."""
    wanted = to_arrow_type(target.type)
    if pa.types.is_timestamp(values.type) and pa.types.is_timestamp(wanted):
        values = values.cast(wanted)  # instants are equal: only the zone's name differs
    if values.type != wanted:
        return None
    return call("in", target, Literals(target.type, pc.unique(values).drop_null()))


def _usable(tree: Expr) -> bool:
    if isinstance(tree.type, String) and tree.type.collation != BINARY_COLLATION:
        return False
    return supported(tree) and tree.type not in {FLOAT, DOUBLE} and not tree.type.children


def _values(java_df: Any) -> Any:
    """The source's distinct keys as an Arrow table, or None if there are more than ``MOST_KEYS``."""
    found = dataframe(java_df).distinct().limit(MOST_KEYS + 1).toArrow()
    return None if found.num_rows > MOST_KEYS else found
