"""A scan is planned once for equal requests of one version, and its decisions never reach another request."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tamis
from tamis.engine.scan import plan

pytestmark = pytest.mark.spark

OTHER_REQUESTS = {
    "another constant": "SELECT n FROM lake.db.t WHERE n >= 21",
    "another type": "SELECT n FROM lake.db.t WHERE n >= 20.5",
    "another column": "SELECT n, s FROM lake.db.t WHERE n >= 20",
    "a limit": "SELECT n FROM lake.db.t WHERE n >= 20 LIMIT 3",
    "an order": "SELECT n FROM lake.db.t WHERE n >= 20 ORDER BY n LIMIT 3",
    "an aggregate": "SELECT max(n) FROM lake.db.t WHERE n >= 20",
    "options": "SELECT n FROM lake.db.t WITH ('tamis.stats.filter' = 'off') WHERE n >= 20",
    "positions": "SELECT n, _metadata.row_index FROM lake.db.t WHERE n >= 20",
    "an older version": "SELECT n FROM lake.db.t VERSION AS OF 2 WHERE n >= 20",
}
QUERY = "SELECT n FROM lake.db.t WHERE n >= 20"


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """The filters that the funnel has run for, in turn."""
    made: list[str | None] = []

    def counted(snapshot: Any, store: Any, request: Any) -> Any:
        made.append(request.filter_text)
        return plan(snapshot, store, request)

    monkeypatch.setattr("tamis.spark.scan.prepared_scan.plan", counted)
    return made


def filled(path: Path) -> tamis.Table:
    """Three parts of ten rows."""
    table = tamis.create(path, pa.schema([("n", pa.int64()), ("s", pa.string())]), cluster_by=["n"])
    for start in (0, 10, 20):
        table.append(pa.table({"n": range(start, start + 10), "s": [f"s{n}" for n in range(start, start + 10)]}))
    return table


@pytest.fixture
def table(lake: Any) -> tamis.Table:
    return filled(lake.folder / "db" / "t")


def test_an_equal_scan_is_planned_once_and_reported_twice(lake: Any, table: tamis.Table, plans: list[Any]) -> None:
    rows = [(n,) for n in range(20, 30)]
    assert sorted(lake.rows(QUERY)) == rows
    first = tamis.reports(1)[0].as_dict()
    planned = len(plans)
    assert planned
    assert sorted(lake.rows(QUERY)) == rows
    assert len(plans) == planned, plans
    second = tamis.reports(1)[0].as_dict()
    assert tamis.reports(2)[1].as_dict() == first, "the second execution has changed the report of the first"
    costs = {"seconds", "requests", "bytes"}
    assert {k: v for k, v in second.items() if k not in costs} == {k: v for k, v in first.items() if k not in costs}
    assert second["bytes"]["leader"] == first["bytes"]["leader"]
    assert second["parts"]["kept"] == 1


@pytest.mark.parametrize("how", OTHER_REQUESTS)
def test_another_request_has_its_own_rows(lake: Any, table: tamis.Table, how: str) -> None:
    lake.rows(QUERY)
    found = sorted(lake.rows(OTHER_REQUESTS[how]))
    kept = tamis.reports(1)[0].parts.kept
    assert kept == {"options": 3, "an older version": 0, "an aggregate": 0}.get(how, 1)
    tamis.open(lake.folder / "db" / "t")  # forgets what is remembered of the table
    assert sorted(lake.rows(OTHER_REQUESTS[how])) == found
    assert sorted(lake.rows(QUERY)) == [(n,) for n in range(20, 30)]
    expected = {"an older version": 0, "a limit": 3, "an order": 3, "an aggregate": 1, "another constant": 9}
    assert len(found) == expected.get(how, 9 if how == "another type" else 10)


def test_a_commit_is_seen(lake: Any, table: tamis.Table) -> None:
    assert len(lake.rows(QUERY)) == 10
    table.append(pa.table({"n": [40], "s": ["s40"]}))
    assert len(lake.rows(QUERY)) == 11
    table.delete("n = 40")
    assert len(lake.rows(QUERY)) == 10


def test_a_table_created_again_is_planned_again(lake: Any, table: tamis.Table) -> None:
    path = lake.folder / "db" / "t"
    assert len(lake.rows(QUERY)) == 10
    shutil.rmtree(path)
    again = tamis.create(path, pa.schema([("n", pa.int64()), ("s", pa.string())]), cluster_by=["n"])
    for start in (100, 110, 120):
        again.append(pa.table({"n": range(start, start + 10), "s": ["x"] * 10}))
    assert again.version == table.version
    assert len(lake.rows(QUERY)) == 30


def test_files_are_checked_each_time(lake: Any, table: tamis.Table) -> None:
    assert len(lake.rows(QUERY)) == 10
    for path in (lake.folder / "db" / "t").rglob("*.parquet"):
        path.unlink()
    with pytest.raises(Exception, match="PART_MISSING"):
        lake.rows(QUERY)


@pytest.mark.parametrize("where", ["length(s) > 1 AND n >= 20", "try_cast(s AS TIMESTAMP) IS NULL"])
def test_filters_that_may_read_a_clock_are_planned_each_time(
    lake: Any, table: tamis.Table, plans: list[Any], where: str
) -> None:
    text = f"SELECT count(n) FROM lake.db.t WHERE {where}"
    first = lake.rows(text)
    planned = len(plans)
    assert lake.rows(text) == first
    assert len(plans) == 2 * planned


def test_audits_are_planned_each_time(lake: Any, table: tamis.Table, plans: list[Any]) -> None:
    lake.spark.conf.set("tamis.audit.percent", "100")
    try:
        lake.rows(QUERY)
        planned = len(plans)
        lake.rows(QUERY)
    finally:
        lake.spark.conf.unset("tamis.audit.percent")
    assert len(plans) == 2 * planned


def test_an_index_is_looked_up_each_time(lake: Any, table: tamis.Table, plans: list[Any]) -> None:
    table.create_index("by_s", ["s"])
    text = "SELECT n FROM lake.db.t WITH ('tamis.index.use' = 'plan') WHERE s = 's25'"
    assert lake.rows(text) == [(25,)]
    planned = len(plans)
    assert tamis.reports(1)[0].indexes
    assert lake.rows(text) == [(25,)]
    assert len(plans) == 2 * planned


def test_a_long_list_is_not_remembered(lake: Any, table: tamis.Table, plans: list[Any]) -> None:
    """The cache must not hold more bytes than it counts."""
    text = f"SELECT n FROM lake.db.t WHERE n IN ({', '.join(map(str, range(25, 50_025)))})"
    assert len(lake.rows(text)) == 5
    planned = len(plans)
    assert len(lake.rows(text)) == 5
    assert len(plans) == 2 * planned


def test_keys_of_a_join_are_those_of_their_execution(lake: Any, table: tamis.Table) -> None:
    few = tamis.create(lake.folder / "db" / "few", pa.schema([("n", pa.int64()), ("kind", pa.int64())]))
    few.append(pa.table({"n": [3, 13, 23], "kind": [1, 2, 3]}))
    for kind, n in ((1, 3), (2, 13), (3, 23), (1, 3)):
        text = f"SELECT t.n FROM lake.db.t t JOIN lake.db.few f ON t.n = f.n WHERE f.kind = {kind}"
        assert lake.rows(text) == [(n,)]
        assert lake.rows(text) == [(n,)]
