"""CSV files of an ingestion: each is read by its own header.

Invariant: a value goes to the column that the header of its own file names. Spark reads all files of a call under
the header of one of them, by position; so files of one header are read together, and the rows are combined by name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from tamis.cli.ingest_batch import Batch, check_known, inferred_schema, union_by_name, with_missing
from tamis.cli.ingest_checks import check_times, columns_to_keep_as_texts
from tamis.cli.ingest_quoting import (
    CODECS,
    HADOOPS_OWN,
    PLAIN,
    Layout,
    Quoting,
    file_compression,
    quoting_of_files,
    unclear_quotes,
)
from tamis.cli.source_folders import File
from tamis.core.types.identifiers import backquote

Groups = Sequence[tuple[Batch, Sequence[str]]]
"""The files of each header, with their columns, those of folders among them."""

_LONGEST = 1 << 16
_ONE_BYTE = {"", "utf-8", "utf8", "us-ascii", "iso-8859-1", "windows-1252"}
"""Encodings in which a byte of a line end is nothing else."""
_BLANK = bytes(range(33))
_LAYOUT = {
    *("sep", "delimiter", "quote", "escape", "chartoescapequoteescaping", "unescapedquotehandling", "comment"),
    *("encoding", "charset", "header", "linesep", "multiline", "nullvalue", "emptyvalue", "enforceschema", "mode"),
}
"""Options, in lower case, that say how a file holds its texts, and nothing about the types of these."""
_QUOTING = ("quote", "escape", "charToEscapeQuoteEscaping", "unescapedQuoteHandling")
"""Options by which Spark reads quotes as the caller says."""
_EXACT = {"ignoreLeadingWhiteSpace": "false", "ignoreTrailingWhiteSpace": "false"}


def first_csv(spark: Any, batch: Batch) -> Any:
    """Return the rows of the first files of a table, with the columns of all headers, and types that Spark infers."""
    kinds = _by_quoting(spark, batch)
    groups, headers = _groups(spark, kinds) if _has_headers(batch) else ([], len(kinds))
    if headers < 2 and not (groups and batch.has_patterns):  # in several, Spark takes all but one for data
        return _infer_at_once(spark, kinds[0] if kinds else batch)
    groups = groups or [group for kind in kinds for group in _by_position(spark, kind, {})]
    return _load(spark, groups, _inferred(spark, batch, groups))


def load_csv(spark: Any, batch: Batch, known: Mapping[str, Any]) -> Any:
    """Return the rows under the columns of ``known``; one that a file's header lacks has its default there, or NULL.

    Raises ``SchemaMismatch`` (``UNKNOWN_COLUMN``) for a header that names another column.
    """
    from pyspark.sql.types import StructType

    kinds = _by_quoting(spark, batch)
    if _has_headers(batch):
        groups, _ = _groups(spark, kinds)
    else:
        groups = [group for kind in kinds for group in _by_position(spark, kind, known)]
    for _, columns in groups:
        check_known(columns, known)
    return _load(spark, groups, known) if groups else spark.createDataFrame([], StructType(list(known.values())))


def _by_quoting(spark: Any, batch: Batch) -> list[Batch]:
    """Split the files by how their texts are quoted, unless an option says it for all; empty ones are left out.

    Raises ``InvalidInput``: ``BAD_DATA`` for a file whose quotes do not tell, ``FILE_NAME`` as ``check_names`` does.
    """
    if batch.has_option(*_QUOTING):
        return [batch]
    layout = Layout(
        batch.option("sep") or batch.option("delimiter") or ",",
        batch.option("encoding") or batch.option("charset") or "utf-8",
        plain_lines=not (batch.option("comment") or batch.option("lineSep")),
        skips_blanks=batch.is_on("ignoreLeadingWhiteSpace"),
    )
    files = {path: file for file, path in zip(batch.files, batch.paths, strict=True) if file.size}
    known = quoting_of_files((path for path in files if file_compression(path) not in HADOOPS_OWN), layout)
    found: dict[Quoting, list[File]] = {}
    for path, file in files.items():
        if path not in known:
            _check_without_quotes(spark, batch, file)
        found.setdefault(known.get(path, PLAIN), []).append(file)
    kinds = []
    for kind, same in found.items():
        kinds.append(replace(batch, files=same, options={**kind.reader_options, **batch.options}))
        kinds[-1].check_names()
    return kinds


def _check_without_quotes(spark: Any, batch: Batch, file: File) -> None:
    """Raise ``InvalidInput`` (``BAD_DATA``) for a file with quotes that Spark alone can unpack."""
    (path,) = replace(batch, files=[file]).escaped_paths
    if spark.read.text(path).where("value LIKE '%\"%'").limit(1).count():
        raise unclear_quotes(path, f"are not looked through in a file of {file_compression(path)}")


def _infer_at_once(spark: Any, batch: Batch) -> Any:
    """Return the rows as Spark infers them, but for columns whose texts it would change."""
    from pyspark.sql.types import StringType, StructField, StructType

    reader = batch.reader(spark).options(**{"inferSchema": "true", **batch.options})
    rows = reader.load(batch.escaped_paths)
    if batch.option("singleVariantColumn"):
        return rows
    folders = {name.lower() for name in batch.partitions}
    columns = StructType([field for field in rows.schema if field.name.lower() not in folders])
    texts = StructType([StructField(field.name, StringType()) for field in columns])
    kept = columns_to_keep_as_texts(batch, batch.reader(spark).schema(texts).load(batch.escaped_paths), columns)
    if not kept:
        return rows
    fields = [StructField(field.name, StringType()) if field.name in kept else field for field in columns]
    return batch.reader(spark).schema(StructType(fields)).load(batch.escaped_paths)


def _by_position(spark: Any, batch: Batch, known: Mapping[str, Any]) -> Groups:
    """Return all files as one group whose columns are the first of the table, by position."""
    folders = {name.lower() for name in batch.partitions}
    found = [name for name in batch.reader(spark).load(batch.escaped_paths).columns if name.lower() not in folders]
    if not batch.option("singleVariantColumn"):
        names = [field.name for lower, field in known.items() if lower not in folders]
        found = [*names[: len(found)], *found[len(names) :]]  # those that are left over are refused by their names
    return [(batch, [*found, *batch.partitions])]


def _has_headers(batch: Batch) -> bool:
    return (batch.option("header") or "true").lower() == "true" and not batch.option("singleVariantColumn")


def _load(spark: Any, groups: Groups, known: Mapping[str, Any]) -> Any:
    from pyspark.sql.types import StructType

    parts = []
    for batch, columns in groups:
        wanted = StructType([known[name.lower()] for name in columns])
        check_times(spark, batch, wanted)
        parts.append(with_missing(batch.reader(spark).schema(wanted).load(batch.escaped_paths), known))
    return union_by_name(parts)


def _inferred(spark: Any, batch: Batch, groups: Groups) -> dict[str, Any]:
    """Return the columns of all groups, typed by the values of all files."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import StringType, StructField

    folders = {name.lower() for name in batch.partitions}
    known: dict[str, Any] = {}
    if folders:  # of the types that all folders agree on
        listed = spark.read.format("text").option("basePath", str(batch.folder)).load(batch.escaped_paths).schema
        known = {field.name.lower(): field for field in listed if field.name.lower() in folders}
    texts: dict[str, Any] = {}
    for _, names in groups:
        for name in names:
            texts.setdefault(name.lower(), StructField(name, StringType()))
    rows = _load(spark, groups, {**texts, **known})
    columns = [field for lower, field in texts.items() if lower not in folders]
    if (batch.option("inferSchema") or "true").lower() == "true" and columns:
        lines = rows.select(f.to_csv(f.struct(*(f.col(backquote(c.name)) for c in columns)), _EXACT))
        options = {k: v for k, v in batch.options.items() if k.lower() not in _LAYOUT}
        types = inferred_schema(spark.read.options(**{**options, "inferSchema": "true"}), "csv", lines)
        if len(types):  # without a line, Spark infers nothing, and texts stay
            typed = [StructField(c.name, t.dataType) for c, t in zip(columns, types, strict=True)]
            kept = columns_to_keep_as_texts(groups[0][0], rows, typed)
            columns = [text if text.name in kept else found for text, found in zip(columns, typed, strict=True)]
    return {**texts, **{c.name.lower(): c for c in columns}, **known}


