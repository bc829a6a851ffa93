"""Texts of files that Spark's readers would change or leave out without an error."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from tamis.cli.ingest_batch import Batch
from tamis.core.types.identifiers import backquote
from tamis.errors import InvalidInput
from tamis.world import new_id

_DAY = r"([0-9]{4}|[+-][0-9]{4,6})-[0-9]{1,2}-[0-9]{1,2}"
_A_DAY = rf"^\s*{_DAY}\s*$"
"""Spark also takes a year or a month, and what begins with a day."""
_AN_INSTANT = rf"^\s*{_DAY}([ T].*)?$"
"""Of a time without a day, Spark makes an instant of the day on which it reads it. It tests what follows a day."""
_SECONDS = r"^[+-]?([0-9]{1,3}|[0-9]{7,11})([.][0-9]*)?$"
"""A number is seconds since 1970 in JSON; those after the year 9999 are milliseconds or shorter.

Of four to six digits in quotes, Spark makes a year; a record that is read as texts does not tell them from numbers.
"""
_CHANGED_NUMBER = r"^\s*[+-]?0[0-9]|^\s*[+]|[0-9.][dDfF]\s*$"
"""Numbers that do not keep their texts: ``007``, ``+33``, and ``12D``, which Java reads as a fraction."""
_REMEDY = (
    "Correct the files, say the format by --read-option dateFormat=… or timestampFormat=…, or load the column as "
    "STRING or BIGINT and convert it in SQL."
)
_FOLDER_REMEDY = "Rename the folders, or load the column as STRING and convert it in SQL."


def check_times(spark: Any, batch: Batch, wanted: Any) -> None:
    """Raise ``InvalidInput`` (``BAD_DATA``) for a text that is no day or instant in a column or field of such a type.

    Types for whose texts an option says the format are left to Spark, but for columns of folders: it reads them by
    its own format in any case.
    """
    from pyspark.sql.types import StructField, StructType

    folders = {name.lower() for name in batch.partitions}
    as_folders = replace(batch, file_format="parquet", options={})
    columns = [(name, kind, as_folders if name.lower() in folders else batch) for name, kind in _fields(wanted)]
    if not any(_times_at(rules, kind) for _, kind, rules in columns):
        return
    schema = StructType([StructField(name, _with_texts(rules, kind)) for name, kind, rules in columns])
    texts = batch.reader(spark).schema(schema).load(batch.escaped_paths)
    tests = {
        name: _any_wrong_time(rules, texts[backquote(name)], kind)
        for name, kind, rules in columns
        if _times_at(rules, kind)
    }
    found = _first_that_holds(texts, tests)
    if found is not None:
        name, text = found
        raise InvalidInput(
            f"The column {name} has a text that is no day or instant of its type, such as a time without a day: "
            f"{text[:200]!r}",
            code="BAD_DATA",
            name=name,
            remedy=_FOLDER_REMEDY if name.lower() in folders else _REMEDY,
        )


def columns_to_keep_as_texts(batch: Batch, texts: Any, inferred: Any) -> set[str]:
    """Return the columns whose texts an inferred type would change: times of day, months, ``007`` and ``12D``."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import NumericType

    tests = {}
    for name, kind in _fields(inferred):
        value = texts[backquote(name)]
        if _is_time(batch, kind):
            tests[name] = _any_wrong_time(batch, value, kind)
        elif isinstance(kind, NumericType):
            tests[name] = value.rlike(_CHANGED_NUMBER)
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
    line = f.regexp_replace("value", "^[\ufeff\\s]+|\\s+$", "")
    last = new_id()  # no line has it, so that no bracket in a line can hide that it is missing

    def values_are(count: int, before: str) -> Any:
        text = f.concat(f.lit("["), line, f.lit(f'\n{before}"{last}"]'))
        values = f.from_json(text, "ARRAY<STRING>", _parser_options(batch.options))
        return f.coalesce((f.size(values) == count) & (f.get(values, f.lit(count - 1)) == last), f.lit(False))

    one = values_are(2, ",")
    if batch.is_on("allowComments"):
        one = one | values_are(1, "")
    other_encoding = f.col("value").contains("\0")  # Spark finds UTF-16 and UTF-32 by itself
    wrong = lines.where((line != "") & ~other_encoding & ~one).limit(1).collect()
    if wrong:
        raise InvalidInput(
            f"A line is not one JSON value: {wrong[0][0][:200]}",
            code="BAD_DATA",
            name=str(batch.folder),
            remedy="Write one record a line, or a list of all records in one line.",
        )


