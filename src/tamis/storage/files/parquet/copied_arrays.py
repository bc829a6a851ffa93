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


def copied_leaves(schema: pa.Schema) -> Iterator[str]:
    """Yield the Parquet paths of nullable numeric leaves in arrays and maps."""
    for f in schema:
        yield from _below(f, f.name)


def _below(f: pa.Field, path: str) -> Iterator[str]:
    kind = f.type
    if pa.types.is_struct(kind):
        for child in kind:
            yield from _below(child, f"{path}.{child.name}")
    elif pa.types.is_map(kind):
        yield from _element(kind.key_field, f"{path}.key_value.key")
        yield from _element(kind.item_field, f"{path}.key_value.value")
    elif pa.types.is_list(kind):
        yield from _element(kind.value_field, f"{path}.list.element")


def _element(f: pa.Field, path: str) -> Iterator[str]:
    if f.type.num_fields:
        yield from _below(f, path)
    elif f.nullable and (pa.types.is_integer(f.type) or pa.types.is_floating(f.type) or pa.types.is_temporal(f.type)):
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
