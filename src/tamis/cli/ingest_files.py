"""Files of an ingested folder: discovery, kinds, and Spark's reader settings."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamis.errors import InvalidInput, NotFound, SchemaMismatch

if TYPE_CHECKING:
    from tamis.table import Table

ENDINGS = {"parquet": (".parquet",), "csv": (".csv",), "json": (".json", ".jsonl", ".ndjson")}
"""File name endings by kind; text files may be compressed as well."""

PACKED = (".gz", ".bz2", ".zst", ".lz4", ".snappy", ".deflate")
MOST_FILES = 1_000
"""The maximum number of files per commit."""


@dataclass(frozen=True, slots=True)
class File:
    """A file: ``name`` is the path below the folder, with ``/``; ``size`` is in bytes."""

    name: str
    size: int


def found(folder: Path) -> list[File]:
    """Return the files below ``folder`` by name, without hidden files and Spark's markers (``_SUCCESS``).

    Raises ``NotFound`` (``FOLDER_NOT_FOUND``).
    """
    if not folder.is_dir():
        raise NotFound(
            f"There is no folder {folder}.",
            code="FOLDER_NOT_FOUND",
            name=str(folder),
            remedy="Give a folder with data files in it.",
        )
    paths = (
        p
        for p in folder.rglob("*")
        if p.is_file() and not any(part.startswith((".", "_")) for part in p.relative_to(folder).parts)
    )
    return sorted((File(p.relative_to(folder).as_posix(), p.stat().st_size) for p in paths), key=lambda f: f.name)


def kind(folder: Path, files: Sequence[File], wanted: str | None) -> tuple[str, list[File]]:
    """Return the kind of file to ingest, and the files of that kind.

    Raises ``InvalidInput`` for an unknown kind, or if there are several and none was requested; ``NotFound``
    (``NO_FILES``) if there are none.
    """
    if wanted is not None and wanted not in ENDINGS:
        raise InvalidInput(
            f"Files of kind {wanted!r} cannot be ingested.",
            code="UNKNOWN_FORMAT",
            name=wanted,
            remedy=f"Kinds are: {', '.join(ENDINGS)}.",
        )
    by_kind = {k: [f for f in files if _is(f.name, k)] for k in ENDINGS}
    there = [k for k, of_kind in by_kind.items() if of_kind]
    if wanted is None and len(there) > 1:
        raise InvalidInput(
            f"{folder} holds {' and '.join(there)} files.",
            code="SEVERAL_FORMATS",
            name=str(folder),
            remedy="Say which by --format.",
        )
    chosen = wanted or (there[0] if there else "")
    if not by_kind.get(chosen):
        what = f"{chosen} files" if chosen else "files"
        raise NotFound(
            f"There are no {what} in {folder}.",
            code="NO_FILES",
            name=str(folder),
            remedy=f"Files are known by their endings: {_endings(chosen)}.",
        )
    return chosen, by_kind[chosen]


def batches(files: Sequence[File], most_bytes: int) -> Iterator[list[File]]:
    """Split ``files``, in order, by bytes and number of files per commit; at least one file each."""
    batch: list[File] = []
    for f in files:
        if batch and (len(batch) >= MOST_FILES or sum(b.size for b in batch) + f.size > most_bytes):
            yield batch
            batch = []
        batch.append(f)
    if batch:
        yield batch


def load(spark: Any, table: Table, file_format: str, paths: list[str], options: Mapping[str, str]) -> Any:
    """Return a DataFrame of the files' rows, typed by the table's columns if any; missing ones are NULL.

    A malformed record fails the batch instead of becoming NULLs. Raises ``SchemaMismatch`` naming a
    column that the table lacks.
    """
    defaults = {
        "csv": {"header": "true", "mode": "FAILFAST"},
        "json": {"mode": "FAILFAST"},
        "parquet": {"mergeSchema": "true"},
    }[file_format]
    settings = {**defaults, **options}
    reader = spark.read.format(file_format).options(**settings)
    if not len(table.schema):
        return (reader.options(**{"inferSchema": "true", **options}) if file_format == "csv" else reader).load(paths)
    plain = reader.load(paths)
    columns = {name.lower(): name for name in plain.columns}
    known = {field.name.lower(): field for field in _spark_schema(table)}
    for lower, name in columns.items():
        if lower not in known:
            raise SchemaMismatch(
                f"The files have a column {name!r} that the table has not.",
                code="UNKNOWN_COLUMN",
                name=name,
                remedy="Add it to the table (ALTER TABLE … ADD COLUMN), or leave it out of the files.",
            )
    if file_format == "parquet":
        return _completed(plain, columns, known)
    from pyspark.sql.types import StructType

    wanted = (
        StructType([known[lower] for lower in columns]) if file_format == "csv" else StructType(list(known.values()))
    )
    return _completed(reader.schema(wanted).load(paths), {f.name.lower(): f.name for f in wanted}, known)


def _completed(df: Any, columns: Mapping[str, str], known: Mapping[str, Any]) -> Any:
    """Add the table's missing columns to ``df`` as NULL."""
    from pyspark.sql import functions as f

    return df.withColumns(
        {field.name: f.lit(None).cast(field.dataType) for lower, field in known.items() if lower not in columns}
    )


def _spark_schema(table: Table) -> Any:
    """Return the table's columns as nullable Spark fields; the insert checks NOT NULL."""
    from pyspark.sql.types import StructField, StructType

    from tamis.spark.jvm_bridge.spark_types import to_spark

    schema = table.snapshot.head.schema
    assert schema is not None
    parsed = StructType.fromJson(json.loads(to_spark(schema)))
    return [StructField(field.name, field.dataType, True) for field in parsed]


def _is(name: str, file_kind: str) -> bool:
    lower = name.lower()
    for ending in PACKED if file_kind != "parquet" else ():
        lower = lower.removesuffix(ending)
    return lower.endswith(ENDINGS[file_kind])


def _endings(file_kind: str) -> str:
    return ", ".join(ENDINGS[file_kind] if file_kind else [e for all_of in ENDINGS.values() for e in all_of])
