"""The small scale: ``python -m tests.oracle.small MINUTES SEED ROUND [--stop] [--no-reduce] [--json=PATH]``, with the sizes turned down by the environment."""

from __future__ import annotations

import json
import logging
import sys
import tempfile
from pathlib import Path

from tamis.world import world
from tests.oracle.coverage import watch
from tests.oracle.lab import Lab
from tests.oracle.reduce import reduced
from tests.oracle.run import Found, Oracle, Progress

MOST_REDUCED, REDUCE_SECONDS = 4, 90.0


def quiet() -> None:
    """PySpark logs the errors of queries, which are wanted here, as whole stack traces."""
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def main(arguments: list[str]) -> int:
    numbers = [a for a in arguments if not a.startswith("--")]
    minutes, seed, first = float(numbers[0]), int(numbers[1]), int(numbers[2])
    stop, path = "--stop" in arguments, next((a.partition("=")[2] for a in arguments if a.startswith("--json=")), None)
    quiet()
    watch()
    with tempfile.TemporaryDirectory(prefix="tamis-oracle-") as home:
        lab = Lab(Path(home))
        began = world().monotonic()

        def tell(found: Found) -> None:
            print(f"WRONG ({found.where}, {world().monotonic() - began:.0f} s): {found.problem[:500]}", flush=True)

        oracle = Oracle(lab, seed, tell)
        progress = oracle.run(60 * minutes, first, (lambda p: bool(p.found)) if stop else (lambda _: False))
        print(f"{world().monotonic() - began:.0f} s, seed {seed}: {progress}", progress.coverage.table(), sep="\n", flush=True)
        if path:
            Path(path).write_text(json.dumps(result(progress, seed, minutes), indent=1) + "\n")
        if "--no-reduce" not in arguments:
            for found in progress.found[:MOST_REDUCED]:
                case, seen = reduced(lab, found.case, found.problem, REDUCE_SECONDS)
                print("", case.script(seen), sep="\n", flush=True)
        lab.spark.stop()
    return int(bool(progress.found))


def result(progress: Progress, seed: int, minutes: float) -> dict[str, object]:
    """What is kept of a run."""
    return {
        "seed": seed,
        "minutes": minutes,
        "tables": progress.tables,
        "queries": progress.queries,
        "embedded_filters": progress.filters,
        "wrong": [f"{found.where}: {found.problem[:300]}" for found in progress.found],
        "coverage": progress.coverage.as_dict(),
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
