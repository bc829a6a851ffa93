"""Repeating a verb that another commit got in the way of.

Law: a verb whose only input is its filter may be run again from the start, on what is there now: nothing of the attempt before is visible, and the outcome is
that of having come later.
"""

from __future__ import annotations

from collections.abc import Callable

from tamis.engine.operations.result import Result
from tamis.errors import Conflict
from tamis.storage.commit_log import Snapshot
from tamis.world import world

ATTEMPTS = 8
_REPEATABLE = frozenset({"CONFLICT_READ", "CONFLICT_REMOVED", "CONFLICT_ROWS"})


def repeated(latest: Callable[[], Snapshot], run: Callable[[Snapshot], tuple[Snapshot, Result]]) -> tuple[Snapshot, Result]:
    """``run`` on the latest version, again on a later one where it meets a conflict, a few times; then raises the ``Conflict``."""
    for attempt in range(ATTEMPTS - 1):
        try:
            return run(latest())
        except Conflict as error:
            if error.code not in _REPEATABLE:
                raise
            world().sleep(world().uniform(0, 0.02 * 2**attempt))
    return run(latest())
