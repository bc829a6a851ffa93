"""Tasks of the "Coming from" pages that change a schema."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest
from tests.spark.capabilities import needs_filled_columns, needs_syntax, reads_newest
from tests.spark.coming_from_shop import Shop

from tamis.errors import SchemaFenced


def merge_schema(shop: Shop) -> None:
    shop.writer(6, more=True, mergeSchema="true").mode("append").save(shop.path)
    shop.open().append(pa.table({"id": [7], "extra": ["e"]}), merge_schema=True)
    assert shop.open().schema.names == ["id", "day", "state", "more", "extra"]
    needs_filled_columns(shop.lake.spark)  # Spark's own error comes first there
    shop.fails(lambda: shop.frame(8).writeTo(shop.name).option("mergeSchema", "true").append(), "mergeSchema")
    statement = "INSERT WITH SCHEMA EVOLUTION INTO lake.db.t BY NAME SELECT 9L AS id, 'x' AS last"
    needs_syntax(shop.lake.spark, statement)
    shop.lake.sql(statement)
    assert shop.open().schema.names[-1] == "last"


def change_columns(shop: Shop) -> None:
    shop.lake.sql("ALTER TABLE lake.db.t RENAME COLUMN state TO status")
    shop.lake.sql("ALTER TABLE lake.db.t DROP COLUMN day")
    shop.open().alter().rename_column("status", "word").commit()
    assert shop.lake.rows("SELECT * FROM lake.db.t WHERE id = 1") == [(1, "open")]


def widen_type(shop: Shop) -> None:
    shop.lake.sql("CREATE TABLE lake.db.n (a INT, f FLOAT, d DECIMAL(5,2), day DATE) USING tamis")
    shop.lake.sql("INSERT INTO lake.db.n VALUES (1, 1.5, 2.25, DATE'2026-01-01')")
    for column, wider in {"a": "BIGINT", "f": "DOUBLE", "d": "DECIMAL(9,2)", "day": "TIMESTAMP_NTZ"}.items():
        shop.lake.sql(f"ALTER TABLE lake.db.n ALTER COLUMN {column} TYPE {wider}")
    from decimal import Decimal

    assert shop.lake.rows("SELECT * FROM lake.db.n") == [(1, 1.5, Decimal("2.25"), dt.datetime(2026, 1, 1))]


def replace_schema(shop: Shop) -> None:
    shop.writer(6, more=True, overwriteSchema="true").mode("overwrite").save(shop.path)
    assert shop.open().schema.names == ["id", "day", "state", "more"]
    frame = shop.frame(7).drop("state").write.option("overwriteSchema", "true").mode("overwrite")
    frame.saveAsTable(shop.name)
    assert shop.open().schema.names == ["id", "day"]
    shop.lake.sql("CREATE OR REPLACE TABLE lake.db.t AS SELECT 8L AS id")
    assert shop.ids() == [8]


def default_values(shop: Shop) -> None:
    shop.lake.sql("ALTER TABLE lake.db.t ADD COLUMN n INT DEFAULT 7")
    assert set(shop.open().scan().to_arrow()["n"].to_pylist()) == {7}


def fence_old_reader(shop: Shop) -> None:
    old = shop.lake.spark.table(shop.name)
    scan = shop.open()
    shop.lake.sql("ALTER TABLE lake.db.t DROP COLUMN state")
    shop.lake.sql("ALTER TABLE lake.db.t ADD COLUMN state INT")
    assert "state" in scan.schema.names
    if reads_newest(shop.lake.spark):
        shop.fails(old.collect, "FENCED_READD_DELETED")
    else:
        assert {row["state"] for row in old.collect()} == {"open"}  # the rows of its version
    with pytest.raises(SchemaFenced):
        scan.scan("state = 'open'").to_arrow()
