"""Files of an ingestion: their kinds, commits, and Spark's reader settings."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamis.cli.source_folders import File
from tamis.errors import InvalidInput, NotFound, SchemaMismatch

if TYPE_CHECKING:
    from tamis.table import Table

ENDINGS = {"parquet": (".parquet",), "csv": (".csv",), "json": (".json", ".jsonl", ".ndjson")}
"""File name endings by kind; text files may be compressed as well."""

PACKED = (".gz", ".bz2", ".zst", ".lz4", ".snappy", ".deflate")
MOST_FILES = 1_000
"""The maximum number of files per commit."""

_PATTERN = re.compile(r"[*?{}\[\]\\]")
"""What Hadoop takes for a pattern in a path: ``report[1].csv`` would read ``report1.csv``."""


def file_kind(folder: Path, files: Sequence[File], wanted: str | None) -> tuple[str, list[File]]:
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


def commit_batches(files: Sequence[File], most_bytes: int) -> Iterator[list[File]]:
    """Split ``files``, in order, by bytes and number of files per commit; at least one file each."""
    batch: list[File] = []
    for f in files:
        if batch and (len(batch) >= MOST_FILES or sum(b.size for b in batch) + f.size > most_bytes):
            yield batch
            batch = []
        batch.append(f)
    if batch:
        yield batch


@dataclass(frozen=True, slots=True)
class Batch:
    """The files of one commit, all of one format below ``folder``.

    ``partitions`` are the columns that folders ``k=v`` hold; ``options`` are those of Spark's reader.
    """

    folder: Path
    file_format: str
    files: Sequence[File]
    partitions: tuple[str, ...]
    options: Mapping[str, str]

    @property
    def paths(self) -> list[str]:
        """The files' paths, which Hadoop takes literally."""
        return [_PATTERN.sub(r"\\\g<0>", path) for path in self.plain_paths]

    @property
    def plain_paths(self) -> list[str]:
        return [str(self.folder / file.name) for file in self.files]

    def option(self, name: str) -> str:
        """Return an option of the reader, or an empty text; their names have no case."""
        return next((v for k, v in self.options.items() if k.lower() == name.lower()), "")

    def check_names(self) -> None:
        """Raise ``InvalidInput`` (``FILE_NAME``) for a path that Hadoop or Spark cannot read under its own name."""
        inferred = self.file_format != "parquet" and self.option("multiLine").lower() == "true"
        for file, path in zip(self.files, self.plain_paths, strict=True):
            colon, pattern = ":" in path, _PATTERN.search(path)
            if ":" in Path(file.name).name:
                reason = "Hadoop reads no file whose name has a colon"
            elif inferred and (colon or pattern):
                reason = "Spark takes its path for a pattern under multiLine"
            elif colon and pattern:
                reason = "Hadoop reads no path that has a colon and characters of a pattern"
            else:
                continue
            raise InvalidInput(
                f"The file {file.name!r} cannot be ingested: {reason}.",
                code="FILE_NAME",
                name=file.name,
                remedy="Rename the file, or its folders, without any of : * ? { } [ ] and \\.",
            )


def load_files(spark: Any, table: Table, batch: Batch) -> Any:
    """Return a DataFrame of the files' rows, typed by the table's columns if any; missing ones are NULL.

    A malformed record fails the batch instead of becoming NULLs. Raises ``SchemaMismatch`` naming a
    column that the table lacks.
    """
    defaults = {
        "csv": {"header": "true", "mode": "FAILFAST"},
        "json": {"mode": "FAILFAST"},
        "parquet": {"mergeSchema": "true"},
    }[batch.file_format]
    batch.check_names()
    settings = {**defaults, "basePath": str(batch.folder), **batch.options}
    reader = spark.read.format(batch.file_format).options(**settings)
    if not len(table.schema):
        inferring = {"inferSchema": "true", **batch.options} if batch.file_format == "csv" else {}
        return reader.options(**inferring).load(batch.paths)
    plain = reader.load(batch.paths)
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
    from pyspark.sql.types import StructType

    if batch.file_format == "parquet":
        if batch.partitions:  # their text is read as the table's type: 007 stays text in a column of text
            typed = {name.lower() for name in batch.partitions}
            fields = [known[f.name.lower()] if f.name.lower() in typed else f for f in plain.schema]
            plain = reader.schema(StructType(fields)).load(batch.paths)
        return _completed(plain, columns, known)
    by_header = batch.file_format == "csv"
    wanted = StructType([known[lower] for lower in columns]) if by_header else StructType(list(known.values()))
    return _completed(reader.schema(wanted).load(batch.paths), {f.name.lower(): f.name for f in wanted}, known)


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
