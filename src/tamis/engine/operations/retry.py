"""Retry of verbs that conflict with other commits.

Invariant: a verb whose only input is its filter may be rerun from the start on the latest version: the
earlier attempt left nothing visible, and the outcome equals having started later.
"""

from __future__ import annotations

from collections.abc import Callable

from tamis.engine.operations.result import Result
from tamis.errors import Conflict
from tamis.storage.commit_log import Snapshot
from tamis.world import world

ATTEMPTS = 8
_REPEATABLE = frozenset({"CONFLICT_READ", "CONFLICT_REMOVED", "CONFLICT_ROWS"})


def repeated(
    latest: Callable[[], Snapshot], run: Callable[[Snapshot], tuple[Snapshot, Result]]
) -> tuple[Snapshot, Result]:
    """Run on the latest version; after a conflict, retry a few times, then raise ``Conflict``."""
    for attempt in range(ATTEMPTS - 1):
        try:
            return run(latest())
        except Conflict as error:
            if error.code not in _REPEATABLE:
                raise
            world().sleep(world().uniform(0, 0.02 * 2**attempt))
    return run(latest())
