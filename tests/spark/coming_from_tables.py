"""Tasks of the "Coming from" pages that create, open, copy or adopt tables."""

from __future__ import annotations

from functools import partial

import deltalake
import pyarrow as pa
import pytest
from tests.spark.capabilities import newer_statements
from tests.spark.coming_from_shop import SCHEMA, Shop, rows_of

import tamis
from tamis.errors import InvalidInput


def create_in_sql(shop: Shop) -> None:
    shop.lake.sql("CREATE TABLE lake.db.n (id BIGINT, ts TIMESTAMP) USING tamis CLUSTER BY (ts)")
    shop.lake.sql("CREATE OR REPLACE TABLE lake.db.n USING tamis AS SELECT id FROM lake.db.t")
    assert shop.ids("n") == [0, 1, 2, 3, 4, 5]
    with newer_statements(shop.lake.spark):
        shop.lake.sql("CREATE TABLE lake.db.like LIKE lake.db.t")
    assert shop.ids("like") == []


def attach_folder(shop: Shop) -> None:
    tamis.attach(shop.lake.spark, f"{shop.lake.name}b", shop.lake.folder)
    assert shop.lake.spark.table(f"{shop.lake.name}b.db.t").count() == 6
    shop.fails(lambda: shop.lake.sql("CREATE TABLE lake.db.n (id INT) LOCATION '/elsewhere'"), "LOCATION")


def create_in_python(shop: Shop) -> None:
    for n, schema in enumerate(("id BIGINT, ts TIMESTAMP", SCHEMA, shop.frame(1))):
        made = tamis.create(shop.lake.folder / f"made{n}", schema, cluster_by=["id"])
        assert made.scan().count() == 0


def open_by_path(shop: Shop) -> None:
    assert tamis.open(shop.path).scan().count() == 6


def read_and_write_by_path(shop: Shop) -> None:
    shop.writer(7).mode("append").save(shop.path)
    assert shop.lake.spark.read.format("tamis").load(shop.path).count() == 7
    shop.fails(lambda: shop.writer(8, partitionOverwriteMode="dynamic").mode("append").save(shop.path), "artition")
    shop.fails(lambda: shop.writer(8, noSuchOption="1").mode("append").save(shop.path), "nosuchoption")


def refuse_other_schemes(shop: Shop) -> None:
    for scheme in ("dbfs:/x", "hdfs://host/x"):
        with pytest.raises(InvalidInput, match="UNKNOWN_SCHEME"):
            tamis.open(scheme)
    assert shop.ids() == [0, 1, 2, 3, 4, 5]


def copy_by_query(shop: Shop) -> None:
    shop.lake.sql("CREATE TABLE lake.db.n USING tamis CLUSTER BY (day) AS SELECT * FROM lake.db.t")
    assert shop.ids("n") == shop.ids()


def copy_from_pyiceberg(shop: Shop) -> None:
    copy_by_query(shop)
    shop.open().append(pa.RecordBatchReader.from_batches(SCHEMA, rows_of(7).to_batches()))
    assert shop.ids() == [0, 1, 2, 3, 4, 5, 7]


def _run(shop: Shop, statement: str) -> None:
    shop.lake.sql(statement).collect()


def follow_where_it_lies(shop: Shop) -> None:
    source = shop.lake.folder / "elsewhere"
    deltalake.write_deltalake(source, pa.table({"id": [1, 2]}))
    tamis.adopt(source, shop.lake.folder / "db" / "followed", follow=True)
    deltalake.write_deltalake(source, pa.table({"id": [3]}), mode="append")
    done = shop.lake.sql("CALL lake.system.sync('db.followed')").collect()[0].asDict()
    assert (done["commits"], done["source_version"]) == (1, "1")
    assert shop.ids("followed") == [1, 2, 3]
    name = f"{shop.lake.name}.db.followed"
    assert [r["id"] for r in shop.lake.sql(f"SELECT id FROM {name} WHERE id > 1 ORDER BY id").collect()] == [2, 3]
    for statement in (
        f"INSERT INTO {name} VALUES (4)",
        f"DELETE FROM {name} WHERE id = 1",
        f"UPDATE {name} SET id = 9 WHERE id = 1",
        f"MERGE INTO {name} t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE",
        f"ALTER TABLE {name} ADD COLUMN more INT",
        f"TRUNCATE TABLE {name}",
        "CALL lake.system.compact('db.followed')",
    ):
        shop.fails(partial(_run, shop, statement), "FOLLOWING_TABLE")
    assert shop.ids("followed") == [1, 2, 3]


def analyze_adopted_files(shop: Shop) -> None:
    source = shop.lake.folder / "elsewhere"
    deltalake.write_deltalake(source, pa.table({"id": [1, 2], "body": ['{"a": 1}', '{"a": 2}']}))
    shop.lake.sql(f"CALL lake.system.adopt('{source}', 'db.adopted')").collect()
    done = shop.lake.sql("CALL lake.system.analyze('db.adopted')").collect()[0].asDict()
    assert (done["parts"], done["later"]) == (1, 0)
    assert tamis.open(shop.lake.folder / "db" / "adopted").explain("get_json_object(body, '$.a') = '3'").parts.kept == 0


def typed_elsewhere(shop: Shop) -> None:
    """Installation and object stores: a newcomer types them in a new environment, and their own tests run them."""
    assert tamis.__version__
    assert shop.ids() == [0, 1, 2, 3, 4, 5]
