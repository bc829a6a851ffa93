"""JSON files of an ingestion: their keys are found by the table's names, in any case and at any depth.

Invariant: no key of a file that has a value is dropped silently. Spark's parser takes only keys of exactly the name
that it is given, so it is given the spelling of the files, and the rows get the table's names afterwards. Spark infers
no key whose values are all empty objects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from tamis.cli.ingest_batch import Batch, inferred_schema, union_by_name, unknown_column
from tamis.cli.ingest_checks import check_json_lines, check_times
from tamis.cli.ingest_defaults import json_by_missing, with_defaults
from tamis.core.types.identifiers import backquote
from tamis.errors import SchemaMismatch
from tamis.spark.jvm_bridge.python_sessions import python_session

_HIDING_KEYS = {"samplingratio", "dropfieldifallnull"}
"""Options, in lower case, under which Spark infers fewer keys than files have."""
Spellings = Mapping[tuple[str, ...], str]
"""How files spell a column or field, by its path in lower case."""


def first_json(spark: Any, batch: Batch) -> Any:
    """Return the rows of the first files of a table, with the columns that Spark infers.

    Raises ``SchemaMismatch`` (``AMBIGUOUS_COLUMN``) for a key that is spelled in two ways.
    """
    from pyspark.sql.types import StructType

    check_json_lines(spark, batch)
    found = _inferred(spark, batch)
    list(_spelled_keys(found, found, ()))  # refuses two spellings
    columns = StructType([field for field in found if field.name.lower() not in _partitions(batch)])
    check_times(spark, batch, columns)
    return batch.reader(spark).schema(columns).load(batch.escaped_paths)


def load_json(spark: Any, batch: Batch, known: Mapping[str, Any]) -> Any:
    """Return the rows under the columns of ``known``. What records lack is NULL, at any depth.

    A column whose key no record of a file has gets its default in this file's rows.

    Raises ``SchemaMismatch``: ``UNKNOWN_COLUMN`` for a key that the table lacks, ``AMBIGUOUS_COLUMN`` for one
    that a file spells in two ways.
    """
    check_json_lines(spark, batch)
    parts = []
    for group, names in _groups(spark, batch, known):
        keys = {path[0]: name for path, name in names.items() if len(path) == 1}
        for part, lacking in json_by_missing(spark, group, known, keys):
            parts.append(with_defaults(_load(spark, part, known, names), lacking, known))
    return union_by_name(parts)


def _load(spark: Any, batch: Batch, known: Mapping[str, Any], names: Spellings) -> Any:
    from pyspark.sql import functions as f
    from pyspark.sql.types import StructType

    table = StructType(list(known.values()))
    spelled = _with_spellings(table, names, ())
    check_times(spark, batch, spelled)
    rows = batch.reader(spark).schema(spelled).load(batch.escaped_paths)
    # a cast between structs goes by position: it renames the fields
    return rows.select(
        *(
            f.col(backquote(there.name)).cast(_with_spellings(here.dataType, {}, ())).alias(here.name)
            for there, here in zip(spelled, table, strict=True)
        )
    )


def _groups(spark: Any, batch: Batch, known: Mapping[str, Any]) -> list[tuple[Batch, Spellings]]:
    """Split the files into groups that spell each key in one way: one group, unless files differ in a key."""
    try:
        return [(batch, _spellings_of_files(spark, batch, known))]
    except SchemaMismatch as error:
        if error.code != "AMBIGUOUS_COLUMN" or len(batch.files) == 1:
            raise
    middle = len(batch.files) // 2
    groups: list[tuple[Batch, Spellings]] = []
    for half in (batch.files[:middle], batch.files[middle:]):
        for part, names in _groups(spark, replace(batch, files=half), known):
            for at, (other, others) in enumerate(groups):
                if all(others.get(path, name) == name for path, name in names.items()):
                    groups[at] = replace(batch, files=[*other.files, *part.files]), {**others, **names}
                    break
            else:
                groups.append((part, names))
    return groups


def _spellings_of_files(spark: Any, batch: Batch, known: Mapping[str, Any]) -> Spellings:
    from pyspark.sql.types import StructType

    table = StructType(list(known.values()))
    folders = _partitions(batch)
    keys = StructType([field for field in _inferred(spark, batch) if field.name.lower() not in folders])
    for lower, name in folders.items():
        if lower not in known:
            raise unknown_column(name)
    return {**dict(_spelled_keys(keys, table, ())), **{(lower,): name for lower, name in folders.items()}}


def _partitions(batch: Batch) -> dict[str, str]:
    return {name.lower(): name for name in batch.partitions}


def _spelled_keys(found: Any, wanted: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the path of each field of ``wanted`` that ``found`` has, and its spelling there.

    Keys of a MAP and of what is no struct in the table are data. Raises ``SchemaMismatch`` as ``load_json``.
    """
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(wanted, ArrayType) and isinstance(found, ArrayType):
        yield from _spelled_keys(found.elementType, wanted.elementType, path)
    elif isinstance(wanted, MapType) and isinstance(found, StructType):
        yield from _spelled_once(pair for key in found for pair in _spelled_keys(key.dataType, wanted.valueType, path))
    elif isinstance(wanted, StructType) and isinstance(found, StructType):
        fields = {field.name.lower(): field for field in wanted}
        for field in found:
            if field.name.lower() not in fields:
                raise unknown_column(".".join((*path, field.name)))
        yield from _spelled_once(((*path, field.name.lower()), field.name) for field in found)
        for field in found:
            yield from _spelled_keys(field.dataType, fields[field.name.lower()].dataType, (*path, field.name.lower()))


