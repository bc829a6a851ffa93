"""What a report says: read against total at every level, reasons, one per execution."""

import io
import json
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pytest

import tamis
from tamis.engine.scan.report.scan_report import Counts

TOP = "table version filter columns seconds requests segments parts blocks rows bytes reader reader_reason indexes index_reason because not_skipped_because"
INNER = {
    "segments": "total skipped by_index by_stats",
    "parts": "total skipped_segment skipped_stats skipped_index skipped_join skipped_limit skipped_topk answered kept all_match audited",
    "blocks": "total skipped_stats skipped_index skipped_filter read",
    "rows": "total leader matched",
    "bytes": "table skipped read metadata index leader follower",
}


@pytest.fixture
def table(tmp_path: Path) -> tamis.Table:
    made = tamis.create(tmp_path, cluster_by=["id"])
    for i in range(4):
        made.append(pa.table({"id": pa.array(range(i * 10, i * 10 + 10), pa.int64()), "pad": ["x" * i] * 10}))
    return made


def test_the_fields_of_a_report_are_stable(table: tamis.Table) -> None:
    scan = table.scan("id = 15")
    scan.to_arrow()
    shown = scan.report.as_dict()
    assert set(TOP.split()) <= set(shown)
    for name, keys in INNER.items():
        assert list(shown[name]) == keys.split()
        assert getattr(getattr(scan.report, name), keys.split()[0]) == shown[name][keys.split()[0]]
    assert json.loads(json.dumps(shown)) == shown
    assert (shown["table"], shown["version"], shown["filter"], shown["columns"]) == (
        table.path,
        4,
        "id = 15",
        ["id", "pad"],
    )


def test_numbers_of_a_selective_scan(table: tamis.Table) -> None:
    scan = table.scan("id = 15", ("pad",))
    scan.to_arrow()
    report = scan.report
    assert report.segments == Counts(total=4, skipped=3, by_index=0, by_stats=3)
    assert (report.parts.total, report.parts.skipped_segment, report.parts.kept) == (4, 3, 1)
    assert (report.rows.total, report.rows.matched) == (40, 1)
    assert report.bytes.leader > 0
    assert report.bytes.table > report.bytes.skipped > 0
    assert report.requests > 0
    assert report.seconds["read"] > 0
    assert [(e.conjunct, e.parts_skipped) for e in report.because] == [("id = 15L", 3)]
    assert "id" in report.because[0].statistic


def test_counts_and_whole_matches_are_answered_from_metadata(table: tamis.Table) -> None:
    scan = table.scan()
    assert scan.count() == 40
    report = scan.report
    assert (report.parts.answered, report.parts.kept, report.parts.all_match) == (4, 0, 0)
    assert (report.rows.matched, report.bytes.leader + report.bytes.follower) == (40, 0)
    scan = table.scan("id >= 15")
    assert scan.count() == 25
    assert (scan.report.parts.answered, scan.report.parts.kept, scan.report.rows.matched) == (2, 1, 25)
    assert table.explain("id >= 15").parts.all_match == 2


def test_what_did_not_skip_says_why(table: tamis.Table) -> None:
    (entry,) = table.explain("id >= 10 AND pad LIKE '%x%'").not_skipped_because
    assert "pad" in entry.conjunct
    assert entry.reason
    (entry,) = table.explain("id = 15", options={"tamis.stats.filter": "off"}).not_skipped_because
    assert (entry.conjunct, entry.reason) == ("id = 15L", "tamis.stats.filter is off")
    assert table.explain("my_udf(id) = 3").not_skipped_because[0].reason


def test_a_null_check_beside_another_test_of_the_column_is_no_reason(table: tamis.Table) -> None:
    def named(row_filter: str) -> list[str]:
        return [entry.conjunct for entry in table.explain(row_filter).not_skipped_because]

    assert named("id >= 0 AND id IS NOT NULL") == ["id >= 0L"]
    assert named("id >= 0 AND pad IS NOT NULL") == ["id >= 0L", "NOT (pad IS NULL)"]
    assert named("id IS NOT NULL AND id IS NOT NULL") == ["NOT (id IS NULL)"] * 2


def test_explain_says_when_reading_will_not_be_lazy(table: tamis.Table) -> None:
    off = table.explain("id = 15", options={"tamis.read.lazy": "off"})
    assert (off.reader, off.reader_reason) == ("eager", "tamis.read.lazy is off")
    assert table.explain("id = 15").reader == "lazy"


def test_an_executed_scan_says_that_the_switch_is_off(table: tamis.Table) -> None:
    scan = table.scan("id > 3", options={"tamis.read.lazy": "off"})
    scan.to_arrow()
    assert (scan.report.reader, scan.report.reader_reason) == ("eager", "tamis.read.lazy is off")
    plain = table.scan(options={"tamis.read.lazy": "off"})
    plain.to_arrow()
    assert plain.report.reader_reason == "there is no filter"


