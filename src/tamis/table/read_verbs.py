"""The rows of a table for other Python libraries; each call is a scan without a filter."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tamis.engine.scan import Scan
from tamis.engine.scan.scan import duckdb_relation
from tamis.lazy_imports import lazy_module

if TYPE_CHECKING:
    from tamis.table import arrow_dataset, duckdb_source
    from tamis.table.arrow_dataset import TamisDataset
else:
    arrow_dataset = lazy_module("tamis.table.arrow_dataset")
    duckdb_source = lazy_module("tamis.table.duckdb_source")


class ReadVerbs:
    """The part of ``Table`` that hands over its rows. To choose rows or columns, use ``scan``."""

    if TYPE_CHECKING:
        scan: Callable[..., Scan]

        @property
        def path(self) -> str: ...

        @property
        def schema(self) -> pa.Schema: ...

    def to_batches(self) -> pa.RecordBatchReader:
        """Stream all rows in bounded memory."""
        return self.scan().to_batches()

    def to_arrow(self) -> pa.Table:
        """Return all rows as a ``pyarrow.Table``."""
        return self.scan().to_arrow()

    def to_pandas(self) -> Any:
        """Return all rows as a pandas ``DataFrame``. Raises ``InvalidInput`` (``MISSING_PACKAGE``)."""
        return self.scan().to_pandas()

    def to_polars(self) -> Any:
        """Return all rows as a Polars ``DataFrame``; see ``tamis.scan_polars`` for a lazy frame."""
        return self.scan().to_polars()

    def to_duckdb(self, connection: Any = None) -> Any:
        """Return a DuckDB relation over all rows, on ``connection`` or the default one.

        DuckDB reads the table when the relation is run, and only the columns and parts that its query needs.
        """
        return duckdb_relation(duckdb_source.DuckDbDataset(self.scan()), connection, self.path)

    def to_pyarrow_dataset(self) -> TamisDataset:
        """Return the present version as a ``pyarrow.dataset.Dataset``.

        Its scans read only the columns that they need, and skip parts and blocks by those parts of their
        filter that have an exact counterpart in Spark SQL. If another part is left, pyarrow evaluates all of it.
        """
        return arrow_dataset.TamisDataset(self.scan())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.scan().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()
