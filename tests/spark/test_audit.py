"""Audits of Spark's scans: a wrong proof, planted in planning, is found by the executors, and Spark's answer is right all the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.scan.planted_proofs import Production, all_match, planted, skip_all
from tests.spark.conftest import Lake

import tamis
from tamis.engine.scan import Report, funnel, skip_audit
from tamis.engine.scan.skip_audit import Proof
from tamis.spark.scan import spark_batch
from tamis.spark.scan.native_audit import audit_native
from tamis.world import use


def latest(lake: Lake) -> Report:
    """The latest report of this catalog's table."""
    return next(r for r in tamis.reports(100) if r.table == f"{lake.name}.db.t")


AUDITED = "lake.db.t WITH ('tamis.audit.percent' = '100', 'tamis.read.lazy' = '{lazy}')"


@pytest.fixture
def filled(lake: Lake) -> Lake:
    lake.sql("CREATE TABLE lake.db.t (n BIGINT, s STRING) USING tamis CLUSTER BY (n)")
    for first in range(0, 40, 10):
        lake.spark.range(first, first + 10).selectExpr("id n", "cast(id AS STRING) s").writeTo(
            f"{lake.name}.db.t"
        ).append()
    return lake


@pytest.mark.parametrize("lazy", ["auto", "native"])
@pytest.mark.push_cases(1)
def test_a_wrong_skip_is_found(filled: Lake, monkeypatch: pytest.MonkeyPatch, lazy: str) -> None:
    table = AUDITED.format(lazy=lazy)
    assert filled.rows(f"SELECT n FROM {table} WHERE n = 25") == [(25,)]
    clean = latest(filled)
    assert (clean.parts.kept, clean.parts.audited, clean.violations) == (1, 3, [])
    planted(monkeypatch, funnel, skip_all)
    assert filled.rows("SELECT n FROM lake.db.t WHERE n = 25") == [], "the plant shows"
    with use(Production()):
        assert filled.rows(f"SELECT n FROM {table} WHERE n = 25") == [(25,)]
    (violation,) = latest(filled).violations
    assert "1 rows match" in violation.problem
    with pytest.raises(Exception, match="AUDIT_FAILED"):
        filled.rows(f"SELECT n FROM {table} WHERE n = 25")
    scan = tamis.open(filled.folder / "db" / "t").scan("n = 25", options={"tamis.audit.percent": 100})
    with use(Production()):
        assert [row.n for row in scan.to_spark(filled.spark).collect()] == [25]


