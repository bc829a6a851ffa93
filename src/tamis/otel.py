"""OpenTelemetry spans and metrics of scans and commits. Needs the extra ``tamis[otel]``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tamis.engine.scan.report.report_hooks import CommitReport, Hook, on_report
from tamis.engine.scan.report.scan_report import Report
from tamis.errors import InvalidInput

try:
    from opentelemetry import metrics, trace
except ImportError as error:
    raise InvalidInput(
        "Telemetry needs the package opentelemetry-api, which is not installed.",
        code="MISSING_PACKAGE",
        name="opentelemetry",
        remedy="pip install 'tamis[otel]', and an SDK or agent that exports.",
    ) from error

SCOPE = "tamis"
_NOT_SKIPPED = ("answered", "kept")
_WALL = ("open", "plan", "execute")
"""Phases of a scan by Spark that follow one another; embedded scans have ``read`` instead of ``execute``."""


def export_telemetry(*, tracer_provider: Any = None, meter_provider: Any = None, filter_text: bool = False) -> Hook:
    """Export a span and metrics for every scan of this process that ends, and for every commit.

    The providers default to OpenTelemetry's global ones. ``filter_text``: whether spans carry the text of the
    filter, whose literals may be personal data. Call the returned hook to stop.
    """
    tracer = trace.get_tracer(SCOPE, tracer_provider=tracer_provider)
    return on_report(
        _Exporter(tracer, _Instruments.of(metrics.get_meter(SCOPE, meter_provider=meter_provider)), filter_text)
    )


@dataclass(frozen=True, slots=True)
class _Instruments:
    """The metrics of scans and commits."""

    scans: Any
    parts: Any
    read: Any
    skipped: Any
    seconds: Any
    commits: Any
    rows: Any

    @staticmethod
    def of(meter: Any) -> _Instruments:
        return _Instruments(
            scans=meter.create_counter("tamis.scans", "{scan}", "Scans that have ended"),
            parts=meter.create_counter("tamis.scan.parts", "{part}", "Parts of scanned tables, by what became of them"),
            read=meter.create_counter("tamis.scan.bytes", "By", "Bytes read, by purpose"),
            skipped=meter.create_counter("tamis.scan.bytes_skipped", "By", "Bytes of parts that were not read"),
            seconds=meter.create_histogram("tamis.scan.duration", "s", "Time from opening the table to the last row"),
            commits=meter.create_counter("tamis.commits", "{commit}", "Commits, by operation"),
            rows=meter.create_counter("tamis.commit.rows", "{row}", "Rows of commits, by what became of them"),
        )


@dataclass(frozen=True, slots=True)
class _Exporter:
    """The callback that turns reports into spans and metrics."""

    tracer: Any
    metrics: _Instruments
    filter_text: bool

    def __call__(self, report: Report | CommitReport) -> None:
        if isinstance(report, CommitReport):
            self._commit(report)
        else:
            self._scan(report)

    def _scan(self, report: Report) -> None:
        table = {"tamis.table": report.table}
        seconds = sum(report.seconds.get(phase, 0.0) for phase in _WALL)
        if "execute" not in report.seconds:
            seconds += report.seconds.get("read", 0.0)
        attributes = {**table, "tamis.version": report.version, "tamis.reader": report.reader}
        failure = {} if report.error is None else {"error.type": report.error}
        for level in ("parts", "blocks", "rows", "bytes"):
            attributes |= {f"tamis.{level}.{name}": count for name, count in getattr(report, level).items()}
        if self.filter_text and report.filter is not None:
            attributes["tamis.filter"] = report.filter
        self._span("tamis.scan", attributes | failure, report.ended_micros, seconds)
        self.metrics.scans.add(1, table | failure)
        self.metrics.seconds.record(seconds, table)
        for name, count in report.parts.items():
            if count and (name in _NOT_SKIPPED or name.startswith("skipped_")):
                self.metrics.parts.add(count, {**table, "tamis.outcome": name})
        for name in ("metadata", "index", "leader", "follower"):
            if report.bytes[name]:
                self.metrics.read.add(report.bytes[name], {**table, "tamis.purpose": name})
        if report.bytes["skipped"]:
            self.metrics.skipped.add(report.bytes["skipped"], table)

    def _commit(self, report: CommitReport) -> None:
        table = {"tamis.table": report.table}
        attributes = {**table, "tamis.version": report.version, "tamis.operation": report.operation}
        attributes |= {f"tamis.{name}": count for name, count in report.metrics.items()}
        self._span("tamis.commit", attributes, report.committed_micros, 0.0)
        self.metrics.commits.add(1, {**table, "tamis.operation": report.operation})
        for name, count in report.metrics.items():
            if name.startswith("rows_") and count:
                self.metrics.rows.add(count, {**table, "tamis.outcome": name.removeprefix("rows_")})

    def _span(self, name: str, attributes: Mapping[str, Any], ended_micros: int, seconds: float) -> None:
        end = ended_micros * 1_000
        span = self.tracer.start_span(name, attributes=attributes, start_time=end - int(seconds * 1e9))
        if "error.type" in attributes:
            span.set_status(trace.StatusCode.ERROR)
        span.end(end_time=end)
