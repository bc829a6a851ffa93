"""Columns and fields keep their values when they are given names that others had, in new and in earlier DataFrames."""

from __future__ import annotations

from typing import Any

import pytest
from tests.spark.capabilities import needs_newest

import tamis
from tamis.core.types import INTEGER, Field, Schema, Struct
from tamis.errors import SchemaFenced
from tamis.spark.catalog.analyzed_schema import captured_schema
from tamis.spark.jvm_bridge.spark_types import FIELD_ID
from tamis.storage.commit_log import Head

pytestmark = pytest.mark.spark

CONSTANTS = {
    "BIGINT": "5L",
    "FLOAT": "2.5F",
    "INT": "7",
    "STRUCT<q: INT>": "named_struct('q', 1)",
    "DATE": "DATE'2024-01-02'",
    "TIMESTAMP_NTZ": "TIMESTAMP_NTZ'2024-01-03 01:00:00'",
}


def swap_names(lake: Any, place: str = "s.") -> None:
    """Give the columns or fields ``a`` and ``b`` each other's names."""
    for old, new in (("a", "c"), ("b", "a"), ("c", "b")):
        lake.sql(f"ALTER TABLE lake.db.t RENAME COLUMN {place}{old} TO {new}")


@pytest.fixture
def fields(lake: Any) -> Any:
    """The lake with a table of one row, whose struct ``s`` has the fields ``a`` = 1 and ``b`` = 2."""
    lake.sql("CREATE TABLE lake.db.t (s STRUCT<a: INT, b: INT>, k INT) USING tamis")
    lake.sql("INSERT INTO lake.db.t VALUES (named_struct('a', 1, 'b', 2), 0)")
    return lake


@pytest.mark.parametrize("kinds", [("BIGINT", "FLOAT"), ("DATE", "TIMESTAMP_NTZ"), ("INT", "STRUCT<q: INT>")])
@pytest.mark.parametrize("place", ["", "s."])
def test_columns_that_swap_their_names_keep_their_values(lake: Any, kinds: tuple[str, str], place: str) -> None:
    columns = ", ".join(f"{name}{':' if place else ''} {kind}" for name, kind in zip("ab", kinds, strict=True))
    lake.sql(f"CREATE TABLE lake.db.t ({f's STRUCT<{columns}>' if place else columns}) USING tamis")
    a, b = (CONSTANTS[kind] for kind in kinds)
    made = f"named_struct('a', {a}, 'b', {b})" if place else f"{a}, {b}"
    lake.sql(f"INSERT INTO lake.db.t SELECT {made}")
    before = lake.rows(f"SELECT {place}a, {place}b FROM lake.db.t")
    swap_names(lake, place)
    assert lake.rows(f"SELECT {place}b, {place}a FROM lake.db.t") == before


def test_a_new_query_reads_fields_by_their_present_names_whatever_ran_before(fields: Any) -> None:
    """Spark keeps no id with a field of a struct, so the schema of an earlier query must not be taken for its own."""
    for times in range(1, 8):
        fields.rows("SELECT s.a FROM lake.db.t")
        swap_names(fields)
        expected = (2, 1) if times % 2 else (1, 2)
        assert fields.rows("SELECT s.a, s.b FROM lake.db.t") == [expected], times
        assert fields.rows(f"SELECT k FROM lake.db.t WHERE s.a = {expected[0]}") == [(0,)], times


def test_an_earlier_dataframe_reads_the_fields_that_it_meant(fields: Any) -> None:
    needs_newest(fields.spark)
    earlier = fields.sql("SELECT * FROM lake.db.t")
    swap_names(fields)
    for _ in range(2):
        assert [tuple(row) for row in earlier.selectExpr("s.a").collect()] == [(1,)]
        assert [tuple(row) for row in earlier.where("s.a = 1").select("k").collect()] == [(0,)]
        assert fields.rows("SELECT s.a FROM lake.db.t") == [(2,)]
        assert [tuple(row) for row in earlier.selectExpr("s.b", "k").collect()] == [(2, 0)]
        assert fields.rows("SELECT s.b FROM lake.db.t WHERE s.a = 2") == [(1,)]


