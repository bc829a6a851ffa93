"""Retry of verbs that conflict with other commits.

Invariant: a verb whose only input is its filter may be rerun from the start on the latest version: the
earlier attempt left nothing visible, and the outcome equals having started later.
"""

from __future__ import annotations

from collections.abc import Callable

from tamis.engine.operations.result import Result
from tamis.storage.commit_log import Snapshot
from tamis.storage.commit_log.retry_policy import ROW_CHANGES


def retry_conflicts(
    latest: Callable[[], Snapshot], run: Callable[[Snapshot], tuple[Snapshot, Result]]
) -> tuple[Snapshot, Result]:
    """Run on the latest version; after a conflict, retry a few times, then raise ``Conflict``."""
    return ROW_CHANGES.run(lambda _: run(latest()))
