"""A join's keys narrow the scan of its large side: by the values themselves, for each type that has an order, and for one execution only."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.new_reports import all_reports, reports_since

import tamis
from tamis.core.expr import Call, Column, Literals
from tamis.core.types import BOOLEAN, LONG
from tamis.engine.scan import Report
from tamis.spark.jvm_bridge.adapter import bridge_of
from tamis.spark.scan.join_keys import (
    INTERFACE,
    TASK_BYTES,
    Handover,
    Narrowed,
    execution_id,
    key_conjuncts,
    smallest_key_sets,
)

pytestmark = pytest.mark.spark

PARTS, ROWS = 6, 50
DECLARED = (
    "big BIGINT, small INT, day DATE, at TIMESTAMP, local TIMESTAMP_NTZ, price DECIMAL(12, 2), word STRING, x DOUBLE, c CHAR(5), wide INT, gone BIGINT, "
    "by_index BIGINT"
)
KEYS = [5, 6, 7, 255, 260]
"""In the first part and the last, one deleted; a range over them would hold every part."""
HITS = [5, 7, 255, 260]


def _rows(ids: Any, **types: pa.DataType) -> pa.Table:
    n = np.asarray(list(ids), dtype=np.int64)
    columns: dict[str, Any] = {
        "big": n,
        "small": n.astype(np.int32),
        "day": pa.array((n - 2).astype(np.int32)).cast(pa.date32()),
        "at": pa.array(n * 7 - 900).cast(pa.timestamp("us", "UTC")),
        "local": pa.array(n).cast(pa.timestamp("us")),
        "price": pa.array([Decimal(int(i)) - Decimal("20.5") for i in n], pa.decimal128(12, 2)),
        "word": [f"{i:05}" for i in n],
        "x": n.astype(np.float64),
        "c": [f"{i:03}  " for i in n],
        "wide": n.astype(np.int32),
        "gone": n,
        "by_index": n,
    }
    return pa.table(
        {name: pa.array(values).cast(types.get(name, pa.array(values).type)) for name, values in columns.items()}
    )


@pytest.fixture(scope="module")
def keyed(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """``keyed.db.t`` of six parts whose columns all grow with ``big``, and views ``few`` (its keys and a row of NULLs) and ``dim`` (all, those with ``sel > 0``)."""
    folder = tmp_path_factory.mktemp("keyed")
    tamis.attach(spark, "keyed", folder / "lake")
    spark.sql("CREATE NAMESPACE keyed.db")
    spark.sql(f"CREATE TABLE keyed.db.t ({DECLARED}) USING tamis")
    table = tamis.open(folder / "lake" / "db" / "t")
    for n in range(PARTS):
        table.append(_rows(range(n * ROWS, (n + 1) * ROWS)))
    table.alter().rename_column("gone", "renamed").widen("wide", pa.int64()).commit()
    table.refresh()
    table.delete("big IN (6, 100)")
    table.create_index("places", ["by_index"])
    spark.sql("CREATE TABLE keyed.db.whole (big BIGINT, word STRING) USING tamis")
    for n in range(PARTS):
        tamis.open(folder / "lake" / "db" / "whole").append(
            _rows(range(n * ROWS, (n + 1) * ROWS)).select(["big", "word"])
        )
    few_keys = _rows(KEYS, wide=pa.int64()).rename_columns({"gone": "renamed"})
    few_keys = pa.concat_tables(
        [few_keys, pa.table({f.name: pa.nulls(1, f.type) for f in few_keys.schema})]
    ).append_column("sel", pa.array([1] * 6))
    rest = (
        _rows(range(300), wide=pa.int64()).rename_columns({"gone": "renamed"}).append_column("sel", pa.array([0] * 300))
    )
    for name, rows in (("few", few_keys), ("dim", pa.concat_tables([few_keys, rest]))):
        pq.write_table(rows, folder / f"{name}.parquet")
        spark.read.parquet(str(folder / f"{name}.parquet")).createOrReplaceTempView(f"keyed_{name}")
    return spark


@pytest.fixture
def new(keyed: Any) -> Callable[[], list[Report]]:
    """The reports on ``t`` and ``whole`` since the test began, oldest first."""
    before = all_reports()
    tables = {"keyed.db.t", "keyed.db.whole", "keyed.db.blocks"}
    return lambda: [r for r in reports_since(before) if r.table in tables]


def _big(spark: Any, query: str) -> list[int]:
    return sorted(row[0] for row in spark.sql(query).collect())


@pytest.mark.parametrize("column", ["big", "small", "day", "at", "local", "price", "word", "wide", "renamed"])
@pytest.mark.push_cases(1)
def test_values_prune_not_their_range(keyed: Any, new: Callable[[], list[Report]], column: str) -> None:
    assert (
        _big(keyed, f"SELECT t.big FROM keyed.db.t t JOIN keyed_dim d ON t.{column} = d.{column} WHERE d.sel > 0")
        == HITS
    )
    (report,) = new()
    assert report.parts | {} == report.parts | {
        "total": PARTS,
        "skipped_join": PARTS - 2,
        "skipped_stats": 0,
        "kept": 2,
    }
    assert report.segments["skipped"] == PARTS - 2, "a load's statistics are enough"
    (named,) = [e for e in report.because if f"{column} IN (" in e.conjunct]
    assert named.parts_skipped == PARTS - 2
    assert f"{PARTS - 2} by join keys" in repr(report)


def test_keys_prune_blocks_of_a_part(keyed: Any, new: Callable[[], list[Report]]) -> None:
    keyed.sql("CREATE TABLE keyed.db.blocks (big BIGINT, small INT) USING tamis")
    place = keyed.sql("DESCRIBE TABLE EXTENDED keyed.db.blocks").where("col_name = 'Location'").collect()[0][1]
    for first in (0, 140_000):
        n = np.arange(first, first + 140_000)
        tamis.open(place).append(pa.table({"big": n, "small": n.astype(np.int32)}))
    held = "keyed.db.blocks WITH ('tamis.read.lazy' = 'on')"
    assert _big(keyed, f"SELECT t.big FROM {held} t JOIN keyed_dim d ON t.big = d.big WHERE d.sel > 0") == KEYS
    (report,) = new()
    assert (report.parts["kept"], report.parts["skipped_join"]) == (1, 1)
    assert (report.blocks["read"], report.blocks["skipped_stats"]) == (1, report.blocks["total"] - 1)
    assert report.blocks["total"] > 1
    keyed.sql("DROP TABLE keyed.db.blocks")


@pytest.mark.parametrize("column", ["x", "c"])
def test_what_has_other_ways_to_be_equal_is_left_to_spark(
    keyed: Any, new: Callable[[], list[Report]], column: str
) -> None:
    assert (
        _big(keyed, f"SELECT t.big FROM keyed.db.t t JOIN keyed_dim d ON t.{column} = d.{column} WHERE d.sel > 0")
        == HITS
    )
    assert new()[0].parts["skipped_join"] == 0


@pytest.mark.parametrize(
    "held", ["keyed.db.t", "keyed.db.t WITH ('tamis.index.use' = 'lookup')"], ids=["auto", "lookup"]
)
def test_an_index_gives_positions(keyed: Any, new: Callable[[], list[Report]], held: str) -> None:
    assert (
        _big(keyed, f"SELECT t.big, t.word FROM {held} t JOIN keyed_dim d ON t.by_index = d.by_index WHERE d.sel > 0")
        == HITS
    )
    (report,) = new()
    assert report.parts["skipped_join"] == PARTS - 2
    assert [(i.name, i.missing) for i in report.indexes] == [("places", 0)]
    assert report.rows["leader"] == len(HITS), "the filter ran on the rows that the index named, and on no other"


def test_errors_of_the_query_come_first(keyed: Any) -> None:
    """The filter fails on a row of a part that holds no key: it fails as if nothing had been skipped."""
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException) as caught:
        _big(
            keyed,
            "SELECT t.big FROM keyed.db.t t JOIN keyed_dim d ON t.big = d.big WHERE d.sel > 0 AND 1 / (t.small - 120) < 5",
        )
    assert caught.value.getCondition() == "DIVIDE_BY_ZERO"


@pytest.mark.parametrize("column", ["big", "word", "price"])
def test_a_small_side_without_rows_leaves_nothing(keyed: Any, new: Callable[[], list[Report]], column: str) -> None:
    """Adaptive execution would not run the join at all."""
    keyed.conf.set("spark.sql.adaptive.enabled", "false")
    try:
        assert (
            _big(keyed, f"SELECT t.big FROM keyed.db.t t JOIN keyed_dim d ON t.{column} = d.{column} WHERE d.sel > 1")
            == []
        )
    finally:
        keyed.conf.unset("spark.sql.adaptive.enabled")
    assert [(r.parts["skipped_join"], r.parts["kept"]) for r in new()] == [(PARTS, 0)]


def test_a_switch_turns_it_off(keyed: Any, new: Callable[[], list[Report]]) -> None:
    held = "keyed.db.t WITH ('tamis.scan.join_keys' = 'off')"
    assert _big(keyed, f"SELECT t.big FROM {held} t JOIN keyed_dim d ON t.big = d.big WHERE d.sel > 0") == HITS
    keyed.conf.set("tamis.scan.join_keys", "off")
    try:
        assert _big(keyed, "SELECT t.big FROM keyed.db.t t JOIN keyed_dim d ON t.big = d.big WHERE d.sel > 0") == HITS
    finally:
        keyed.conf.unset("tamis.scan.join_keys")
    assert [(r.parts["skipped_join"], r.parts["kept"]) for r in new()] == [(0, PARTS)] * 2


def test_joins_that_keep_unmatched_rows_are_not_pruned(keyed: Any, new: Callable[[], list[Report]]) -> None:
    everything = [i for i in range(PARTS * ROWS) if i not in (6, 100)]
    chosen = "(SELECT big FROM keyed_dim WHERE sel > 0 AND big IS NOT NULL)"
    assert _big(keyed, f"SELECT t.big FROM keyed.db.t t LEFT JOIN {chosen} d ON t.big = d.big") == everything
    assert _big(keyed, f"SELECT big FROM keyed.db.t WHERE big NOT IN {chosen}") == [
        i for i in everything if i not in HITS
    ]
    assert [r.parts["skipped_join"] for r in new()] == [0, 0]


# --- beyond Spark's own rule ---


def test_small_sides_need_no_predicate(keyed: Any, new: Callable[[], list[Report]]) -> None:
    assert _big(keyed, "SELECT t.big FROM keyed.db.t t JOIN keyed_few d ON t.big = d.big") == HITS
    assert (
        _big(
            keyed,
            "SELECT t.big FROM (SELECT big b, * FROM keyed.db.t WHERE small >= 0) t WHERE b IN (SELECT big FROM keyed_few)",
        )
        == HITS
    )
    assert _big(
        keyed,
        "SELECT /*+ BROADCAST(d) */ t.big FROM keyed_few d LEFT JOIN keyed.db.t t ON d.big = t.big WHERE d.big = 5",
    ) == [5]
    first, second, _ = new()
    assert (first.parts["skipped_join"], second.parts["skipped_join"]) == (PARTS - 2, PARTS - 2)


@pytest.mark.parametrize(
    "below",
    [
        "SELECT big, count(*) OVER () n FROM keyed.db.t",
        "SELECT big, (SELECT count(*) FROM keyed.db.t) n FROM (SELECT big FROM keyed.db.t ORDER BY big LIMIT 298)",
        "SELECT f.big, 298 n FROM keyed_few f LEFT JOIN keyed.db.t t ON f.big = t.big",
    ],
    ids=["window", "limit", "outer"],
)
def test_what_looks_at_other_rows_sees_them_all(keyed: Any, below: str) -> None:
    rows = keyed.sql(f"SELECT w.big, w.n FROM ({below}) w JOIN keyed_few d ON w.big = d.big").collect()
    assert {r.n for r in rows} == {PARTS * ROWS - 2}
    assert set(HITS) <= {r.big for r in rows}


def test_few_keys_are_read_by_our_reader(keyed: Any, new: Callable[[], list[Report]]) -> None:
    """Without a filter Spark's reader reads; when few keys come, ours finds their rows; when many come, Spark's goes on."""
    assert _big(keyed, "SELECT big, word FROM keyed.db.whole LEFT SEMI JOIN keyed_few d USING (big)") == KEYS
    assert (
        len(_big(keyed, "SELECT big, word FROM keyed.db.whole LEFT SEMI JOIN keyed_dim d USING (big)")) == PARTS * ROWS
    )
    few_report, many_report = new()
    assert (few_report.reader, few_report.rows["matched"]) == ("lazy", len(KEYS))
    assert few_report.parts["skipped_join"] == PARTS - 2
    assert (many_report.reader, many_report.parts["kept"]) == ("native", PARTS)


# --- what must not be narrowed ---


def test_row_changes_read_all(keyed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from tamis.spark.write.row_level_operations import RowLevelStatement

    changes: list[RowLevelStatement] = []
    original = RowLevelStatement.newScanBuilder

    def watched(self: RowLevelStatement, options: Any) -> Any:
        changes.append(self)
        return original(self, options)

    monkeypatch.setattr(RowLevelStatement, "newScanBuilder", watched)
    keyed.sql("CREATE TABLE keyed.db.changing (big BIGINT, word STRING) USING tamis")
    keyed.sql("INSERT INTO keyed.db.changing SELECT big, word FROM keyed_dim WHERE sel = 0")
    keyed.sql(
        "MERGE INTO keyed.db.changing t USING (SELECT big FROM keyed_dim WHERE sel > 0 AND big IS NOT NULL) s ON t.big = s.big WHEN MATCHED THEN UPDATE SET word = 'hit'"
    )
    assert _big(keyed, "SELECT big FROM keyed.db.changing WHERE word = 'hit'") == KEYS
    assert keyed.table("keyed.db.changing").count() == PARTS * ROWS
    read = [scan for change in changes for scan in change.scans]
    assert read, "the statement read its target by our scan"
    assert not any(INTERFACE in scan.interfaces for scan in read)


def _leaf(spark: Any, query: str) -> Any:
    """The Java scan in the plan of a query over one table."""
    return spark.sql(query)._jdf.queryExecution().optimizedPlan().collectLeaves().head().scan()


def _longs(java: Any, *values: int | None) -> list[Any]:
    kind = java.scala_object("org.apache.spark.sql.types.LongType")
    return [java.new("org.apache.spark.sql.connector.expressions.LiteralValue", v, kind) for v in values]


def test_keys_hold_for_one_execution(keyed: Any) -> None:
    """Spark keeps scans: one that was given keys, and is asked again, is as it was."""
    java = bridge_of(keyed)
    scan = java.target(_leaf(keyed, "SELECT big, word FROM keyed.db.t"))
    column = java.cls("org.apache.spark.sql.connector.expressions.FieldReference").column("big")

    def given(*keys: int) -> Any:
        inside = java.array("org.apache.spark.sql.connector.expressions.Expression", [column, *_longs(java, *keys)])
        predicate = java.new("org.apache.spark.sql.connector.expressions.filter.Predicate", "IN", inside)
        scan.filter(java.array("org.apache.spark.sql.connector.expressions.filter.Predicate", [predicate]))
        return java.target(scan.toBatch())

    first, plain, second = given(5), java.target(scan.toBatch()), given(255)
    kept = [
        [part.part for part in batch._narrowed.plan.parts] if batch._narrowed else None
        for batch in (first, plain, second)
    ]
    assert [len(k) if k is not None else None for k in kept] == [1, None, 1]
    assert len({repr(batch._narrowed.keys) for batch in (first, second)}) == 2
    assert len(scan.plan.parts) == PARTS
    assert first != second
    assert first != plain


@pytest.mark.parametrize(("table", "index"), [("t", "auto"), ("whole", "off")])
def test_a_batch_is_the_scans_but_for_the_one_that_follows_keys(keyed: Any, table: str, index: str) -> None:
    """Spark asks for batches and their partitions again and again: Python makes them once, and anew where keys have come. No index is asked for rows that Spark's reader cannot skip."""
    java = bridge_of(keyed)
    scan = _leaf(keyed, f"SELECT big, word FROM keyed.db.{table}")
    column = java.cls("org.apache.spark.sql.connector.expressions.FieldReference").column("big")
    inside = java.array("org.apache.spark.sql.connector.expressions.Expression", [column, *_longs(java, 5)])
    predicate = java.new("org.apache.spark.sql.connector.expressions.filter.Predicate", "IN", inside)
    plain = java.target(scan.toBatch())
    scan.filter(java.array("org.apache.spark.sql.connector.expressions.filter.Predicate", [predicate]))
    narrowed, after = java.target(scan.toBatch()), java.target(scan.toBatch())
    assert plain._narrowed is None
    assert narrowed._narrowed.plan.options.index_use == index
    assert after is plain


