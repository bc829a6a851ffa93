"""Spark's Thrift server, which JDBC clients speak to, in the driver of a session."""

from __future__ import annotations

from typing import Any

from tamis.errors import InvalidInput
from tamis.spark.jvm_bridge.adapter import bridge_of

_SERVER = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"


def thrift_conf(host: str, port: int) -> dict[str, str]:
    """Return the configuration of a session whose Thrift server will listen on ``host`` and ``port``."""
    return {"spark.hadoop.hive.server2.thrift.bind.host": host, "spark.hadoop.hive.server2.thrift.port": str(port)}


def start_thrift_server(spark: Any) -> Any:
    """Start the server on the address of the session's configuration; return the Java server.

    Each connection gets a session of its own. Raises ``InvalidInput`` (``NO_THRIFT_SERVER``) if this Spark was built
    without it.
    """
    java = bridge_of(spark)
    if not java.has_class(_SERVER):
        raise InvalidInput(
            "This Spark has no Thrift server.",
            code="NO_THRIFT_SERVER",
            name=_SERVER,
            remedy="Use the pyspark package of PyPI, or a Spark that was built with -Phive-thriftserver.",
        )
    server = java.cls(_SERVER)
    if java.has_method(_SERVER, "startWithSparkSession", 2):
        return server.startWithSparkSession(spark._jsparkSession, False)
    return server.startWithContext(spark._jsparkSession.sqlContext())
