"""Tamis on Spark servers that others run, Spark Connect ones among them.

    spark.dataSource.register(TamisDataSource)
    spark.read.format("tamis").option("filter", "ts > '2026-01-01'").load("s3://bucket/table")

The server's Python needs the package tamis. A driver that ``tamis.attach`` has prepared needs none of this.
"""

from tamis.spark.connect.data_source import TamisDataSource

__all__ = ["TamisDataSource"]
