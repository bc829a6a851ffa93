"""Scan reports from executors' counters: one report per SQL execution of a scan, none for EXPLAIN.

Two sources are joined. An accumulator brings the counters of each task when it ends (a retried task replaces
its earlier counters). A listener in the JVM (``Executions.java``) lists the scans in the plan of each
execution that ended, so that scans without tasks, and scans read by Spark's own Parquet reader, are reported
too. They are joined only when reports are requested.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict, deque
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from tamis.engine.part_reader import ReadCounters
from tamis.engine.scan.report.report_hooks import deliver_report, on_first_hook
from tamis.engine.scan.report.scan_report import Counts, Report, on_reports_read
from tamis.engine.scan.skip_audit import audit_violation, log_violation
from tamis.spark.executors.read_task import Outcome
from tamis.spark.jvm_bridge.adapter import Bridge
from tamis.world import new_id, world

_KEPT = 1_000
_KEPT_KEYS = 16
"""Number of key sets remembered per scan."""
_MOST_CLOSED = 256
"""Number of scans whose bytes are remembered after their reports are closed."""
_PATIENCE_MILLIS = 5_000
"""How long to wait for Spark's listener events about executions that have ended."""


@dataclass(slots=True)
class Opening:
    """The cost of opening a table for a query, charged to the first scan of it that is planned."""

    bytes: int = 0
    requests: int = 0
    seconds: float | None = None

    def charge(self, report: Report) -> None:
        """Add the cost to ``report``, once."""
        if self.seconds is not None:
            report.record_planning(self.bytes, self.requests)
            report.seconds = Counts(open=self.seconds, **report.seconds)
        self.seconds = None


@dataclass(slots=True)
class Planned:
    """The facts about a planned scan that the reports of its executions need."""

    scan: str
    report: Report
    tasks: int
    bytes: int
    """Approximate bytes of the selected columns in the kept parts."""
    rows: int
    native: bool
    stream: bool = False
    """Whether it reads a micro-batch, which has a report even if nothing runs its tasks."""
    reported: bool = False


@dataclass(frozen=True, slots=True)
class EndedScan:
    """A scan of an execution that ended, as ``Executions.drain`` says."""

    execution: str
    key: str
    rows: int
    in_plan: bool
    """Whether it is in the plan itself, not below a cache."""
    nanos: int
    """How long the execution took."""
    ended_micros: int
    """Microseconds since 1970."""
    keyed: bool
    """Whether it got values of a run-time filter."""
    begun: bool
    """Whether a stage of the execution read it."""
    error: str | None
    """The condition of the execution's error, if it failed."""

    @staticmethod
    def of_line(line: str) -> EndedScan:
        execution, key, rows, in_plan, nanos, millis, keyed, begun, error = line.split(" ", 8)
        return EndedScan(
            execution=execution,
            key=key,
            rows=int(rows),
            in_plan=in_plan == "1",
            nanos=int(nanos),
            ended_micros=int(millis) * 1_000,
            keyed=keyed == "1",
            begun=begun == "1",
            error=None if error == "-" else error,
        )


