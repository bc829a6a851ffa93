"""``python -m tests.oracle [--minutes M] [--seed S] [--scale small|large|both]``: exit status 1 where anything differs.

The scale decides the sizes of the whole process (``tamis.sizes``), which are read when tamis is imported: this module only starts processes that do the work.
"""

from __future__ import annotations

import argparse
import subprocess
import sys

from tamis.sizes import VARIABLE
from tamis.world import world
from tests.oracle.scales import SCALES


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.oracle", description="Random whole queries against plain Spark."
    )
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--scale", choices=["small", "large", "both"], default="both")
    parser.add_argument("--round", type=int, default=0, help="the first round, to see one again")
    parser.add_argument("--stop", action="store_true", help="stop at the first difference")
    parser.add_argument("--no-reduce", action="store_true")
    parser.add_argument(
        "--libraries", action="store_true", help="only queries of DuckDB, Polars and pyarrow (small scale)"
    )
    parser.add_argument(
        "--switches",
        type=float,
        help="seconds of embedded filters before Spark starts; a sixth of the time by default",
    )
    parser.add_argument(
        "--gap-minutes", type=float, help="minutes more, while no query has met something (small scale)"
    )
    parser.add_argument("--json", help="where the results go")
    asked = parser.parse_args()
    shares = {"small": 0.8, "large": 0.2} if asked.scale == "both" else {asked.scale: 1.0}
    status = 0
    for scale, share in shares.items():
        environment = {**world().environment(), VARIABLE: SCALES[scale], "TAMIS_AUDIT": "raise", "TZ": "UTC"}
        environment.setdefault("PYSPARK_PYTHON", sys.executable)
        command = [
            sys.executable,
            "-m",
            f"tests.oracle.{scale}",
            str(asked.minutes * share),
            str(asked.seed),
            str(asked.round),
        ]
        command += (
            ["--stop"] * asked.stop
            + ["--no-reduce"] * asked.no_reduce
            + ["--libraries"] * asked.libraries
            + ([f"--json={asked.json}"] if asked.json else [])
        )
        command += [] if asked.switches is None else [f"--switches={asked.switches}"]
        command += [] if asked.gap_minutes is None else [f"--gap-minutes={asked.gap_minutes}"]
        status |= subprocess.run(command, env=environment, check=False).returncode
    return status


if __name__ == "__main__":
    sys.exit(main())
