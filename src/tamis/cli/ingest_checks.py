"""Texts of files that Spark's readers would change or leave out without an error."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tamis.cli.ingest_batch import Batch
from tamis.core.types.identifiers import backquote
from tamis.errors import InvalidInput

_TIME_OF_DAY = r"^\s*T?[0-9]{1,2}:"
"""Spark makes an instant of the day on which it reads such a text."""
_TOO_MANY_SECONDS = r"^\s*[+-]?[0-9]{12,}\s*$"
"""Spark takes a number for seconds since 1970; those after the year 9999 are milliseconds or shorter."""
_CHANGED_NUMBER = r"^\s*[+-]?0[0-9]|[0-9.][dDfF]\s*$"
"""Numbers that do not keep their texts: ``007``, and ``12D``, which Java reads as a fraction."""


def check_instants(texts: Any, wanted: Any) -> None:
    """Raise ``InvalidInput`` (``BAD_DATA``) for a text without a day in a column or field of type TIMESTAMP.

    ``texts`` are rows with the columns of ``wanted``, but texts for instants, as ``instants_as_texts`` has them.
    """
    tests = {name: _any_instant(texts[backquote(name)], kind) for name, kind in _with_instants(wanted).items()}
    name = _first_that_holds(texts, tests)
    if name is not None:
        raise InvalidInput(
            f"The column {name} has a text or number that is no instant, as a time without a day, or milliseconds.",
            code="BAD_DATA",
            name=name,
            remedy="Load such a column as STRING or BIGINT, and convert it in SQL.",
        )


def instants_as_texts(kind: Any) -> Any:
    """Return a type with STRING for each TIMESTAMP at any depth; keys of maps stay as they are."""
    from pyspark.sql.types import ArrayType, MapType, StringType, StructField, StructType

    if isinstance(kind, ArrayType):
        return ArrayType(instants_as_texts(kind.elementType))
    if isinstance(kind, MapType):
        return MapType(kind.keyType, instants_as_texts(kind.valueType))
    if isinstance(kind, StructType):
        return StructType([StructField(field.name, instants_as_texts(field.dataType)) for field in kind])
    return StringType() if _is_instant(kind) else kind


def columns_to_keep_as_texts(texts: Any, inferred: Any) -> set[str]:
    """Return the columns whose texts an inferred type would change: times of day, ``007`` and ``12D``."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import NumericType

    tests = {}
    for field in inferred:
        pattern = _TIME_OF_DAY if _is_instant(field.dataType) else _CHANGED_NUMBER
        if _is_instant(field.dataType) or isinstance(field.dataType, NumericType):
            tests[field.name] = texts[backquote(field.name)].rlike(pattern)
    if not tests:
        return set()
    (found,) = texts.select(*(f.max(test) for test in tests.values())).collect()
    return {name for name, held in zip(tests, found, strict=True) if held}


def check_json_lines(spark: Any, batch: Batch) -> None:
    """Raise ``InvalidInput`` (``BAD_DATA``) for text after the first value of a line, which Spark leaves out.

    Under ``multiLine``, a file is one line. In encodings that Spark's reader of texts does not know, and under a mode
    that passes over malformed records, nothing is checked.
    """
    from pyspark.sql import functions as f

    encoding = batch.option("encoding") or batch.option("charset") or "UTF-8"
    if batch.option("mode").upper() not in {"", "FAILFAST"} or encoding.upper() != "UTF-8":
        return
    options = {**batch.reader_options, "wholetext": batch.option("multiLine") or "false"}
    options = {k: v for k, v in options.items() if k.lower() not in {"multiline", "encoding", "charset"}}
    lines = spark.read.format("text").options(**options).load(batch.escaped_paths).select("value")
    line = f.trim(f.col("value"))
    values = f.from_json(f.concat(f.lit("["), line, f.lit("]")), "ARRAY<STRING>", _parser_options(batch.options))
    wrong = lines.where((line != "") & (f.coalesce(f.size(values), f.lit(0)) != 1)).limit(1).collect()
    if wrong:
        raise InvalidInput(
            f"A line is not one JSON value: {wrong[0][0][:200]}",
            code="BAD_DATA",
            name=str(batch.folder),
            remedy="Write one record a line, or a list of all records in one line.",
        )


def _parser_options(given: Mapping[str, str]) -> dict[str, str]:
    return {k: v for k, v in given.items() if k.lower().startswith("allow")} | {"mode": "PERMISSIVE"}


def _is_instant(kind: Any) -> bool:
    from pyspark.sql.types import TimestampNTZType, TimestampType

    return isinstance(kind, TimestampType | TimestampNTZType)


def _with_instants(wanted: Any) -> dict[str, Any]:
    """Return the fields that have an instant at any depth."""
    return {field.name: field.dataType for field in wanted if _has_instant(field.dataType)}


def _has_instant(kind: Any) -> bool:
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(kind, ArrayType):
        return _has_instant(kind.elementType)
    if isinstance(kind, MapType):
        return _has_instant(kind.valueType)
    return any(_has_instant(field.dataType) for field in kind) if isinstance(kind, StructType) else _is_instant(kind)


def _any_instant(value: Any, kind: Any) -> Any:
    """Return a condition: whether an instant at any depth of ``value`` has a text that is none; NULL is false."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(kind, ArrayType):
        return f.coalesce(f.exists(value, lambda item: _any_instant(item, kind.elementType)), f.lit(False))
    if isinstance(kind, MapType):
        values = f.map_values(value)
        return f.coalesce(f.exists(values, lambda item: _any_instant(item, kind.valueType)), f.lit(False))
    if isinstance(kind, StructType):
        below = [_any_instant(value.getField(n), inner) for n, inner in _with_instants(kind).items()]
        return _either(below)
    return f.coalesce(value.rlike(_TIME_OF_DAY) | value.rlike(_TOO_MANY_SECONDS), f.lit(False))


def _either(tests: Iterable[Any]) -> Any:
    from pyspark.sql import functions as f

    found = f.lit(False)
    for test in tests:
        found = found | test
    return found


def _first_that_holds(rows: Any, tests: Mapping[str, Any]) -> str | None:
    """Return the name of a condition that holds for some row."""
    if not tests:
        return None
    found = rows.where(_either(tests.values())).select(*(test.alias(name) for name, test in tests.items())).limit(1)
    for row in found.collect():
        return next(name for name, held in zip(tests, row, strict=True) if held)
    return None
