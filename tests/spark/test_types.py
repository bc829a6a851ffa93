"""Spark's schemas and ours."""

from __future__ import annotations

from typing import Any

import pytest
from tests.spark.capabilities import has_time_type, needs_syntax

from tamis.errors import InvalidInput
from tamis.spark.jvm_bridge.spark_types import from_spark, to_spark

EVERYTHING = (
    "a INT NOT NULL COMMENT 'x', b STRING COLLATE UNICODE_CI, c CHAR(5), d VARCHAR(7), e ARRAY<STRING COLLATE UTF8_LCASE>, "
    "f MAP<STRING, STRUCT<x: STRING COLLATE DE, y: CHAR(3)>>, g DECIMAL(10,2), h TIME(3), i TIMESTAMP_NTZ, j INTERVAL DAY TO SECOND, k INTERVAL HOUR, "
    "l VARIANT, m BINARY, n TINYINT, o STRUCT<a: INT NOT NULL COMMENT 'in', `b c`: ARRAY<ARRAY<INT>>>, p BOOLEAN, q SMALLINT, r BIGINT, s FLOAT, t DOUBLE, "
    "u DATE, v TIMESTAMP, w STRING, `x.y` INT"
)


def struct_type(spark: Any, ddl: str) -> Any:
    return spark._jvm.org.apache.spark.sql.types.StructType.fromDDL(ddl)


def test_every_type_comes_back_as_it_was(spark: Any) -> None:
    before = struct_type(spark, EVERYTHING if has_time_type(spark) else EVERYTHING.replace("h TIME(3), ", ""))
    after = spark._jvm.org.apache.spark.sql.types.DataType.fromJson(to_spark(from_spark(before.json())))
    assert after.equals(before)
    assert after.json() == before.json()


@pytest.mark.parametrize(
    ("ddl", "column", "named"),
    [
        ("a INT, b INTERVAL YEAR TO MONTH", "b", "interval year to month"),
        ("a STRUCT<x: ARRAY<INTERVAL MONTH>>", "a", "interval month"),
        ("a VOID", "a", "void"),
        ("a GEOMETRY(4326)", "a", "geometry"),
    ],
)
def test_a_type_that_cannot_be_is_named_with_its_column(spark: Any, ddl: str, column: str, named: str) -> None:
    needs_syntax(
        spark, f"SELECT CAST(NULL AS STRUCT<{ddl.replace(' ', ': ', 1)}>)" if named == "geometry" else "SELECT 1"
    )
    with pytest.raises(InvalidInput) as caught:
        from_spark(struct_type(spark, ddl).json())
    assert caught.value.code == "UNSUPPORTED_TYPE"
    assert caught.value.name == column
    assert named in caught.value.message


def test_column_ids_stay_out_of_sparks_sight(spark: Any) -> None:
    schema = from_spark(struct_type(spark, "a INT, b STRUCT<c: INT>").json()).assign_ids(0)
    assert schema.highest_id() == 3
    assert '"metadata": {}' in to_spark(schema)
    assert "id" not in to_spark(schema).replace("field", "")


def test_char_hidden_in_metadata_is_found() -> None:
    column = '{"name":"c","type":"string","nullable":true,"metadata":{"__CHAR_VARCHAR_TYPE_STRING":"char(5)"}}'
    assert str(from_spark('{"type":"struct","fields":[' + column + "]}").fields[0].type) == "char(5)"


def test_a_collation_of_char_is_refused_for_spark_could_not_read_its_schema() -> None:
    field_json = '{"name":"c","type":"char(5)","nullable":true,"metadata":{"__COLLATIONS":{"c":"spark.UTF8_LCASE"}}}'
    with pytest.raises(InvalidInput, match=r"char\(5\) with a collation") as caught:
        from_spark('{"type":"struct","fields":[' + field_json + "]}")
    assert (caught.value.code, caught.value.name) == ("UNSUPPORTED_TYPE", "c")
