"""Statistics of a part's pages, the smallest runs of rows that can be read alone.

They are stored in the part's own file, as one text, for readers of few rows.

Invariant: as with the statistics of parts, a note that cannot be decoded, or does not match the part, is
unknown.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.stats.collector import Collector
from tamis.core.stats.statistics_columns import COUNTS, HI_EXACT, LO_EXACT, bound_name, count_name
from tamis.core.types import DATE, INTEGRAL, TIMESTAMP, TIMESTAMP_NTZ, Field, Schema
from tamis.core.types.bounded_decoding import read_stream

NOTE = "tamis.statistics"
"""The key of the text among a file's notes."""


_Figures = Iterator[tuple[str, pa.Array]]
"""Statistics columns, with a value per page."""


class PageStatistics:
    """Collects statistics of the columns in ``schema`` for each page of ``rows`` rows.

    The last page of a block may have fewer rows.
    """

    def __init__(self, schema: Schema, rows: int) -> None:
        self._schema, self._rows = schema, rows
        self._figures: dict[str, list[pa.Array]] = {}
        """The statistics columns, in pieces with a value per page."""
        self._sizes: list[int] = []

    def update(self, block: pa.RecordBatch) -> None:
        """Add a block whose first columns are those of the schema."""
        starts = range(0, len(block), self._rows)
        if not starts:
            return
        for field, column in zip(self._schema, block.columns, strict=False):
            whole = field.type in _WHOLE and not column.null_count
            found = whole_pages(field, column, self._rows) if whole else collected_pages(field, column, self._rows)
            for name, values in found:
                self._figures.setdefault(name, []).append(values)
        self._sizes += [min(self._rows, len(block) - start) for start in starts]

    def note(self) -> str:
        """Encode all pages as text; empty if there are none."""
        if not self._sizes:
            return ""
        columns = {name: pa.concat_arrays(pieces) for name, pieces in self._figures.items()}
        table = pa.table(columns | {"rows": pa.array(self._sizes, pa.int64())})
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as stream:
            stream.write_table(table)
        return base64.b64encode(sink.getvalue()).decode()


_WHOLE = (*INTEGRAL, DATE, TIMESTAMP, TIMESTAMP_NTZ)
"""Types whose values are whole numbers in Arrow, too."""


def whole_pages(field: Field, column: pa.Array, rows: int) -> _Figures:
    """Yield what ``collected_pages`` does, for whole numbers without NULLs, by one call for all pages."""
    values = column if pa.types.is_integer(column.type) else column.view(f"int{column.type.bit_width}")
    starts = np.arange(0, len(column), rows)
    for kind, least in (("lo", np.minimum), ("hi", np.maximum)):
        found = pa.array(least.reduceat(values.to_numpy(), starts))
        yield bound_name(field.id, field.type, kind), found.view(column.type)
    for kind, value in (("exact", LO_EXACT | HI_EXACT), ("nulls", 0)):
        yield count_name(field.id, kind), pa.array(np.full(len(starts), value), COUNTS[kind])


def collected_pages(field: Field, column: pa.Array, rows: int) -> _Figures:
    """Yield the statistics of pages of ``rows`` rows, as ``Collector`` finds them."""
    schema = Schema((field,))
    pages = []
    for start in range(0, len(column), rows):
        collector = Collector(schema, bounds_only=True)
        collector.update(pa.RecordBatch.from_arrays([column.slice(start, rows)], names=[field.name]))
        pages.append(list(collector.figures()))
    for figures in zip(*pages, strict=True):
        name, kind, _ = figures[0]
        yield name, pa.array([value for _, _, value in figures], kind)


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
