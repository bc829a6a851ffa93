"""When an operation on a table runs again: which errors allow it, how often, and how long it waits.

Invariant: an operation may run again if an earlier run left nothing visible, or if the log recognises its
operation id. The store's own retries of failed requests are below this (``object_store.store_backends``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from tamis.errors import Conflict, CorruptData, StoreUnavailable
from tamis.world import world

T = TypeVar("T")


class LostRace(Exception):
    """Another commit took the version that this one wanted."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Runs an operation at most ``attempts`` times.

    Waits between runs are random, up to ``first_wait`` seconds after the first one, twice as long after each
    further one, and never more than ``longest_wait``.
    """

    attempts: int
    retryable: Callable[[Exception], bool]
    first_wait: float = 0.02
    longest_wait: float = 1.0

    def run(self, attempt: Callable[[int], T]) -> T:
        """Return the result of ``attempt``, which gets the number of runs before; raise its last error."""
        for before in range(self.attempts - 1):
            try:
                return attempt(before)
            except Exception as error:
                if not self.retryable(error):
                    raise
            longest = self.first_wait * 2 ** min(before, 16)
            world().sleep(world().uniform(0, min(self.longest_wait, longest)))
        return attempt(self.attempts - 1)


def _retries_conflicts(*codes: str) -> Callable[[Exception], bool]:
    return lambda error: isinstance(error, Conflict) and error.code in codes


_ROWS = ("CONFLICT_READ", "CONFLICT_REMOVED", "CONFLICT_ROWS", "CONFLICT_CONSTRAINT")
ROW_CHANGES = RetryPolicy(8, _retries_conflicts(*_ROWS))
"""Changes of rows whose only input is their filter: running again is the same as starting later."""
RESTORES = RetryPolicy(10, _retries_conflicts(*_ROWS, "CONFLICT_HEAD_CHANGED"))
"""Restores: planned again, but not after a vacuum of the version or after the table was replaced."""
ANALYSES = RetryPolicy(100, _retries_conflicts(*_ROWS, "CONFLICT_VACUUMED"))
"""Analyses of parts: committed again for the parts that another commit has left."""
HEAD_CHANGES = RetryPolicy(100, _retries_conflicts("CONFLICT_HEAD_CHANGED", "CONFLICT_READ"))
"""Changes of a schema, of properties, constraints and index definitions: planned again from the newest head."""
UNKNOWN_COMMITS = RetryPolicy(4, lambda error: isinstance(error, StoreUnavailable), 0.1)
"""Proposals with an operation id, whose outcome may be unknown."""
COMMIT_RACES = RetryPolicy(1_000, lambda error: isinstance(error, LostRace), 0.005)
"""Writes of a commit: each lost race means that another commit landed."""
COMMIT_READS = RetryPolicy(3, lambda error: isinstance(error, StoreUnavailable), 0.1, 0.1)
"""Reads of one commit, after which the store counts as unreachable."""
LOG_READS = RetryPolicy(4, lambda error: isinstance(error, CorruptData) and error.code == "WRONG_TABLE", 0.2, 0.2)
"""Searches for the newest commit: a writer whose table was dropped meanwhile takes its commit back at once."""