def _groups(spark: Any, kinds: Sequence[Batch]) -> tuple[Groups, int]:
    """Return the files by the columns of their headers, and how many headers there are; empty files are left out.

    Two headers may name the same columns, as with and without quotes. Spark reads one file of each header, and files
    of each of ``kinds`` by themselves.
    """
    groups: list[tuple[Batch, Sequence[str]]] = []
    headers = 0
    for batch in kinds:
        by_header: dict[bytes | str, list[File]] = {}
        for file, path in zip(batch.files, batch.paths, strict=True):
            if file.size:
                by_header.setdefault(_header_line(path, batch) or file.name, []).append(file)
        reader = batch.reader(spark).option("inferSchema", "false")
        found: dict[tuple[str, ...], list[File]] = {}
        for files in by_header.values():
            columns = tuple(reader.load(replace(batch, files=files[:1]).escaped_paths).columns)
            if columns:
                found.setdefault(columns, []).extend(files)
        groups += [(replace(batch, files=files), columns) for columns, files in found.items()]
        headers += len(by_header)
    return groups, headers


def _header_line(path: str, batch: Batch) -> bytes | None:
    """Return the first line of a file if that is its header and all of it; else None, and Spark is asked."""
    ending = file_compression(path)
    encoding = batch.option("encoding") or batch.option("charset")
    line_end = batch.option("lineSep").encode()
    if ending in HADOOPS_OWN or encoding.lower() not in _ONE_BYTE:
        return None
    try:
        with pa.input_stream(path, compression=CODECS.get(ending)) as file:
            start = file.read(_LONGEST)
    except (OSError, pa.ArrowException):  # Spark says what is wrong with it
        return None
    found = re.match(rb"(?:\xef\xbb\xbf)?([^\r\n]*)(\r?\n|\r)", start)
    comment = batch.option("comment").encode()
    if found is None or not found[1].strip(_BLANK) or (comment and found[1].startswith(comment)):
        return None
    if line_end and found[2] != line_end:
        return None
    if batch.is_on("multiLine"):  # a header in quotes may go on
        quote = (batch.option("quote") or '"').encode()
        if quote in found[1] or (found[2] == b"\r" and not line_end):
            return None
    return found[1]
