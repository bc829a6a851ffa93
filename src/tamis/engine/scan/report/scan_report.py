"""Scan reports: read against total at every level of the funnel, and the reasons.

There is one report per execution of a scan, never cumulative. Executors' counters are stored by key, and the
last attempt of a key wins, so that retried and speculative tasks never count twice. Invariants::

    segments.skipped = by_index + by_stats
    parts.total      = the skipped_… + answered + kept  (all_match is within kept, audited within skipped)
    bytes.read       = metadata + index + leader + follower
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Hashable, Mapping
from copy import copy, deepcopy
from itertools import takewhile
from typing import Any

from tamis.engine.part_reader import ReadCounters
from tamis.engine.scan.report.report_hooks import deliver_report
from tamis.engine.scan.report.report_text import to_html, to_rich, to_text
from tamis.engine.scan.scan_guards import check_pruning
from tamis.engine.secondary_index import NO_INDEX
from tamis.errors import InvalidInput
from tamis.world import world

SKIPPED = ("skipped_segment", "skipped_stats", "skipped_index", "skipped_join", "skipped_limit", "skipped_topk")
"""Reasons why a part was not read; each part has exactly one."""

LAZY_IS_OFF = "tamis.read.lazy is off"

_KEPT_REPORTS = 1_000


class Counts(dict[str, Any]):
    """A mapping whose entries also read as attributes: ``report.parts["kept"]``, ``report.parts.kept``."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"There is no count {name!r}; there are: {', '.join(self)}.") from None


