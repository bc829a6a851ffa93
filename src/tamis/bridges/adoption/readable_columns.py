"""Checks before anything is written that the columns of foreign files can be read as those of the table."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from tamis.bridges.sources.source_footers import SourceFooter
from tamis.bridges.sources.source_table import SourceTable
from tamis.core.schema.widening import type_widens
from tamis.core.types import (
    BINARY,
    DOUBLE,
    INTEGRAL,
    NULL,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    DataType,
    Decimal,
    Schema,
    String,
)
from tamis.core.types.arrow import from_arrow_type
from tamis.errors import InvalidInput, TamisError
from tamis.storage.files.parquet.foreign_columns import ForeignLayout, has_ids

_DIGITS = {0: 3, 1: 5, 2: 10, 3: 20}
"""Digits that a decimal needs before the point for each whole type, narrowest first."""


def check_schema(schema: Schema) -> None:
    """Raise ``InvalidInput`` (``UNSUPPORTED_TYPE``) for a column that cannot be read from foreign files."""
    for field in schema.by_id.values():
        if field.type == VARIANT:
            raise InvalidInput(
                f"Column {schema.path_text(field)!r} is a VARIANT, which other writers may store in pieces.",
                code="UNSUPPORTED_TYPE",
                name=schema.path_text(field),
                remedy="Read the source by Spark, and append its rows to a table.",
            )


def check_ids(footers: Sequence[SourceFooter], table: SourceTable) -> None:
    """Raise ``InvalidInput`` for a file without ids whose names do not say which columns it has.

    ``ICEBERG_NAME_MAPPING``: where a column was renamed. ``DELTA_FIELD_IDS``: in a Delta table with the column mapping
    ``id``, whose protocol forbids to look for names.
    """
    by_id = table.kind == "delta" and table.by_field_id
    if table.renamed is None and not by_id:
        return
    bare = next((footer.path for footer in footers if not any(has_ids(f) for f in footer.schema)), None)
    if bare is not None and by_id:
        raise InvalidInput(
            f"{bare} has no field ids, by which its Delta table finds columns (delta.columnMapping.mode = 'id').",
            code="DELTA_FIELD_IDS",
            name=bare,
            remedy="Rewrite the file there by a writer that keeps field ids, then adopt the table.",
        )
    if bare is not None:
        raise InvalidInput(
            f"{bare} has no field ids, its table has no name mapping, and the column {table.renamed!r} had another "
            "name, or another column had its name.",
            code="ICEBERG_NAME_MAPPING",
            name=bare,
            remedy="Set the table's property schema.name-mapping.default, or rewrite the file there "
            "(rewrite_data_files), then adopt the table.",
        )


def check_readable(footer: SourceFooter, layout: ForeignLayout, schema: Schema, given: frozenset[int]) -> None:
    """Raise ``InvalidInput`` (``COLUMN_NOT_READABLE``) naming a column of a file that is of another type there.

    The columns ``given`` are not read from the file.
    """
    physical = footer.metadata.schema
    for at, (path, own) in enumerate(zip(layout.leaves, layout.own, strict=True)):
        if path[0] in given:
            continue
        column = schema.by_id.get(layout.nearest[at])
        if own < 0 and column is not None and not column.type.children:
            raise _unreadable(footer, schema, column.id, "a nested column")
        known = schema.by_id.get(own)
        if known is None:
            continue
        stored = layout.fields[at].type
        if known.type.children or not _reads(stored, physical.column(at).physical_type, known.type):
            raise _unreadable(footer, schema, own, str(stored))


def _unreadable(footer: SourceFooter, schema: Schema, column_id: int, what: str) -> InvalidInput:
    field = schema.by_id[column_id]
    name = schema.path_text(field)
    return InvalidInput(
        f"Column {name!r} of the file {footer.path} is {what}, which cannot be read as {field.type}.",
        code="COLUMN_NOT_READABLE",
        name=name,
        remedy="Rewrite the file with the type of the column.",
    )


def _reads(stored: pa.DataType, physical: str, target: DataType) -> bool:
    """Return whether every value of the stored type is one of the column's."""
    if physical == "INT96":
        return target in (TIMESTAMP, TIMESTAMP_NTZ)
    if (pa.types.is_timestamp(stored) or pa.types.is_time(stored)) and stored.unit == "ns":
        return False
    try:
        found = from_arrow_type(stored)
    except TamisError:
        return False
    if found in (target, NULL) or type_widens(found, target):
        return True
    if isinstance(target, String):
        return isinstance(found, String) or found == BINARY
    if found in INTEGRAL:
        fits = isinstance(target, Decimal) and target.precision - target.scale >= _DIGITS[INTEGRAL.index(found)]
        return bool(fits or (target == DOUBLE and INTEGRAL.index(found) < 3))
    return {found, target} == {TIMESTAMP, TIMESTAMP_NTZ}
