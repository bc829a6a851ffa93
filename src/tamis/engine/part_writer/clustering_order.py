"""Clustering order: Spark's ascending order, NULLs first and NaN last, by the clustering columns.

Text is ordered by its bytes whatever its collation: clustering only brings equal values together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.types import VARIANT, Field, Schema, Struct
from tamis.core.types.arrow import sortable_array
from tamis.engine.part_writer.packed_sort import integers_of, is_packable, packed_order
from tamis.errors import InvalidInput

Indices = np.ndarray[Any, np.dtype[np.int64]]


class ClusteringOrder:
    """The order of a schema's batches by ``cluster_by`` (id paths)."""

    def __init__(self, schema: Schema, cluster_by: Sequence[tuple[int, ...]]) -> None:
        self._paths = [_places(schema, path) for path in cluster_by]

    def sort(self, batch: pa.RecordBatch, *, in_runs: bool = False) -> pa.UInt64Array:
        """Return the indices that sort ``batch`` stably; ``in_runs``: it is a few sorted runs."""
        keys = self._keys(batch)
        packed = packed_order(keys, in_runs=in_runs)
        return arrow_order(keys) if packed is None else packed

    def is_sorted(self, batch: pa.RecordBatch) -> bool:
        """Whether the rows of ``batch`` are already sorted."""
        if len(batch) < 2 or not self._paths:
            return True
        keys = self._keys(batch)
        if len(keys) == 1 and is_packable(keys[0].type):  # without NULLs, which would have a key of their own
            values = integers_of(keys[0]).to_numpy()
            return bool((values[1:] >= values[:-1]).all())
        tied: Any = None
        for key in keys:
            before, after = key[:-1], key[1:]
            falls = pc.fill_null(pc.greater(before, after), False)
            if pc.any(falls if tied is None else pc.and_(falls, tied)).as_py():
                return False
            # Keys are NULL only if an earlier key separates these rows, or if both are NULL.
            same = pc.fill_null(pc.equal(before, after), True)
            tied = same if tied is None else pc.and_(tied, same)
            if not pc.any(tied).as_py():
                return True
        return True

    def _keys(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """Return keys that sort like the columns: flags for NULLs and NaNs before the values."""
        return [key for values in self.columns(batch) for key in _ordered(values)]

    def columns(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """Return the values of each clustering column, NULL below NULL parents."""
        found: list[pa.Array] = []
        for path in self._paths:
            values = batch.column(path[0])
            for at in path[1:]:
                values = values.flatten()[at]
            found.append(values)
        return found


def arrow_order(keys: Sequence[pa.Array]) -> pa.UInt64Array:
    """Return the indices that sort rows stably by ``keys``, of any type that Arrow sorts."""
    table = pa.table({str(at): key for at, key in enumerate(keys)})
    return pc.sort_indices(table, sort_keys=[(name, "ascending") for name in table.column_names])


def _ordered(values: pa.Array) -> list[pa.Array]:
    flags: list[pa.Array] = []
    if values.null_count:
        flags.append(values.is_valid().cast(pa.int8()))
    if pa.types.is_floating(values.type) and pc.any(pc.is_nan(values)).as_py():
        is_nan = pc.fill_null(pc.is_nan(values), False)
        flags.append(is_nan.cast(pa.int8()))
        values = pc.if_else(is_nan, pa.scalar(None, values.type), values)
    return [*flags, sortable_array(values)]


def _places(schema: Schema, path: tuple[int, ...]) -> list[int]:
    """Return a column's position, then its positions in structs.

    Raises ``InvalidInput`` if it has no order.
    """
    places: list[int] = []
    above: Field | None = None
    for column_id in path:
        fields = schema.fields if above is None else above.type.children if isinstance(above.type, Struct) else ()
        at = next((i for i, f in enumerate(fields) if f.id == column_id), None)
        if at is None:
            raise _bad(
                str(path),
                f"There is no clustering column with the ids {path}.",
                "Name a column, or a field of a struct.",
            )
        above = fields[at]
        places.append(at)
    if above is None or above.type.children or above.type == VARIANT:
        name = str(path) if above is None else above.name
        raise _bad(name, f"Column {name!r} has no order to cluster by.", "Name a field of it, or another column.")
    return places


def _bad(name: str, message: str, remedy: str) -> InvalidInput:
    return InvalidInput(message, code="BAD_CLUSTERING", name=name, remedy=remedy)
