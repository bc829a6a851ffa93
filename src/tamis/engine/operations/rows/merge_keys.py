"""Merge keys: which target rows may match at all, and which pairs of rows do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.core.expr import Expr, key_filter
from tamis.core.types.arrow import to_arrow_type
from tamis.core.types.float_values import with_one_zero
from tamis.engine.operations.rows.key_lookup import KeyLookup
from tamis.engine.operations.rows.merge_plan import MergePlan
from tamis.engine.operations.rows.store_assignment import computed_values

Indices = np.ndarray[Any, np.dtype[np.int64]]
Arrays = Mapping[int, pa.Array]

LOOKUP_RATIO = 2
"""Rows of the source, per row of a group, up to which all of them are joined: the cost stays linear in the group."""


class SourceKeys:
    """The keys of all source rows. NULL matches nothing; NaN equals itself; −0.0 equals 0.0."""

    def __init__(self, plan: MergePlan, source: pa.Table, now_micros: int | None) -> None:
        self._plan, self._now = plan, now_micros
        pieces = [self._of(batch) for batch in source.to_batches()]
        names = [f"k{i}" for i in range(len(plan.keys))]
        types = [to_arrow_type(source.type) for _, source in plan.keys]
        columns = [pa.chunked_array([p[i] for p in pieces], kind) for i, kind in enumerate(types)]
        self.values = columns
        self._names = names
        self.compared = pa.table([equality_bits(c) for c in columns], names=names)
        self._table = self.compared.append_column("s", pa.array(np.arange(source.num_rows, dtype=np.int64)))
        self._first = True
        self._lookup: KeyLookup | None = None

    def _of(self, batch: pa.RecordBatch) -> list[pa.Array]:
        arrays = {f.id: batch.column(at) for at, f in enumerate(self._plan.source)}
        return [
            computed_values(source, arrays, len(batch), self._now, "the source's key") for _, source in self._plan.keys
        ]

    def filter(self) -> tuple[Expr, ...]:
        """Return conjuncts that hold for every target row that can match: its keys are among the source's."""
        out = (key_filter(target, values) for (target, _), values in zip(self._plan.keys, self.values, strict=True))
        return (*self._plan.narrowing, *(conjunct for conjunct in out if conjunct is not None))

    def pairs(self, arrays: Arrays, length: int) -> tuple[Indices, Indices]:
        """Return the pairs of target and source rows with equal keys, ordered by target row."""
        columns = [
            equality_bits(pa.chunked_array([computed_values(target, arrays, length, self._now, "the target's key")]))
            for target, _ in self._plan.keys
        ]
        table = pa.table(columns, names=self._names).append_column("t", pa.array(np.arange(length, dtype=np.int64)))
        source = self._candidates(table)
        joined = table.join(source, keys=self._names, join_type="inner", use_threads=False)
        t, s = joined["t"].to_numpy(), joined["s"].to_numpy()
        order = np.lexsort((s, t))
        return t[order], s[order]

    def _candidates(self, group: pa.Table) -> pa.Table:
        """Return the source rows to join with ``group``: all, or those that a lookup finds.

        Arrow's join makes a hash table of them, for each group anew. The lookup is made for the second group: for one
        alone, it costs more than it spares.
        """
        if self._first or len(self._table) <= LOOKUP_RATIO * len(group):
            self._first = False
            return self._table
        if self._lookup is None:
            self._lookup = KeyLookup(self._table, self._names)
        found = self._lookup.candidates(group.select(self._names))
        return self._table.slice(0, 0) if found is None else pa.Table.from_batches([found])


def equality_bits(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Convert floats to bits that are equal for equal numbers; return other types unchanged."""
    if not pa.types.is_floating(values.type):
        return values
    return pa.chunked_array([with_one_zero(values.cast(pa.float64()).combine_chunks()).view(pa.int64())])
