"""Values of generated columns: computed where a row gives none, and compared with what it gives.

Every write passes here, in ``conform``. NULL counts as no value, because Spark hands over NULL for a column that a
statement leaves out. What is stored is always the computed value, bit for bit; a column that is not exact cuts blanks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from tamis.core.expr import Column, evaluate, make_call, to_sql
from tamis.core.expr.generated_columns import GeneratedColumn, generated_columns
from tamis.core.types import BOOLEAN, Schema
from tamis.core.types.arrow import to_arrow_type
from tamis.engine.part_writer.arrow_casts import fit_array, null_in_required
from tamis.engine.part_writer.row_checks import shown_value
from tamis.errors import InvalidInput

_COMPUTED = -1
"""The id under which a computed column is compared with the given one."""


def with_generated(batches: Iterable[pa.RecordBatch], schema: Schema) -> Iterator[pa.RecordBatch]:
    """Return ``batches`` (columns as in ``schema``) with the values of its generated columns.

    Raises ``InvalidInput`` (``GENERATED_VALUE``) for a row that gives another value, (``VALUE_FAILED``) for one on
    which the expression fails, and ``SchemaMismatch`` (``NULL_IN_REQUIRED``) for NULL in a NOT NULL column.
    """
    found = generated_columns(schema)
    return (_filled(batch, schema, found) for batch in batches) if found else iter(batches)


def _filled(batch: pa.RecordBatch, schema: Schema, found: tuple[GeneratedColumn, ...]) -> pa.RecordBatch:
    arrays = {f.id: batch.column(at) for at, f in enumerate(schema)}
    columns = dict(arrays)
    for generated in found:
        values = _computed(generated, arrays, len(batch))
        _check_given(generated, arrays[generated.field.id], values)
        if values.null_count and not generated.field.nullable:
            raise null_in_required(generated.field.name)
        columns[generated.field.id] = values
    return pa.RecordBatch.from_arrays(list(columns.values()), schema=batch.schema)


def _computed(generated: GeneratedColumn, arrays: dict[int, pa.Array], length: int) -> pa.Array:
    out = evaluate(generated.value, arrays, length)
    if out.failed is not None and out.failed.any():
        shown = _row(generated, arrays, int(np.argmax(out.failed)))
        raise InvalidInput(
            f"The value {to_sql(generated.value)} of generated column {generated.field.name!r} fails where {shown}: "
            f"{out.error}",
            code="VALUE_FAILED",
            name=generated.field.name,
            remedy="Correct that row, or leave it out.",
        )
    values = out.values.combine_chunks() if isinstance(out.values, pa.ChunkedArray) else out.values
    values = values.cast(to_arrow_type(generated.column.type))
    return (
        values if generated.exact else fit_array(values, replace(generated.field, nullable=True), generated.field.name)
    )


def _check_given(generated: GeneratedColumn, given: pa.Array, values: pa.Array) -> None:
    if given.null_count == len(given) or given.equals(values):
        return
    other = Column(generated.column.type, (_COMPUTED,), generated.column.name)
    same = make_call("null_safe_eq", generated.column, other, type=BOOLEAN)
    out = evaluate(same, {generated.field.id: given, _COMPUTED: values}, len(given))
    equal = np.asarray(out.values.to_numpy(zero_copy_only=False), dtype=bool)
    wrong = ~equal & given.is_valid().to_numpy(zero_copy_only=False)
    if wrong.any():
        at = int(np.argmax(wrong))
        name, how = generated.field.name, generated.field.generated
        wanted, found = shown_value(values[at]), shown_value(given[at])
        raise InvalidInput(
            f"Column {name!r} is generated as {how and how.expression}: expected {wanted}, got {found}.",
            code="GENERATED_VALUE",
            name=name,
            remedy="Leave the column out: it is computed.",
        )


def _row(generated: GeneratedColumn, arrays: dict[int, pa.Array], at: int) -> str:
    names = {source.ids[0]: source.path[0] for source in generated.sources}
    return ", ".join(f"{name} = {shown_value(arrays[i][at])}" for i, name in names.items())
