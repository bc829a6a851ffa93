"""Tests new rows by the CHECK constraints of their table, whole batches at a time.

Invariant: a row is written only if no constraint is false for it and none fails on it. NULL passes, as in the
SQL standard and in Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from tamis.core.expr import Column, Expr, evaluate
from tamis.core.expr.arrow_values import is_false, plain_value
from tamis.core.types import Schema
from tamis.errors import SchemaMismatch
from tamis.storage.commit_log import Constraint
from tamis.storage.commit_log.constraint_columns import bind_check

_SHOWN = 60
"""Characters of a value that an error shows."""


def check_batches(
    batches: Iterable[pa.RecordBatch], schema: Schema, checks: Sequence[Constraint]
) -> Iterator[pa.RecordBatch]:
    """Yield ``batches``, whose columns are those of ``schema``, each after all its rows passed all ``checks``.

    Raises ``SchemaMismatch`` for the first row that does not: ``CHECK_VIOLATION``, or ``CHECK_FAILED`` where the
    expression has no value.
    """
    trees = [(check, bind_check(check, schema)) for check in checks]
    for batch in batches:
        if trees and len(batch):
            arrays = {f.id: batch.column(at) for at, f in enumerate(schema)}
            for check, tree in trees:
                _test(check, tree, arrays, len(batch))
        yield batch


def _test(check: Constraint, tree: Expr, arrays: Mapping[int, pa.Array], length: int) -> None:
    out = evaluate(tree, arrays, length)
    if out.failed is not None and out.failed.any():
        raise failed_check(check, tree, arrays, int(np.argmax(out.failed)), out.error)
    false = is_false(out.values)
    if false.any():
        raise violated_check(check, tree, arrays, int(np.argmax(false)))


def violated_check(check: Constraint, tree: Expr, arrays: Mapping[int, pa.Array], row: int) -> SchemaMismatch:
    """Return the error for a row for which the constraint is false."""
    return SchemaMismatch(
        f"A row violates the constraint {check.name!r}, CHECK ({check.expression}){_values(tree, arrays, row)}.",
        code="CHECK_VIOLATION",
        name=check.name,
        remedy="Correct or leave out such rows, or drop the constraint.",
    )


def failed_check(
    check: Constraint, tree: Expr, arrays: Mapping[int, pa.Array], row: int | None, error: str | None
) -> SchemaMismatch:
    """Return the error for a row (None: unknown) on which the constraint raises ``error``."""
    values = "" if row is None else _values(tree, arrays, row)
    return SchemaMismatch(
        f"The constraint {check.name!r}, CHECK ({check.expression}), fails on a row{values}: {error}",
        code="CHECK_FAILED",
        name=check.name,
        remedy="Correct such rows, or define the constraint so that it has a value for them (try_add, try_cast …).",
    )


def _values(tree: Expr, arrays: Mapping[int, pa.Array], row: int) -> str:
    """Return the row's values of the columns that the expression names, as the end of a clause."""
    named = {node.ids: node for node in tree.walk() if isinstance(node, Column)}
    one = {identifier: array.slice(row, 1) for identifier, array in arrays.items()}
    found = [f"{node.name} = {shown_value(evaluate(node, one, 1).values[0])}" for node in named.values()]
    return f": {', '.join(found)}" if found else ""


def shown_value(value: pa.Scalar) -> str:
    """Return a value as a message shows it, also one that Python cannot hold."""
    try:
        held = value.as_py()
    except UnicodeDecodeError:
        held = value.as_buffer().to_pybytes()
    except (ValueError, OverflowError):  # an instant beyond Python's range
        held = plain_value(value)
    text = "NULL" if held is None else repr(held) if isinstance(held, str | bytes) else str(held)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
