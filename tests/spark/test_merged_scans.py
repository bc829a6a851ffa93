"""Scalar subqueries over one table: Spark builds one scan for those of one filter, and other filters prune their own."""

from __future__ import annotations

from typing import Any

import pytest
from tests.spark.capabilities import needs_merged_scans

import tamis

pytestmark = pytest.mark.spark

PARTS, ROWS = 4, 10
VALUES = [(k, None if k % 3 == 0 else k * 2, f"s{k % 4}") for k in range(PARTS * ROWS)]


@pytest.fixture
def events(lake: Any) -> str:
    """A table of four parts in the order of ``k``."""
    needs_merged_scans(lake.spark)
    lake.sql("CREATE TABLE lake.db.t (k BIGINT, n BIGINT, s STRING)")
    for part in range(PARTS):
        values = VALUES[part * ROWS : (part + 1) * ROWS]
        lake.spark.createDataFrame(values, "k BIGINT, n BIGINT, s STRING").coalesce(1).writeTo(
            f"{lake.name}.db.t"
        ).append()
    return f"{lake.name}.db.t"


def first_row(lake: Any, text: str) -> tuple[Any, ...]:
    return tuple(lake.spark.sql(text).first())


def kept_parts(table: str) -> list[int]:
    """How many parts each finished scan of the table has kept."""
    return sorted(report.parts.kept for report in tamis.reports(20) if report.table == table)


def test_columns_under_one_filter_are_read_by_one_scan(lake: Any, events: str) -> None:
    where = f"FROM {events} WHERE k >= 20 AND n % 4 = 0"
    found = first_row(
        lake, f"SELECT (SELECT sum(n) {where}), (SELECT sum(length(s) + k) {where}), (SELECT avg(k) {where})"
    )
    rows = [(k, n, s) for k, n, s in VALUES if k >= 20 and n is not None and n % 4 == 0]
    ks = [k for k, _, _ in rows]
    assert found == (sum(n for _, n, _ in rows), sum(len(s) + k for k, _, s in rows), sum(ks) / len(ks))
    assert kept_parts(events) == [2]


def test_other_filters_prune_scans_of_their_own(lake: Any, events: str) -> None:
    first, last = (f"FROM {events} WHERE {where}" for where in ("k < 5", "k >= 15"))
    found = first_row(lake, f"SELECT (SELECT sum(n) {first}), (SELECT sum(k) {first}), (SELECT sum(k) {last})")
    assert found == (sum(n or 0 for k, n, _ in VALUES if k < 5), sum(range(5)), sum(range(15, 40)))
    assert kept_parts(events) == [1, 3]


def test_versions_are_read_by_scans_of_their_own(lake: Any, events: str) -> None:
    now, then = f"FROM {events} WHERE k >= 5", f"FROM {events} VERSION AS OF 3 WHERE k >= 5"
    found = first_row(lake, f"SELECT (SELECT sum(k) {now}), (SELECT sum(n) {then}), (SELECT sum(k) {then})")
    assert found == (sum(range(5, 40)), sum(n or 0 for k, n, _ in VALUES if 5 <= k < 30), sum(range(5, 30)))
    assert kept_parts(events) == [3, 4]


def test_pushed_aggregates_and_limits_stay_as_they_are(lake: Any, events: str) -> None:
    """Spark merges no scan that answers an aggregate or stops at a limit."""
    where = f"FROM {events} WHERE k >= 12"
    limited = f"FROM (SELECT k {where} LIMIT 2)"
    found = first_row(
        lake,
        f"SELECT (SELECT count(*) {where}), (SELECT max(k) {where}), (SELECT sum(k) {where}), (SELECT count(k) {limited})",
    )
    assert found == (28, 39, sum(range(12, 40)), 2)


def test_deleted_rows_and_renamed_columns_do_not_come_back(lake: Any, events: str) -> None:
    lake.spark.sql(f"DELETE FROM {events} WHERE k % 5 = 0")
    lake.spark.sql(f"ALTER TABLE {events} RENAME COLUMN n TO m")
    where = f"FROM {events} WHERE k > 8"
    found = first_row(lake, f"SELECT (SELECT sum(m) {where}), (SELECT sum(k) {where})")
    rows = [(k, n) for k, n, _ in VALUES if k > 8 and k % 5]
    assert found == (sum(n or 0 for _, n in rows), sum(k for k, _ in rows))