class Ledger:
    """The open reports of one Spark application."""

    def __init__(self, owner: Bridge, context: Any) -> None:
        self._context = weakref.ref(context)
        self._jvm_executions = owner.helper("Executions")
        self._bus = context._jsc.sc().listenerBus()
        self._planned: OrderedDict[str, Planned] = OrderedDict()
        self._narrowed: dict[str, deque[tuple[str, str]]] = {}
        """By the scan's key: executions that brought join keys, and the keys of the plans made with them."""
        self._open: OrderedDict[tuple[str, str], Report] = OrderedDict()
        self._attempts: dict[tuple[str, str, int], tuple[int, int]] = {}
        self._last_counters: dict[tuple[str, str], int] = {}
        """When a task of an open execution last sent counters, in microseconds since 1970."""
        self._bytes: dict[tuple[str, str, int], int] = {}
        self._lock = threading.RLock()
        self.accumulator = context.accumulator(_Inbox(self), _Param())
        context._jsc.sc().addSparkListener(self._jvm_executions)
        on_reports_read(self.finish_reports)
        self._closed: deque[Report] = deque()
        """Reports that no hook has got yet: callbacks run without the lock, which ending tasks need."""
        self._delivering = threading.RLock()
        self._closed_bytes: OrderedDict[str, int] = OrderedDict()
        """Bytes of data files read by scans whose report is closed: a hook closes it while they are asked for."""
        self._owner = owner
        on_first_hook(self._install_listener)

    def record_plan(self, key: str, planned: Planned) -> None:
        """Remember a scan by the key of its Java object. Drops the oldest."""
        with self._lock:
            self._planned[key] = planned
            while len(self._planned) > _KEPT:
                self._narrowed.pop(self._planned.popitem(last=False)[0], None)

    def record_keyed_plan(self, key: str, execution: str, planned: Planned) -> None:
        """Remember the plan of a scan under the join keys of one execution."""
        with self._lock:
            self.record_plan(f"{key} {planned.scan}", planned)
            self._narrowed.setdefault(key, deque(maxlen=_KEPT_KEYS)).append((execution, f"{key} {planned.scan}"))

    def add_outcomes(self, outcomes: Iterable[Outcome]) -> None:
        """Add the counters of ended tasks. Called by Spark's accumulator server."""
        with self._lock:
            for outcome in outcomes:
                self._add_outcome(outcome)

    def _add_outcome(self, outcome: Outcome) -> None:
        scan, execution, task = outcome.key
        report = self._report(scan, execution)
        if report is None or self._attempts.get(outcome.key, (-1, -1)) > outcome.attempt:
            return
        self._attempts[outcome.key] = outcome.attempt
        self._last_counters[scan, execution] = world().now_micros()
        self._bytes[outcome.key] = outcome.counters.bytes_leader + outcome.counters.bytes_follower
        report.add(("spark", task), outcome.counters)
        for part, problem in outcome.violations:
            report.record_violation(part, problem)
            log_violation(audit_violation(report.table, report.filter, part, problem))

    def _report(self, scan: str, execution: str) -> Report | None:
        key = scan, execution
        if key not in self._open:
            planned = next((p for p in reversed(self._planned.values()) if p.scan == scan), None)
            if planned is None:
                return None
            self._open[key] = planned.report.for_execution()
            while len(self._open) > _KEPT:
                self._close(next(iter(self._open)))
        return self._open[key]

    def _close(self, key: tuple[str, str], ended_micros: int | None = None) -> None:
        report = self._open.pop(key)
        planned = next((p for p in self._planned.values() if p.scan == key[0]), None)
        if planned is not None:
            planned.reported = True
        for task in [k for k in self._attempts if k[:2] == key]:
            del self._attempts[task]
            self._closed_bytes[key[0]] = self._closed_bytes.pop(key[0], 0) + self._bytes.pop(task, 0)
        while len(self._closed_bytes) > _MOST_CLOSED:
            self._closed_bytes.popitem(last=False)
        heard = self._last_counters.pop(key, None)
        if report.close(heard if ended_micros is None else ended_micros):
            self._closed.append(report)

    def bytes_of(self, scan: str) -> int:
        """Bytes of data files read so far by the tasks of a scan, over all of its executions."""
        with self._lock:
            return self._closed_bytes.get(scan, 0) + sum(size for key, size in self._bytes.items() if key[0] == scan)

    def finish_reports(self) -> None:
        """Finish the reports of all executions that have ended.

        A scan in an execution's plan may not have run: its result was cached, or a shuffle was reused. A scan
        without rows has run if it had nothing to read, if its tasks sent counters, or if a stage read it
        (Spark's own reader sends none).
        """
        text = self._drain_executions() if self._context() is _running() else ""
        with self._lock:
            self._finish_scans(text)
            for open_key in [k for k in self._open if k[1].startswith("stage ") or self._is_complete(k)]:
                self._close(open_key)
        self._deliver()

    def _finish_scans(self, lines: str) -> None:
        """Finish the reports of the scans in ``lines``, from ``Executions.drain``."""
        for line in lines.splitlines():
            ended = EndedScan.of_line(line)
            planned = self._executed_plan(ended)
            if planned is None:
                continue
            if planned.stream:
                self._close_batch(planned, ended)
                continue
            if (
                ended.rows
                or (ended.in_plan and (ended.begun or planned.tasks == 0))
                or (planned.scan, ended.execution) in self._open
            ):
                self._close_scan(planned, ended)

    def _deliver(self) -> None:
        """Deliver closed reports to the hooks, in the order in which they were closed."""
        while self._closed:
            with suppress(IndexError):  # another thread was faster
                deliver_report(self._closed.popleft())

    def _install_listener(self) -> None:
        """From now on, finish reports when their executions end, not only when reports are requested."""
        if self._context() is _running():
            ended = self._owner.implement(("java.lang.Runnable",), _Ended(weakref.ref(self)))
            self._jvm_executions.afterwards(ended)
            if self._planned:
                self.finish_reports()

    def finish_ended_reports(self) -> None:
        """Finish and deliver the reports of executions that have ended, without waiting for the others."""
        with self._delivering:
            with self._lock, suppress(Exception):  # Spark may be stopping
                # Drained in the lock, so that ``finish_reports`` finds the lines or their reports.
                self._finish_scans(str(self._jvm_executions.drain()))
            self._deliver()

    def _close_batch(self, planned: Planned, ended: EndedScan) -> None:
        """Close the reports of a micro-batch, each of one execution of its tasks; at least one.

        A consumer may run the tasks several times, in executions of its own, or never.
        """
        opened = [key for key in self._open if key[0] == planned.scan]
        for key in opened:
            self._open[key].error = ended.error
            self._close(key)
        if not opened and not planned.reported:
            self._close_scan(planned, ended)

    def _executed_plan(self, ended: EndedScan) -> Planned | None:
        """The plan of a scan that an execution ran: the one under join keys, if it got any.

        A plan that runs again keeps the keys of its first run.
        """
        key, execution = ended.key, ended.execution
        found = self._narrowed.get(key) if ended.keyed else None
        if not found:
            return self._planned.get(key)
        counted = {scan for scan, ran in self._open if ran == execution}
        at = next((at for at in found if at[0] == execution or at[1].split(" ")[1] in counted), found[-1])
        found.remove(at)
        found.append(at)  # the plan may contain the scan twice: the next line is for the other one
        return self._planned.get(at[1])

    def _drain_executions(self) -> str:
        try:
            self._bus.waitUntilEmpty(_PATIENCE_MILLIS)
            return str(self._jvm_executions.drain())
        except Exception:  # noqa: BLE001  # Spark is stopping or too busy: report what is known
            return ""

    def _is_complete(self, key: tuple[str, str]) -> bool:
        """Whether all tasks of an execution have sent counters."""
        planned = next((p for p in self._planned.values() if p.scan == key[0]), None)
        return planned is None or sum(1 for k in self._attempts if k[:2] == key) >= planned.tasks

    def _close_scan(self, planned: Planned, ended: EndedScan) -> None:
        """Close the report of a scan in an execution."""
        key = planned.scan, ended.execution
        report = self._report(*key)
        if report is None:
            return
        report.error = ended.error
        if planned.native:
            report.add(("spark", "native"), _native_counters(planned, ended.rows))
        if ended.nanos > 0:
            report.seconds["execute"] = ended.nanos / 1e9
        self._close(key, ended.ended_micros)