def test_dataframes_that_mean_different_fields_by_one_name_read_what_each_of_them_meant(fields: Any) -> None:
    """In one query Spark loads the table once for both. Where it keeps an id, that tells them apart, else it fails."""
    needs_newest(fields.spark)
    fields.sql("ALTER TABLE lake.db.t ADD COLUMN l ARRAY<STRUCT<a: INT, b: INT>>")
    fields.sql("INSERT INTO lake.db.t VALUES (named_struct('a', 1, 'b', 2), 1, array(named_struct('a', 1, 'b', 2)))")
    all_first, first = (fields.sql(f"SELECT * FROM lake.db.t{where}") for where in ("", " WHERE k = 1"))
    swap_names(fields)
    swap_names(fields, "l.element.")
    all_second, second = (fields.sql(f"SELECT * FROM lake.db.t{where}") for where in ("", " WHERE k = 1"))
    for change in ("ADD COLUMN more INT", "RENAME COLUMN k TO key"):
        fields.sql(f"ALTER TABLE lake.db.t {change}")
        for name in ("s.a", "l[0].a", "transform(l, x -> x.a)[0]"):
            both = first.selectExpr(f"{name} AS one").crossJoin(second.selectExpr(f"{name} AS other"))
            assert [tuple(row) for row in both.collect()] == [(1, 2)], (change, name)
        with pytest.raises(Exception, match=r"FENCED_AMBIGUOUS.*'a' names two different fields"):
            all_first.select("l.a").union(all_second.select("l.a")).collect()
        assert {row.a and row.a[0] for row in all_first.select("l.a").collect()} == {None, 1}
        assert {row.a and row.a[0] for row in all_second.select("l.a").collect()} == {None, 2}


def test_an_earlier_dataframe_reads_what_is_left_of_a_struct_beside_new_fields(fields: Any) -> None:
    """A new field must not take the place of an old one with its name, and a struct may have new fields only."""
    needs_newest(fields.spark)
    earlier = fields.sql("SELECT * FROM lake.db.t")
    for change in (
        "RENAME COLUMN s.a TO was_a",
        "ADD COLUMN s.a INT",
        "ADD COLUMN k2 INT",
        "RENAME COLUMN k TO was_k",
        "RENAME COLUMN k2 TO k",
    ):
        fields.sql(f"ALTER TABLE lake.db.t {change}")
    assert [tuple(row) for row in earlier.selectExpr("s.a", "k").collect()] == [(1, 0)]
    assert [tuple(row) for row in earlier.where("k = 0").selectExpr("s.a").collect()] == [(1,)]
    for change in ("DROP COLUMN s.was_a", "DROP COLUMN s.b"):
        fields.sql(f"ALTER TABLE lake.db.t {change}")
    assert [tuple(row) for row in earlier.select("k").collect()] == [(0,)]
    with pytest.raises(Exception, match="FENCED_READD_DELETED"):
        earlier.selectExpr("s.a").collect()
    assert fields.rows("SELECT s.a, k FROM lake.db.t") == [(None, None)]


def test_a_schema_that_contradicts_the_kept_ids_is_refused() -> None:
    """Where Spark does not say under which schema a plan was analysed, the current one is not taken on trust."""
    current = Schema((Field("s", Struct((Field("b", INTEGER, id=2), Field("a", INTEGER, id=3))), id=1),))
    head = Head(table_id="t", schemas=(current,))
    kept = {"name": "a", "type": "integer", "nullable": True, "metadata": {FIELD_ID: "2"}}
    required = {"fields": [{"name": "s", "type": {"type": "struct", "fields": [kept]}, "metadata": {}}]}
    with pytest.raises(SchemaFenced, match="FENCED_AMBIGUOUS"):
        captured_schema(head, current, required)
    kept["metadata"] = {FIELD_ID: "3"}
    assert captured_schema(head, current, required) is current


PROPERTY = "tamis.stats.keep"


def test_properties_name_columns_as_they_are_called_now(lake: Any) -> None:
    lake.sql(f"CREATE TABLE lake.db.t (k INT, u STRING) TBLPROPERTIES ('{PROPERTY}' = 'k')")
    lake.sql(f"CREATE OR REPLACE TABLE lake.db.t (u STRING, k STRING) TBLPROPERTIES ('{PROPERTY}' = 'u')")
    assert tamis.open(lake.folder / "db" / "t").snapshot.head.properties[PROPERTY] == "u"
    lake.sql("ALTER TABLE lake.db.t RENAME COLUMN u TO v")
    assert tamis.open(lake.folder / "db" / "t").snapshot.head.properties[PROPERTY] == "v"
    lake.sql("ALTER TABLE lake.db.t DROP COLUMN v")
    assert PROPERTY not in tamis.open(lake.folder / "db" / "t").snapshot.head.properties
