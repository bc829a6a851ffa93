"""A scan is planned once for equal requests of one version, and its decisions never reach another request."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tamis
from tamis.core.stats import kept_statistics
from tamis.engine.scan import plan_scan
from tamis.errors import StoreUnavailable
from tamis.spark.catalog.loaded_table import LoadedTable
from tamis.spark.catalog.spark_table import SparkTable
from tamis.spark.jvm_bridge.adapter import bridge_of

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
        return plan_scan(snapshot, store, request)

    monkeypatch.setattr("tamis.spark.scan.prepared_scan.plan_scan", counted)
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


@pytest.mark.parametrize(
    "where",
    [
        " OR ".join(f"(n = {n} AND s > '{n}')" for n in range(500)),
        f"s < 's{'2' * 300_000}'",
    ],
)
def test_large_filters_are_not_remembered(lake: Any, table: tamis.Table, plans: list[Any], where: str) -> None:
    """The cache must not hold more bytes than it counts: nodes of a filter take memory, and long texts."""
    text = f"SELECT n FROM lake.db.t WITH ('tamis.read.lazy' = 'on') WHERE {where}"
    first = sorted(lake.rows(text))
    planned = len(plans)
    assert sorted(lake.rows(text)) == first
    assert len(plans) == 2 * planned


def test_a_table_with_a_nested_default_is_read(lake: Any, table: tamis.Table) -> None:
    """Schemas are part of the key, and JSON lists and objects have no hash."""
    lake.sql("ALTER TABLE lake.db.t ADD COLUMN words ARRAY<STRING> DEFAULT array('x', 'y')")
    lake.sql("ALTER TABLE lake.db.t ADD COLUMN pair STRUCT<a: INT> DEFAULT named_struct('a', 7)")
    for _ in range(2):
        assert len(lake.rows(QUERY)) == 10
        assert lake.rows("SELECT words, pair.a FROM lake.db.t WHERE n = 20") == [(["x", "y"], 7)]


def test_reports_do_not_share_what_was_read_before_the_first_task(lake: Any, table: tamis.Table) -> None:
    """The driver looks at the best parts of a top-N scan, and each execution reports its own look."""
    mixed = tamis.create(lake.folder / "db" / "mixed", pa.schema([("n", pa.int64()), ("s", pa.string())]))
    for start in range(4):
        mixed.append(pa.table({"n": range(start, 400, 4), "s": ["x"] * 100}))
    seen = []
    for _ in range(3):
        assert lake.rows("SELECT n, s FROM lake.db.mixed ORDER BY n LIMIT 2") == [(0, "x"), (1, "x")]
        seen.append(tamis.reports(1)[0].rows.leader)
    assert seen[0] > 0
    assert seen == [seen[0]] * 3


def test_a_folder_that_becomes_that_of_a_backup_has_its_rows(lake: Any, table: tamis.Table, tmp_path: Path) -> None:
    """The same table and the same version, but another commit."""
    here, backup = lake.folder / "db" / "t", tmp_path / "backup"
    shutil.copytree(here, backup)
    rows = pa.table({"n": [21], "s": ["here"]})
    table.append(rows)
    tamis.open(backup).append(rows.set_column(1, "s", pa.array(["there"])))
    text = "SELECT s FROM lake.db.t WHERE n = 21"
    for _ in range(2):
        assert sorted(lake.rows(text)) == [("here",), ("s21",)]
    shutil.rmtree(here)
    shutil.copytree(backup, here)
    for _ in range(2):
        assert sorted(lake.rows(text)) == [("s21",), ("there",)]
    assert sorted(tamis.open(here).scan("n = 21").to_arrow()["s"].to_pylist()) == ["s21", "there"]


def test_versions_of_two_histories_are_two_tables_to_spark(lake: Any, table: tamis.Table, tmp_path: Path) -> None:
    """Spark compares tables for its caches, and Java keeps answers about their columns."""
    here, backup = lake.folder / "db" / "t", tmp_path / "backup"
    shutil.copytree(here, backup)

    def appended() -> LoadedTable:
        made = tamis.open(here)
        made.append(pa.table({"n": [21], "s": ["x"]}))
        return SparkTable(bridge_of(lake.spark), made.store, made.snapshot, (lake.name, "db", "t"))

    first = appended()
    shutil.rmtree(here)
    shutil.copytree(backup, here)
    second = appended()
    assert first.snapshot.version == second.snapshot.version
    assert first != second
    assert first.java_identity != second.java_identity
    assert first._answers_key != second._answers_key
    again = tamis.open(here)
    assert second == SparkTable(bridge_of(lake.spark), again.store, again.snapshot, (lake.name, "db", "t"))


def test_a_plan_without_statistics_is_not_remembered(
    lake: Any, table: tamis.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Statistics that cannot be read for a moment must not cost their pruning for as long as the version lasts."""

    def unreadable(*_args: Any, **_more: Any) -> Any:
        raise StoreUnavailable("The store does not answer.", name="manifest", remedy="Try again.")

    with monkeypatch.context() as patched:
        patched.setattr("tamis.engine.scan.funnel.decide", unreadable)
        with pytest.warns(RuntimeWarning, match="Statistics could not be used"):
            assert len(lake.rows(QUERY)) == 10
    assert tamis.reports(1)[0].parts.kept == 3
    assert len(lake.rows(QUERY)) == 10
    assert tamis.reports(1)[0].parts.kept == 1


def test_a_plan_without_its_index_is_not_remembered(
    lake: Any, table: tamis.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.create_index("by_s", ["s"])
    text = "SELECT n FROM lake.db.t WITH ('tamis.index.use' = 'lookup') WHERE s IN ('s5', 's25')"

    def unreadable(*_args: Any, **_more: Any) -> Any:
        raise StoreUnavailable("The store does not answer.", name="index", remedy="Try again.")

    with monkeypatch.context() as patched:
        patched.setattr("tamis.engine.secondary_index.index_choice.live_entries", unreadable)
        assert sorted(lake.rows(text)) == [(5,), (25,)]
    assert not tamis.reports(1)[0].indexes
    assert sorted(lake.rows(text)) == [(5,), (25,)]
    assert [used["name"] for used in tamis.reports(1)[0].indexes] == ["by_s"]


def test_the_columns_of_a_remembered_filter_stay_in_mind(lake: Any, table: tamis.Table) -> None:
    """Writes keep the statistics of columns that recent filters used, and a remembered plan is a use."""
    url = str(lake.folder / "db" / "t")
    assert len(lake.rows(QUERY)) == 10
    kept_statistics.record_used_places(
        url, [(column, ()) for column in range(1_000, 1_000 + kept_statistics.MOST_PLACES)]
    )
    by_n = (table.snapshot.schema.find("n")[0].id, "$")
    assert by_n not in kept_statistics.recent_places(url)
    assert len(lake.rows(QUERY)) == 10
    assert by_n in kept_statistics.recent_places(url)


def test_keys_of_a_join_are_those_of_their_execution(lake: Any, table: tamis.Table) -> None:
    small_table = tamis.create(lake.folder / "db" / "few", pa.schema([("n", pa.int64()), ("kind", pa.int64())]))
    small_table.append(pa.table({"n": [3, 13, 23], "kind": [1, 2, 3]}))
    for kind, n in ((1, 3), (2, 13), (3, 23), (1, 3)):
        text = f"SELECT t.n FROM lake.db.t t JOIN lake.db.few f ON t.n = f.n WHERE f.kind = {kind}"
        assert lake.rows(text) == [(n,)]
        assert lake.rows(text) == [(n,)]
