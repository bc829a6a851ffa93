"""Conversion of Arrow data to batches of a table's Arrow schema, with the values of generated columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache

import pyarrow as pa

from tamis.core.types import Field, Schema
from tamis.core.types.arrow import to_arrow_schema, to_arrow_type
from tamis.core.types.blank_values import null_array
from tamis.engine.part_writer.arrow_casts import fit_array, match_fields, null_in_required
from tamis.engine.part_writer.column_defaults import write_default
from tamis.engine.part_writer.generated_values import with_generated
from tamis.storage.files.column_conversion import Names, convert_array


def conform_batches(
    data: pa.RecordBatch | pa.Table | Iterable[pa.RecordBatch],
    schema: Schema,
    *,
    generate: bool = True,
    fitted: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Yield ``data`` with the columns, order and Arrow types of ``schema``, ids in the metadata.

    Columns match by name ignoring case; a missing one gets its default, or NULL if nullable. Names are
    checked immediately if ``data`` has a schema, values as they come. ``fitted``: batches that have this schema
    already pass through, because their values were made or tested here; Arrow itself tests neither lengths nor
    NULLs against a schema. Generated columns are computed, and checked where they are given, unless ``generate`` is off
    because they have been. Raises ``SchemaMismatch`` naming the column, ``InvalidInput`` (``TOO_LONG``), and the
    errors of ``with_generated``.
    """
    known = getattr(data, "schema", None)
    if known is not None:
        match_fields(known.names, schema.fields)
    rows = _conformed(_batches(data), schema, fitted=fitted)
    return with_generated(rows, schema) if generate else rows


def _batches(data: pa.RecordBatch | pa.Table | Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
    if isinstance(data, pa.RecordBatch):
        return [data]
    return data.to_batches() if isinstance(data, pa.Table) else data


def _conformed(batches: Iterable[pa.RecordBatch], schema: Schema, *, fitted: bool) -> Iterator[pa.RecordBatch]:
    target = to_arrow_schema(schema)
    absent = cache(write_default)
    fields = tuple(replace(f, nullable=True) if f.computed else f for f in schema.fields)
    for batch in batches:
        if fitted and batch.schema.equals(target, check_metadata=True):
            yield batch
            continue
        places = match_fields(batch.schema.names, schema.fields)
        columns = [
            _repeated(absent(f), f, len(batch)) if at is None else fit_array(batch.column(at), f, f.name)
            for f, at in zip(fields, places, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=target)


def _repeated(value: pa.Scalar, field: Field, length: int) -> pa.Array:
    """Return a column of one value; one of NULLs has blank values in the required fields below them.

    Raises ``SchemaMismatch`` (``NULL_IN_REQUIRED``) for NULL in a required column, whose default may be one.
    """
    if length and not value.is_valid and not field.nullable:
        raise null_in_required(field.name)
    return pa.repeat(value, length) if value.is_valid else null_array(to_arrow_type(field.type), length)


def migrate_batches(batches: Iterable[pa.RecordBatch], held: Schema, current: Schema) -> Iterator[pa.RecordBatch]:
    """Convert rows from the schema ``held`` to the later schema ``current`` of the same table.

    Columns match by id; dropped ones are left out, new ones get their default.
    """
    target, names, absent = to_arrow_schema(current), Names(held), cache(write_default)
    places = {f.id: at for at, f in enumerate(held)}
    for batch in batches:
        columns = [
            convert_array(batch.column(places[f.id]), f, names)
            if f.id in places
            else _repeated(absent(f), f, len(batch))
            for f in current.fields
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=target)