def _parser_options(given: Mapping[str, str]) -> dict[str, str]:
    return {k: v for k, v in given.items() if k.lower().startswith(("allow", "max"))} | {"mode": "PERMISSIVE"}


def _fields(wanted: Any) -> list[tuple[str, Any]]:
    return [(field.name, field.dataType) for field in wanted]


def _is_time(batch: Batch, kind: Any) -> bool:
    """Whether a type is of days or instants whose texts have Spark's own format."""
    from pyspark.sql.types import DateType, TimestampNTZType, TimestampType

    formats = {DateType: "dateFormat", TimestampType: "timestampFormat", TimestampNTZType: "timestampNTZFormat"}
    return type(kind) in formats and not batch.has_option(formats[type(kind)])


def _times_at(batch: Batch, kind: Any) -> bool:
    """Whether a type has days or instants at any depth; keys of maps do not count."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(kind, ArrayType):
        return _times_at(batch, kind.elementType)
    if isinstance(kind, MapType):
        return _times_at(batch, kind.valueType)
    if isinstance(kind, StructType):
        return any(_times_at(batch, inner) for _, inner in _fields(kind))
    return _is_time(batch, kind)


def _with_texts(batch: Batch, kind: Any) -> Any:
    """Return a type with STRING for each day and instant at any depth."""
    from pyspark.sql.types import ArrayType, MapType, StringType, StructField, StructType

    if isinstance(kind, ArrayType):
        return ArrayType(_with_texts(batch, kind.elementType))
    if isinstance(kind, MapType):
        return MapType(kind.keyType, _with_texts(batch, kind.valueType))
    if isinstance(kind, StructType):
        return StructType([StructField(name, _with_texts(batch, inner)) for name, inner in _fields(kind)])
    return StringType() if _is_time(batch, kind) else kind


def _any_wrong_time(batch: Batch, value: Any, kind: Any) -> Any:
    """Return a condition: whether a text at any depth of ``value`` is no day or instant; NULL is false."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import ArrayType, DateType, MapType, StructType

    if isinstance(kind, ArrayType):
        return f.coalesce(f.exists(value, lambda one: _any_wrong_time(batch, one, kind.elementType)), f.lit(False))
    if isinstance(kind, MapType):
        values = f.map_values(value)
        return f.coalesce(f.exists(values, lambda one: _any_wrong_time(batch, one, kind.valueType)), f.lit(False))
    if isinstance(kind, StructType):
        return _either(
            _any_wrong_time(batch, value.getField(name), inner)
            for name, inner in _fields(kind)
            if _times_at(batch, inner)
        )
    right = value.rlike(_A_DAY if isinstance(kind, DateType) else _AN_INSTANT)
    if batch.file_format == "json" and not isinstance(kind, DateType):
        right = right | value.rlike(_SECONDS)
    if batch.file_format == "parquet":  # Spark reads the name of a folder as a day if it is no instant
        right = right & value.try_cast(kind).isNotNull()
    return f.coalesce(~right, f.lit(False))


def _either(tests: Iterable[Any]) -> Any:
    from pyspark.sql import functions as f

    found = f.lit(False)
    for test in tests:
        found = found | test
    return found


def _first_that_holds(rows: Any, tests: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the name of a condition that holds for some row, and the text of the column of that name there."""
    from pyspark.sql import functions as f

    texts = (rows[backquote(name)].cast("string") for name in tests)
    found = rows.where(_either(tests.values())).select(f.array(*tests.values()), f.array(*texts)).limit(1).collect()
    for held, shown in found:
        return next((name, text) for name, wrong, text in zip(tests, held, shown, strict=True) if wrong)
    return None