def test_a_small_table_waits_for_no_keys(keyed: Any) -> None:
    keyed.sql("CREATE TABLE keyed.db.small (big BIGINT, word STRING) USING tamis")
    keyed.sql("SELECT big, word FROM keyed.db.t WHERE big < 30").coalesce(1).writeTo("keyed.db.small").append()
    query = "SELECT t.big FROM keyed.db.{} t JOIN keyed_few d ON t.big = d.big"
    assert [_big(keyed, query.format(name)) for name in ("small", "t")] == [[5, 7], HITS]
    plans = [keyed.sql(query.format(name))._jdf.queryExecution().optimizedPlan().toString() for name in ("small", "t")]
    assert ["dynamicpruning" in plan.lower() for plan in plans] == [False, True]


@pytest.mark.parametrize(
    ("ids", "asked"), [("id < 300", False), ("id % 90 = 0", True), ("id >= 200", True)], ids=["all", "few", "elsewhere"]
)
@pytest.mark.push_cases(1)
def test_keys_that_leave_nothing_out_are_not_asked_for(keyed: Any, ids: str, asked: bool) -> None:
    """All the values of another of our tables: they say something where they are few, or lie in a part of the range."""
    keyed.sql("CREATE OR REPLACE TABLE keyed.db.given (k BIGINT) USING tamis")
    keyed.range(300).where(ids).selectExpr("id AS k").coalesce(1).writeTo("keyed.db.given").append()
    query = "SELECT t.big FROM keyed.db.t t JOIN keyed.db.given d ON t.big = d.k"
    assert ("dynamicpruning" in keyed.sql(query)._jdf.queryExecution().optimizedPlan().toString().lower()) == asked
    off = query.replace("keyed.db.t t", "keyed.db.t WITH ('tamis.scan.join_keys' = 'off') t")
    assert _big(keyed, query) == _big(keyed, off) != []


