"""The rows of one commit's files, under the columns of the table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tamis.cli.ingest_batch import Batch, check_known, table_columns, union_by_name
from tamis.cli.ingest_checks import check_times
from tamis.cli.ingest_csv import first_csv, load_csv
from tamis.cli.ingest_defaults import parquet_by_missing, with_defaults
from tamis.cli.ingest_json import first_json, load_json

if TYPE_CHECKING:
    from tamis.table import Table


def load_files(spark: Any, table: Table, batch: Batch) -> Any:
    """Return a DataFrame of the files' rows, typed by the table's columns if any.

    A column that a file lacks has its default there, or NULL. A malformed record fails the batch instead of
    becoming NULLs. Raises ``SchemaMismatch`` naming a column that the table lacks, ``InvalidInput`` for a file
    that Spark cannot read under its name.
    """
    batch.check_names()
    known = table_columns(table) if len(table.schema) else None
    if batch.file_format == "json":
        return first_json(spark, batch) if known is None else load_json(spark, batch, known)
    if batch.file_format == "csv":
        return first_csv(spark, batch) if known is None else load_csv(spark, batch, known)
    if known is None:
        return batch.reader(spark).load(batch.escaped_paths)
    return _load_parquet(spark, batch, known)


def _load_parquet(spark: Any, batch: Batch, known: Mapping[str, Any]) -> Any:
    from pyspark.sql.types import StructType

    reader = batch.reader(spark)
    schema = reader.load(batch.escaped_paths).schema
    check_known(schema.names, known)
    if batch.partitions:  # their text is read as the table's type: 007 stays text in a column of text
        typed = {name.lower() for name in batch.partitions}
        check_times(spark, batch, StructType([known[lower] for lower in sorted(typed)]))
        schema = StructType([known[f.name.lower()] if f.name.lower() in typed else f for f in schema])
    return union_by_name(
        [
            with_defaults(reader.schema(schema).load(part.escaped_paths), lacking, known)
            for part, lacking in parquet_by_missing(spark, batch, known)
        ]
    )
