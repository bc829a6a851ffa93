"""Spark's Connect server in the driver of a session."""

from __future__ import annotations

from typing import Any

from tamis.errors import InvalidInput
from tamis.spark.jvm_bridge.adapter import bridge_of

_SERVICE = "org.apache.spark.sql.connect.service.SparkConnectService"
_PLUGIN = "org.apache.spark.sql.connect.SparkConnectPlugin"


def connect_conf(host: str, port: int) -> dict[str, str]:
    """Return the configuration of a session whose Connect server will listen on ``host`` and ``port``."""
    return {
        "spark.connect.grpc.binding.address": host,
        "spark.connect.grpc.binding.port": str(port),
        "spark.connect.grpc.port.maxRetries": "0",  # never another port than the one that was asked for
    }


def start_connect_server(spark: Any) -> None:
    """Start the server on the address of the session's configuration, unless Spark's plugin has started it.

    Raises ``InvalidInput`` (``NO_CONNECT_SERVER``) if this Spark was built without it.
    """
    java = bridge_of(spark)
    if not java.has_class(_SERVICE):
        raise InvalidInput(
            "This Spark has no Connect server.",
            code="NO_CONNECT_SERVER",
            name=_SERVICE,
            remedy="Use the pyspark package of PyPI, or add Spark's package spark-connect by spark.jars.packages.",
        )
    if _PLUGIN not in spark.conf.get("spark.plugins", ""):
        java.cls(_SERVICE).start(spark._jsc.sc())


def stop_connect_server(spark: Any) -> None:
    """Stop the server, and end open connections at once."""
    java = bridge_of(spark)
    none = java.cls("scala.Option").empty()
    java.cls(_SERVICE).stop(none, none)
