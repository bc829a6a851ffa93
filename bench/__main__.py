"""Runs the benchmarks in turn, each in a process of its own: ``python -m bench [--quick] [name …]``."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

ORDER = ("imports", "state", "planning", "write", "scan", "index", "lazy", "tending")
HERE = Path(__file__).parent


def main() -> int:
    flags = [a for a in sys.argv[1:] if a.startswith("-")]
    named = [a for a in sys.argv[1:] if not a.startswith("-")]
    there = {p.stem for p in HERE.glob("*.py") if not p.stem.startswith("_")} - {
        "report",
        "rows",
        "both_sides",
        "bridges_needle",
        "peers",
        "tpch_queries",
    }
    if set(flags) - {"--quick"}:
        print(__doc__, f"Benchmarks: {', '.join(sorted(there))}.", sep="\n", file=sys.stderr)
        return 2
    unknown = set(named) - there
    if unknown:
        print(
            f"There is no benchmark {', '.join(sorted(unknown))}; there are: {', '.join(sorted(there))}.",
            file=sys.stderr,
        )
        return 2
    failed = []
    for name in named or [*ORDER, *sorted(there - set(ORDER) - {"tpcds"})]:  # make bench-tpcds, which makes its data
        print(f"== {name}", flush=True)
        start = time.perf_counter()
        done = subprocess.run([sys.executable, "-m", f"bench.{name}", *flags], cwd=HERE.parent, check=False)
        print(f"== {name}: {time.perf_counter() - start:.0f} s", flush=True)
        failed += [name] if done.returncode else []
    if failed:
        print(f"Failed: {', '.join(failed)}.", file=sys.stderr)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
