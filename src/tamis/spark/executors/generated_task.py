"""Computes generated columns on executors, before rows are sorted by them. Independent of the driver."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from tamis.core.types import Schema
from tamis.engine.part_writer import conform_batches
from tamis.spark.executors.row_change_task import DELETE, OPERATION
from tamis.spark.executors.row_metadata import PART, POSITION


def fill_generated(batches: Iterator[pa.RecordBatch], schema: Schema) -> Iterator[pa.RecordBatch]:
    """Yield rows of the table, or row changes, with their generated columns, for ``mapInArrow``.

    Raises the errors of ``conform``. Rows that are deleted have no values, and stay as they are.
    """
    for batch in batches:
        if OPERATION not in batch.schema.names:
            yield _filled(batch, schema)
            continue
        operations = batch.column(batch.schema.names.index(OPERATION)).to_numpy(zero_copy_only=False)
        deleted: np.ndarray[tuple[int], np.dtype[np.bool_]] = operations == DELETE
        yield batch.filter(pa.array(deleted))
        yield _filled(batch.filter(pa.array(~deleted)), schema)


def _filled(batch: pa.RecordBatch, schema: Schema) -> pa.RecordBatch:
    places = [at for at, name in enumerate(batch.schema.names) if name not in {OPERATION, PART, POSITION}]
    given = pa.RecordBatch.from_arrays([batch.column(at) for at in places], names=list(schema.names))
    columns = list(batch.columns)
    for rows in conform_batches(given, schema):
        for at, field, values in zip(places, schema, rows.columns, strict=True):
            if field.generated is not None:
                columns[at] = values.cast(batch.schema.field(at).type)
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)
