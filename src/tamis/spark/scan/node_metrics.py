"""The SQL metrics of a scan node: what planning skipped, by reason, and what is left to read."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from tamis.engine.scan import Report
from tamis.engine.scan.report.scan_report import SKIPPED
from tamis.spark.jvm_bridge.adapter import Bridge
from tamis.spark.jvm_bridge.sql_metrics import Metric, declared_metrics, metric_values

_WHY = {
    "skipped_segment": "in skipped segments",
    "skipped_stats": "by statistics",
    "skipped_index": "by an index",
    "skipped_join": "by join keys",
    "skipped_limit": "by the limit",
    "skipped_topk": "by top-k",
}
METRICS = (
    Metric("count", "tamisVersion", "table version"),
    Metric("count", "tamisSegments", "segments in the table"),
    Metric("count", "tamisSegmentsSkipped", "segments skipped"),
    Metric("count", "tamisParts", "parts in the table"),
    Metric("count", "tamisPartsKept", "parts to read"),
    Metric("count", "tamisPartsAnswered", "parts answered from metadata"),
    *(Metric("count", f"tamis_{name}", f"parts skipped {_WHY[name]}") for name in SKIPPED),
    Metric("bytes", "tamisTableBytes", "size of the table"),
    Metric("bytes", "tamisBytesKept", "size of the parts to read"),
    Metric("bytes", "tamisMetadataBytes", "metadata read"),
)
"""All metrics. Spark shows 0 for one without a value."""

STREAM_METRICS = tuple(Metric(kind, name, text.replace("the table", "the range")) for kind, name, text in METRICS)
"""The same of a micro-batch, whose range of positions is planned as a table is."""


def planning_metrics(report: Report) -> dict[str, int]:
    """The values of the metrics after planning, by name."""
    segments, parts, sizes = report.segments, report.parts, report.bytes
    return {
        "tamisVersion": report.version,
        "tamisSegments": segments["total"],
        "tamisSegmentsSkipped": segments["skipped"],
        "tamisParts": parts["total"],
        "tamisPartsKept": parts["kept"],
        "tamisTableBytes": sizes["table"],
        "tamisBytesKept": sizes["table"] - sizes["skipped"],
        "tamisMetadataBytes": sizes["metadata"],
        "tamisPartsAnswered": parts["answered"],
        **{f"tamis_{name}": parts[name] for name in SKIPPED},
    }


class NodeMetrics:
    """The metrics of a scan node, with the reports of executions that planned again under join keys."""

    def __init__(self, owner: Bridge) -> None:
        self._owner = owner
        self.streams = False
        """Whether the scan belongs to a stream. It has no metrics: a ``MicroBatch`` has its own plan, and them."""
        self._narrowed: deque[tuple[str, Report]] = deque(maxlen=16)

    def declared(self) -> Any:
        if self.streams:
            return declared_metrics(self._owner, ())
        return self._owner.make_once("metrics", "scan", lambda: declared_metrics(self._owner, METRICS))

    def record_report(self, execution: str, report: Report) -> None:
        """Keep the report of the plan under join keys that an execution runs instead of the scan's own."""
        self._narrowed.append((execution, report))

    def values_for(self, execution: Callable[[], str], planned: Report) -> Any:
        """The metric values of an execution; ``planned`` is the report of a plan without join keys.

        ``execution`` is called only if some execution has planned under join keys.
        """
        now = execution() if self._narrowed else ""
        report = next((report for ran, report in reversed(self._narrowed) if ran == now), planned)
        return metric_values(self._owner, METRICS, {} if self.streams else planning_metrics(report))
