"""Column definitions in Spark SQL's words, as a schema."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tamis import InvalidInput
from tamis.core.expr.column_definitions import parse_columns
from tamis.core.types.arrow import from_arrow_schema

TYPES = [
    ("TIMESTAMP", pa.timestamp("us", "UTC")),
    ("timestamp_ntz", pa.timestamp("us")),
    ("BIGINT", pa.int64()),
    ("int", pa.int32()),
    ("SMALLINT", pa.int16()),
    ("TINYINT", pa.int8()),
    ("DOUBLE", pa.float64()),
    ("FLOAT", pa.float32()),
    ("STRING", pa.string()),
    ("BINARY", pa.binary()),
    ("BOOLEAN", pa.bool_()),
    ("DATE", pa.date32()),
    ("DECIMAL(10,2)", pa.decimal128(10, 2)),
    ("INTERVAL DAY TO SECOND", pa.duration("us")),
    ("INTERVAL DAY", pa.duration("us")),
    ("ARRAY<INT>", pa.list_(pa.field("element", pa.int32()))),
    ("STRUCT<a: INT, b: STRING>", pa.struct([("a", pa.int32()), ("b", pa.string())])),
    ("MAP<STRING, DOUBLE>", pa.map_(pa.string(), pa.float64())),
]


@pytest.mark.parametrize(("text", "expected"), TYPES, ids=[text for text, _ in TYPES])
def test_types(text: str, expected: pa.DataType) -> None:
    assert parse_columns(f"c {text}").field("c").type == expected


def test_sizes_come_along_at_any_depth() -> None:
    text = "v VARCHAR(5), c CHAR(3), t TIME(3), s STRUCT<x: VARCHAR(2)>, a ARRAY<CHAR(2)>, m MAP<VARCHAR(4), TIME(0)>"
    assert [str(f.type) for f in from_arrow_schema(parse_columns(text))] == [
        "varchar(5)",
        "char(3)",
        "time(3)",
        "struct<x:varchar(2)>",
        "array<char(2)>",
        "map<varchar(4),time(0)>",
    ]


def test_names_and_nullability() -> None:
    found = parse_columns("ts TIMESTAMP NOT NULL, `odd, name` INT, n INT NULL")
    assert found.names == ["ts", "odd, name", "n"]
    assert [f.nullable for f in found] == [False, True, True]


REFUSED = [
    ("", "It is empty"),
    ("x", "Something is missing at its end (column 2)"),
    ("x FOO", "Unknown type FOO"),
    ("c BIGINTT", "Unknown type BIGINTT"),
    ("a INT,\n b BIGINTT", "Unknown type BIGINTT"),
    ("a INT,\n b BIGINT c", "from 'c' on (line 2, column 11)"),
    ("c DECIMAL(10,2", "Something is missing at its end (column 15)"),
    ("c 'a", "does not end"),
    ("a INT)", ""),
    ("a INT, PRIMARY KEY (a)", "from 'a' on (column 21)"),
    ("a INTERVAL YEAR TO MONTH", "years and months cannot be stored"),
    ("a INTERVAL DAY TO FOO", "from 'TO' on (column 16)"),
    ("a INTERVAL HOUR TO DAY", "from 'TO' on (column 17)"),
    ("a INTERVAL", "Unknown type INTERVAL."),
    ("a STRUCT<b: FOO>", "Unknown type FOO"),
    ("a INT COMMENT 'x'", "Only NOT NULL"),
    (
        "a INT DEFAULT 3",
        "from 'DEFAULT' on (column 7); a type may be followed by NOT NULL, and then by GENERATED ALWAYS AS",
    ),
    (");DROP", ""),
    ("c DATETIME", "Unknown type DATETIME."),
    ("c UUID", "Unknown type UUID."),
    ("c DECIMAL(50,2)", "Unknown type DECIMAL(50,2)"),
    ("c DECIMAL(5,10)", "Unknown type DECIMAL(5,10)"),
    ("c DECIMAL(10,2,3)", "it takes a precision and a scale"),
    ("c TIMESTAMP(9)", "Unknown type TIMESTAMP(9): it takes no parameter"),
    ("c TIME(9)", "Unknown type TIME(9)"),
    ("c BINARY(3)", "it takes no parameter"),
    ("c CHAR", "a length is missing"),
    ("c VARCHAR", "a length is missing"),
    ("c CHAR(0)", "its length is 1 or more"),
    ("c VARCHAR(3, 4)", "it takes one whole number"),
    ("c TIME(7)", "a time of day has at most 6 digits"),
]


@pytest.mark.parametrize(("text", "words"), REFUSED, ids=[text for text, _ in REFUSED])
def test_what_is_no_schema_is_refused_by_name(text: str, words: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_columns(text)
    assert caught.value.code in {"BAD_SCHEMA", "BAD_TYPE"}
    assert words in caught.value.message
    assert "CREATE TABLE t" not in str(caught.value)
    assert caught.value.remedy
