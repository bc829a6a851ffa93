"""Tamis on a standalone cluster whose warehouse is on an S3 server: every verb, executors that are killed, a worker that joins late.

``make test-cluster`` runs it. The driver is a process of its own, in whose shell no virtual environment is active: the first ``python3``
on PATH need not have Tamis.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from tests.cluster import driver
from tests.cluster.standalone import Cluster, environment, standalone
from tests.conftest import IN_CI, java_problem
from tests.moto_server import moto
from tests.spark import bare_python

pytestmark = pytest.mark.spark

SECONDS = 400


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    problem = java_problem()
    if problem is not None:
        (pytest.fail if IN_CI else pytest.skip)(problem)
    with moto(tmp_path_factory.mktemp("moto")) as options:
        yield options


@pytest.fixture(scope="module")
def cluster(s3: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    del s3  # skips before anything is started
    with standalone(tmp_path_factory.mktemp("cluster"), workers=2) as running:
        yield running


def copy_lines(source: IO[str], lines: queue.Queue[str]) -> None:
    """Copy the lines, then an empty one: the process has ended, or has closed its output."""
    for line in source:
        lines.put(line)
    lines.put("")


def run(
    scenario: str,
    at: Cluster,
    s3: dict[str, Any],
    folder: Path,
    act: Callable[[str], object] | None = None,
    **settings: str,
) -> dict[str, Any]:
    """What the scenario found. ``act`` is called with the application's id when the driver says that it is ready for it."""
    given = {"master": at.url, "warehouse": f"s3://lake/{scenario}", "options": s3, "folder": str(folder)}
    with (folder / "stderr").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, Path(driver.__file__), scenario, json.dumps(given)],
            env=environment(**settings), stdout=subprocess.PIPE, stderr=log, text=True,
        )  # fmt: skip
    lines: queue.Queue[str] = queue.Queue()
    assert process.stdout is not None
    reader = threading.Thread(target=copy_lines, args=(process.stdout, lines))
    reader.start()
    found = None
    try:
        while line := lines.get(timeout=SECONDS):
            if line.startswith("READY") and act is not None:
                act(line.split()[1])
            if line.startswith("FOUND "):
                found = json.loads(line.removeprefix("FOUND "))
                break
    finally:
        if found is None:
            process.kill()
        process.wait(120)
        reader.join()
    assert found is not None, (folder / "stderr").read_text()[-4_000:]
    return found


def kill(at: Cluster, count: int) -> Callable[[str], None]:
    """A function that kills so many of the two executors of an application."""

    def act(application: str) -> None:
        victims = at.executors(application)
        assert len(victims) == 2
        for victim in victims[:count]:
            os.kill(victim, signal.SIGKILL)

    return act


