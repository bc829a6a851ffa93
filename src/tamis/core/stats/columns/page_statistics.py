"""Statistics of a part's pages, the smallest runs of rows that can be read alone.

They are stored in the part's own file, as one text, for readers of few rows.

Invariant: as with the statistics of parts, a note that cannot be decoded, or does not match the part, is
unknown.
"""

from __future__ import annotations

import base64
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.stats.collector import Collector
from tamis.core.types import Schema
from tamis.core.types.bounded_decoding import read_stream

NOTE = "tamis.statistics"
"""The key of the text among a file's notes."""


class PageStatistics:
    """Collects statistics of the columns in ``schema`` for each page of ``rows`` rows.

    The last page of a block may have fewer rows.
    """

    def __init__(self, schema: Schema, rows: int) -> None:
        self._schema, self._rows = schema, rows
        self._figures: dict[str, tuple[pa.DataType, list[Any]]] = {}
        """The statistics columns, with a value per page."""
        self._sizes: list[int] = []

    def update(self, block: pa.RecordBatch) -> None:
        """Add a block whose first columns are those of the schema."""
        own = block.select(range(len(self._schema.fields)))
        for start in range(0, len(block), self._rows):
            page = own.slice(start, self._rows)
            collector = Collector(self._schema, bounds_only=True)
            collector.update(page)
            for name, kind, value in collector.figures():
                self._figures.setdefault(name, (kind, []))[1].append(value)
            self._sizes.append(len(page))

    def note(self) -> str:
        """Encode all pages as text; empty if there are none."""
        if not self._sizes:
            return ""
        columns = {name: pa.array(values, kind) for name, (kind, values) in self._figures.items()}
        table = pa.table(columns | {"rows": pa.array(self._sizes, pa.int64())})
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as stream:
            stream.write_table(table)
        return base64.b64encode(sink.getvalue()).decode()


def pages_of(note: bytes | str, rows: int) -> pa.Table | None:
    """Decode ``PageStatistics.note`` of a part of ``rows`` rows into one row per page, in order.

    Returns None if the note is invalid or does not match the part.
    """
    try:
        table = read_stream(base64.b64decode(note, validate=True)).combine_chunks()
        sizes = table["rows"].cast(pa.int64())
    except (pa.ArrowException, OSError, ValueError, KeyError):
        return None
    known = not sizes.null_count and len(sizes) and pc.min(sizes).as_py() > 0 and pc.sum(sizes).as_py() == rows
    return table if known else None
