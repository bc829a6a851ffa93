"""A standalone Spark cluster on this machine, made of what the pip package brings: a master, and workers with an executor each."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyspark

import tamis
from tamis.world import world
from tests.moto_server import HERE, answer, free_port, until

HOME = Path(pyspark.__file__).parent
SOURCE = Path(tamis.__file__).parents[1]
_SETTINGS = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "PYTHONPATH", "SPARK_SUBMIT_OPTS", "VIRTUAL_ENV")


def environment(**more: str) -> dict[str, str]:
    """Return the environment of a shell without an active virtual environment and without settings for Spark."""
    kept = {key: value for key, value in world().environment().items() if key not in _SETTINGS}
    kept["PATH"] = ":".join(p for p in kept["PATH"].split(":") if p != str(Path(sys.executable).parent))
    return {**kept, "SPARK_HOME": str(HOME), "PYTHONPATH": str(SOURCE), **more}


class Cluster:
    """A running master; ``folder`` holds logs and the executors' files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._port, self._page = free_port(), free_port()
        self._daemons: list[subprocess.Popen[bytes]] = []

    @property
    def url(self) -> str:
        return f"spark://{HERE}:{self._port}"

    def start(self) -> None:
        ports = ("--host", HERE, "--port", str(self._port), "--webui-port", str(self._page))
        master = self._daemon("org.apache.spark.deploy.master.Master", *ports)
        until("the master", self._state, master)

    def add_worker(self) -> None:
        """Start a worker of one core, and wait until the master knows it."""
        before = len(self.workers())
        where = self.folder / f"worker-{len(self._daemons)}"
        size = ("--cores", "1", "--memory", "1g", "--work-dir", str(where), "--webui-port", "0")
        worker = self._daemon("org.apache.spark.deploy.worker.Worker", "--host", HERE, *size, self.url)
        until("a worker", lambda: len(self.workers()) > before, worker)

    def _daemon(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        local = self.folder / "local"
        settings = environment(
            SPARK_LOCAL_DIRS=str(local),
            SPARK_DAEMON_MEMORY="256m",
            SPARK_DAEMON_JAVA_OPTS="-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            SPARK_CONF_DIR=str(self.folder / "conf"),
        )
        with (self.folder / "daemons.log").open("ab") as log:
            daemon = subprocess.Popen(
                [HOME / "bin" / "spark-class", name, *arguments], env=settings, stdout=log, stderr=log, cwd=self.folder
            )
        self._daemons.append(daemon)
        return daemon

    def _state(self) -> dict[str, Any]:
        status, text = answer("GET", f"http://{HERE}:{self._page}/json/")
        return json.loads(text) if status == 200 and text.startswith(b"{") else {}  # a page while it starts

    def workers(self) -> list[str]:
        return [worker["id"] for worker in self._state().get("workers", ()) if worker["state"] == "ALIVE"]

    def executors(self, application: str) -> list[int]:
        """Return the process ids of an application's executors, the JVMs that our workers have started."""
        workers = ",".join(str(daemon.pid) for daemon in self._daemons[1:])
        asked = ["ps", "-ww", "-o", "pid=,args=", "--ppid", workers]
        output = subprocess.run(asked, capture_output=True, text=True, check=False).stdout
        return [int(line.split()[0]) for line in output.splitlines() if f"--app-id {application} " in line]

    def stop(self) -> None:
        for daemon in reversed(self._daemons):
            daemon.send_signal(signal.SIGTERM)
        for daemon in self._daemons:
            with suppress(subprocess.TimeoutExpired):
                daemon.wait(30)
            daemon.kill()


@contextmanager
def standalone(folder: Path, workers: int) -> Iterator[Cluster]:
    cluster = Cluster(folder)
    try:
        cluster.start()
        for _ in range(workers):
            cluster.add_worker()
        yield cluster
    finally:
        cluster.stop()
