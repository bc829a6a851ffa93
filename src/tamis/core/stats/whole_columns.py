"""Reads a column of stored metadata as one array, if it is sound."""

from __future__ import annotations

import pyarrow as pa


def whole_column(table: pa.Table, name: str, expected: pa.DataType) -> pa.Array | None:
    """Return the column if it is there once, has the type ``expected`` and can be decoded; else None."""
    at = table.schema.get_field_index(name)  # -1 also if the name occurs twice
    if at < 0 or table.schema.field(at).type != expected:
        return None
    try:
        column = table.column(at)
        array = (
            column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.nulls(0, expected)])
        )
        array.validate(full=True)
    except pa.ArrowException:
        return None
    return array
