"""Tasks of the "Coming from" pages that change rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from tests.spark.coming_from_shop import DAYS, SCHEMA, Shop, rows_of

import tamis
from tamis.errors import InvalidInput


def append_rows(shop: Shop) -> None:
    shop.lake.sql("INSERT INTO lake.db.t VALUES (6, NULL, NULL)")
    shop.writer(7).mode("append").save(shop.path)
    shop.frame(8).writeTo(shop.name).append()
    shop.open().append(rows_of(9))
    assert shop.ids() == list(range(10))


def overwrite_all(shop: Shop) -> None:
    shop.lake.sql("INSERT OVERWRITE lake.db.t VALUES (6, NULL, NULL)")
    assert shop.ids() == [6]
    shop.writer(7).mode("overwrite").save(shop.path)
    assert shop.ids() == [7]


def overwrite_some(shop: Shop) -> None:
    shop.writer(10, replaceWhere="day = '2026-01-01'").mode("overwrite").save(shop.path)
    assert shop.ids() == [1, 2, 4, 5, 10]
    shop.lake.sql("INSERT INTO lake.db.t REPLACE WHERE id = 10 VALUES (11, DATE'2026-01-01', 'x')")
    from pyspark.sql import functions as f

    shop.frame(12).writeTo(shop.name).overwrite(f.col("id") == 11)
    shop.open().overwrite(rows_of(13), "day = '2026-01-01'")
    assert shop.ids() == [1, 2, 4, 5, 13]
    shop.fails(lambda: shop.open().overwrite(rows_of(14), "day = '2026-01-02'"), "OUTSIDE_FILTER")
    shop.open().overwrite(rows_of(14), "day = '2026-01-02'", allow_outside=True)
    assert shop.ids() == [2, 5, 13, 14]
    option = {"replaceWhere": "id = 2"}
    shop.fails(lambda: shop.frame(2).write.options(**option).mode("overwrite").saveAsTable(shop.name), "replaceWhere")
    shop.fails(lambda: shop.frame(2).write.options(**option).insertInto(shop.name, True), "replaceWhere")


def overwrite_dynamically(shop: Shop) -> None:
    shop.fails(lambda: shop.frame(1).writeTo(shop.name).overwritePartitions(), "dynamic")
    shop.lake.spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        shop.fails(lambda: shop.lake.sql("INSERT OVERWRITE lake.db.t VALUES (6, NULL, NULL)"), "dynamic")
    finally:
        shop.lake.spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    assert shop.ids() == [0, 1, 2, 3, 4, 5]
    shop.lake.sql("INSERT OVERWRITE lake.db.t VALUES (6, NULL, NULL)")
    assert shop.ids() == [6]


def merge_rows(shop: Shop) -> None:
    shop.lake.sql(
        "MERGE INTO lake.db.t t USING (SELECT 5L AS id, 'm' AS state UNION ALL SELECT 6L, 'm') s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET state = s.state WHEN NOT MATCHED THEN INSERT (id, state) VALUES (s.id, s.state)"
    )
    merge = shop.open().merge(rows_of(6, 7), on="target.id = source.id")
    merge.when_matched_update({"state": "source.state"}).when_not_matched_insert().execute()
    shop.open().upsert(pa.table({"id": [0], "state": ["u"]}), on=["id"])
    found = shop.open().scan().to_arrow().sort_by("id")
    assert found["state"].to_pylist() == ["u", "open", "open", "open", "open", "m", "new", "new"]
    assert found["day"].to_pylist()[0] == DAYS[0]


def delete_and_update(shop: Shop) -> None:
    shop.lake.sql("DELETE FROM lake.db.t WHERE id = 0")
    shop.lake.sql("UPDATE lake.db.t SET state = 'x' WHERE id = 1")
    shop.open().delete("id = 2")
    shop.open().update({"state": "'y'"}, "id = 3")
    with pytest.raises(InvalidInput, match="all_rows"):
        shop.open().delete()
    assert shop.ids() == [1, 3, 4, 5]
    assert shop.open().scan().to_arrow().sort_by("id")["state"].to_pylist() == ["x", "y", "open", "open"]
    shop.open().delete(all_rows=True)
    assert shop.ids() == []


def keep_files_of_deletes(shop: Shop) -> None:
    before = set(Path(shop.path, "data").iterdir())
    shop.open().delete("id = 1")
    assert set(Path(shop.path, "data").iterdir()) == before
    shop.open().compact()
    assert sum(part["rows"] for part in shop.open().metadata("parts").to_pylist()) == 5


def write_stream(shop: Shop) -> None:
    shop.drained(shop.stream()).toTable(f"{shop.lake.name}.db.n").awaitTermination()
    assert shop.ids("n") == shop.ids()
    target = tamis.create(shop.lake.folder / "db" / "m", SCHEMA)
    writer = target.stream_writer(query="copy")
    shop.drained(shop.stream(), "other").foreachBatch(writer).start().awaitTermination()
    assert shop.ids("m") == shop.ids()
    grouped = shop.stream().groupBy("day").count()
    complete = shop.drained(grouped, "third").format("tamis").outputMode("complete")
    shop.fails(lambda: complete.start(shop.path).awaitTermination(), "ppend")


def repeat_batches(shop: Shop) -> None:
    target = tamis.create(shop.lake.folder / "db" / "n", SCHEMA)
    for _ in range(2):
        target.stream_writer(query="name")(shop.frame(1), 7)
    assert shop.ids("n") == [1]


def delete_beside_a_delete(shop: Shop) -> None:
    one, other = shop.open(), shop.open()
    one.delete("id = 0")
    other.delete("id = 1")
    assert shop.ids() == [2, 3, 4, 5]
