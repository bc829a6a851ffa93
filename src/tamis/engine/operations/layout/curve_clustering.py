"""Clustering by several columns at once, on request: rows sorted along a space-filling curve."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from tamis.core.types import LONG, Field, Schema
from tamis.core.types.arrow import to_arrow_schema
from tamis.engine.operations.rows.append import SORT_MEMORY, write_rows
from tamis.engine.part_writer import sorted_batches
from tamis.engine.part_writer.clustering_order import ClusteringOrder
from tamis.engine.part_writer.curve_keys import CURVES, KEY_BITS, bits_of, curve_boundaries, row_curve_keys
from tamis.engine.scan import Options
from tamis.errors import InvalidInput
from tamis.storage.commit_log import Head
from tamis.storage.object_store import Store

SAMPLE = 200_000
"""The approximate number of values sampled per column to find its ranges."""
KEY = Field("_curve", LONG, False, 2**31 - 1)
"""The temporary key column used while rows are sorted."""


@dataclass(frozen=True, slots=True)
class Layout:
    """A curve and its columns (id paths). Parts record ``name``; column ids never change their meaning."""

    curve: str
    columns: tuple[tuple[int, ...], ...]

    @property
    def name(self) -> str:
        return f"{self.curve}({','.join(str(path[-1]) for path in self.columns)})"


def layout_of(schema: Schema, curve: str, names: Sequence[str]) -> Layout:
    """Return the requested layout. Raises ``InvalidInput`` or ``NotFound`` naming the invalid argument."""
    if curve not in CURVES:
        raise InvalidInput(
            f"There is no curve {curve!r}.",
            code="BAD_CLUSTERING",
            name=str(curve),
            remedy=f"Use one of {', '.join(CURVES)}.",
        )
    if not 2 <= len(names) <= KEY_BITS // 4:
        raise InvalidInput(
            f"A curve goes through 2 to {KEY_BITS // 4} columns, not {len(names)}.",
            code="BAD_CLUSTERING",
            name=", ".join(names),
            remedy="Name several columns; by one, make the table CLUSTER BY it.",
        )
    found = tuple(tuple(f.id for f in schema.resolve_name(name)) for name in names)
    ClusteringOrder(schema, found)  # raises for a type without an order
    return Layout(curve, found)


def write_along_curve(
    store: Store, head: Head, rows: Callable[[], Iterable[pa.RecordBatch]], options: Options, layout: Layout, count: int
) -> Iterable[pa.Table]:
    """Write ``count`` rows sorted along the curve; yield a manifest row per part.

    ``rows`` is called twice: the first pass only samples the boundaries.
    """
    schema = head.schema
    assert schema is not None
    cuts = layout_boundaries(rows(), schema, layout, count)
    wide = replace(schema, fields=(*schema.fields, KEY))
    keyed = sorted_batches(with_keys(rows(), schema, layout, cuts), wide, [(KEY.id,)], SORT_MEMORY)
    return write_rows(
        store, head, (batch.select(range(len(schema))) for batch in keyed), options, ordered=True, complete=True
    )


def layout_boundaries(rows: Iterable[pa.RecordBatch], schema: Schema, layout: Layout, count: int) -> list[pa.Array]:
    """Return the boundaries of each layout column, from a regular sample of about ``count`` rows."""
    order, step = ClusteringOrder(schema, layout.columns), max(1, count // SAMPLE)
    taken: list[list[pa.Array]] = [[] for _ in layout.columns]
    for batch in rows:
        some = batch.take(pa.array(np.arange(0, len(batch), step)))
        for values, held in zip(order.columns(some), taken, strict=True):
            held.append(values)
    return [curve_boundaries(pa.concat_arrays(held), bits_of(len(taken))) if held else pa.nulls(0) for held in taken]


def with_keys(
    rows: Iterable[pa.RecordBatch], schema: Schema, layout: Layout, cuts: Sequence[pa.Array]
) -> Iterator[pa.RecordBatch]:
    """Append the key column to ``rows``."""
    target = to_arrow_schema(replace(schema, fields=(*schema.fields, KEY)))
    for batch in rows:
        key = row_curve_keys(batch, schema, layout.columns, cuts, layout.curve)
        yield pa.RecordBatch.from_arrays([*batch.columns, key], schema=target)
