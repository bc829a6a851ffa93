"""How many rows a statement changed: in the history, in the reports of commits and in what the verbs return, with the same numbers."""

from __future__ import annotations

from typing import Any

import pytest
from tests.spark.conftest import Lake

import tamis

COUNTS = ("rows_inserted", "rows_updated", "rows_deleted")
STATEMENTS = [
    ("UPDATE lake.db.t SET what = 'b' WHERE id < 3", (0, 3, 0)),
    ("UPDATE lake.db.t SET what = 'b' WHERE id > 99", None),
    ("DELETE FROM lake.db.t WHERE id % 5 = 4", (0, 0, 2)),
    ("INSERT INTO lake.db.t VALUES (50, 'c'), (51, 'c')", (2, 0, 0)),
    (
        "MERGE INTO lake.db.t USING (SELECT id FROM range(0, 70, 10)) AS s ON t.id = s.id"
        " WHEN MATCHED AND s.id = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET what = 'm'"
        " WHEN NOT MATCHED AND s.id > 20 THEN INSERT (id, what) VALUES (s.id, 'n')",
        (3, 1, 1),
    ),
    ("DELETE FROM lake.db.t", (0, 0, 12)),
]
"""Statements, and the rows that they insert, update and delete; None if they commit nothing."""


@pytest.fixture
def filled(lake: Lake) -> Lake:
    lake.sql("CREATE TABLE lake.db.t (id BIGINT, what STRING) USING tamis")
    lake.sql("INSERT INTO lake.db.t SELECT id, 'a' FROM range(0, 10, 1, 2)")
    return lake


def test_statements_leave_their_counts_in_history_and_reports(filled: Lake) -> None:
    reports: list[Any] = []
    with tamis.on_report(lambda report: reports.append(report) if isinstance(report, tamis.CommitReport) else None):
        for text, counts in STATEMENTS:
            reports.clear()
            df = filled.sql(text)
            assert (df.columns, df.collect()) == ([], []), "Spark gives these statements no columns"
            if counts is None:
                assert reports == []
                continue
            (report,) = reports
            assert tuple(report.metrics[name] for name in COUNTS) == counts, text
            last_commit = filled.rows("SELECT version, metrics FROM lake.db.t.history ORDER BY version DESC LIMIT 1")
            assert last_commit[0][0] == report.version
            assert tuple(last_commit[0][1].get(name, 0) for name in COUNTS) == counts, text


def test_verbs_return_the_same_counts(filled: Lake) -> None:
    table = tamis.open(filled.folder / "db" / "t")
    for done, counts in (
        (lambda: table.update({"what": "'b'"}, "id < 3", spark=filled.spark), (0, 3, 0)),
        (lambda: table.update({"what": "'c'"}, "id < 3"), (0, 3, 0)),
        (lambda: table.delete("id = 9", spark=filled.spark), (0, 0, 1)),
        (lambda: table.delete("id = 8"), (0, 0, 1)),
        (
            lambda: table.upsert(filled.spark.sql("SELECT 7L AS id, 'u' AS what UNION ALL SELECT 70L, 'u'"), "id"),
            (1, 1, 0),
        ),
    ):
        result = done()
        assert tuple(getattr(result, name) for name in COUNTS) == counts
        assert table.refresh().version == result.version
