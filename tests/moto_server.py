"""Moto's S3 server, in a process of its own: an S3 that others wrote. ``make test-cluster`` installs it, beside the other tests' packages."""

from __future__ import annotations

import shutil
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tamis.world import world

ROOT = Path(__file__).parents[1]
HERE = "127.0.0.1"


def program() -> str | None:
    """The server's program: ``$TAMIS_MOTO``, or the one in the environment that make has made, or one on PATH."""
    places = (world().environment().get("TAMIS_MOTO"), ROOT / ".venv-moto" / "bin" / "moto_server")
    return next((str(place) for place in places if place and Path(place).exists()), shutil.which("moto_server"))


def needed() -> str:
    """The program; without it the test is skipped, and fails in CI."""
    found = program()
    if found is None:
        in_ci = world().environment().get("CI", "").lower() in {"1", "true", "yes"}
        (pytest.fail if in_ci else pytest.skip)("moto is not installed: make test-cluster, or set TAMIS_MOTO.")
    return str(found)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HERE, 0))
        return int(probe.getsockname()[1])


def until(what: str, ready: Any, process: subprocess.Popen[Any], seconds: float = 120) -> None:
    """Wait until ``ready()``. Fails where the process has ended, or the time is over."""
    end = world().monotonic() + seconds
    while not ready():
        assert process.poll() is None, f"{what} has ended"
        assert world().monotonic() < end, f"{what} is not ready after {seconds} seconds"
        world().sleep(0.1)


def answer(method: str, url: str, headers: Mapping[str, str] | None = None) -> tuple[int, bytes]:
    """Status and body; status 0 where nobody listens."""
    request = urllib.request.Request(url, method=method, headers=dict(headers or {}))
    try:
        with urllib.request.urlopen(request, timeout=10) as found:
            return int(found.status), found.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()
    except OSError:
        return 0, b""


@contextmanager
def moto(folder: Path, bucket: str = "lake", **environment: str) -> Iterator[dict[str, Any]]:
    """The storage options that reach a new server with one empty bucket."""
    port = free_port()
    url = f"http://{HERE}:{port}"
    with (folder / "moto.log").open("wb") as log:
        server = subprocess.Popen(
            [needed(), "-H", HERE, "-p", str(port)], stdout=log, stderr=log, env={**world().environment(), **environment}
        )  # fmt: skip
    try:
        until("moto", lambda: answer("GET", f"{url}/moto-api/")[0] == 200, server)
        assert answer("PUT", f"{url}/{bucket}")[0] == 200
        yield {
            "endpoint": url,
            "region": "us-east-1",
            "access_key_id": "key",
            "secret_access_key": "secret-value",
            "allow_http": True,
            "max_retries": 3,
            "retry_timeout": 20,
        }
    finally:
        server.terminate()
        with suppress(subprocess.TimeoutExpired):
            server.wait(20)
        server.kill()