def facts(ids: Any) -> list[int]:
    chosen = list(ids)
    return [len(chosen), len(set(chosen)), sum(chosen)]


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_every_verb(cluster: Cluster, s3: dict[str, Any], tmp_path: Path) -> None:
    sizes = "index_driver_rows=100,local_delete_parts=1"  # so that executors build indexes and look for rows
    found = run("verbs", cluster, s3, tmp_path, TAMIS_SIZES=sizes)
    rows = {n: n % 97 for n in range(20_000)}
    assert found["insert"] == [facts(rows)] * 2
    rows |= dict.fromkeys(range(20_000, 21_000), 1)
    assert found["append"] == [facts(rows)] * 2
    assert found["ctas"] == facts(n for n in rows if n % 2 == 0)
    rows |= dict.fromkeys(range(20_500, 22_000), 5)
    assert found["merge"] == [facts(rows)] * 2
    assert found["update"] == [[sum(1 for user in rows.values() if user == 96)]]
    rows = {n: user for n, user in rows.items() if n % 10 != 3}
    assert found["delete"] == [facts(rows)] * 2
    rows = {n: user for n, user in rows.items() if user != 96}
    assert found["delete_by_path"] == [facts(rows)] * 2
    assert found["index"] == [[sum(1 for user in rows.values() if user == 11)]]
    assert found["compact"] == [facts(rows)] * 2
    assert found["scan"] == sum(1 for n in rows if n < 50)
    assert found["stream"] == facts(rows)
    assert found["python"] == [sys.executable]
    assert found["failed"] == 0
    assert found["indexes"] == 1
    assert found["jobs"] == [
        "build an index of",
        "compact",
        "delete rows of",
        "find rows to delete in",
        "merge rows into",
        "update rows of",
        "write rows to",
    ]


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_an_executor_killed_in_a_write(cluster: Cluster, s3: dict[str, Any], tmp_path: Path) -> None:
    found = run("killed_in_write", cluster, s3, tmp_path, kill(cluster, 1))
    assert found["ran"] == [True, []]
    assert found["failed"] >= 1
    assert found["rows"] == facts(range(400))
    assert found["commits"] == 1


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_executors_killed_in_a_merge(cluster: Cluster, s3: dict[str, Any], tmp_path: Path) -> None:
    """Both: the rows that wait may be the work of one task. If the source's rows go with them, they are computed again."""
    found = run("killed_in_merge", cluster, s3, tmp_path, kill(cluster, 2))
    assert found["ran"] == [True, []], found
    assert found["failed"] >= 1
    assert found["rows"] == facts(range(600)), found
    assert found["sums"] == [400, 1]


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_an_executor_killed_in_a_compaction(cluster: Cluster, s3: dict[str, Any], tmp_path: Path) -> None:
    found = run("killed_in_upkeep", cluster, s3, tmp_path, kill(cluster, 1))
    assert found["ran"] == [True, 6]
    assert found["failed"] >= 1
    assert found["rows"] == facts(range(300_000))
    assert found["parts"] < 6


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_executors_killed_in_the_build_of_an_index(cluster: Cluster, s3: dict[str, Any], tmp_path: Path) -> None:
    """Both: one of them may run all tasks."""
    sizes = "index_driver_rows=100"  # so that executors build the index
    found = run("killed_in_index_build", cluster, s3, tmp_path, kill(cluster, 2), TAMIS_SIZES=sizes)
    assert found["ran"] == [True, []]
    assert found["failed"] >= 1
    assert found["coverage"] == [["by_id", 6, 0]]
    assert found["needle"] == [1, 1, [[1]]]
    assert found["problems"] == []


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_executors_killed_in_a_stream(cluster: Cluster, s3: dict[str, Any], tmp_path: Path) -> None:
    """Both: one of them may run all tasks."""
    found = run("killed_in_stream", cluster, s3, tmp_path, kill(cluster, 2))
    assert found["ran"] == [True, "None"]
    assert found["failed"] >= 1
    assert found["rows"] == facts(range(300))
    assert found["restarted"] == ["None", facts(range(350))]
    assert found["commits"] == 4  # three micro-batches, and one of the restarted query


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_a_worker_that_joins_late(s3: dict[str, Any], tmp_path: Path) -> None:
    with standalone(tmp_path, workers=1) as small:
        found = run("late_worker", small, s3, tmp_path, lambda _: small.add_worker())
    assert found["ran"] == [True, []]
    assert found["executors"] == [1, 2]
    assert found["rows"] == facts(range(1_210))
    assert all(found["tasks"][executor] > 0 for executor in ("0", "1"))
    assert found["python"] == [sys.executable]


@pytest.mark.merge
@pytest.mark.timeout(900)
def test_executors_without_tamis(cluster: Cluster, s3: dict[str, Any], tmp_path: Path) -> None:
    """One error, from the first task; two executors may each have started one more before the job ends."""
    python = bare_python.made(tmp_path)
    found = run("without_tamis", cluster, s3, tmp_path, PYSPARK_PYTHON=str(python))
    assert found["version"] == 3
    for step, (kind, text, failed) in found["outcomes"].items():
        assert "[MISSING_PACKAGE] The executor on " in text, step
        assert f"runs {tmp_path}/venv/bin/python, which has no tamis. Install" in text, step
        assert "ModuleNotFoundError" not in text, step
        assert kind == ("InvalidInput" if step in {"append", "compact"} else kind), step
        assert 1 <= failed <= 6, step