def _native_counters(planned: Planned, rows: int) -> ReadCounters:
    """Counters for Spark's reader, which reports none: bytes are estimated from the plan and ``rows``."""
    counters = ReadCounters()
    counters.rows_total = planned.rows
    counters.rows_matched = rows
    counters.blocks_read = planned.report.blocks["total"]
    counters.bytes_follower = planned.bytes * min(rows, planned.rows) // max(planned.rows, 1)
    return counters


class _Ended:
    """Java's ``Runnable`` that is called by Spark's listener bus, which must not wait: it starts a thread."""

    def __init__(self, owner: weakref.ref[Ledger]) -> None:
        self._ledger = owner

    def run(self) -> None:
        found = self._ledger()
        if found is not None:
            threading.Thread(target=found.finish_ended_reports, name="tamis-reports", daemon=True).start()


class _Inbox:
    """The driver's value of the accumulator, which refers to the ledger."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = weakref.ref(ledger)


class _Param:
    """Merges accumulator values: dictionaries on executors, the inbox on the driver."""

    def zero(self, value: Any) -> dict[Any, Outcome]:
        del value
        return {}

    def addInPlace(self, value: Any, update: dict[Any, Outcome]) -> Any:  # noqa: N802  # PySpark's name
        if isinstance(value, _Inbox):
            ledger = value.ledger()
            if ledger is not None:
                ledger.add_outcomes(update.values())
        else:
            value.update(update)
        return value


_ledgers: weakref.WeakKeyDictionary[Any, Ledger] = weakref.WeakKeyDictionary()
_opening = threading.Lock()


def metrics_ledger(owner: Bridge) -> Ledger:
    """The ledger of the Spark application that now runs in this JVM."""
    context = _running()
    with _opening:
        if context not in _ledgers:
            _ledgers[context] = Ledger(owner, context)
        return _ledgers[context]


def _running() -> Any:
    from pyspark import SparkContext

    return SparkContext._active_spark_context


def scan_id() -> str:
    """A globally unique name for one scan."""
    return new_id()