def _spelled_once(pairs: Any) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield each path once. Raises ``SchemaMismatch`` (``AMBIGUOUS_COLUMN``) for one with two spellings."""
    names: dict[tuple[str, ...], str] = {}
    for path, name in pairs:
        if names.setdefault(path, name) != name:
            shown = ".".join((*path[:-1], name))
            raise SchemaMismatch(
                f"The files spell the key {shown!r} in two ways, {names[path]!r} and {name!r}.",
                code="AMBIGUOUS_COLUMN",
                name=shown,
                remedy="Use one spelling in each file, and in all files from which a table is made.",
            )
    yield from names.items()


def _with_spellings(wanted: Any, names: Spellings, path: tuple[str, ...]) -> Any:
    """Return a nullable type like ``wanted``, whose fields are spelled as in the files."""
    from pyspark.sql.types import ArrayType, MapType, StructField, StructType

    if isinstance(wanted, ArrayType):
        return ArrayType(_with_spellings(wanted.elementType, names, path))
    if isinstance(wanted, MapType):
        return MapType(wanted.keyType, _with_spellings(wanted.valueType, names, path))
    if not isinstance(wanted, StructType):
        return wanted
    below = [(*path, field.name.lower()) for field in wanted]
    return StructType(
        [
            StructField(names.get(at, field.name), _with_spellings(field.dataType, names, at))
            for at, field in zip(below, wanted, strict=True)
        ]
    )


def _inferred(spark: Any, batch: Batch) -> Any:
    """Return the keys of all records as Spark infers them, each spelling as a column of its own."""
    exact = python_session(spark._jsparkSession.cloneSession())
    exact.conf.set("spark.sql.caseSensitive", "true")
    options = {k: v for k, v in batch.options.items() if k.lower() not in _HIDING_KEYS}
    batch = replace(batch, options=options)
    reader = batch.reader(exact)
    if not batch.has_patterns or batch.option("encoding") or batch.option("charset"):
        return reader.load(batch.escaped_paths).schema
    lines = exact.read.format("text").options(**options).load(batch.escaped_paths).select("value")
    return inferred_schema(reader, "json", lines)
