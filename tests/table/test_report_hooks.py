"""``tamis.on_report``: every scan and every commit is delivered once, and a callback can break neither."""

import logging
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tamis


@pytest.fixture
def table(tmp_path: Path) -> tamis.Table:
    made = tamis.create(tmp_path, pa.schema({"id": pa.int64()}))
    made.append(pa.table({"id": pa.array(range(10), pa.int64())}))
    return made


def test_each_execution_of_a_scan_is_delivered_once(table: tamis.Table) -> None:
    got: list[Any] = []
    with tamis.on_report(got.append):
        scan = table.scan("id < 5")
        scan.explain()
        assert got == []
        scan.to_arrow()
        first = scan.report
        assert scan.count() == 5
    assert got == [first, scan.report]
    assert first.rows.matched == 5


def test_a_scan_that_its_consumer_leaves_is_delivered(table: tamis.Table) -> None:
    got: list[Any] = []
    with tamis.on_report(got.append):
        batches = iter(table.scan().to_batches())
        next(batches)
        del batches
    assert [report.table for report in got] == [table.path]


def test_commits_are_delivered_with_their_counts(table: tamis.Table, tmp_path: Path) -> None:
    got: list[Any] = []
    with tamis.on_report(got.append):
        tamis.create(tmp_path / "other", pa.schema({"id": pa.int64()}))
        version = table.append(pa.table({"id": pa.array([10, 11], pa.int64())})).version
        table.delete("id = 3")
    commits = [report for report in got if isinstance(report, tamis.CommitReport)]
    assert [(c.operation, c.version) for c in commits] == [("create", 0), ("append", version), ("delete", version + 1)]
    assert commits[1].metrics["rows_inserted"] == 2
    assert commits[2].metrics["rows_deleted"] == 1
    assert commits[1].as_dict()["table"] == commits[1].table
    history = table.history().to_pylist()
    assert [c.version for c in commits[1:]] == sorted(row["version"] for row in history)[-2:]


def test_a_verb_that_changes_nothing_delivers_no_commit(table: tamis.Table) -> None:
    got: list[Any] = []
    with tamis.on_report(got.append):
        table.delete("id = 99")
    assert [report for report in got if isinstance(report, tamis.CommitReport)] == []


def test_an_error_of_a_callback_is_logged_and_breaks_nothing(
    table: tamis.Table, caplog: pytest.LogCaptureFixture
) -> None:
    got: list[Any] = []

    def broken(report: Any) -> None:
        raise ValueError(report.version)

    with caplog.at_level(logging.WARNING, "tamis"), tamis.on_report(broken), tamis.on_report(got.append):
        assert table.scan("id < 5").to_arrow().num_rows == 5
        table.append(pa.table({"id": pa.array([10], pa.int64())}))
    assert len(got) == 2
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 2
    assert table.scan().count() == 11


def test_a_removed_callback_gets_nothing_more(table: tamis.Table) -> None:
    got: list[Any] = []
    hook = tamis.on_report(got.append)
    hook()
    hook.remove()
    table.scan().to_arrow()
    assert got == []


def test_a_callback_may_remove_itself_while_others_are_called(table: tamis.Table) -> None:
    got: list[Any] = []

    def once(report: Any) -> None:
        got.append(report)
        hook()

    hook = tamis.on_report(once)
    with tamis.on_report(got.append):
        table.scan().to_arrow()
        table.scan().to_arrow()
    assert len(got) == 3


def test_what_a_callback_itself_reads_and_writes_is_not_delivered(table: tamis.Table, tmp_path: Path) -> None:
    journal = tamis.create(tmp_path / "journal", pa.schema({"version": pa.int64()}))
    with tamis.on_report(lambda report: journal.append(pa.table({"version": pa.array([report.version], pa.int64())}))):
        table.scan().to_arrow()
        table.append(pa.table({"id": pa.array([10], pa.int64())}))
    assert journal.scan().to_arrow()["version"].to_pylist() == [1, 2]


def test_what_cannot_be_called_is_refused() -> None:
    with pytest.raises(tamis.InvalidInput) as caught:
        tamis.on_report("print")  # type: ignore[arg-type]
    assert (caught.value.code, caught.value.name) == ("BAD_CALLBACK", "callback")
