"""Evaluates an expression over a column with a dictionary: once per distinct value instead of once per row.

Invariant: values and errors are those of the evaluation row by row. Expressions have no state, so that equal values
give equal results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from tamis.core.expr.arrow_values import Evaluated
from tamis.core.expr.tree import Expr, column_paths


def evaluated_by_dictionary(
    expr: Expr, batch: Mapping[int, Any], evaluate: Callable[[Expr, Mapping[int, Any]], Evaluated]
) -> Evaluated | None:
    """Evaluate ``expr`` over the dictionary of its only column.

    Returns None if it has other columns, if the dictionary is not smaller than the column, or if any value of the
    dictionary fails: it may be one that no row has, and the error of the first row is wanted.
    """
    ids = {path[0] for path in column_paths(expr)}
    if len(ids) != 1:
        return None
    (column,) = ids
    array = batch[column]
    if not pa.types.is_dictionary(array.type) or len(array.dictionary) >= len(array):
        return None
    values, indices = array.dictionary, array.indices
    if indices.null_count:
        indices = indices.fill_null(len(values))
        values = pa.concat_arrays([values, pa.nulls(1, values.type)])
    found = evaluate(expr, {column: values})
    if found.failed is not None and bool(found.failed.any()):
        return None
    if isinstance(found.values, pa.Scalar):
        return Evaluated(found.values)
    return Evaluated(found.values.take(indices))
