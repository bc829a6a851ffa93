"""OpenTelemetry's spans and metrics say what the reports say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

import tamis
from tamis.otel import export_telemetry


class Telemetry:
    """Providers that keep what they are given."""

    def __init__(self) -> None:
        self.spans, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        self.tracers, self.meters = TracerProvider(), MeterProvider([self.reader])
        self.tracers.add_span_processor(SimpleSpanProcessor(self.spans))

    def points(self, name: str, attribute: str) -> dict[Any, float]:
        """The values of a counter by one of its attributes."""
        data: Any = self.reader.get_metrics_data()
        found = [m for r in data.resource_metrics for s in r.scope_metrics for m in s.metrics if m.name == name]
        return {point.attributes.get(attribute): point.value for point in found[0].data.data_points}


@pytest.fixture
def telemetry() -> Telemetry:
    return Telemetry()


def filled(path: Path) -> Any:
    """A table of four parts, of ten rows each."""
    table = tamis.create(str(path), pa.schema({"n": pa.int64()}))
    for at in range(4):
        table.append(pa.table({"n": range(at * 10, at * 10 + 10)}))
    return table


def test_a_scan_leaves_a_span_and_counts(tmp_path: Path, telemetry: Telemetry) -> None:
    table = filled(tmp_path / "t")
    with export_telemetry(tracer_provider=telemetry.tracers, meter_provider=telemetry.meters):
        assert table.scan("n < 5").to_arrow().num_rows == 5
    report, (span,) = tamis.reports(1)[0], telemetry.spans.get_finished_spans()
    assert span.attributes is not None
    assert (span.name, span.attributes["tamis.table"], span.attributes["tamis.version"]) == (
        "tamis.scan",
        report.table,
        4,
    )
    assert span.attributes["tamis.parts.kept"] == 1
    assert span.attributes["tamis.bytes.read"] == report.bytes.read > 0
    assert "tamis.filter" not in span.attributes
    assert span.end_time == report.ended_micros * 1_000
    assert span.start_time is not None
    assert span.start_time < span.end_time
    outcomes = telemetry.points("tamis.scan.parts", "tamis.outcome")
    assert outcomes.pop("kept") == 1
    assert sum(outcomes.values()) == 3
    assert all(name.startswith("skipped_") for name in outcomes)
    assert sum(telemetry.points("tamis.scan.bytes", "tamis.purpose").values()) == report.bytes.read


def test_a_scan_that_fails_is_counted_as_failed(tmp_path: Path, telemetry: Telemetry) -> None:
    table = filled(tmp_path / "t")
    with export_telemetry(tracer_provider=telemetry.tracers, meter_provider=telemetry.meters):
        table.scan("n < 5").to_arrow()
        with pytest.raises(tamis.InvalidInput, match="FILTER_FAILED"):
            table.scan("100 / (n - 33) > 3").to_arrow()
        table.scan("n < 5").to_arrow()
    spans = telemetry.spans.get_finished_spans()
    assert [(span.attributes or {}).get("error.type") for span in spans] == [None, "FILTER_FAILED", None]
    assert [span.status.status_code for span in spans] == [StatusCode.UNSET, StatusCode.ERROR, StatusCode.UNSET]
    assert telemetry.points("tamis.scans", "error.type") == {None: 2, "FILTER_FAILED": 1}


def test_bytes_of_skipped_parts_are_counted(tmp_path: Path, telemetry: Telemetry) -> None:
    table = filled(tmp_path / "t")
    with export_telemetry(tracer_provider=telemetry.tracers, meter_provider=telemetry.meters):
        table.scan("n < 5").to_arrow()
    assert telemetry.points("tamis.scan.bytes_skipped", "tamis.table") == {
        table.path: tamis.reports(1)[0].bytes.skipped
    }


def test_a_commit_leaves_a_span_and_counts(tmp_path: Path, telemetry: Telemetry) -> None:
    with export_telemetry(tracer_provider=telemetry.tracers, meter_provider=telemetry.meters):
        filled(tmp_path / "t").delete("n < 3")
    commits = [span for span in telemetry.spans.get_finished_spans() if span.name == "tamis.commit"]
    operations = [(span.attributes or {})["tamis.operation"] for span in commits]
    assert operations[-5:] == ["append"] * 4 + ["delete"]
    assert telemetry.points("tamis.commits", "tamis.operation")["append"] == 4
    assert telemetry.points("tamis.commit.rows", "tamis.outcome") == {"inserted": 40, "deleted": 3}


def test_the_filter_is_exported_when_asked(tmp_path: Path, telemetry: Telemetry) -> None:
    table = filled(tmp_path / "t")
    with export_telemetry(tracer_provider=telemetry.tracers, meter_provider=telemetry.meters, filter_text=True):
        table.scan("n < 5").count()
    (span,) = telemetry.spans.get_finished_spans()
    assert span.attributes is not None
    assert span.attributes["tamis.filter"] == tamis.reports(1)[0].filter


def test_nothing_is_exported_after_the_hook_is_removed(tmp_path: Path, telemetry: Telemetry) -> None:
    export_telemetry(tracer_provider=telemetry.tracers, meter_provider=telemetry.meters).remove()
    filled(tmp_path / "t").scan("n < 5").to_arrow()
    assert telemetry.spans.get_finished_spans() == ()