class Report:
    """The funnel of one scan, as attributes and as ``as_dict()``. Filled by planning, then by reading.

    ``rows.matched`` counts matches in the blocks that were read: with a limit, more than the rows returned.
    ``lazy`` is the option ``tamis.read.lazy``.
    """

    def __init__(
        self,
        table: str,
        version: int,
        filter: str | None,  # noqa: A002  # the public field's name
        columns: tuple[str, ...],
        lazy: str = "auto",
    ) -> None:
        self.table = table
        self.version = version
        self.filter = filter
        self.columns = list(columns)
        self.seconds = Counts()
        self.requests = 0
        self.segments = Counts(total=0, skipped=0, by_index=0, by_stats=0)
        self.parts = Counts(total=0, **dict.fromkeys(SKIPPED, 0), answered=0, kept=0, all_match=0, audited=0)
        self.blocks = Counts(total=0, skipped_stats=0, skipped_index=0, skipped_filter=0, read=0)
        self.rows = Counts(total=0, leader=0, matched=0)
        self.bytes = Counts(table=0, skipped=0, read=0, metadata=0, index=0, leader=0, follower=0)
        self._lazy = lazy
        self.reader = "eager"
        self.reader_reason = "there is no filter" if filter is None else "nothing was read"
        self.indexes: list[Counts] = []
        self.index_reason = NO_INDEX
        self.because: list[Counts] = []
        self.not_skipped_because: list[Counts] = []
        self.violations: list[Counts] = []
        """Wrong proofs found by audits. Any entry is a defect."""
        self.stream: Counts | None = None
        """Of a streaming query's micro-batch: ``query`` (the id), ``batch`` (the number), ``start`` and ``end``."""
        self.error: str | None = None
        """The code of the error with which the scan ended; through Spark, the condition of the query's error."""
        self.finished = False
        self.ended_micros = 0
        """Microseconds since 1970; ``tamis.reports()`` sorts by it."""
        self._planned_requests = 0
        self._planned_index = 0
        self._planned_reason: str | None = None
        self._answered_rows = 0
        self._looked = ReadCounters()
        self._attempts: dict[Hashable, ReadCounters] = {}
        self._lock = threading.Lock()

    def record_planning(self, metadata_bytes: int, requests: int) -> None:
        """Add what planning read from the log, the manifests and the rollups."""
        self.bytes["metadata"] += metadata_bytes
        self._planned_requests += requests
        self._total()

    def record_lookup(self, index_bytes: int, requests: int) -> None:
        """Add what planning read from indexes."""
        self._planned_index += index_bytes
        self._planned_requests += requests
        self._total()

    def record_answered(self, parts: int, rows: int) -> None:
        """Move ``parts`` entirely matching parts, of ``rows`` rows, from kept to answered."""
        self.parts["kept"] -= parts
        self.parts["all_match"] -= parts
        self.parts["answered"] += parts
        self._answered_rows += rows
        self._total()

    def record_search(self, counters: ReadCounters) -> None:
        """Add the reads of a search made during planning; every execution's report includes them."""
        self._looked.merge(counters)
        self._total()

    def record_join(self, without: Report) -> None:
        """Record what a join's keys skipped, compared to the plan ``without`` them.

        The costs of both plans add up.
        """
        self.parts.update({name: without.parts[name] for name in SKIPPED})
        self.parts["skipped_join"] = without.parts["kept"] - self.parts["kept"]
        self.bytes["index"] += without.bytes["index"]
        self.record_planning(without.bytes["metadata"], without._planned_requests)
        self.seconds = Counts(
            {**without.seconds, "plan": without.seconds.get("plan", 0.0) + self.seconds.get("plan", 0.0)}
        )

    def including(self, other: Report) -> Report:
        """Add what planning found and read in other parts of the table, under the same filter. Returns this report."""
        for mine, theirs in zip(self._counts(), other._counts(), strict=True):
            for name, count in theirs.items():
                mine[name] = mine.get(name, 0) + count
        self.version = max(self.version, other.version)
        self._planned_requests += other._planned_requests
        self._planned_index += other._planned_index
        known = {entry["conjunct"]: entry for entry in self.because}
        for entry in other.because:
            mine = known.setdefault(entry["conjunct"], entry)
            if mine is not entry:
                mine.update(
                    parts_skipped=mine["parts_skipped"] + entry["parts_skipped"], rest=mine["rest"] or entry["rest"]
                )
        self.because = list(known.values())
        open_ = {e["conjunct"]: e for e in (*other.not_skipped_because, *self.not_skipped_because)}
        self.not_skipped_because = [entry for name, entry in open_.items() if name not in known]
        used = {entry["name"]: entry for entry in self.indexes}
        for entry in other.indexes:
            mine = used.setdefault(entry["name"], entry)
            if mine is not entry:
                mine.update(segments=mine["segments"] + entry["segments"], missing=mine["missing"] + entry["missing"])
        self.indexes = list(used.values())
        if other.indexes:
            self.index_reason = other.index_reason
        self._total()
        return self

    def _counts(self) -> tuple[Counts, ...]:
        return self.segments, self.parts, self.blocks, self.rows, self.bytes, self.seconds

    def record_unread(self, parts: int, all_match: int, blocks: int, size: int, why: str = "skipped_limit") -> None:
        """Move parts that were planned but never read from kept to the count ``why``.

        The limit was reached, the consumer stopped, or better rows were found elsewhere.
        """
        self.parts["kept"] -= parts
        self.parts["all_match"] -= all_match
        self.parts[why] += parts
        self.blocks["total"] -= blocks
        self.bytes["skipped"] += size

    def add(self, key: Hashable, counters: ReadCounters) -> None:
        """Store the counters of one attempt of the work ``key``; a later attempt replaces them."""
        with self._lock:
            self._attempts[key] = counters
        if self.finished:  # an executor reported late
            self._total()

    def record_violation(self, part: str, problem: str) -> None:
        """Record an audit violation once (a task may be retried)."""
        found = Counts(part=part, filter=self.filter, problem=problem)
        with self._lock:
            if found not in self.violations:
                self.violations.append(found)

    def guard(self, max_parts: int | None = None, max_bytes: int | None = None) -> Report:
        """Return this report.

        Raises ``InvalidInput`` (``PRUNING_LOST``), naming the conjuncts that did not skip, if more would be
        read than allowed.
        """
        check_pruning(self, max_parts, max_bytes)
        return self

    def finish(self, ended_micros: int | None = None) -> Report:
        """Close the report and deliver it to the hooks of ``tamis.on_report``; further calls are no-ops.

        ``ended_micros``: as for ``close``.
        """
        if self.close(ended_micros):
            deliver_report(self)
        return self

    def close(self, ended_micros: int | None = None) -> bool:
        """Close the report and add it to ``tamis.reports()``. Return False if it was closed before.

        ``ended_micros``: the end of the scan in microseconds since 1970, if that was before now.
        """
        with self._lock:
            if self.finished:
                return False
            self.finished = True
            self.ended_micros = world().now_micros() if ended_micros is None else ended_micros
        self._total()
        _register(self)
        return True

    def for_execution(self) -> Report:
        """Return a report for another execution of the plan: what planning found, without the reads."""
        other = copy(self)
        for name in _FIELDS:
            setattr(other, name, _copied(getattr(self, name)))
        other._looked, other._attempts, other._lock, other.finished = copy(self._looked), {}, threading.Lock(), False
        other.error = None
        other._total()
        return other

    def replanned(self) -> Report:
        """Return a report for an execution of a remembered plan: what planning found, but not what it cost."""
        other = self.for_execution()
        other.bytes["metadata"] = other._planned_requests = other._planned_index = 0
        other.seconds = Counts(plan=0.0)
        other._total()
        return other

    def as_dict(self) -> dict[str, Any]:
        """Return the report as plain dictionaries and lists, ready for JSON."""
        return {name: _plain(getattr(self, name)) for name in _FIELDS}

    def _total(self) -> None:
        with self._lock:
            sums = ReadCounters()
            sums.merge(self._looked)
            for counters in self._attempts.values():
                sums.merge(counters)
            self.blocks.update(
                skipped_stats=sums.blocks_skipped_stats,
                skipped_index=sums.blocks_skipped_index,
                skipped_filter=sums.blocks_skipped_filter,
                read=sums.blocks_read,
            )
            self.rows.update(leader=sums.rows_leader, matched=sums.rows_matched + self._answered_rows)
            self.bytes.update(
                index=self._planned_index + sums.bytes_index, leader=sums.bytes_leader, follower=sums.bytes_follower
            )
            self.bytes["read"] = sum(self.bytes[level] for level in ("metadata", "index", "leader", "follower"))
            self.requests = self._planned_requests + sums.requests
            if sums.parts_index_unread:
                self._index_unread(sums.parts_index_unread)
            if sums.blocks_lazy or sums.blocks_eager:
                self.reader, self.reader_reason = _reader(sums, self.filter, self._lazy)

    def _index_unread(self, parts: int) -> None:
        """Say in ``index_reason`` that readers could not read an index for some parts."""
        if self._planned_reason is None:
            self._planned_reason = self.index_reason
        self.index_reason = (
            f"{self._planned_reason}; an index cannot be read for {parts:,} parts, "
            "which were read whole until repair_index rebuilds it"
        )

    def __repr__(self) -> str:
        return to_text(self)

    def _repr_html_(self) -> str:
        return to_html(self)

    def __rich__(self) -> Any:
        return to_rich(self)


