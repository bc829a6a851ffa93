"""``tamis.on_report`` in Spark: scans are delivered when their queries end, without a call of ``tamis.reports()``."""

from __future__ import annotations

import queue
from typing import Any

import pytest
from tests.spark.conftest import Lake

import tamis
from tamis.engine.scan.report import report_hooks
from tamis.spark.jvm_bridge.adapter import bridge_of
from tamis.spark.scan.scan_metrics import metrics_ledger

pytestmark = pytest.mark.spark

PATIENCE_SECONDS = 60


def scans(got: queue.Queue[Any], count: int) -> list[Any]:
    """The next reports of scans; waits for them."""
    found: list[Any] = []
    while len(found) < count:
        report = got.get(timeout=PATIENCE_SECONDS)
        if isinstance(report, tamis.Report):
            found.append(report)
    return found


@pytest.fixture
def filled(lake: Lake) -> Lake:
    lake.sql("CREATE TABLE lake.db.t (id BIGINT, s STRING) USING tamis")
    lake.sql("INSERT INTO lake.db.t SELECT id, cast(id AS string) FROM range(100)")
    return lake


def test_queries_are_delivered_when_they_end(filled: Lake) -> None:
    got: queue.Queue[Any] = queue.Queue()
    with tamis.on_report(got.put):
        assert len(filled.rows("SELECT * FROM lake.db.t WHERE id < 5 AND s <> 'x'")) == 5
        assert len(filled.rows("SELECT * FROM lake.db.t WHERE id > 1000")) == 0
        first, second = scans(got, 2)
    assert first.rows.matched == 5
    assert (second.parts.kept, second.parts.total > 0) == (0, True)
    assert first.finished
    assert [first, second] == tamis.reports(2)[::-1]
    assert got.empty()


def test_queries_that_ended_before_are_not_delivered(filled: Lake, monkeypatch: pytest.MonkeyPatch, spark: Any) -> None:
    tamis.reports()
    metrics_ledger(bridge_of(spark))._jvm_executions.afterwards(None)  # as in a process without a hook until now
    monkeypatch.setattr(report_hooks, "_watching", False)
    monkeypatch.setattr(report_hooks, "watch_commits", lambda watcher: None)
    assert len(filled.rows("SELECT * FROM lake.db.t WHERE id < 5 AND s <> 'x'")) == 5
    got: queue.Queue[Any] = queue.Queue()
    with tamis.on_report(got.put):
        assert len(filled.rows("SELECT * FROM lake.db.t WHERE id < 7 AND s <> 'x'")) == 7
        (report,) = scans(got, 1)
    assert report.rows.matched == 7


def test_commits_are_delivered_when_the_statement_returns(filled: Lake) -> None:
    got: list[Any] = []
    with tamis.on_report(got.append):
        filled.sql("INSERT INTO lake.db.t VALUES (1000, 'a')")
        filled.sql("UPDATE lake.db.t SET s = 'b' WHERE id = 7")
        commits = [report for report in got if isinstance(report, tamis.CommitReport)]
    assert [(c.operation, c.version) for c in commits] == [("append", 2), ("update", 3)]
    assert commits[0].metrics["rows_inserted"] == 1
    assert commits[1].metrics["rows_updated"] == 1


def test_an_error_of_a_callback_does_not_stop_the_next_reports(filled: Lake, caplog: pytest.LogCaptureFixture) -> None:
    got: queue.Queue[Any] = queue.Queue()

    def broken(report: Any) -> None:
        got.put(report)
        raise ValueError(report.table)

    with tamis.on_report(broken):
        for _ in range(2):
            assert len(filled.rows("SELECT * FROM lake.db.t WHERE id < 5")) == 5
            scans(got, 1)
    assert {record.levelname for record in caplog.records if record.name == "tamis"} == {"WARNING"}


def test_a_hook_takes_no_bytes_from_the_result_of_a_merge(lake: Lake) -> None:
    """A hook closes reports as soon as executions end, and the merge asks for the bytes of its scans afterwards."""
    lake.sql("CREATE TABLE lake.db.t AS SELECT id, CAST(id AS STRING) AS s FROM range(1000)")
    table = tamis.open(lake.folder / "db" / "t")
    with tamis.on_report(lambda _: None):
        for key in range(3):
            source = lake.spark.sql(f"SELECT CAST({key} AS BIGINT) AS id, 'u' AS s")
            assert table.upsert(source, on=["id"]).bytes_read > 0


FAILURES = [
    ("id < 5 AND s <> 'x' AND 100 / (id - 3) > 3", "DIVIDE_BY_ZERO"),
    ("CAST(concat('x', s) AS INT) = 3", "CAST_INVALID_INPUT"),
    ("raise_error(s) IS NULL", "USER_RAISED_EXCEPTION"),
]


@pytest.mark.parametrize("lazy", ["on", "off", "native"])
@pytest.mark.parametrize(("text", "condition"), FAILURES)
def test_a_query_that_fails_says_so_in_its_report(filled: Lake, text: str, condition: str, lazy: str) -> None:
    got: queue.Queue[Any] = queue.Queue()
    filled.spark.conf.set("tamis.read.lazy", lazy)
    try:
        with tamis.on_report(got.put):
            filled.refused(f"SELECT * FROM lake.db.t WHERE {text}", condition)
            assert len(filled.rows("SELECT * FROM lake.db.t WHERE id < 5")) == 5
            failed, fine = scans(got, 2)
    finally:
        filled.spark.conf.unset("tamis.read.lazy")
    assert (failed.error, fine.error) == (condition, None)
    assert f"ended with {condition}" in str(failed)
    assert got.empty()


def test_a_damaged_part_is_the_error_of_the_report(filled: Lake) -> None:
    filled.spark.conf.set("tamis.read.lazy", "on")
    try:
        for file in (filled.folder / "db" / "t" / "data").glob("*"):
            data = bytearray(file.read_bytes())
            data[-20] ^= 1  # within the footer
            file.write_bytes(data)
        got: queue.Queue[Any] = queue.Queue()
        with tamis.on_report(got.put):
            filled.refused("SELECT * FROM lake.db.t WHERE id < 5 AND s <> 'x'", "PYTHON_EXCEPTION")
            (failed,) = scans(got, 1)
    finally:
        filled.spark.conf.unset("tamis.read.lazy")
    assert failed.error == "CHECKSUM"
