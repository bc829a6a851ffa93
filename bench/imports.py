"""``import tamis``: how long it takes, and that it loads nothing heavy. (That it never does is a test; here is the figure.)"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys

from bench.report import Figure, record

HEAVY = ("pyspark", "pyarrow", "numpy", "pandas", "obstore", "typer", "rich")
CODE = "import sys, time; t = time.perf_counter(); import {module}; print(__import__('json').dumps([time.perf_counter() - t, sorted(sys.modules)]))"


def imported(module: str) -> tuple[float, list[str]]:
    runs = [json.loads(subprocess.check_output([sys.executable, "-c", CODE.format(module=module)])) for _ in range(7)]
    return statistics.median(seconds for seconds, _ in runs), [name for name in HEAVY if name in runs[0][1]]


def main() -> None:
    found = {module: imported(module) for module in ("tamis", "tamis.table", "tamis.cli")}
    figures = [Figure(f"import {module}", seconds * 1000, "ms") for module, (seconds, _) in found.items()]
    figures.append(Figure("heavy packages that import tamis loads", len(found["tamis"][1]), "packages", 0))
    record(
        "imports", figures, {module: {"ms": round(s * 1000, 1), "loads": heavy} for module, (s, heavy) in found.items()}
    )


if __name__ == "__main__":
    main()
