"""Keys that come after a scan's stage was made are asked for only where they can skip parts; otherwise equal stages stay equal."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tamis

pytestmark = pytest.mark.spark

PARTS, ROWS = 4, 50


@pytest.fixture(scope="module")
def shop(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """``late.db.sales``: ``day`` grows from part to part, ``item`` lies everywhere; ``returns`` has some of its tickets, ``items`` and ``days`` are small."""
    folder = tmp_path_factory.mktemp("late")
    tamis.attach(spark, "late", folder / "lake")
    spark.sql("CREATE NAMESPACE late.db")
    n = np.arange(PARTS * ROWS)
    sales = pa.table(
        {"ticket": n, "day": n // ROWS, "item": n % 20, "paid": n * 3, "rest": [f"{i % 40:020}" for i in n]}
    )
    made = tamis.create(folder / "lake" / "db" / "sales", sales.schema)
    for at in range(PARTS):
        made.append(sales.slice(at * ROWS, ROWS))
    for name, rows in (
        ("returns", pa.table({"ticket": n[::3]})),
        ("items", pa.table({"item": np.arange(20), "color": np.arange(20) % 4})),
        (
            "days",
            pa.table(
                {"day": np.arange(PARTS), "week": np.arange(PARTS) % 2, "rest": [f"{i:020}" for i in range(PARTS)]}
            ),
        ),
    ):
        tamis.create(folder / "lake" / "db" / name, rows.schema).append(rows)
    # Few keys would save much, so keys of any column are asked for.
    spark.sql("ALTER TABLE late.db.sales SET TBLPROPERTIES ('tamis.read.native_bytes' = '1')")
    return spark


@pytest.fixture(autouse=True)
def only_hints_broadcast(shop: Any) -> Any:
    shop.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    yield
    shop.conf.unset("spark.sql.autoBroadcastJoinThreshold")


def _run(spark: Any, query: str) -> tuple[list[tuple[Any, ...]], list[str]]:
    """The rows, and for each scan of ``sales`` in the plan as it was run the columns whose keys it waited for."""
    frame = spark.sql(query)
    rows = sorted(map(tuple, frame.collect()))
    scans = [line for line in _final_plan(frame).splitlines() if re.match(r"[ :+*()\d-]*BatchScan late.db.sales", line)]
    return rows, [" ".join(re.findall(r"(\w+)#\w+ IN dynamicpruning", line)) for line in scans]


def _final_plan(frame: Any) -> str:
    """The plan of a frame that ran, as it was run: without the plan that it began with."""
    return str(frame._jdf.queryExecution().executedPlan().toString()).split("\n+- == Initial Plan ==")[0]


def _assert_asked(spark: Any, query: str, expected: list[str]) -> None:
    """Assert which keys the scans of ``sales`` waited for, in any order, and that the rows are those without join keys."""
    rows, asked = _run(spark, query)
    assert sorted(asked) == sorted(expected)
    assert rows == _expected(spark, query) != [(None,)]


SHUFFLED = "late.db.sales s JOIN late.db.returns r ON s.ticket = r.ticket"


def _paid(where: str, joined: str) -> str:
    return f"SELECT /*+ BROADCAST(i), BROADCAST(d) */ sum(s.paid) FROM {joined} WHERE {where}"


def _expected(spark: Any, query: str) -> list[tuple[Any, ...]]:
    """The rows of the query without join keys."""
    spark.conf.set("tamis.scan.join_keys", "off")
    try:
        return sorted(map(tuple, spark.sql(query).collect()))
    finally:
        spark.conf.unset("tamis.scan.join_keys")


def test_late_keys_that_skip_no_part_are_not_asked_for(shop: Any) -> None:
    query = _paid("i.color = 1 AND s.paid > 60", f"{SHUFFLED} JOIN late.db.items i ON s.item = i.item")
    _assert_asked(shop, query, [""])


def test_no_key_filter_is_left_in_the_plan(shop: Any) -> None:
    """Not even one that Spark would make TRUE for want of a broadcast."""
    query = _paid("i.color = 1", f"{SHUFFLED} JOIN late.db.items i ON s.item = i.item")
    assert "dynamicpruning" not in shop.sql(query)._jdf.queryExecution().optimizedPlan().toString()


def test_late_keys_that_skip_parts_are_asked_for(shop: Any) -> None:
    query = _paid("d.week = 1 AND s.paid > 60", f"{SHUFFLED} JOIN late.db.days d ON s.day = d.day")
    _assert_asked(shop, query, ["day"])


def test_each_key_filter_is_judged_by_itself(shop: Any) -> None:
    both = f"{SHUFFLED} JOIN late.db.items i ON s.item = i.item JOIN late.db.days d ON s.day = d.day"
    query = _paid("i.color = 1 AND d.week = 1", both)
    _assert_asked(shop, query, ["day"])


def test_keys_of_the_scan_s_own_stage_are_asked_for(shop: Any) -> None:
    query = _paid("i.color = 1", "late.db.sales s JOIN late.db.items i ON s.item = i.item")
    _assert_asked(shop, query, ["item"])


def test_late_keys_stay_beside_those_that_may_let_our_reader_in(shop: Any) -> None:
    joined = (
        "(SELECT s.* FROM late.db.sales s JOIN late.db.days d ON s.rest = d.rest WHERE d.week = 1) s "
        "JOIN late.db.returns r ON s.ticket = r.ticket JOIN late.db.items i ON s.item = i.item"
    )
    query = _paid("i.color = 1", joined).replace("(SELECT s.*", "(SELECT /*+ BROADCAST(d) */ s.*")
    rows, asked = _run(shop, query)
    assert [set(columns.split()) for columns in asked] == [{"rest", "item"}]
    assert rows == _expected(shop, query)


@pytest.mark.parametrize(
    ("below", "asked"),
    [
        ("SELECT item, paid FROM late.db.sales DISTRIBUTE BY paid", [""]),
        ("SELECT item, max(paid) OVER (PARTITION BY item) AS paid FROM late.db.sales", [""]),
        ("SELECT item, late_twice(paid) AS paid FROM late.db.sales", ["item"]),
        ("SELECT item, each AS paid FROM late.db.sales LATERAL VIEW explode(array(paid, 1)) AS each", ["item"]),
        ("SELECT /*+ COALESCE(1) */ item, paid FROM late.db.sales", ["item"]),
    ],
)
def test_what_lies_between_the_scan_and_the_join(shop: Any, below: str, asked: list[str]) -> None:
    shop.udf.register("late_twice", lambda n: n * 2, "bigint")
    query = f"SELECT /*+ BROADCAST(i) */ sum(s.paid) FROM ({below}) s JOIN late.db.items i ON s.item = i.item WHERE i.color = 1"
    _assert_asked(shop, query, asked)


def test_a_broadcast_side_that_loses_a_late_key_still_gives_its_own(shop: Any) -> None:
    """Spark keeps a copy of the late key filter above the join in the subquery that reuses the broadcast."""
    side = f"SELECT /*+ BROADCAST(i) */ s.day FROM {SHUFFLED} JOIN late.db.items i ON s.item = i.item WHERE i.color = 1"
    query = (
        f"SELECT /*+ BROADCAST(o) */ sum(b.paid) FROM late.db.sales b JOIN ({side} AND s.paid < 300) o ON b.day = o.day"
    )
    rows, asked = _run(shop, query)
    assert asked.count("day") == 1
    assert set(asked) == {"", "day"}
    assert rows == _expected(shop, query)


def test_our_reader_asks_for_late_keys(shop: Any) -> None:
    query = _paid("i.color = 1 AND s.paid % 7 = 0", f"{SHUFFLED} JOIN late.db.items i ON s.item = i.item")
    _assert_asked(shop, query, ["item"])


def test_a_stage_is_reused_under_other_late_keys(shop: Any) -> None:
    joined = f"{SHUFFLED} JOIN late.db.items i ON s.item = i.item"
    query = f"{_paid('i.color = 1', joined)} UNION ALL {_paid('i.color = 2', joined)}"
    frame = shop.sql(query)
    rows = sorted(map(tuple, frame.collect()))
    plan = _final_plan(frame)
    assert len(re.findall("BatchScan late.db.sales", plan)) == 1
    assert "ReusedExchange" in plan
    assert rows == _expected(shop, query)


def test_late_keys_from_above_a_union(shop: Any) -> None:
    """Spark pushes one key filter to both branches: late below the exchange, in time beside it."""
    union = f"SELECT s.item, s.paid FROM {SHUFFLED} UNION ALL SELECT item, paid FROM late.db.sales"
    query = f"SELECT /*+ BROADCAST(i) */ sum(u.paid) FROM ({union}) u JOIN late.db.items i ON u.item = i.item WHERE i.color = 1"
    _assert_asked(shop, query, ["", "item"])
