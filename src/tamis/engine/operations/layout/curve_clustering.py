"""Clustering by several columns at once, on request: rows sorted along a curve through the space of these columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from tamis.core.types import LONG, Field, Schema
from tamis.core.types.arrow import to_arrow_schema
from tamis.engine.operations.rows.append import SORT_MEMORY, write
from tamis.engine.part_writer import sorted_batches
from tamis.engine.part_writer.clustering_order import Order
from tamis.engine.part_writer.curve_keys import CURVES, KEY_BITS, bits_of, boundaries, keys
from tamis.engine.scan import Options
from tamis.errors import InvalidInput
from tamis.storage.commit_log import Head
from tamis.storage.object_store import Store

SAMPLE = 200_000
"""Values of a column, about, from which its stretches are found."""
KEY = Field("_curve", LONG, False, 2**31 - 1)
"""The key, beside the columns of the table while rows are sorted."""


@dataclass(frozen=True, slots=True)
class Layout:
    """By which curve, through which columns (id paths). ``name`` is what parts remember; column ids never change their meaning."""

    curve: str
    columns: tuple[tuple[int, ...], ...]

    @property
    def name(self) -> str:
        return f"{self.curve}({','.join(str(path[-1]) for path in self.columns)})"


def layout_of(schema: Schema, curve: str, names: Sequence[str]) -> Layout:
    """The layout that is asked for. Raises ``InvalidInput`` or ``NotFound`` naming what cannot be."""
    if curve not in CURVES:
        raise InvalidInput(
            f"There is no curve {curve!r}.", code="BAD_CLUSTERING", name=str(curve), remedy=f"Use one of {', '.join(CURVES)}."
        )
    if not 2 <= len(names) <= KEY_BITS // 4:
        raise InvalidInput(
            f"A curve goes through 2 to {KEY_BITS // 4} columns, not {len(names)}.",
            code="BAD_CLUSTERING",
            name=", ".join(names),
            remedy="Name several columns; by one, make the table CLUSTER BY it.",
        )
    found = tuple(tuple(f.id for f in schema.named(name)) for name in names)
    Order(schema, found)  # raises for what has no order
    return Layout(curve, found)


def along(
    store: Store, head: Head, rows: Callable[[], Iterable[pa.RecordBatch]], options: Options, layout: Layout, count: int
) -> Iterable[pa.Table]:
    """Parts of ``count`` rows sorted along the curve; a manifest row each. ``rows`` is called twice: what is read first only says where to cut."""
    schema = head.schema
    assert schema is not None
    cuts = stretches(rows(), schema, layout, count)
    wide = replace(schema, fields=(*schema.fields, KEY))
    keyed = sorted_batches(with_keys(rows(), schema, layout, cuts), wide, [(KEY.id,)], SORT_MEMORY)
    return write(store, head, (batch.select(range(len(schema))) for batch in keyed), options, ordered=True)


def stretches(rows: Iterable[pa.RecordBatch], schema: Schema, layout: Layout, count: int) -> list[pa.Array]:
    """For each column of the layout where to cut it, from a regular sample of ``rows``, of which there are about ``count``."""
    order, step = Order(schema, layout.columns), max(1, count // SAMPLE)
    taken: list[list[pa.Array]] = [[] for _ in layout.columns]
    for batch in rows:
        some = batch.take(pa.array(np.arange(0, len(batch), step)))
        for values, held in zip(order.columns(some), taken, strict=True):
            held.append(values)
    return [boundaries(pa.concat_arrays(held), bits_of(len(taken))) if held else pa.nulls(0) for held in taken]


def with_keys(rows: Iterable[pa.RecordBatch], schema: Schema, layout: Layout, cuts: Sequence[pa.Array]) -> Iterator[pa.RecordBatch]:
    """``rows`` with the key behind their columns."""
    target = to_arrow_schema(replace(schema, fields=(*schema.fields, KEY)))
    for batch in rows:
        key = keys(batch, schema, layout.columns, cuts, layout.curve)
        yield pa.RecordBatch.from_arrays([*batch.columns, key], schema=target)
