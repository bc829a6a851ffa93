"""The check that the new rows of an overwrite match its filter; the next overwrite by it would miss any others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from tamis.core.expr import Expr, check_supported, column_paths, filter_mask, to_sql
from tamis.core.types import Schema
from tamis.engine.part_reader import failure_error
from tamis.errors import InvalidInput

MOST_SHOWN = 5
"""Columns of the row that an error shows."""


def check_rows_match(
    batches: Iterable[pa.RecordBatch], schema: Schema, conjuncts: Sequence[Expr], *, now_micros: int | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the batches (columns as in ``schema``) after checking each one.

    Raises ``InvalidInput``: ``OUTSIDE_FILTER`` showing a row for which the filter is not true,
    ``FILTER_FAILED`` for one on which it raises; and the errors of ``check_supported``.
    """
    for conjunct in conjuncts:
        check_supported(conjunct)
    for batch in batches:
        by_id = {f.id: batch.column(at) for at, f in enumerate(schema)}
        matched, failed, error = filter_mask(conjuncts, by_id, len(batch), now_micros=now_micros)
        if failed.any():
            raise failure_error(conjuncts, by_id, len(batch), error, now_micros=now_micros, where=" of the data")
        if not matched.all():
            raise _outside(batch, schema, conjuncts, int(np.argmin(matched)))
        yield batch


def _outside(batch: pa.RecordBatch, schema: Schema, conjuncts: Sequence[Expr], row: int) -> InvalidInput:
    text = " AND ".join(to_sql(c) for c in conjuncts)
    named = list(dict.fromkeys(schema.by_id[path[0]].name for c in conjuncts for path in column_paths(c)))[:MOST_SHOWN]
    places = {f.name: at for at, f in enumerate(schema)}
    shown = ", ".join(f"{name} = {str(batch.column(places[name])[row])[:40]}" for name in named)
    return InvalidInput(
        f"The filter {text} does not match a row of the data{shown and ': ' + shown}.",
        code="OUTSIDE_FILTER",
        name=text,
        remedy=(
            "Give only rows that it matches, or allow others: overwrite(…, allow_outside=True), "
            "or tamis.write.outside_filter = allow."
        ),
    )