def test_a_side_that_is_asked_for_our_keys_is_whole(keyed: Any) -> None:
    """Spark asks the side without a filter for the keys of the one that has one: what is left of it holds no fewer keys that match, and is not asked back."""
    query = "SELECT t.big FROM keyed.db.t t JOIN keyed.db.whole d ON t.big = d.big WHERE t.word >= '00003'"
    plan = keyed.sql(query)._jdf.queryExecution().optimizedPlan().toString().lower()
    assert len(set(re.findall(r"dynamicpruning#\d+", plan))) == 1, plan
    assert _big(keyed, query) == [i for i in range(3, PARTS * ROWS) if i not in (6, 100)]


def test_keys_are_the_columns_type(keyed: Any) -> None:
    """Py4J and Catalyst hold a small BIGINT as an int: what reaches the funnel is of the column's type, and none is lost."""
    java = bridge_of(keyed)
    scan = java.target(_leaf(keyed, "SELECT * FROM keyed.db.t"))
    column = java.cls("org.apache.spark.sql.connector.expressions.FieldReference").column("big")
    inside = java.array(
        "org.apache.spark.sql.connector.expressions.Expression", [column, *_longs(java, 2**40, 7, None, 7)]
    )
    predicate = java.new("org.apache.spark.sql.connector.expressions.filter.Predicate", "IN", inside)
    (found,) = key_conjuncts(
        java, java.array("org.apache.spark.sql.connector.expressions.filter.Predicate", [predicate]), scan.source.schema
    )
    assert isinstance(found, Call)
    assert isinstance(found.args[1], Literals)
    assert str(found.args[1].array.type) == "int64"
    assert found.args[1].array.to_pylist() == [7, 2**40]


