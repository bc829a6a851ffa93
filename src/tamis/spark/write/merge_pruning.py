"""MERGE reads only parts of the target that can hold one of the source's keys: the keys are asked for first, and the target's scan is planned again with them.

Law: only rows of which nothing can come are left out: those that match no source row, in a MERGE without NOT MATCHED BY SOURCE.
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
"""Distinct keys of the source up to which they are fetched: they travel to every task."""


def narrow(df: Any, table: Any, scan: Any) -> Any:
    """Plans ``scan``, by which ``df`` reads the target, for the source's keys only; the DataFrame to run instead of ``df``.

    Keys and rows come from one computation of the source, unless the source cannot change between two. Where the keys
    cannot be had, the scan stays as it is.
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
    """That the key is one of the source's; None where the two do not speak of the same values."""
    wanted = to_arrow_type(target.type)
    if pa.types.is_timestamp(values.type) and pa.types.is_timestamp(wanted):
        values = values.cast(wanted)  # the session's time zone is only a name here
    if values.type != wanted:
        return None
    return call("in", target, Literals(target.type, pc.unique(values).drop_null()))


def _usable(tree: Expr) -> bool:
    if isinstance(tree.type, String) and tree.type.collation != BINARY_COLLATION:
        return False
    return supported(tree) and tree.type not in {FLOAT, DOUBLE} and not tree.type.children


def _values(java_df: Any) -> Any:
    """The source's distinct keys as an Arrow table; None where there are too many."""
    found = dataframe(java_df).distinct().limit(MOST_KEYS + 1).toArrow()
    return None if found.num_rows > MOST_KEYS else found