def test_spark_s_own_reader_is_audited_whether_it_owns_the_filter_or_not(
    filled: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: Spark's reader is told of the filter's column, which it does not return and takes for NULL."""
    owned = f"SELECT DISTINCT s FROM {AUDITED.format(lazy='auto')} WHERE n >= 20"
    other = f"SELECT s FROM {AUDITED.format(lazy='native')} WHERE n > 24"
    for query, rows in ((owned, 20), (other, 15)):
        assert len(filled.rows(query)) == rows
        assert (latest(filled).reader, latest(filled).violations) == ("native", [])
    monkeypatch.setattr(spark_batch, "filter_hints", lambda *_: "\0".join(["gt", "n", "long", "100"]))
    assert filled.rows(owned.replace("'100'", "'0'")) == [], "the plant shows"
    for query, rows in ((owned, 20), (other, 15)):
        with use(Production()):
            assert len(filled.rows(query)) == rows
        assert latest(filled).reader != "native"
        assert "Spark's reader returns 0 rows" in latest(filled).violations[0].problem
        with pytest.raises(Exception, match="AUDIT_FAILED"):
            filled.rows(query)


@pytest.mark.parametrize("lazy", ["auto", "native"])
def test_a_filter_that_only_spark_can_run_is_no_violation(filled: Lake, lazy: str) -> None:
    """Bounds prove that no row matches; the reader cannot run ``exp``, so the rows that it yields prove nothing."""
    assert filled.rows(f"SELECT n FROM {AUDITED.format(lazy=lazy)} WHERE exp(n) < 2 AND exp(n) > 0.5") == [(0,)]
    report = latest(filled)
    assert (report.parts.kept, report.parts.audited, report.violations) == (1, 3, [])


@pytest.mark.parametrize("percent", [50, 100])
@pytest.mark.push_cases(1)
def test_an_audit_changes_no_answer_of_metadata_and_no_row_change(filled: Lake, percent: int) -> None:
    """Parts that metadata has answered are not read too; row changes get the positions that they ask for."""
    table = f"lake.db.t WITH ('tamis.audit.percent' = '{percent}')"
    assert filled.rows(f"SELECT count(*), min(n), max(n) FROM {table}") == [(40, 0, 39)]
    assert filled.rows(f"SELECT count(*) FROM {table} WHERE n >= 15") == [(25,)]
    assert filled.rows(f"SELECT n FROM {table} WHERE n > 3 ORDER BY n LIMIT 2") == [(4,), (5,)]
    filled.sql(f"ALTER TABLE lake.db.t SET TBLPROPERTIES ('tamis.audit.percent' = '{percent}')")
    filled.sql("UPDATE lake.db.t SET s = 'changed' WHERE n % 7 = 3 AND n > 10")
    filled.sql("MERGE INTO lake.db.t t USING (SELECT 25L AS n) s ON t.n = s.n WHEN MATCHED THEN DELETE")
    assert filled.rows("SELECT count(*), count(DISTINCT n), count_if(s = 'changed') FROM lake.db.t") == [(39, 39, 4)]


def test_a_part_said_to_match_wholly_is_audited_where_spark_reads(
    filled: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = f"SELECT DISTINCT s FROM {AUDITED.format(lazy='auto')} WHERE n >= 25"
    planted(monkeypatch, funnel, all_match)
    assert len(filled.rows(query.replace("'100'", "'0'"))) == 20, "the plant shows"
    with use(Production()):
        assert len(filled.rows(query)) == 15
    assert latest(filled).violations


def test_a_hidden_error_is_found(filled: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    query = "SELECT n FROM {} WHERE 1 / (n - 25) < 0 AND n > 30"
    filled.refused(query.format("lake.db.t"), "DIVIDE_BY_ZERO")
    planted(monkeypatch, funnel, skip_all)
    assert filled.rows(query.format("lake.db.t")) == [], "the plant shows"
    with use(Production()):
        filled.refused(query.format(AUDITED.format(lazy="auto")), "DIVIDE_BY_ZERO")
    with pytest.raises(Exception, match="AUDIT_FAILED"):
        filled.rows(query.format(AUDITED.format(lazy="auto")))


def test_switches_come_from_the_query_over_the_session_over_the_table(filled: Lake) -> None:
    def kept(table: str) -> int:
        filled.rows(f"SELECT n FROM {table} WHERE n = 25")
        return int(latest(filled).parts.kept)

    filled.sql("ALTER TABLE lake.db.t SET TBLPROPERTIES ('tamis.stats.filter' = 'off')")
    assert kept("lake.db.t") == 4
    filled.spark.conf.set("tamis.stats.filter", "on")
    try:
        assert kept("lake.db.t") == 1
        assert kept("lake.db.t WITH ('tamis.stats.filter' = 'off')") == 4
        filled.spark.conf.set("tamis.stats.filter", "off")
        assert kept("lake.db.t WITH ('tamis.stats.filter' = 'on')") == 1
    finally:
        filled.spark.conf.unset("tamis.stats.filter")


def test_statistics_are_collected_where_nothing_says_otherwise(filled: Lake) -> None:
    """The same three places decide for writes."""

    def known(value: int) -> int:
        filled.rows(f"SELECT n FROM lake.db.t WHERE n = {value}")
        return int(latest(filled).parts.kept)

    frame = filled.spark.range(100, 110).selectExpr("id n", "'x' s")
    name = f"{filled.name}.db.t"
    frame.writeTo(name).option("tamis.stats.collect", "off").append()
    assert known(-1) == 1
    filled.spark.conf.set("tamis.stats.collect", "off")
    try:
        frame.writeTo(name).append()
        assert known(-1) == 2
        frame.writeTo(name).option("tamis.stats.collect", "on").append()
        assert known(-1) == 2
    finally:
        filled.spark.conf.unset("tamis.stats.collect")
    filled.sql("ALTER TABLE lake.db.t SET TBLPROPERTIES ('tamis.stats.collect' = 'off')")
    frame.writeTo(name).append()
    assert known(-1) == 3
    assert filled.rows("SELECT count(*) FROM lake.db.t WHERE n = 105") == [(4,)]


@pytest.mark.parametrize(("certain", "sound"), [(0, True), (2, True), (3, False)])
def test_rows_that_only_spark_can_judge_do_not_accuse_its_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, certain: int, sound: bool
) -> None:
    """Our reader keeps five rows for Spark, of which some match for certain; Spark's reader returns two."""
    table = tamis.create(tmp_path / "t", pa.schema([("n", pa.int64())]))
    table.append(pa.table({"n": range(5)}))
    plan = table.scan().plan()
    ref = next(iter(plan.parts))

    def kept(_: Any, spec: Any, __: Any) -> Any:
        yield pa.record_batch({"n": pa.array(range(5 if spec.errors == "keep" else certain))})

    monkeypatch.setattr(skip_audit, "read_part", kept)
    audited = replace(plan, spec=replace(plan.spec, errors="keep"), proofs={ref.part_id: Proof.BLOCKS})
    with use(Production()):
        assert audit_native(audited, plan.report, lambda _: 2) is sound
    assert bool(plan.report.violations) is not sound
