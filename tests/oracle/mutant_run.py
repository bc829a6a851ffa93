"""``python -m tests.oracle.mutant_run [--seconds S] [--only TEXT] [--budget S]``: plants one mutant after another and lets the oracle look for it.

A mutant is planted in a copy of the source that stands first on PYTHONPATH. Results go to ``bench/results/mutants.json`` after each; a run goes on with
those that are not there yet.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from random import Random  # noqa: TID251  # seeded
from typing import Any

from tamis.sizes import VARIABLE
from tamis.world import world
from tests.oracle.mutants import MUTANTS, ROOT, Mutant
from tests.oracle.scales import SCALES

RESULTS = ROOT / "bench" / "results" / "mutants.json"


def plant(mutant: Mutant, folder: Path) -> None:
    """A copy of the source with the mutant in ``folder``."""
    shutil.copytree(ROOT / "src" / "tamis", folder / "tamis", ignore=shutil.ignore_patterns("__pycache__"))
    path = folder / "tamis" / mutant.path
    text = path.read_text()
    if text.count(mutant.old) != 1:
        raise ValueError(f"{mutant.name}: its place in {mutant.path} is gone")
    path.write_text(text.replace(mutant.old, mutant.new))


def looked_for(mutant: Mutant, seconds: float, seed: int) -> dict[str, Any]:
    """Run the oracle on a mutant, and return what became of it."""
    with tempfile.TemporaryDirectory(prefix="tamis-mutant-") as home:
        plant(mutant, Path(home))
        environment = {**world().environment(), "PYTHONPATH": f"{home}:{ROOT}"}
        command = [
            sys.executable,
            "-m",
            "tests.oracle",
            "--scale",
            "small",
            "--minutes",
            str(seconds / 60),
            "--seed",
            str(seed),
            "--switches",
            str(3 if mutant.spark or mutant.libraries else 0.8 * seconds),
            "--stop",
            "--no-reduce",
            *(["--libraries"] if mutant.libraries else []),
        ]
        began = world().monotonic()
        try:
            ran = subprocess.run(
                command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False, timeout=seconds + 120
            )
            output, status = ran.stdout, ran.returncode
            error = ran.stderr.strip().splitlines()[-1:] if status and "WRONG" not in output else []
        except subprocess.TimeoutExpired:
            output, status, error = "", 1, ["the process did not end"]
        spent = round(world().monotonic() - began, 1)
    first = re.search(r"^WRONG \((.*?)\): (.*)$", output, re.MULTILINE)
    by = f"{first[1]}: {first[2][:200]}" if first else " ".join(error)[:200]
    killed = first is not None
    if first is not None and not passes(first[1], seconds, libraries=mutant.libraries):
        killed, by = False, f"the source itself fails there: {by}"
    return {"mutant": mutant.name, "path": mutant.path, "killed": killed, "seconds": spent, "by": by}


def passes(where: str, seconds: float, *, libraries: bool) -> bool:
    """Whether the source without a mutant passes where a mutant was seen: a difference that is there anyway kills nothing. The tour is passed by every run."""
    found = re.search(r"seed (\d+), (table|round) (\d+)", where)
    if found is None:
        return True
    seed, kind, number = found.groups()
    sizes = {VARIABLE: SCALES["small"], "TAMIS_AUDIT": "raise", "TZ": "UTC"}
    environment = {**world().environment(), **sizes, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    again = [
        "tests.oracle",
        "--scale",
        "small",
        "--seed",
        seed,
        "--round",
        number,
        "--minutes",
        str(seconds / 60),
        "--switches",
        "0.01",
        *(["--libraries"] if libraries else []),
    ]
    command = ["tests.oracle.switches", seed, number] if kind == "table" else [*again, "--stop", "--no-reduce"]
    ran = subprocess.run(
        [sys.executable, "-m", *command], env=environment, cwd=ROOT, capture_output=True, text=True, check=False
    )
    return ran.returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.oracle.mutant_run")
    parser.add_argument("--seconds", type=float, default=600, help="for each mutant")
    parser.add_argument(
        "--budget", type=float, default=float("inf"), help="seconds for all: no new one begins afterwards"
    )
    parser.add_argument("--only", default="", help="mutants whose name or path holds this")
    parser.add_argument("--again", action="store_true", help="those that survived before, once more")
    asked = parser.parse_args()
    known = {entry["mutant"]: entry for entry in json.loads(RESULTS.read_text())["mutants"]} if RESULTS.exists() else {}
    end = world().monotonic() + asked.budget
    order = list(enumerate(MUTANTS))
    Random(16).shuffle(order)  # so that a run that was stopped says something about all places
    for seed, mutant in order:
        before = known.get(mutant.name)
        if asked.only not in mutant.name + mutant.path or (
            before is not None and (before["killed"] or not asked.again)
        ):
            continue
        if world().monotonic() > end:
            break
        known[mutant.name] = looked_for(mutant, asked.seconds, 1000 + seed)
        print(known[mutant.name], flush=True)
        write([known[m.name] for m in MUTANTS if m.name in known])
    left = [m.name for m in MUTANTS if not known.get(m.name, {}).get("killed")]
    print(f"{len(MUTANTS) - len(left)} of {len(MUTANTS)} killed; left: {', '.join(left) or 'none'}")
    return int(bool(left))


def write(entries: list[dict[str, Any]]) -> None:
    killed = sum(entry["killed"] for entry in entries)
    result = {"planted": len(entries), "killed": killed, "share": round(killed / len(entries), 3), "mutants": entries}
    RESULTS.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    sys.exit(main())
