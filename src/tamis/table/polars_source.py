"""A table version as a Polars ``LazyFrame``: columns, filters and limits reach the scan."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa

from tamis.engine.scan import Scan
from tamis.engine.scan.scan import import_optional
from tamis.table.expression_filters import NO_FILTER, ImpliedFilter, implied_conjuncts
from tamis.table.narrowed_scan import narrow_scan


def lazy_frame(scan: Scan) -> Any:
    """Return a lazy frame over ``scan``, which has no filter and no limit.

    Each run of a query is one scan. Those conjuncts of Polars' predicate that mean the same in Spark SQL are the
    scan's filter; if another one is left, Polars applies the whole predicate to every batch.
    """
    polars = import_optional("polars")
    plugins = importlib.import_module("polars.io.plugins")

    def rows(
        with_columns: list[str] | None,
        predicate: Any,
        n_rows: int | None,
        batch_size: int | None,  # noqa: ARG001  # a hint; a batch is what a block holds
    ) -> Iterator[Any]:
        names = scan.reader.names
        wanted = names if with_columns is None else with_columns
        if n_rows is not None:  # of a slice below the filter: the first rows are taken of all rows
            found = ImpliedFilter((), exact=predicate is None)
        else:
            found = NO_FILTER if predicate is None else implied_conjuncts(predicate, scan.reader)
        if found.exact:
            predicate = None
        needed = {*wanted, *([] if predicate is None else predicate.meta.root_names())}
        read = narrow_scan(scan, [name for name in names if name in needed], found.conjuncts)
        for batch in replace(read, limit=n_rows).encoded_batches():
            frame = _frame(polars, batch)
            if predicate is not None:
                frame = frame.filter(predicate)
            if wanted and frame.columns != wanted:  # a frame without columns would have no rows
                frame = frame.select(wanted)
            yield frame

    schema = polars.from_arrow(scan.schema.empty_table()).schema
    return plugins.register_io_source(rows, schema=schema)


def _frame(polars: Any, batch: pa.RecordBatch) -> Any:
    """Return a batch as a data frame, in which texts have no dictionary.

    Polars takes texts from a dictionary by number faster than it takes over plain ones, and makes categories of
    Arrow's dictionaries, which have another type.
    """
    encoded = [f.name for f in batch.schema if pa.types.is_dictionary(f.type)]
    if not encoded:
        return polars.from_arrow(batch)
    texts = {
        name: polars.from_arrow(batch[name].dictionary).gather(polars.from_arrow(batch[name].indices))
        for name in encoded
    }
    if len(encoded) == batch.num_columns:
        return polars.DataFrame(texts)
    return polars.from_arrow(batch.drop_columns(encoded)).with_columns(**texts).select(batch.schema.names)
