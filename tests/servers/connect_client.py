"""``python connect_client.py ADDRESS``: what a Spark Connect client does over a server with the catalog ``lake``; prints its answers as JSON."""

from __future__ import annotations

import json
import sys
from typing import Any

from pyspark.sql import SparkSession


def main(address: str, checkpoint: str) -> dict[str, Any]:
    spark = SparkSession.builder.remote(address).getOrCreate()

    def rows(text: str) -> list[list[Any]]:
        return [list(row) for row in spark.sql(text).collect()]

    answers: dict[str, Any] = {}
    spark.sql("CREATE NAMESPACE lake.db")
    spark.sql("CREATE TABLE lake.db.t AS SELECT id AS a, id % 7 AS b, CAST(id AS STRING) AS s FROM range(1000)")
    answers["group"] = rows("SELECT b, count(*) FROM lake.db.t WHERE a >= 0 GROUP BY b ORDER BY b")
    spark.sql("INSERT INTO lake.db.t VALUES (2000, 1, 'x')")
    spark.sql("DELETE FROM lake.db.t WHERE a % 10 = 3")
    spark.sql("UPDATE lake.db.t SET s = 'u' WHERE a = 5")
    spark.sql(
        "MERGE INTO lake.db.t t USING (SELECT 5 AS a, 9 AS b, 'm' AS s UNION ALL SELECT 5000, 1, 'n') q ON t.a = q.a "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    answers["changed"] = rows("SELECT count(*), max(a) FROM lake.db.t") + rows(
        "SELECT * FROM lake.db.t WHERE a IN (5, 5000) ORDER BY a"
    )
    answers["past"] = rows("SELECT count(*) FROM lake.db.t VERSION AS OF 0")
    answers["call"] = len(spark.sql("CALL lake.system.changes('db.t', 2)").collect())
    spark.sql("CREATE INDEX by_a ON lake.db.t (a)")
    spark.sql("OPTIMIZE lake.db.t")
    answers["indexed"] = rows("SELECT b FROM lake.db.t WHERE a = 77")
    df = spark.range(10).selectExpr("id AS a", "id AS b", "'w' AS s")
    df.writeTo("lake.db.u").create()
    df.writeTo("lake.db.u").append()
    query = (
        spark.readStream.table("lake.db.u")
        .writeStream.option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .toTable("lake.db.v")
    )
    query.awaitTermination()
    answers["streamed"] = rows("SELECT count(*), sum(a) FROM lake.db.v")
    plan = spark.table("lake.db.t").where("a = 77")._explain_string()
    answers["skips"] = "tamis version" in plan
    return answers


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
