"""A table version for DuckDB: a dataset whose texts with few values have dictionaries.

DuckDB shows such a column as VARCHAR, and groups and compares the numbers of its dictionary. It takes the types of
a dataset before it plans, so that every batch must have a dictionary where the schema says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from tamis.core.stats.statistics_columns import VALUES, bound_name
from tamis.core.types import STRING
from tamis.core.types.dictionary_arrays import DICTIONARY_TEXT, plain_array
from tamis.engine.scan import Scan
from tamis.errors import TamisError
from tamis.table.arrow_dataset import TamisDataset
from tamis.table.expression_filters import columns_of


class DuckDbDataset(TamisDataset):
    """The rows of one version, for ``duckdb.from_arrow`` alone, which calls ``schema`` and ``scanner`` only.

    It is not shown to users: methods of a dataset that need a scanner of pyarrow do not work.
    """

    def __init__(self, scan: Scan) -> None:
        self._encoded = texts_of_few_values(scan)
        super().__init__(scan, schema=_encoded_schema(scan.schema, self._encoded))

    def scanner(self, columns: Any = None, filter: pc.Expression | None = None, **_: Any) -> _Stream:  # noqa: A002  # pyarrow's name
        """Return what DuckDB asks a scanner for, in this dataset's types.

        Without a filter left, it is the scan's own stream, as a pyarrow scanner costs a third of a narrow scan's time.
        pyarrow tests texts in their plain form only.
        """
        read, left = self._narrowed(columns, filter)
        known = read.schema
        names = known.names if columns is None else list(columns)
        if left is None and set(names).issubset(known.names):
            schema = pa.schema([known.field(name) for name in names])
            return _Stream(_reader(read.encoded_batches(), schema, self._encoded))
        tested = frozenset() if left is None else self._encoded & (columns_of(left) or self._encoded)
        rows = _reader(read.encoded_batches(), known, self._encoded - tested)
        found = ds.Scanner.from_batches(rows, columns=columns, filter=left)
        return _Stream(_reader(found.to_reader(), found.projected_schema, self._encoded))


@dataclass(frozen=True, slots=True)
class _Stream:
    """The one method of a scanner that DuckDB calls."""

    rows: pa.RecordBatchReader

    def to_reader(self) -> pa.RecordBatchReader:
        return self.rows


def texts_of_few_values(scan: Scan) -> frozenset[str]:
    """Return the STRING columns of which some segment's statistics list all values.

    Reads statistics of segments, and none of parts.
    """
    fields = {f.id: f.name for f in scan.selected if f.type == STRING}
    try:
        evidence = scan.snapshot.segment_evidence(fields)
    except TamisError:  # the scan says what is wrong, if it needs them
        return frozenset()
    sets = {bound_name(column, STRING, VALUES): name for column, name in fields.items()}
    return frozenset(
        sets[column]
        for column in sets.keys() & set(evidence.column_names)
        if evidence[column].null_count < len(evidence)
    )


def _encoded_schema(schema: pa.Schema, names: Set[str]) -> pa.Schema:
    return pa.schema([f.with_type(DICTIONARY_TEXT) if f.name in names else f for f in schema], schema.metadata)


def _reader(batches: Iterator[pa.RecordBatch], schema: pa.Schema, names: Set[str]) -> pa.RecordBatchReader:
    """Stream the columns of ``schema``, which get or lose dictionaries so that those of ``names`` alone have one."""
    schema = _encoded_schema(schema, names)
    return pa.RecordBatchReader.from_batches(schema, (_shaped(batch, schema) for batch in batches))


def _shaped(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = [_column(batch.column(f.name), f.type) for f in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _column(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    if array.type == wanted:
        return array
    return array.dictionary_encode() if wanted == DICTIONARY_TEXT else plain_array(array)
