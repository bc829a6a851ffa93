"""Configuration with which a session serves Spark Connect."""

from __future__ import annotations

PLUGIN = "org.apache.spark.sql.connect.SparkConnectPlugin"


def connect_conf(host: str, port: int, plugins: str = "") -> dict[str, str]:
    """Return the configuration of a session that listens on ``host`` and ``port``, beside other ``plugins``."""
    others = [name for name in (word.strip() for word in plugins.split(",")) if name and name != PLUGIN]
    return {
        "spark.plugins": ",".join([PLUGIN, *others]),
        "spark.connect.grpc.binding.address": host,
        "spark.connect.grpc.binding.port": str(port),
        "spark.connect.grpc.port.maxRetries": "0",  # never another port than the one that was asked for
    }
