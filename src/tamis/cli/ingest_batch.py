"""The files of one commit, as Spark reads them, beside the columns of the table."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamis.cli.source_folders import File
from tamis.errors import InvalidInput, SchemaMismatch

if TYPE_CHECKING:
    from tamis.table import Table

_DEFAULTS: Mapping[str, Mapping[str, str]] = {
    "csv": {"header": "true", "mode": "FAILFAST"},
    "json": {"mode": "FAILFAST"},
    "parquet": {"mergeSchema": "true"},
}
_PATTERN = re.compile(r"[*?{}\[\]\\]")
"""What Hadoop takes for a pattern in a path: ``report[1].csv`` would read ``report1.csv``."""
_CHOOSES_FILES = frozenset(
    {
        *("pathglobfilter", "modifiedbefore", "modifiedafter", "recursivefilelookup", "basepath"),
        *("ignorecorruptfiles", "ignoremissingfiles"),
    }
)
"""Options of Spark's readers by which it leaves out files that it is given, or their folders' columns."""

_DEFAULT = "tamis.default"
"""The metadata of a Spark field that has a default, as SQL. Spark's readers and its INSERT do not know this name."""


def check_read_options(given: Iterable[str]) -> None:
    """Raise ``InvalidInput`` (``BAD_OPTION``) for options that choose files: the log would name those left out, too."""
    for name in given:
        if name.lower() in _CHOOSES_FILES:
            raise InvalidInput(
                f"The option {name} would leave out files that then count as ingested.",
                code="BAD_OPTION",
                name=name,
                remedy="Keep such files in another folder, or load them by Spark and append the DataFrame.",
            )


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
    def escaped_paths(self) -> list[str]:
        """The files' paths for Spark's readers: Hadoop takes them literally."""
        return [_PATTERN.sub(r"\\\g<0>", path) for path in self.paths]

    @property
    def paths(self) -> list[str]:
        return [str(self.folder / file.name) for file in self.files]

    @property
    def has_patterns(self) -> bool:
        """Whether Hadoop would take a path for a pattern.

        Spark then infers the columns of n text files from n * n paths.
        """
        return any(_PATTERN.search(path) for path in self.paths)

    def reader(self, spark: Any) -> Any:
        """Return Spark's reader of this format with all options; a malformed record fails it."""
        settings = {**_DEFAULTS[self.file_format], **self.reader_options}
        return spark.read.format(self.file_format).options(**settings)

    @property
    def reader_options(self) -> dict[str, str]:
        """The options for Spark's readers of any format. Times without a zone are UTC, as in a filter of a scan."""
        folder = {"basePath": str(self.folder), "ignoreCorruptFiles": "false", "ignoreMissingFiles": "false"}
        return {**folder, "timeZone": "UTC", **self.options}

    def option(self, name: str) -> str:
        """Return an option of the reader, or an empty text; their names have no case."""
        return next((v for k, v in self.options.items() if k.lower() == name.lower()), "")

    def has_option(self, *names: str) -> bool:
        """Whether one of these options is given, even as an empty text."""
        return not {name.lower() for name in names}.isdisjoint(name.lower() for name in self.options)

    def is_on(self, name: str) -> bool:
        return self.option(name).lower() == "true"

    def check_names(self) -> None:
        """Raise ``InvalidInput`` (``FILE_NAME``) for a path that Hadoop or Spark cannot read under its own name."""
        inferred = self.file_format != "parquet" and self.is_on("multiLine")
        for file, path in zip(self.files, self.paths, strict=True):
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
                remedy="Rename the file or its folders so that the path has none of : * ? { } [ ] and \\.",
            )


def table_columns(table: Table) -> dict[str, Any]:
    """Return the table's columns as nullable Spark fields by lower-case name; the insert checks NOT NULL.

    A field's metadata has its column's default. CHAR and VARCHAR are STRING, as Spark's readers want it.
    """
    from pyspark.sql.types import StructField, StructType

    from tamis.spark.jvm_bridge.spark_types import to_python_spark

    schema = table.snapshot.head.schema
    assert schema is not None
    parsed = StructType.fromJson(json.loads(to_python_spark(schema)))
    defaults = [{} if column.write_default is None else {_DEFAULT: column.write_default} for column in schema]
    return {
        field.name.lower(): StructField(field.name, field.dataType, True, default)
        for field, default in zip(parsed, defaults, strict=True)
    }


def names_with_default(known: Mapping[str, Any]) -> list[str]:
    """Return the lower-case names of the columns that have a default."""
    return [lower for lower, field in known.items() if _DEFAULT in field.metadata]


def check_known(names: Iterable[str], known: Mapping[str, Any]) -> None:
    """Raise ``SchemaMismatch`` (``UNKNOWN_COLUMN``) for a name that is no column of the table."""
    for name in names:
        if name.lower() not in known:
            raise unknown_column(name)


def unknown_column(name: str) -> SchemaMismatch:
    return SchemaMismatch(
        f"The files have a column {name!r} that the table does not have.",
        code="UNKNOWN_COLUMN",
        name=name,
        remedy="Add it to the table (ALTER TABLE … ADD COLUMN), or leave it out of the files.",
    )


def with_missing(df: Any, known: Mapping[str, Any]) -> Any:
    """Add the table's missing columns to ``df``, with their defaults or else NULL."""
    from pyspark.sql import functions as f

    there = {name.lower() for name in df.columns}
    missing = [field for lower, field in known.items() if lower not in there]
    return df.withColumns(
        {field.name: f.expr(f"({field.metadata.get(_DEFAULT, 'NULL')})").cast(field.dataType) for field in missing}
    )


def inferred_schema(reader: Any, file_format: str, lines: Any) -> Any:
    """Return the schema that a reader of CSV or JSON infers from a DataFrame of one column, of texts."""
    from pyspark.sql.types import StructType

    session = lines.sparkSession
    texts = getattr(lines._jdf, "as")(session._jvm.org.apache.spark.sql.Encoders.STRING())
    with _active_in_java(session):
        found = reader._jreader.json(texts) if file_format == "json" else reader._jreader.csv(texts)
    return StructType.fromJson(json.loads(found.schema().json()))


@contextmanager
def _active_in_java(session: Any) -> Iterator[None]:
    """Make ``session`` Java's active one: Spark merges what tasks infer by its settings, not by those of the reader."""
    sessions = getattr(session._jvm, "org.apache.spark.sql.classic.SparkSession")
    before = sessions.getActiveSession()
    sessions.setActiveSession(session._jsparkSession)
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


def union_by_name(parts: Sequence[Any]) -> Any:
    """Return the rows of all parts by the names of their columns. Halves are joined, so that plans stay flat."""
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return union_by_name(parts[:middle]).unionByName(union_by_name(parts[middle:]))
