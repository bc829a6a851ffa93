"""Starts the servers of ``tamis spark`` in processes of their own, and talks to them."""

from __future__ import annotations

import os
import pty
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tamis.world import world

TAMIS = [sys.executable, "-c", "from tamis.cli import main; main()"]
CLIENT = world().environment().get("TAMIS_CONNECT_PYTHON", "")
"""A Python that has pyspark-client and no pyspark: `make test-connect` sets it."""


def free_port() -> int:
    """A port on which nothing listens now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def serving(command: list[str], log: Path, environment: Mapping[str, str] | None = None) -> Iterator[str]:
    """Run ``command`` and give the first line that it prints; stop it afterwards as an operator would, by SIGTERM."""
    with log.open("w") as stderr:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            env={**world().environment(), **(environment or {})},
        )
    try:
        assert process.stdout is not None
        line = process.stdout.readline().strip()
        assert line, log.read_text()[-3000:]
        yield line
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(60)
        finally:
            process.kill()


def without_java(environment: Mapping[str, str]) -> dict[str, str]:
    """``environment`` with a PATH that has no java."""
    return {**environment, "PATH": str(Path(CLIENT).parent), "JAVA_HOME": "/nonexistent"}


def terminal(command: list[str], lines: Sequence[str], seconds: float = 280) -> str:
    """Type ``lines`` at a terminal that runs ``command``, each when the shell asks for one; return all that is shown."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, close_fds=True)
    os.close(theirs)
    shown, waiting = "", list(lines)
    end = world().monotonic() + seconds
    try:
        while world().monotonic() < end:
            if not select.select([ours], [], [], 1)[0]:
                continue
            try:
                shown += os.read(ours, 65_536).decode(errors="replace")
            except OSError:  # the process has closed its end
                break
            if waiting and shown.endswith("> "):
                os.write(ours, f"{waiting.pop(0)}\n".encode())
        process.wait(60)
    finally:
        process.kill()
        os.close(ours)
    assert not waiting, shown
    return shown