def test_a_large_set_of_keys_keeps_no_small_one_from_travelling() -> None:
    def keys(count: int) -> Call:
        return Call(BOOLEAN, "in", (Column(LONG, (count,), "k"), Literals(LONG, pa.array(range(count)))))

    small, large, more = keys(10), keys(TASK_BYTES // 8 + 1), keys(20)
    assert smallest_key_sets((large, small)) == (small,)
    assert smallest_key_sets((more, large, small)) == (more, small)
    assert smallest_key_sets((keys(TASK_BYTES // 16), keys(TASK_BYTES // 16 + 1))) == (keys(TASK_BYTES // 16),)


def test_a_handover_is_taken_once(keyed: Any) -> None:
    waiting = Handover()
    narrowed = Narrowed("n", (), None, None)  # type: ignore[arg-type]  # nothing looks inside
    waiting.put(execution_id(), narrowed)
    assert waiting.take() is narrowed
    assert waiting.take() is None
    waiting.put("another execution", narrowed)
    assert waiting.take() is None


FAILING = [
    "SELECT t.big FROM {} t JOIN keyed_dim d ON t.big = d.big WHERE d.sel > 0 AND 1 / (t.small - (SELECT max(small) FROM keyed_middle)) < 5",
    "SELECT t.big FROM {} t JOIN keyed_few d ON t.big = d.big WHERE 1 / (t.small - (SELECT max(small) FROM keyed_middle)) < 5",
    "SELECT t.big FROM {} t JOIN keyed_middle m ON t.wide = m.wide AND 1 / (t.small - m.small) < 5 JOIN keyed_few d ON t.big = d.big",
    "SELECT t.big FROM {} t LEFT JOIN keyed_middle m ON t.wide = m.wide AND 1 / (t.small - m.small) < 5 JOIN keyed_few d ON t.big = d.big",
    "SELECT t.big FROM {} t LEFT JOIN keyed_middle m ON t.wide = m.wide JOIN keyed_few d ON t.big = d.big WHERE 1 / (t.small - coalesce(m.small, 0)) < 5",
    "SELECT t.big FROM {} t JOIN keyed_few d ON t.big = d.big AND 1 / (t.small - 120) = d.x",
    "SELECT t.big FROM {} t WHERE EXISTS (SELECT 1 FROM keyed_few d WHERE t.big = d.big) AND 1 / (t.small - (SELECT max(small) FROM keyed_middle)) < 5",
]


@pytest.fixture
def middle(keyed: Any, tmp_path: Path) -> Any:
    """A view of one row of a part that holds no key; ``keyed_plain`` has the rows of ``t`` in Parquet."""
    text = (
        "SELECT 120 AS small, 120L AS wide, DATE'2024-01-01' AS day, TIMESTAMP'2024-01-01 00:00:00' AS at, 'x' AS word"
    )
    keyed.sql(text).write.parquet(str(tmp_path / "middle"))
    keyed.read.parquet(str(tmp_path / "middle")).createOrReplaceTempView("keyed_middle")
    keyed.table("keyed.db.t").write.parquet(str(tmp_path / "plain"))
    keyed.read.parquet(str(tmp_path / "plain")).createOrReplaceTempView("keyed_plain")
    return keyed


@pytest.mark.parametrize("query", FAILING)
@pytest.mark.parametrize("held", ["keyed_plain", "keyed.db.t"])
def test_errors_of_conditions_that_no_scan_knows_come_first(middle: Any, query: str, held: str) -> None:
    """The row that fails is in a part that holds no key."""
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException) as caught:
        _big(middle, query.format(held))
    assert caught.value.getCondition() == "DIVIDE_BY_ZERO"


@pytest.mark.parametrize(
    "query",
    [
        "JOIN keyed_dim d ON t.big = d.big WHERE d.sel > 0 AND t.x < (SELECT max(small) FROM keyed_middle) + 200.0D",
        "JOIN keyed_few d ON t.big = d.big WHERE t.small < (SELECT max(wide) FROM keyed_middle) OR t.x > 200",
        "LEFT JOIN keyed_middle m ON t.wide = m.wide AND t.x + 0.5 < m.small JOIN keyed_few d ON t.big = d.big",
        "JOIN keyed_middle m ON t.wide > m.small - 200.0D JOIN keyed_few d ON t.big = d.big AND t.x = CAST(d.word AS DOUBLE)",
        "LEFT JOIN keyed_middle m ON CAST(t.at AS DATE) = m.day JOIN keyed_few d ON t.big = d.big",
        "LEFT JOIN keyed_middle m ON date_trunc('DAY', t.at) = m.at JOIN keyed_few d ON t.big = d.big",
        "LEFT JOIN keyed_middle m ON t.at BETWEEN m.at AND m.at + INTERVAL 1 DAY JOIN keyed_few d ON t.big = d.big",
        "LEFT JOIN keyed_middle m ON concat(t.word, '') = m.word AND t.word LIKE '0%' JOIN keyed_few d ON t.big = d.big",
        "LEFT JOIN keyed_middle m ON abs(t.x - m.small) < 3.0D AND datediff(t.at, m.day) < 3 JOIN keyed_few d ON t.big = d.big",
        "LEFT JOIN keyed_middle m ON t.small / 2 > m.small AND hour(t.at) >= hour(m.at) JOIN keyed_few d ON t.big = d.big",
        "JOIN keyed_few d ON t.big = d.big WHERE CAST(t.at AS DATE) <= (SELECT max(day) FROM keyed_middle)",
        "JOIN keyed_few d ON t.big = d.big WHERE t.at <= (SELECT max(at) FROM keyed_middle) - INTERVAL 1 DAYS",
    ],
)
def test_keys_pass_conditions_that_cannot_fail(middle: Any, new: Callable[[], list[Report]], query: str) -> None:
    assert _big(middle, f"SELECT t.big FROM keyed.db.t t {query}") == HITS
    assert new()[0].parts["skipped_join"] == PARTS - 2


@pytest.mark.parametrize(
    "condition",
    [
        "t.small + m.small > 0",
        "floor(t.x) > m.small",
        "date_format(t.at, m.word) = 'y'",
        "add_months(t.day, m.small) > m.day",
        "CAST(t.word AS INT) = m.small",
    ],
)
def test_keys_do_not_pass_conditions_that_can_fail(
    middle: Any, new: Callable[[], list[Report]], condition: str
) -> None:
    """Whether a row fails is known only when the condition has been computed for all."""
    query = f"SELECT t.big FROM keyed.db.t t LEFT JOIN keyed_middle m ON {condition} JOIN keyed_few d ON t.big = d.big"
    assert _big(middle, query) == HITS
    assert new()[0].parts["skipped_join"] == 0


@pytest.mark.parametrize(
    "condition", ["t.small + 1 = m.small", "t.small / m.small > 2", "CAST(t.word AS INT) = m.small"]
)
def test_keys_pass_arithmetic_outside_ansi(middle: Any, new: Callable[[], list[Report]], condition: str) -> None:
    query = f"SELECT t.big FROM keyed.db.t t LEFT JOIN keyed_middle m ON {condition} JOIN keyed_few d ON t.big = d.big"
    for ansi, skipped in (("false", PARTS - 2), ("true", 0)):
        middle.conf.set("spark.sql.ansi.enabled", ansi)
        try:
            assert _big(middle, query) == HITS
        finally:
            middle.conf.unset("spark.sql.ansi.enabled")
        assert new()[-1].parts["skipped_join"] == skipped
