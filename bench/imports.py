"""``import tamis``: how long it takes, and that it loads nothing heavy. (That it never does is a test; here is the figure.)

Modules are compiled before the clock runs, as they are where pip installed them: ``PYTHONDONTWRITEBYTECODE`` alone
doubles the figures. The share of pyarrow, numpy and obstore is measured beside them, in the same round.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile

from bench.report import Figure, record

HEAVY = ("pyspark", "pyarrow", "numpy", "pandas", "obstore", "typer", "rich")
LIBRARIES = "pyarrow, pyarrow.compute, pyarrow.parquet, obstore"
CODE = "import sys, time; t = time.perf_counter(); import {module}; print(__import__('json').dumps([time.perf_counter() - t, sorted(sys.modules)]))"


def imported(modules: str, environment: dict[str, str]) -> tuple[float, list[str]]:
    code = [sys.executable, "-c", CODE.format(module=modules)]
    seconds, loaded = json.loads(subprocess.check_output(code, env=environment))
    return seconds, [name for name in HEAVY if name in loaded]


def main() -> None:
    rounds = 9
    measured = ("tamis", "tamis.table", "tamis.cli", LIBRARIES)
    with tempfile.TemporaryDirectory() as cache:
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPYCACHEPREFIX"] = cache
        imported("tamis.table", environment)  # compiles
        runs: dict[str, list[tuple[float, list[str]]]] = {modules: [] for modules in measured}
        for _ in range(rounds):
            for modules in measured:
                runs[modules].append(imported(modules, environment))
    ms = {modules: statistics.median(seconds for seconds, _ in found) * 1000 for modules, found in runs.items()}
    goals = {"tamis.table": 250.0}
    figures = [Figure(f"import {modules}", ms[modules], "ms", goals.get(modules)) for modules in measured]
    figures.append(Figure("heavy packages that import tamis loads", len(runs["tamis"][0][1]), "packages", 0))
    record(
        "imports",
        figures,
        {
            m: {"ms": round(ms[m], 1), "all": [round(s * 1000, 1) for s, _ in found], "loads": found[0][1]}
            for m, found in runs.items()
        },
    )


if __name__ == "__main__":
    main()
