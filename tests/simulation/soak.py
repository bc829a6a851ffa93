"""Long stories, one seed after another, until the minutes are over: ``python -m tests.simulation.soak [minutes] [first seed]``.

Prints each seed before its story is told; a failure ends the run, and its seed repeats the story.
"""

from __future__ import annotations

import sys
import traceback

from tamis.world import world
from tests.simulation.story import tell

STEPS = 4_000


def main() -> int:
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else 60
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    end = world().monotonic() + 60 * minutes
    stories = calls = 0
    while not stories or world().monotonic() < end:
        print(f"seed {seed}", end=" ", flush=True)
        try:
            sim = tell(seed, STEPS)
        except BaseException:
            traceback.print_exc()
            print(f"FAILED: tell it again by: python -m tests.simulation.soak 0 {seed}")
            return 1
        stories, calls = stories + 1, calls + sim.calls
        print(f"versions {len(sim.model.versions)}, calls {sim.calls}", flush=True)
        seed += 1
    print(f"{stories} stories, {calls} calls of the store, nothing lost, nothing doubled.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
