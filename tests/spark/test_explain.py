"""EXPLAIN, CALL explain, Python and the command line tell the same: what each conjunct skipped, by which statistic, and why the rest did not."""

from __future__ import annotations

import pytest
from tests.cli.conftest import Run, run  # noqa: F401  # the fixture
from tests.spark.conftest import Lake

import tamis

FILTER = "n >= 20 AND user = 3 AND soundex(s) = 'X000'"


@pytest.fixture
def filled(lake: Lake) -> Lake:
    lake.sql("CREATE TABLE lake.db.t (n BIGINT, user INT, s STRING, ts TIMESTAMP) USING tamis CLUSTER BY (n)")
    for first in range(0, 40, 10):
        rows = lake.spark.range(first, first + 10).selectExpr(
            "id n", "cast(id * 37 % 10 AS INT) user", "'x' s", "timestamp_seconds(id * 3600) ts"
        )
        rows.writeTo(f"{lake.name}.db.t").append()
    return lake


def test_all_four_say_the_same(filled: Lake, run: Run) -> None:  # noqa: F811
    path = filled.folder / "db" / "t"
    plan = filled.rows(f"EXPLAIN SELECT s FROM lake.db.t WHERE {FILTER}")[0][0]
    called = filled.rows(f"CALL lake.system.explain(table => 'db.t', filter => \"{FILTER}\")")
    typed = run("explain", path, "--where", FILTER)
    shown = [plan, str(called), repr(tamis.open(path).explain(FILTER)), typed.out]
    for line in (
        "n >= 20L: skipped 2 parts by statistics of n, not the rest because the bounds of n allow it",
        "user = 3: did not skip because the bounds of user allow it",
        "may be anything",
    ):
        assert [line in text for text in shown] == [True] * 4, line
    assert "parts: 2 of 4" in plan
    assert ("parts", None, 2, 4) in [row[:4] for row in called]
    assert not any("indexes:" in text for text in shown), "there is none to speak of"
    report = run("explain", path, "--where", FILTER, "--json").json
    assert [e["parts_skipped"] for e in report["because"]] == [2]


def test_all_four_name_the_index_and_the_path(filled: Lake, run: Run) -> None:  # noqa: F811
    path = filled.folder / "db" / "t"
    tamis.open(path).create_index("ik", "user")
    for use, index_line in (
        ("lookup", "used ik (ik for 4 of 4 segments)"),
        ("plan", "used ik; each task asks ik about its own parts"),
        ("off", "tamis.index.use is off"),
    ):
        option, where = {"tamis.index.use": use}, "user = 3 AND s = 'x'"
        filled.spark.conf.set("tamis.index.use", use)
        try:
            called = filled.rows(f"CALL lake.system.explain(table => 'db.t', filter => \"{where}\")")
            plans = [filled.rows(f"EXPLAIN SELECT s FROM lake.db.t WHERE {where}")[0][0]]
        finally:
            filled.spark.conf.unset("tamis.index.use")
        plans.append(
            filled.rows(f"EXPLAIN SELECT s FROM lake.db.t WITH ('tamis.index.use' = '{use}') WHERE {where}")[0][0]
        )
        assert [index_line in plan for plan in plans] == [True, True], (use, plans)
        assert next(row for row in called if row[0] == "indexes")[-1].startswith(index_line), called
        assert f"indexes: {index_line}" in repr(tamis.open(path).explain(where, options=option))
        scan = tamis.open(path).scan(where, options=option)
        assert scan.to_arrow().num_rows == 4
        assert f"indexes: {index_line}" in repr(scan.report)
    assert "indexes: used ik" in run("explain", path, "--where", "user = 3").out
    assert "indexes" not in str(filled.rows("EXPLAIN SELECT s FROM lake.db.t")[0][0])


def test_call_sees_what_the_session_would_see(filled: Lake) -> None:
    """Time zone, ANSI mode and switches are the session's."""
    call = "CALL lake.system.explain(table => 'db.t', filter => \"ts < '1970-01-01 12:00:00'\")"

    def parts() -> int:
        return next(row[2] for row in filled.rows(call) if row[0] == "parts")

    assert parts() == 2
    filled.spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        assert parts() == 1
        filled.spark.conf.set("tamis.stats.filter", "off")
        assert parts() == 4
    finally:
        filled.spark.conf.set("spark.sql.session.timeZone", "UTC")
        filled.spark.conf.unset("tamis.stats.filter")


def test_guards_of_call_and_query_name_the_conjunct(filled: Lake) -> None:
    call = "CALL lake.system.explain(table => 'db.t', filter => 'user = 3', max_parts => {})"
    assert filled.rows(call.format(4))
    assert "user = 3: did not skip because the bounds of user allow it" in filled.refused(
        call.format(3), "PRUNING_LOST"
    )
    query = "SELECT n FROM lake.db.t WITH ('tamis.scan.max_bytes' = '10') WHERE user = 3"
    before = tamis.reports()[:1]
    assert "user = 3: did not skip because the bounds of user allow it" in filled.refused(query, "SCAN_TOO_LARGE")
    assert tamis.reports()[:1] == before, "nothing was read"
    filled.spark.conf.set("tamis.scan.max_bytes", "10")
    try:
        filled.refused("SELECT n FROM lake.db.t WHERE user = 3", "SCAN_TOO_LARGE")
        assert filled.rows("SELECT n FROM lake.db.t WITH ('tamis.scan.max_bytes' = '1g') WHERE n = 3") == [(3,)]
    finally:
        filled.spark.conf.unset("tamis.scan.max_bytes")
