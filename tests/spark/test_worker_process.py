"""A worker acknowledges at once what the JVM sends it: Linux would delay each piece of a task's input by 40 ms."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from tests.spark.conftest import Lake

from tamis.spark.executors import worker_process
from tamis.spark.executors.executor_function import executor_function
from tamis.spark.executors.worker_process import acknowledge_at_once, prepare_worker

pytestmark = pytest.mark.skipif(not hasattr(socket, "TCP_QUICKACK"), reason="only Linux has TCP_QUICKACK")


def at_once(one: socket.socket) -> bool:
    return bool(one.getsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK))


def test_tcp_sockets_are_set_and_nothing_is_closed(tmp_path: Path) -> None:
    local, remote = socket.socketpair()
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as one,
        server.accept()[0] as other,
        (tmp_path / "file").open("w") as file,
        local,
        remote,
    ):
        for end in (one, other):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0)
            assert not at_once(end)
        acknowledge_at_once()
        assert at_once(one)
        assert at_once(other)
        for sender, receiver in ((one, other), (local, remote)):
            sender.sendall(b"sent")
            assert receiver.recv(4) == b"sent"
        file.write("open")


def test_a_default_timeout_makes_no_file_non_blocking() -> None:
    """Spark reads the task from a file that must block."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as one:
        pair = socket.socketpair()
        before = socket.getdefaulttimeout()
        try:
            socket.setdefaulttimeout(5)
            acknowledge_at_once()
        finally:
            socket.setdefaulttimeout(before)
        assert all(os.get_blocking(end.fileno()) for end in (server, one, *pair))
        for end in pair:
            end.close()


class Unlisted(type(Path())):  # type: ignore[misc]
    """A folder that cannot be listed, as where a process has no file left to open."""

    def iterdir(self) -> Iterator[Path]:
        raise OSError(24, "Too many open files")


def test_a_task_runs_where_files_cannot_be_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_process, "_OPEN_FILES", Unlisted("/proc/self/fd"))
    monkeypatch.setattr(worker_process, "_freeze_imports", lambda: None)
    prepare_worker()
    with pytest.raises(OSError, match="Too many open files"):
        acknowledge_at_once()


@pytest.mark.spark
def test_a_task_finds_its_socket_set(lake: Lake) -> None:
    def settings(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import socket
        from pathlib import Path

        found = []
        for name in [opened.name for opened in Path("/proc/self/fd").iterdir()]:
            try:
                one = socket.socket(fileno=int(name))
            except OSError:
                continue
            if one.family != socket.AF_UNIX and one.type == socket.SOCK_STREAM:
                found.append(one.getsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK))
            one.detach()
        for batch in batches:
            yield pa.record_batch([pa.array([all(found) and bool(found)] * len(batch))], ["at_once"])

    rows = lake.spark.range(1, numPartitions=1)
    for _ in range(3):  # the worker is used again, and has sent rows to the JVM meanwhile
        shipped = executor_function(lake.spark, settings)
        assert rows.mapInArrow(shipped, "at_once boolean").collect() == [(True,)]
