"""The small scale: ``python -m tests.oracle.small MINUTES SEED ROUND [--stop] [--no-reduce] [--switches=SECONDS] [--gap-minutes=M] [--libraries] [--json=PATH]``, with the sizes turned down by the environment."""

from __future__ import annotations

import json
import logging
import sys
import tempfile
from pathlib import Path

from tamis.world import world
from tests.oracle.coverage import STRIPES, times_met, watch
from tests.oracle.lab import Lab
from tests.oracle.reduce import reduced
from tests.oracle.run import Found, Oracle, Progress
from tests.oracle.switches import table_rng, wrong_filters

MOST_REDUCED, REDUCE_SECONDS = 4, 90.0
SWITCH_SECONDS = 120.0
"""At most, of a sixth of the time, unless it goes on for a table of ORC."""
STRIPES_WITHIN = 10
"""How many times as long it may take until an ORC table is met."""


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
        began = world().monotonic()
        switch_seconds = next(
            (float(a.partition("=")[2]) for a in arguments if a.startswith("--switches=")),
            min(SWITCH_SECONDS, 10 * minutes),
        )
        quick = switches(Path(home), seed, first, switch_seconds, stop=stop)
        if stop and quick.found:
            return 1
        lab = Lab(Path(home))

        def tell(found: Found) -> None:
            print(f"WRONG ({found.where}, {world().monotonic() - began:.0f} s): {found.problem[:500]}", flush=True)

        gaps = next((float(a.partition("=")[2]) for a in arguments if a.startswith("--gap-minutes=")), 0.0)
        oracle = Oracle(lab, seed, tell, quick, libraries="--libraries" in arguments)
        progress = oracle.run(
            60 * minutes - (world().monotonic() - began),
            first,
            (lambda p: bool(p.found)) if stop else (lambda _: False),
            60 * gaps,
        )
        print(
            f"{world().monotonic() - began:.0f} s, seed {seed}: {progress}",
            progress.coverage.table(),
            sep="\n",
            flush=True,
        )
        if path:
            Path(path).write_text(json.dumps(result(progress, seed, minutes), indent=1) + "\n")
        if "--no-reduce" not in arguments:
            for found in progress.found[:MOST_REDUCED]:
                case, seen = reduced(lab, found.case, found.problem, REDUCE_SECONDS)
                print("", case.script(seen), sep="\n", flush=True)
        lab.spark.stop()
    return int(bool(progress.found))


def switches(home: Path, seed: int, first: int, seconds: float, *, stop: bool) -> Progress:
    """Embedded filters with switches on and off, before Spark starts.

    For some seeds, none of the first tables that Spark asks is ORC: on a slow machine, this goes on until one was read by stripes, for at most ten times as long.
    """
    progress, began, number = Progress(), world().monotonic(), first

    def goes_on() -> bool:
        passed = world().monotonic() - began
        return passed < seconds or (passed < STRIPES_WITHIN * seconds and not times_met(STRIPES))

    while goes_on() and not (stop and progress.found):
        rng, path = table_rng(seed, number), home / f"switches{number}"
        with progress.timed("switches"):
            trial, wrong = wrong_filters(rng, path)
        progress.filters += trial.asked
        progress.coverage.features.update(trial.features)
        progress.tables += 1
        for case, problem in wrong:
            where = f"seed {seed}, table {number}"
            progress.found.append(Found(case, problem, where))
            print(f"WRONG ({where}, {world().monotonic() - began:.0f} s): {problem[:500]}", flush=True)
        number += 1
    return progress


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
