"""What errors say to people."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tamis
from tamis.core.expr import Expr, check_readable, conjuncts_of, parse_predicate
from tamis.core.expr.column_definitions import parse_columns
from tamis.core.types import DOUBLE
from tamis.core.types.arrow import from_arrow_schema
from tamis.engine.operations.rows.merge_plan import MATCHED, MergeClause, merge_plan
from tamis.engine.operations.rows.store_assignment import assignable_column, assigned_value
from tamis.engine.part_writer.column_defaults import default_scalar
from tamis.engine.scan import Options
from tamis.errors import InvalidInput, NotFound, SchemaMismatch, StoreUnavailable
from tamis.storage.object_store.store_backends import translate_error

ROW = pa.schema([("a", pa.int64())])


def test_a_file_name_that_is_too_long(tmp_path: Path) -> None:
    for call in (tamis.open, lambda path: tamis.create(path, ROW)):
        with pytest.raises(InvalidInput) as caught:
            call(tmp_path / ("x" * 300))
        assert caught.value.code == "BAD_PATH"
        assert "x" * 300 in caught.value.name


def test_no_rows_at_all(tmp_path: Path) -> None:
    table = tamis.create(tmp_path)
    with pytest.raises(InvalidInput, match="None is not a table of rows"):
        table.append(None)
    with pytest.raises(InvalidInput, match="An object of type int is not"):
        table.append(3)


def test_the_name_of_a_format_is_text(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as caught:
        tamis.create(tmp_path, ROW, format=["x"])  # type: ignore[arg-type]
    assert (caught.value.code, caught.value.name) == ("UNKNOWN_FORMAT", "['x']")


def test_what_the_system_says_ends_before_the_remedy() -> None:
    assert "(os error 2). Check" in str(
        translate_error(FileNotFoundError("No such file or directory (os error 2)"), "write", "x")
    )


@pytest.mark.parametrize(
    ("name", "code"),
    [("s3://lake/data/a", "STORE_UNAVAILABLE"), ("/lake/data/a", "DISK_ERROR"), ("file:///lake/a", "DISK_ERROR")],
)
def test_only_a_disk_has_errors_of_a_disk(name: str, code: str) -> None:
    """The stream of a store raises ``OSError`` for an answer 503, too."""
    error = translate_error(OSError("Server returned non-2xx status code: 503"), "write", name)
    assert isinstance(error, StoreUnavailable)
    assert error.code == code


SCHEMA = from_arrow_schema(
    parse_columns("id BIGINT, s STRING, d DATE, ts TIMESTAMP, x DOUBLE, st STRUCT<x: BIGINT>")
).assign_ids(0)

FILTERS = [
    ("d > 5", "BAD_ARGUMENTS", "'(d > 5)' is not defined here: d is date, 5 is int."),
    ("id = true", "BAD_ARGUMENTS", "'(id = true)'"),
    ("NOT id", "BAD_ARGUMENTS", "'(NOT id)' is not defined here: id is bigint."),
    ("id = 5 OR 1", "BAD_ARGUMENTS", "'((id = 5L) OR 1)'"),
    ("s[0] = 'a'", "BAD_ARGUMENTS", "'s[0]'"),
    ("ts > now() - 7", "BAD_ARGUMENTS", "'(current_timestamp() - 7)'"),
    ("upper() = 'a'", "BAD_ARGUMENTS", "'upper()' is not defined here: it takes arguments."),
    ("s RLIKE '['", "BAD_ARGUMENTS", "The pattern '[' is not a regular expression that can be evaluated here."),
    ("regexp_replace(s, '(', 'x') = 'y'", "BAD_ARGUMENTS", "The pattern '(' is not a regular expression"),
    ("to_date(s, 'qq') = d", "BAD_ARGUMENTS", "to_timestamp(s, 'qq')"),
    ("my_udf(id) = 1", "UNKNOWN_FUNCTION", "The function in 'my_udf(id)' is unknown here."),
    ("id = 1 AND my_udf(id) > d", "UNKNOWN_FUNCTION", "'my_udf(id)'"),
    ("array(1, 2)[5] = 1", "UNKNOWN_FUNCTION", "'array(1, 2)'"),
    ("sum(id) > 1", "NO_PLACE", "'sum(id)' is an aggregate"),
    ("count(*) > 1", "NO_PLACE", "'count(*)' is an aggregate"),
    ("row_number() OVER (ORDER BY id) = 1", "NO_PLACE", "is a window function"),
    ("id IN (SELECT other FROM t)", "NO_PLACE", "holds a query"),
    ("id = (SELECT 1)", "NO_PLACE", "holds a query"),
    ("id = :p", "NO_PLACE", "':p' is a parameter"),
    ("id = ?", "NO_PLACE", "'?' is a parameter"),
    ("{{ x }} = 1", "PARSE_ERROR", "from '{' on (column 1)"),
    ("id = *", "NO_PLACE", "'*' stands for all columns"),
    ("CAST(x AS UUID) = 1", "BAD_TYPE", "'CAST(x AS UUID)' names a type"),
    ("id = 'abc'", "FILTER_FAILED", "Correct the constant"),
    ("CAST(x AS DECIMAL(50,2)) > 1", "BAD_TYPE", "Unknown type DECIMAL(50,2): the precision is 1 to 38"),
    ("CAST(x AS DECIMAL(5,10)) > 1", "BAD_TYPE", "DECIMAL(5,10)"),
    ("CAST(x AS DECIMAL(0)) > 1", "BAD_TYPE", "DECIMAL(0)"),
    ("CAST(x AS DECIMAL(a)) > 1", "PARSE_ERROR", "from 'a' on (column 19)"),
    ("id::decimal(99) > 1", "BAD_TYPE", "decimal(99)"),
    ("CAST(s AS TIMESTAMP(9)) = ts", "BAD_TYPE", "Unknown type TIMESTAMP(9): it takes no parameter"),
    ("x = nan", "COLUMN_NOT_FOUND", "Write isnan(x)"),
    ("id IS NAN", "PARSE_ERROR", "from 'NAN' on (column 7)"),
    ("t.id = 5", "COLUMN_NOT_FOUND", "In 't.id', leave the table's name out."),
    ("s = hello", "COLUMN_NOT_FOUND", "String literals need quotes: 'hello'."),
    ("s = x'zz'", "PARSE_ERROR", "'zz' is not a row of hexadecimal digits (column 5). Write"),
    ("s = 'a", "PARSE_ERROR", "A quote or a comment in it does not end (column 5). Write"),
    ("hello world", "PARSE_ERROR", "Nothing joins 'world' to what stands before it. Write one Spark SQL predicate."),
]


@pytest.mark.parametrize(("text", "code", "words"), FILTERS, ids=[text for text, _, _ in FILTERS])
def test_what_is_wrong_with_a_filter(text: str, code: str, words: str) -> None:
    with pytest.raises((InvalidInput, NotFound)) as caught:
        check_readable(conjuncts_of(parse_predicate(text, SCHEMA)), 0)
    assert (caught.value.code, words in str(caught.value)) == (code, True), str(caught.value)


OTHERS = {
    "a default with an open quote": (
        lambda: default_scalar("('x", DOUBLE, "z"),
        '"(\'x" is not a default: A quote or a comment in it does not end (column 2)',
    ),
    "a default of an unknown function": (
        lambda: default_scalar("my_udf(1)", DOUBLE, "z"),
        "'my_udf(1)' is unknown here",
    ),
    "a field that is given a value": (lambda: assignable_column(SCHEMA, "st.x"), "Give the whole of 'st'"),
    "a value without a cast": (
        lambda: assigned_value(column_of("d"), SCHEMA.find("id")[0], "UTC"),
        "Give a value of type bigint.",
    ),
    "a value with a cast": (
        lambda: assigned_value(column_of("s"), SCHEMA.find("d")[0], "UTC"),
        "Write CAST(s AS date)",
    ),
    "a source that lacks a column": (
        lambda: merged(None, pa.schema([("id", pa.int64())])),
        "The source has no column 's'",
    ),
    "a source of another type": (
        lambda: merged({"d": "source.d"}, pa.schema([("id", pa.int64()), ("d", pa.string())])),
        "Cast column 'd' of the data to date.",
    ),
    "a value that is no expression": (
        lambda: merged({"s": "a b"}, pa.schema([("id", pa.int64())])),
        "'a b' is not a value for 's'",
    ),
}


def column_of(name: str) -> Expr:
    return parse_predicate(f"{name} IS NULL", SCHEMA).children[0]


def merged(values: dict[str, Any] | None, source: pa.Schema) -> object:
    return merge_plan(
        SCHEMA,
        source,
        "target.id = source.id",
        [MergeClause(MATCHED, "update", None, values)],
        SCHEMA.highest_id(),
        Options(),
    )


@pytest.mark.parametrize("case", OTHERS)
def test_what_is_wrong_with_other_text(case: str) -> None:
    call, words = OTHERS[case]
    with pytest.raises((InvalidInput, NotFound, SchemaMismatch)) as caught:
        call()
    assert words in str(caught.value), str(caught.value)


def test_what_cannot_be_read_can_be_explained(tmp_path: Path) -> None:
    scan = tamis.create(tmp_path, ROW).scan("a > my_udf(a) AND a = (SELECT 1) AND a > DATE'2026-01-01'")
    assert len(scan.explain().not_skipped_because) <= 3
    assert not hasattr(scan, "filter")
