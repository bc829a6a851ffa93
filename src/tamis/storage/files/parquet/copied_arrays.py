"""Leaves of numbers in arrays, which Spark's reader copies without checking which elements are NULL.

``ColumnarArray.copy`` (under ``transform``, ``filter``, ``aggregate`` …) copies all elements at once. If a
chunk has a dictionary, it also looks up the NULL elements, by an index left over in memory. An index that is
out of range for an empty or smaller dictionary fails the query (Spark 4.2, 4.3). The writer therefore gives
such leaves no dictionary, and parts that have one are not read by Spark's reader.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tamis.storage.files.parquet.column_layout import leaf_fields


def copied_leaves(schema: pa.Schema) -> Iterator[str]:
    """Yield the Parquet paths of nullable numeric leaves in arrays and maps."""
    for path, f, element in leaf_fields(schema):
        numeric = pa.types.is_integer(f.type) or pa.types.is_floating(f.type) or pa.types.is_temporal(f.type)
        if element and f.nullable and numeric:
            yield path


def copies_safely(footer: pq.FileMetaData, ids: frozenset[int]) -> bool:
    """Return whether Spark can copy the arrays in the top-level columns with these ids."""
    chosen = [f for f in footer.schema.to_arrow_schema() if int((f.metadata or {}).get(b"PARQUET:field_id", -1)) in ids]
    paths = set(copied_leaves(pa.schema(chosen)))
    leaves = [at for at in range(footer.num_columns) if footer.schema.column(at).path in paths]
    return all(_sound(footer.row_group(group).column(at)) for group in range(footer.num_row_groups) for at in leaves)


def _sound(chunk: Any) -> bool:
    statistics = chunk.statistics
    full = statistics is not None and statistics.has_null_count and statistics.null_count == 0
    return full or not chunk.has_dictionary_page
