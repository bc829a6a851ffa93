"""What the benchmarks share: timing, the machine's name, one JSON file per benchmark, goals beside figures."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from bench.cpu_clock import tree_cpu_seconds

RESULTS = Path(__file__).parent / "results"
PACKAGES = (
    "tamis",
    "pyspark",
    "pyarrow",
    "numpy",
    "obstore",
    "deltalake",
    "pyiceberg",
    "duckdb",
    "polars",
    "datafusion",
)


@dataclass(frozen=True)
class Figure:
    """One measured ratio or size against its goal; a figure without a goal is only shown."""

    name: str
    value: float
    unit: str
    goal: float | None = None

    @property
    def met(self) -> bool | None:
        return None if self.goal is None else self.value <= self.goal


def machine() -> dict[str, Any]:
    """The machine and the versions that a figure belongs to."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.is_file() else []
    cpu = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.processor())
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "cpu": cpu or platform.machine(),
        "cores": os.cpu_count(),
        "memory_gib": round(memory, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "packages": found,
    }


def commit() -> str:
    """The commit that was measured; with ``+`` if files of it were changed."""
    git = ["git", "-C", str(RESULTS.parent)]
    try:
        name = subprocess.check_output([*git, "rev-parse", "--short", "HEAD"], text=True).strip()
        changed = subprocess.check_output([*git, "status", "--porcelain", "--", "../src", "*.py"], text=True).strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{name}{'+' if changed else ''}"


def record(name: str, figures: list[Figure], detail: Mapping[str, Any]) -> None:
    """Prints the figures and keeps them in ``results/<name>.json`` (a quick run's beside it, as ``<name>.quick.json``, untracked)."""
    result = {
        "machine": machine(),
        "commit": commit(),
        "quick": quick(),
        "figures": [{**asdict(f), "met": f.met} for f in figures],
        **detail,
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}{'.quick' if quick() else ''}.json").write_text(json.dumps(result, indent=2) + "\n")
    for f in figures:
        goal = "" if f.goal is None else f"   goal {f.goal:g} {f.unit}: {'met' if f.met else 'MISSED'}"
        print(f"  {f.name}: {f.value:.4g} {f.unit}{goal}", flush=True)


def peak_mb() -> int:
    """This program's peak memory (a child's ``ru_maxrss`` begins at its parent's)."""
    status = Path("/proc/self/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:"))) // 1024


def quick() -> bool:
    return "--quick" in sys.argv


def rows(default: int) -> int:
    """How many rows to measure with: ``BENCH_ROWS``, else ``default``, a fiftieth of it in a quick run."""
    return int(os.environ.get("BENCH_ROWS") or (default // 50 if quick() else default))


def rounds() -> int:
    return int(os.environ.get("BENCH_ROUNDS") or (2 if quick() else 5))


@contextmanager
def workplace(name: str) -> Iterator[tuple[Path, bool]]:
    """A folder to build in, and whether that has been done: a temporary one, or ``BENCH_FOLDER``/name, which stays for the next run."""
    kept = os.environ.get("BENCH_FOLDER")
    if not kept:
        with tempfile.TemporaryDirectory() as home:
            yield Path(home), False
        return
    folder = Path(kept) / name
    folder.mkdir(parents=True, exist_ok=True)
    built = folder / "built"
    yield folder, built.exists()
    built.touch()


def in_turn(rounds_: int, **work: Callable[[int], Any]) -> dict[str, dict[str, Any]]:
    """Runs the candidates one after the other, ``rounds_`` times over, so that a busy moment hits them all; the first round is left out.

    Wall seconds of each, and the CPU seconds that Python, the JVM and its workers took meanwhile.
    """
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in work}
    for turn in range(rounds_ + 1):
        for name, run in work.items():
            used, start = tree_cpu_seconds(), time.perf_counter()
            run(turn)
            wall = time.perf_counter() - start
            if turn:
                taken[name].append((wall, tree_cpu_seconds() - used))
    return {name: summary_of(times) for name, times in taken.items()}


def summary_of(times: list[tuple[float, float]]) -> dict[str, Any]:
    """Medians and extremes of rounds, each given as its wall and its CPU seconds."""
    walls, cpus = zip(*times, strict=True)
    return {
        "min": min(walls),
        "median": statistics.median(walls),
        "max": max(walls),
        "cpu": statistics.median(cpus),
        "all": [round(wall, 4) for wall in walls],
        "cpu_all": [round(cpu, 4) for cpu in cpus],
    }


def ratios(title: str, mine: Mapping[str, Any], peer: Mapping[str, Any], goal: float | None = None) -> list[Figure]:
    """The ratio of two summaries' medians, and that of their CPU seconds as ``<title>, CPU``, which has no goal.

    CPU seconds that the clock is too coarse for give no figure.
    """
    found = [Figure(title, mine["median"] / peer["median"], "×", goal)]
    if mine["cpu"] and peer["cpu"]:
        found.append(Figure(f"{title}, CPU", mine["cpu"] / peer["cpu"], "×"))
    return found


def spark_session(**conf: str) -> Any:
    """A local session on all cores, without a UI, errors only."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[*]").appName("tamis-bench")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "4g",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={(RESULTS.parent.parent / 'src/tamis/cli/quiet.properties').as_uri()}",
        "spark.sql.parquet.compression.codec": "zstd",
        "spark.hadoop.parquet.compression.codec.zstd.level": "1",
        **conf,
    }
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
