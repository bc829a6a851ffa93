"""Column definitions in Spark SQL's words, as a schema."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tamis import InvalidInput
from tamis.expr.definitions import columns

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
    ("ARRAY<INT>", pa.list_(pa.field("element", pa.int32()))),
    ("STRUCT<a: INT, b: STRING>", pa.struct([("a", pa.int32()), ("b", pa.string())])),
    ("MAP<STRING, DOUBLE>", pa.map_(pa.string(), pa.float64())),
]


@pytest.mark.parametrize(("text", "expected"), TYPES, ids=[text for text, _ in TYPES])
def test_types(text: str, expected: pa.DataType) -> None:
    assert columns(f"c {text}").field("c").type == expected


def test_names_and_nullability() -> None:
    found = columns("ts TIMESTAMP NOT NULL, `odd, name` INT, n INT NULL")
    assert found.names == ["ts", "odd, name", "n"]
    assert [f.nullable for f in found] == [False, True, True]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "x FOO",
        "a INT)",
        "a INT, PRIMARY KEY (a)",
        "a INTERVAL YEAR TO MONTH",
        "a STRUCT<b: FOO>",
        "a INT COMMENT 'x'",
        "a INT DEFAULT 3",
        ");DROP",
    ],
)
def test_what_is_no_schema_is_refused_by_name(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        columns(text)
    assert caught.value.code in {"BAD_SCHEMA", "UNSUPPORTED_TYPE"}
    assert caught.value.remedy
