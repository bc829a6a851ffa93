"""Writing and opening one part, as the tests of this folder and of ``read`` do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from tamis.core.types import Schema
from tamis.core.types.arrow import to_arrow_schema
from tamis.storage.files import PAGE_ROWS, PartRef, WriteOptions, create_part, open_part


def write_part(
    store: Any,
    schema: Schema,
    batches: list[pa.RecordBatch],
    part_id: str = "p",
    notes: Mapping[str, str] | None = None,
    form: str = "parquet",
    page_rows: int = PAGE_ROWS,
) -> PartRef:
    """One block per batch."""
    path = f"data/{part_id}.{form}"
    writer = create_part(store, path, form, to_arrow_schema(schema), WriteOptions(part_id=part_id, page_rows=page_rows))
    for batch in batches:
        writer.write(batch)
    done = writer.close(notes or {})
    return PartRef(
        part_id,
        path,
        form,
        schema.schema_id,
        sum(done.blocks),
        done.bytes,
        done.checksum,
        done.footer_checksum,
        done.blocks,
    )


def read_all(store: Any, ref: PartRef, schema: Schema, ids: list[int] | None = None) -> pa.Table:
    part = open_part(store, ref, schema)
    pieces = list(part.read(ids or [f.id for f in schema], range(len(part.block_rows))))
    return pa.Table.from_batches([p.batch for p in pieces]) if pieces else pa.table({})
