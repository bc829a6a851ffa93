"""``python data_source_client.py ADDRESS FOLDER``: reads and writes through ``TamisDataSource`` on a server that has no catalog; prints its answers as JSON."""

from __future__ import annotations

import json
import sys
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import tamis
from tamis.spark.connect import TamisDataSource

EVENTS = (
    "id",
    "id % 7 AS b",
    "CAST(id AS STRING) AS s",
    "timestamp'2020-01-01 00:00:00' + make_dt_interval(id) AS ts",
    "CAST(id AS DECIMAL(10, 2)) AS m",
    "struct(id AS x) AS st",
    "array(id) AS arr",
    "map('k', id) AS mp",
    "parse_json('{\"a\": 1}') AS v",
    "timestamp_ntz'2020-01-01 00:00:00' AS n",
)


def main(address: str, folder: str) -> dict[str, Any]:
    spark = SparkSession.builder.remote(address).getOrCreate()
    path = f"{folder}/t"
    answers: dict[str, Any] = {"attach": failure(lambda: tamis.attach(spark, "lake", folder))}
    spark.dataSource.register(TamisDataSource)
    events = spark.range(1000).selectExpr(*EVENTS)
    for _ in range(2):
        events.write.format("tamis").mode("append").save(path)
    read = spark.read.format("tamis").load(path)
    answers["schema"] = read.schema.simpleString() == events.schema.simpleString()
    answers["same rows"] = (
        read.drop("mp", "v").exceptAll(events.union(events).drop("mp", "v")).count(),
        read.count(),
        read.selectExpr("sum(mp['k']) AS m", "sum(v:a::int) AS v").first().asDict(),
    )
    answers["filtered"] = [
        read.where(f).count() for f in ("id = 5", "ts >= timestamp'2020-01-15'", "m = 5.00", "id < 0")
    ]
    answers["after a filter"] = read.count()
    answers["joined"] = read.where("id = 1").join(read.where("id = 2").selectExpr("b AS c")).count()

    def option(**options: Any) -> Any:
        return spark.read.format("tamis").options(**options).load(path)

    answers["columns"] = option(columns="b, `id`", filter="id = 3").columns
    answers["filter"] = option(filter="id % 100 = 3").count()
    answers["none"] = option(filter="id < 0").count()
    answers["version"] = option(versionAsOf=0).count()
    answers["unknown option"] = failure(lambda: option(versionAsOff=0).count())
    answers["schema given"] = failure(lambda: spark.read.format("tamis").schema("id INT").load(path).count())
    answers["missing"] = failure(lambda: spark.read.format("tamis").load(f"{folder}/none").count())
    events.where("id < 10").write.format("tamis").mode("overwrite").save(path)
    answers["overwritten"] = [spark.read.format("tamis").load(path).count(), read.count()]
    other = spark.range(3).selectExpr("id AS zzz")
    answers["other columns"] = failure(lambda: other.write.format("tamis").mode("append").save(path))
    answers["stream read"] = failure(lambda: _stream_read(spark, path, folder))
    for _ in range(2):
        _stream_write(spark, f"{folder}/s", f"{folder}/checkpoint")
    streamed = spark.read.format("tamis").load(f"{folder}/s")
    answers["streamed"] = streamed.count() == streamed.select("value").distinct().count() > 0
    return answers


def _stream_write(spark: Any, path: str, checkpoint: str) -> None:
    rate = spark.readStream.format("rate").option("rowsPerSecond", 20).load()
    query = rate.writeStream.format("tamis").option("checkpointLocation", checkpoint).start(path)
    while len(query.recentProgress) < 3:
        if query.awaitTermination(1):
            raise AssertionError(str(query.exception())[:1000])
    query.stop()


def _stream_read(spark: Any, path: str, folder: str) -> None:
    stream = spark.readStream.format("tamis").load(path)
    stream.writeStream.format("noop").option("checkpointLocation", f"{folder}/no").start().awaitTermination(60)


def failure(action: Any) -> str:
    """The code in the message of a TamisError; it comes as Spark's error from a worker."""
    try:
        action()
    except (tamis.TamisError, PySparkException) as error:
        text = str(error)
        found = [
            word
            for word in (
                "SPARK_CONNECT",
                "UNKNOWN_OPTION",
                "BAD_OPTION",
                "TABLE_NOT_FOUND",
                "MISSING_COLUMN",
                "UNSUPPORTED_READ",
            )
            if word in text
        ]
        return found[0] if found else text[:500]
    return "no error"


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
