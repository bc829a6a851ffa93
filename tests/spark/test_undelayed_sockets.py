"""Sockets between Java and Python send at once: else each text of more than 8,192 bytes takes 40 ms."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JError

from tamis.spark.jvm_bridge.adapter import bridge_of
from tamis.spark.jvm_bridge.callback_server import undelay_sockets

SUPPLIER = "java.util.function.Supplier"


def server_of(gateway: Any) -> Any:
    return JavaObject("GATEWAY_SERVER", gateway._gateway_client)


def all_of_python(spark: Any) -> list[bool]:
    """Whether Java's ends of the connections that Python has opened send at once."""
    gateway = spark.sparkContext._gateway
    kept = gateway.jvm.java.lang.Class.forName("py4j.GatewayServer").getDeclaredField("connections")
    kept.setAccessible(True)
    found = [connection.getSocket() for connection in kept.get(server_of(gateway))]
    return [bool(socket.getTcpNoDelay()) for socket in found if not socket.isClosed()]


def is_undelayed(gateway: Any) -> bool:
    """Whether Java's end of the connection on which it called this thread sends at once."""
    return bool(server_of(gateway).getCallbackClient().getPerThreadConnection().getSocket().getTcpNoDelay())


class Looks:
    """A Java supplier that says so of the connection on which it is called."""

    def __init__(self, gateway: Any) -> None:
        self._gateway = gateway

    def get(self) -> str:
        return str(is_undelayed(self._gateway))


def test_connections_of_python(spark: Any) -> None:
    """The one that was open before, and that of a thread which opens one later."""
    assert bridge_of(spark) is not None
    before = all_of_python(spark)
    with ThreadPoolExecutor(1) as pool:
        after = pool.submit(all_of_python, spark).result()
    assert before
    assert len(after) > len(before)
    assert all(after)


def test_connections_that_a_thread_of_java_opens(spark: Any) -> None:
    java = bridge_of(spark).implement([SUPPLIER], Looks(spark.sparkContext._gateway))
    thread_pool = bridge_of(spark).jvm.java.util.concurrent.Executors.newSingleThreadExecutor()
    future = bridge_of(spark).jvm.java.util.concurrent.CompletableFuture
    assert future.supplyAsync(java, thread_pool).get() == "True"
    thread_pool.shutdown()


def test_a_py4j_whose_sockets_cannot_be_reached_works_on(spark: Any) -> None:
    def refuse(*_: object) -> None:
        raise Py4JError("no such field")

    undelay_sockets(spark.sparkContext._gateway, SimpleNamespace(undelay=refuse))