def test_one_report_per_execution_and_none_for_explain(table: tamis.Table) -> None:
    before = len(tamis.reports(1_000))
    scan = table.scan("id = 15")
    scan.explain()
    scan.plan()
    table.explain("id = 3")
    assert len(tamis.reports(1_000)) == before
    scan.to_arrow()
    first = scan.report
    scan.count()
    assert tamis.reports(2) == [scan.report, first]
    assert first is not scan.report
    assert first.rows.matched == scan.report.rows.matched == 1
    assert tamis.reports(0) == []


def test_a_failed_scan_has_a_report_too(table: tamis.Table) -> None:
    scan = table.scan("1 / (id - 15) > 0")
    with pytest.raises(tamis.TamisError):
        scan.to_arrow()
    assert tamis.reports()[0] is scan.report


def test_an_audit_is_counted(table: tamis.Table) -> None:
    scan = table.scan("id = 15", options={"tamis.audit.percent": 100})
    assert scan.to_arrow()["id"].to_pylist() == [15]
    assert (scan.report.parts.audited, scan.report.parts.kept, scan.report.violations) == (3, 1, [])


def test_the_sample_of_an_audit_is_the_same_each_time_and_within_its_budget(table: tamis.Table) -> None:
    def audited(**options: object) -> list[str]:
        plan = table.scan("id = 15", options={f"tamis.audit.{k}": v for k, v in options.items()}).plan()
        return [ref.part_id for ref in plan.audit]

    assert audited(percent=50) == audited(percent=50)
    assert audited(percent=0) == audited(percent=100, max_bytes=1) == []
    assert len(audited(percent=100)) == 3


def test_broken_statistics_are_unknown(table: tamis.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    from tamis.engine.scan import funnel

    def broken(*_: object, **__: object) -> NoReturn:
        raise ArithmeticError("planted")

    monkeypatch.setattr(funnel, "decide", broken)
    scan = table.scan("id = 15")
    with pytest.warns(RuntimeWarning, match="planted"):
        assert scan.to_arrow()["id"].to_pylist() == [15]
    assert scan.report.parts.kept == 4
    assert "planted" in scan.report.not_skipped_because[0].reason


def test_the_funnel_is_shown(table: tamis.Table) -> None:
    scan = table.scan("id = 15")
    explained = scan.explain()
    scan.to_arrow()
    for report in (explained, scan.report):
        for shown in (repr(report), report._repr_html_()):
            for expected in ("segments", "parts", "bytes", "id = 15", "4", "25.0%"):
                assert expected in shown
    assert "blocks" in repr(scan.report)
    from rich.console import Console

    console = Console(width=200, record=True, file=io.StringIO())
    console.print(scan.report)
    assert "id = 15" in console.export_text()


def test_a_filter_cannot_inject_markup(table: tamis.Table) -> None:
    report = table.explain("pad = '<b>[bold]x[/bold]</b>'")
    assert "<b>" not in report._repr_html_()
    assert "[bold]" in repr(report)


def test_plan_is_a_lazy_sequence(table: tamis.Table) -> None:
    plan = table.scan("id >= 15").plan()
    assert len(plan.parts) == 3
    assert [p.part_id for p in plan.parts] == [plan.parts[i].part_id for i in range(3)]
    assert plan.parts[-1].part_id == plan.parts[1:][1].part_id
    assert [p.all_match for p in plan.parts] == [False, True, True]
    with pytest.raises(IndexError):
        plan.parts[3]
    assert [len(task) for task in plan.tasks(1)] == [1, 1, 1]
    assert [len(task) for task in plan.tasks(10**9)] == [3]
    assert table.scan("id > 1000").plan().tasks(1) == []


def test_a_report_told_late_takes_its_place_and_the_oldest_goes(table: tamis.Table) -> None:
    scan = table.scan("id = 15")
    scan.to_arrow()
    late = scan.report.for_execution()
    late.finish(scan.report.ended_micros - 1)
    assert tamis.reports(2) == [scan.report, late]
    for _ in range(1_000):
        scan.report.for_execution().finish()
    assert late not in tamis.reports(1_001)
    scan.report.for_execution().finish(0)
    assert all(report.ended_micros for report in tamis.reports(1_001))


@pytest.mark.parametrize("n", ["a", 1.0, True, None])
def test_a_number_of_reports_is_a_whole_number(n: Any) -> None:
    with pytest.raises(tamis.InvalidInput) as bad:
        tamis.reports(n)
    assert (bad.value.code, bad.value.name) == ("BAD_LIMIT", "n")
