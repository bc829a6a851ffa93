"""Files of an ingestion that lack a column with a default: their rows get it, as in an INSERT without the column.

Invariant: whether a file lacks a column depends on nothing but this file, and not on those that share its commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from tamis.cli.ingest_batch import Batch, names_with_default, with_missing
from tamis.cli.source_folders import File
from tamis.core.types.identifiers import backquote
from tamis.spark.jvm_bridge.spark_types import EXISTS_DEFAULT
from tamis.world import new_id

Part = tuple[Batch, frozenset[str]]
"""Files that lack the same columns with a default, and these columns' names in lower case."""


def with_defaults(rows: Any, lacking: Iterable[str], known: Mapping[str, Any]) -> Any:
    """Return the rows of files that lack the columns ``lacking``, with all columns of the table."""
    return with_missing(rows.drop(*(known[lower].name for lower in lacking)), known)


def parquet_by_missing(spark: Any, batch: Batch, known: Mapping[str, Any]) -> list[Part]:
    """Split Parquet files by the columns with a default that they lack, as their footers say."""
    asked = set(names_with_default(known)) - {name.lower() for name in batch.partitions}
    if not asked:
        return [(batch, frozenset())]
    groups: dict[frozenset[str], list[File]] = {}
    for file, path in zip(batch.files, batch.paths, strict=True):
        try:
            names = pq.read_schema(path).names
        except (OSError, pa.ArrowException):  # an encrypted file, for one
            names = batch.reader(spark).load(replace(batch, files=[file]).escaped_paths).columns
        groups.setdefault(frozenset(asked - {name.lower() for name in names}), []).append(file)
    return _parts(batch, groups)


def json_by_missing(spark: Any, batch: Batch, known: Mapping[str, Any], keys: Mapping[str, str]) -> list[Part]:
    """Split JSON files by the columns with a default whose key none of their records has.

    ``keys`` are the files' spellings by lower-case name. A key that is ``null`` is there.
    """
    from pyspark.sql import functions as f
    from pyspark.sql.types import StringType, StructField, StructType

    folders = {name.lower() for name in batch.partitions}
    asked = [lower for lower in names_with_default(known) if lower not in folders]
    if not asked or batch.option("singleVariantColumn"):
        return [(batch, frozenset())]
    mark = new_id()  # Spark's parser puts it where a record lacks the key; no file has it
    names = [keys.get(lower, known[lower].name) for lower in asked]
    schema = StructType([StructField(name, StringType(), True, {EXISTS_DEFAULT: f"'{mark}'"}) for name in names])
    rows = batch.reader(spark).schema(schema).load(batch.escaped_paths)
    lacked = [f.bool_and(f.col(backquote(name)).eqNullSafe(mark)) for name in names]
    found = rows.groupBy(rows.metadataColumn("_metadata")["file_path"]).agg(*lacked).collect()
    left = dict(zip(batch.paths, batch.files, strict=True))
    groups: dict[frozenset[str], list[File]] = {}
    for url, *lacks in found:
        lacking = frozenset(lower for lower, is_so in zip(asked, lacks, strict=True) if is_so)
        groups.setdefault(lacking, []).append(left.pop(_local_path(url)))
    if left:  # files without records
        groups.setdefault(frozenset(asked), []).extend(left.values())
    return _parts(batch, groups)


def _parts(batch: Batch, groups: Mapping[frozenset[str], list[File]]) -> list[Part]:
    return [(replace(batch, files=files), lacking) for lacking, files in groups.items()]


def _local_path(url: str) -> str:
    """Return the path of a URL that Spark gives for a local file."""
    return "/" + unquote(url.removeprefix("file:")).lstrip("/")
