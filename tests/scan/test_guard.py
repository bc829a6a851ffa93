"""A filter that lost its pruning is refused, naming who did not skip, before anything is read."""

from __future__ import annotations

import pyarrow as pa
import pytest

import tamis
from tamis.engine.scan.report.report_text import report_reasons, report_records, report_summary
from tamis.errors import InvalidInput


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> tamis.Table:
    made = tamis.create(tmp_path_factory.mktemp("guard") / "t", cluster_by=["n"])
    for first in range(0, 100, 10):
        n = list(range(first, first + 10))
        made.append(pa.table({"n": n, "user": [x * 7 % 10 for x in n]}))
    return made


@pytest.mark.parametrize(
    ("text", "limits", "message"),
    [
        ("n >= 50", {"max_parts": 5}, None),
        ("n >= 50", {"max_parts": 4}, "5 parts would be read, allowed: 4 (n >= 50L: skipped 5 parts by statistics of n, not the rest because the bounds of n allow it)"),
        ("user = 3", {"max_parts": 4}, "user = 3L: did not skip because the bounds of user allow it"),
        ("n >= 0 AND hash(user) = 3", {"max_bytes": 10}, "hash"),
        (None, {"max_parts": 3}, "there is no filter"),
        ("n = 5", {"max_parts": 0, "max_bytes": 1}, "1 part would be read, allowed: 0, "),
        ("n < 0", {"max_parts": 0, "max_bytes": 0}, None),
        ("n = 5", {}, None),
    ],
)  # fmt: skip
def test_a_guard_names_what_did_not_skip(
    table: tamis.Table, text: str | None, limits: dict[str, int], message: str | None
) -> None:
    report = table.explain(text)
    if message is None:
        assert report.guard(**limits) is report
        return
    with pytest.raises(InvalidInput) as caught:
        report.guard(**limits)
    assert caught.value.code == "PRUNING_LOST"
    assert message in caught.value.message
    assert caught.value.name in (*(e.conjunct for e in (*report.not_skipped_because, *report.because)), report.table)


def test_a_scan_over_its_limit_fails_before_it_reads(table: tamis.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    from tamis.engine.scan import scan_execution

    monkeypatch.setattr(scan_execution, "read_shared", lambda *_: pytest.fail("something was read"))
    scan = table.scan("user = 3", options={"tamis.scan.max_bytes": 100})
    for read in (scan.to_arrow, scan.count, lambda: next(iter(scan))):
        with pytest.raises(
            InvalidInput, match=r"SCAN_TOO_LARGE.*user = 3L: did not skip because the bounds of user allow it"
        ):
            read()
    assert scan.explain().parts.kept == 10


def test_every_form_of_an_explanation_says_the_same(table: tamis.Table) -> None:
    report = table.explain("n >= 50 AND user = 3")
    first, second = report_reasons(report)
    assert first == "n >= 50L: skipped 5 parts by statistics of n, not the rest because the bounds of n allow it"
    for shown in (repr(report), report_summary(report), str([line["note"] for line in report_records(report)])):
        assert first in shown
        assert second in shown
    assert [
        (line["item"], line["read"], line["total"]) for line in report_records(report) if line["level"] == "conjunct"
    ] == [
        ("n >= 50L", 5, 10),
        ("user = 3L", 10, 10),
    ]
    assert "parts: 5 of 10" in report_summary(report)
