"""Who may call Python objects over the port on which Java does: only a client that knows the token."""

from __future__ import annotations

import socket
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JError

from tamis.spark.jvm_bridge.adapter import bridge_of, implement
from tamis.spark.jvm_bridge.callback_server import require_token

SUPPLIER = "java.util.function.Supplier"


class Counted:
    """A Java supplier that counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def get(self) -> str:
        self.calls += 1
        return str(self.calls)


class CallsBack(Counted):
    """Calls Java for its answer."""

    def __init__(self, owner: Any) -> None:
        super().__init__()
        self.owner = owner

    def get(self) -> str:
        answer: str = self.owner.jvm.java.lang.Integer.toBinaryString(int(super().get()))
        return answer


@pytest.fixture
def counted(spark: Any) -> Any:
    target = Counted()
    return target, implement(spark, [SUPPLIER], target)


def said_to(spark: Any, target: Any, first: str) -> bytes:
    """What the callback server answers to ``first``, followed by a call of ``target``'s method."""
    gateway = spark.sparkContext._gateway
    pool = gateway.gateway_property.pool
    name = next(key for key, value in pool.dict.items() if getattr(value, "_target", None) is target)
    port = gateway._callback_server.get_listening_port()
    answer = b""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection, suppress(ConnectionError, OSError):
        connection.sendall(f"{first}c\n{name}\napply\ns0:get\nse\ne\n".encode())
        connection.shutdown(socket.SHUT_WR)  # the server may have closed it by now
        while more := connection.recv(4096):
            answer += more
    return answer


@pytest.mark.parametrize(
    "first", ["", "A\nwrong\n\n", "A\n\n\n", "c\nx\n"], ids=["no token", "another", "an empty one", "a call"]
)
def test_a_connection_without_the_token_calls_nothing(spark: Any, counted: Any, first: str) -> None:
    target, java = counted
    answer = said_to(spark, target, first)
    assert target.calls == 0
    assert not answer.startswith(b"!y"), "no success"
    assert java.get() == "1", "Java's own calls go on"


def test_a_connection_with_the_token_calls(spark: Any, counted: Any) -> None:
    """Otherwise the test above would show only that the bytes it sends mean nothing."""
    target, _ = counted
    token = spark.sparkContext._gateway.callback_server_parameters.auth_token
    assert len(token) == 64
    assert b"!ys1" in said_to(spark, target, f"A\n{token}\n\n")
    assert target.calls == 1


def test_threads_of_java_know_the_token(spark: Any) -> None:
    """A thread that Python did not start opens a connection of its own, on which Python calls Java back."""
    target = CallsBack(bridge_of(spark))
    java = implement(spark, [SUPPLIER], target)
    future = bridge_of(spark).jvm.java.util.concurrent.CompletableFuture
    assert [future.supplyAsync(java).get() for _ in range(3)] == ["1", "10", "11"]
    assert target.calls == 3


def test_a_py4j_that_takes_no_token_works_on_with_a_warning(spark: Any) -> None:
    def refuse(*_: object) -> None:
        raise Py4JError("no such field")

    client = spark.sparkContext._gateway._gateway_client
    gateway = SimpleNamespace(callback_server_parameters=SimpleNamespace(auth_token=None), _gateway_client=client)
    with pytest.warns(RuntimeWarning, match="without a token"):
        assert not require_token(gateway, SimpleNamespace(sendToken=refuse))
    assert gateway.callback_server_parameters.auth_token is None