def _reader(sums: ReadCounters, filter_text: str | None, lazy: str) -> tuple[str, str]:
    """Describe how rows were read, and why."""
    if not sums.blocks_lazy and lazy == "off" and filter_text is not None:
        return "eager", LAZY_IS_OFF
    if not sums.blocks_lazy:
        return (
            "eager",
            "there is no filter" if filter_text is None else "reading the filter's columns first would not have paid",
        )
    if not sums.blocks_eager:
        return "lazy", "other columns were read for the surviving rows only"
    return "mixed", f"{sums.blocks_lazy:,} blocks leaders first, {sums.blocks_eager:,} whole: decided block by block"


def _copied(value: Any) -> Any:
    """Return a copy of a field: lists and mappings are copied at every level."""
    if isinstance(value, list):
        return [_copied(item) for item in value]
    if isinstance(value, dict):
        return type(value)({key: _copied(item) for key, item in value.items()})
    return value


_FIELDS = (
    *("table", "version", "filter", "columns", "seconds", "requests", "segments", "parts", "blocks", "rows", "bytes"),
    *("reader", "reader_reason", "indexes", "index_reason", "because", "not_skipped_because", "violations"),
    *("stream", "error"),
)

_reports: deque[Report] = deque(maxlen=_KEPT_REPORTS)
_reports_lock = threading.RLock()
"""Reentrant: the garbage collector may end another scan while this thread holds it."""
_settlers: list[Callable[[], None]] = []


def on_reports_read(settle: Callable[[], None]) -> None:
    """Register a callback that ``reports`` runs first, for engines that finish their reports late."""
    _settlers.append(settle)


def reports(n: int = 1) -> list[Report]:
    """Return the latest ``n`` finished scans of this process, Spark's included, newest first.

    The last 1,000 are kept. Raises ``InvalidInput`` (``BAD_LIMIT``) unless ``n`` is a whole number.
    """
    if isinstance(n, bool) or not isinstance(n, int):
        raise InvalidInput(
            f"{n!r} is not a number of reports.", code="BAD_LIMIT", name="n", remedy="Give a whole number."
        )
    for settle in tuple(_settlers):
        settle()
    with _reports_lock:
        return list(_reports)[: max(n, 0)]


def _register(report: Report) -> None:
    """Insert a report by its end time, because Spark's executions report late."""
    with _reports_lock:
        latest = list(_reports)  # which may change meanwhile, as the lock is reentrant
        later = sum(1 for _ in takewhile(lambda known: known.ended_micros > report.ended_micros, latest))
        if later < _KEPT_REPORTS:
            if len(_reports) == _KEPT_REPORTS:
                _reports.pop()
            _reports.insert(later, report)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return deepcopy(value)
