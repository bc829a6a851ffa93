"""Callbacks that receive the reports of scans that have ended and of commits.

Invariants: a report is delivered once to each hook; what a callback raises never reaches the scan or commit.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from copy import deepcopy
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from tamis.errors import InvalidInput
from tamis.storage.commit_log.commit_landing import watch_commits
from tamis.storage.commit_log.commit_record import Commit
from tamis.storage.object_store import Store

if TYPE_CHECKING:
    from tamis.engine.scan.report.scan_report import Report

_LOG = logging.getLogger("tamis")


@dataclass(frozen=True, slots=True)
class CommitReport:
    """What one commit of this process did to a table."""

    table: str
    """The table's URL."""
    version: int
    operation: str
    """As in ``history()``: ``append``, ``delete``, ``merge``, ``compact`` …"""
    parameters: dict[str, Any]
    metrics: dict[str, int]
    """The operation's counts: ``rows_inserted``, ``parts_added``, ``bytes_written`` …"""
    committed_micros: int
    """The commit's timestamp, in microseconds since 1970."""

    def as_dict(self) -> dict[str, Any]:
        """Return the report as plain dictionaries, ready for JSON."""
        return asdict(self)


class Hook:
    """A registered callback. Call it, call ``remove()``, or leave its ``with`` block to remove the callback."""

    def __init__(self, callback: Callable[[Report | CommitReport], object]) -> None:
        self._callback = callback

    def remove(self) -> None:
        """Remove the callback; further calls are no-ops."""
        with _lock:
            if self in _hooks:
                _hooks.remove(self)

    def __call__(self) -> None:
        self.remove()

    def __enter__(self) -> Hook:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


_hooks: list[Hook] = []
_lock = threading.RLock()  # the garbage collector may end a scan, which looks for hooks, within a call
_started: list[Callable[[], None]] = []
"""What to call when the first hook is registered."""
_watching = False
_running = threading.local()


def on_report(callback: Callable[[Report | CommitReport], object]) -> Hook:
    """Call ``callback`` with the report of every scan of this process that ends, and of every commit.

    A scan's report is a ``Report``, a commit's a ``CommitReport``. The callback runs in the thread that ended the
    scan or made the commit; for scans by Spark, in another thread shortly after the query has ended.
    An exception that it raises is logged as a warning (logger ``tamis``). Scans and commits that the callback
    itself makes in its thread are not reported. Call the returned hook to remove the callback. Raises
    ``InvalidInput`` (``BAD_CALLBACK``) if it cannot be called.
    """
    global _watching
    if not callable(callback):
        raise InvalidInput(
            f"{callback!r} cannot be called.", code="BAD_CALLBACK", name="callback", remedy="Give a function."
        )
    hook = Hook(callback)
    with _lock:
        first, _watching = not _watching, True
        starting = tuple(_started) if first else ()
    if first:
        watch_commits(_committed)
    for start in starting:  # before there is a hook: scans that have already ended are not for it
        start()
    with _lock:
        _hooks.append(hook)
    return hook


def on_first_hook(start: Callable[[], None]) -> None:
    """Call ``start`` when the first hook is added, or now if there was one, for engines whose scans end elsewhere."""
    with _lock:
        _started.append(start)
        now = _watching
    if now:
        start()


def deliver_report(report: Report | CommitReport) -> None:
    """Call every hook with ``report``. Never raises an ``Exception``."""
    if not _hooks or getattr(_running, "now", False):
        return
    with _lock:
        hooks = tuple(_hooks)
    _running.now = True
    try:
        for hook in hooks:
            _call(hook, report)
    finally:
        _running.now = False


def _call(hook: Hook, report: Report | CommitReport) -> None:
    try:
        hook._callback(report)
    except Exception:  # noqa: BLE001  # a callback must not break a scan or hide a commit
        _LOG.warning("A callback of tamis.on_report failed for %s.", report.table, exc_info=True)


def _committed(store: Store, commit: Commit) -> None:
    if not _hooks:
        return
    operation = commit.operation
    deliver_report(
        CommitReport(
            store.url,
            commit.version,
            operation.name,
            deepcopy(operation.parameters),
            dict(operation.metrics),
            commit.timestamp_micros,
        )
    )
