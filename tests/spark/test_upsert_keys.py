"""``table.upsert`` of a DataFrame: keys are compared as the table stores them, and each may come once."""

from __future__ import annotations

import pytest
from tests.spark.conftest import Lake

import tamis
from tamis.errors import InvalidInput

KEYS = {
    "FLOAT": ("0.1D", "0.1D + 1e-12"),
    "DECIMAL(8, 2)": ("3.001BD", "3.002BD"),
    "DATE": ("TIMESTAMP'2026-01-01 10:00:00'", "TIMESTAMP'2026-01-01 20:00:00'"),
    "CHAR(4)": ("'n'", "'n  '"),
    "VARCHAR(3)": ("'ab '", "'ab       '"),
}


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.push_cases(2)
def test_keys_that_are_stored_alike_are_one_key(lake: Lake, kind: str) -> None:
    lake.sql(f"CREATE TABLE lake.db.t (k {kind}, v STRING) USING tamis")
    table, (first, second) = tamis.open(lake.folder / "db" / "t"), KEYS[kind]
    for key in (first, second, first):
        result = table.upsert(lake.spark.sql(f"SELECT {key} AS k, 'x' AS v"), "k")
    assert (result.rows_updated, result.rows_inserted) == (1, 0)
    with pytest.raises(InvalidInput) as caught:
        table.upsert(lake.spark.sql(f"SELECT {first} AS k, 'y' AS v UNION ALL SELECT {second}, 'z'"), "k")
    assert caught.value.code == "DUPLICATE_KEYS"
    assert lake.rows("SELECT count(*), max(v) FROM lake.db.t") == [(1, "x")]


@pytest.mark.parametrize("kind", ["STRING", "VARCHAR(8)", "CHAR(8)"])
def test_a_number_matches_the_text_that_it_is_stored_as(lake: Lake, kind: str) -> None:
    lake.sql(f"CREATE TABLE lake.db.t (k {kind}, v STRING) USING tamis")
    lake.sql("INSERT INTO lake.db.t VALUES ('01', 'kept'), ('one', 'kept')")
    table = tamis.open(lake.folder / "db" / "t")
    for value in ("a", "b"):
        table.upsert(lake.spark.sql(f"SELECT 1 AS k, '{value}' AS v"), "k")
    assert lake.rows("SELECT trim(k), v FROM lake.db.t ORDER BY 1") == [("01", "kept"), ("1", "b"), ("one", "kept")]


def test_a_key_that_is_too_long_is_no_other_key(lake: Lake) -> None:
    lake.sql("CREATE TABLE lake.db.t (k VARCHAR(3), v STRING) USING tamis")
    lake.sql("INSERT INTO lake.db.t VALUES ('abc', 'x')")
    table = tamis.open(lake.folder / "db" / "t")
    with pytest.raises(Exception, match=r"EXCEED_LIMIT_LENGTH|TOO_LONG"):
        table.upsert(lake.spark.sql("SELECT 'abcd' AS k, 'y' AS v UNION ALL SELECT 'abce', 'z'"), "k")
    assert lake.rows("SELECT * FROM lake.db.t") == [("abc", "x")]


def test_rows_without_a_key_may_come_twice(lake: Lake) -> None:
    lake.sql("CREATE TABLE lake.db.t (k INT, v STRING) USING tamis")
    table = tamis.open(lake.folder / "db" / "t")
    result = table.upsert(lake.spark.sql("SELECT CAST(NULL AS INT) AS k, 'x' AS v UNION ALL SELECT NULL, 'y'"), "k")
    assert result.rows_inserted == 2
