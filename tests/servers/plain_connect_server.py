"""``python plain_connect_server.py PORT``: a Spark Connect server that knows nothing of Tamis, until its stdin ends."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

if __name__ == "__main__":
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.plugins", "org.apache.spark.sql.connect.SparkConnectPlugin")
        .config("spark.connect.grpc.binding.address", "127.0.0.1")
        .config("spark.connect.grpc.binding.port", sys.argv[1])
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    print("ready", flush=True)
    sys.stdin.read()
    session.stop()
