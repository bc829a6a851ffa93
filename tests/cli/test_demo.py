"""The demonstration, on three weeks: every answer is plain Spark's, and the funnel says what was not read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tamis
from tamis import AlreadyExists
from tamis.cli import demo
from tamis.cli.demo_queries import QUERIES

pytestmark = [pytest.mark.spark, pytest.mark.slow]

EARLY = tuple(
    replace(q, where=q.where.replace("2013-06-1", "2013-01-1").replace("2013-07-0", "2013-01-0")) for q in QUERIES
)
"""The queries moved into the weeks that the short demonstration has."""


@pytest.fixture
def short(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr(demo, "CATALOG", "demo")
    monkeypatch.setattr(demo, "TABLES", "demo.nyc.")
    monkeypatch.setattr(demo, "_FLIGHTS", demo._FLIGHTS.replace("lake.", "demo."))
    monkeypatch.setattr(demo, "QUERIES", EARLY)
    zone, pushdown = (spark.conf.get(key) for key in ("spark.sql.session.timeZone", "spark.sql.parquet.filterPushdown"))
    spark.conf.set("spark.sql.parquet.filterPushdown", "false")
    outcome = demo.run_demo(str(tmp_path / "lake"), weeks=3)
    spark.conf.set("spark.sql.parquet.filterPushdown", pushdown)
    assert zone == "UTC"
    return outcome


@pytest.mark.merge
def test_every_answer_is_right(short: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert short["differing"] == 0
    assert len(short["answers"]) >= 5
    assert sum(answer["rows"] for answer in short["answers"]) > 0
    week = short["answers"][0]
    for reader in ("spark", "embedded"):
        parts = week["reports"][reader]["parts"]
        assert 0 < parts["kept"] < parts["total"]
    assert tamis.open(Path(short["path"]) / "nyc" / "flights").scan().count() > 15_000


def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("x")
    with pytest.raises(AlreadyExists, match=r"--path"):
        demo._fresh(tmp_path)
    assert (tmp_path / "mine.txt").exists()


def test_an_earlier_demonstration_is_replaced(tmp_path: Path) -> None:
    lake = demo._fresh(tmp_path / "lake")
    (lake / "old").mkdir()
    assert not (demo._fresh(lake) / "old").exists()


def test_a_wrong_answer_is_seen() -> None:
    import pyarrow as pa

    assert demo._rows(pa.table({"a": [1, 2]})) == demo._rows(pa.table({"a": [2, 1]}))
    assert demo._rows(pa.table({"a": [1, 1]})) != demo._rows(pa.table({"a": [1]}))
    assert demo._rows(pa.table({"a": [None]})) != demo._rows(pa.table({"a": [float("nan")]}))
