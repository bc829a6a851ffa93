"""The builder of scans in Java: it plans what Python's own builder plans, and asks Python once for a scan."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from pyspark.errors import PySparkException
from tests.spark.conftest import Lake

from tamis.spark.catalog.spark_table import SparkTable
from tamis.spark.jvm_bridge.adapter import bridge_of
from tamis.spark.jvm_bridge.java_callback import Callback
from tamis.spark.scan.scan_builder import collect_in_java, scan_builder
from tamis.storage.commit_log import load
from tamis.storage.object_store import open_store

pytestmark = pytest.mark.spark


@pytest.fixture
def numbers(lake: Lake) -> Lake:
    """A table of four parts of five rows, whose numbers ``n`` are in order."""
    lake.sql("CREATE TABLE lake.db.collected (n BIGINT, s STRING) USING tamis")
    for start in range(0, 20, 5):
        lake.sql(f"INSERT INTO lake.db.collected SELECT id, concat('s', id) FROM range({start}, {start + 5})")
    return lake


def both_builders(lake: Lake, options: dict[str, str]) -> tuple[Any, Any]:
    """Java's builder, and that of which every call comes to Python."""
    owner, store = bridge_of(lake.spark), open_store(lake.folder / "db" / "collected")
    collect_in_java(owner)
    table = SparkTable(owner, store, load(store), (lake.name, "db", "collected"))
    given = owner.new("org.apache.spark.sql.util.CaseInsensitiveStringMap", owner.map(options))
    return table.java().newScanBuilder(given), scan_builder(owner, table, given)


def pushed(lake: Lake, condition: str) -> Any:
    """Catalyst's conjuncts of a condition on the table."""
    plan = lake.sql("SELECT * FROM lake.db.collected").where(condition)._jdf.queryExecution().analyzed()
    owner = bridge_of(lake.spark)
    return owner.seq([plan.condition()])


def facts(scan: Any) -> list[str]:
    """What Spark reads off a scan: its text, type of rows, and rows left."""
    rows = scan.estimateStatistics().numRows().getAsLong()
    return [scan.description(), scan.readSchema().json(), str(scan.columnarSupportMode().toString()), str(rows)]


@pytest.mark.push_cases(4)
@pytest.mark.parametrize("condition", ["", "n > 16", "s = 's3' AND n < 9", "n / 0 > 1"])
@pytest.mark.parametrize("columns", ["", "s", "n, s"])
def test_it_plans_what_pythons_builder_plans(numbers: Lake, condition: str, columns: str) -> None:
    plans = []
    for builder in both_builders(numbers, {"tamis.audit.percent": "0"}):
        if condition:
            conjuncts = pushed(numbers, condition)
            assert builder.pushFilters(conjuncts).size() == 1, "Spark tests it again"
        if columns:
            builder.pruneColumns(numbers.sql(f"SELECT {columns} FROM lake.db.collected")._jdf.schema())
        plans.append(facts(builder.build()))
    assert plans[0] == plans[1]
    if condition == "n > 16":
        assert int(plans[0][3]) < 20, "parts are skipped"


def test_a_limit_finds_what_was_collected_before(numbers: Lake) -> None:
    """Filters and columns; Spark pushes no limit above a filter that it tests, but what if it did."""
    plans = []
    for builder in both_builders(numbers, {}):
        builder.pushFilters(pushed(numbers, "n > 11"))
        builder.pruneColumns(numbers.sql("SELECT s FROM lake.db.collected")._jdf.schema())
        assert builder.pushLimit(3)
        assert builder.isPartiallyPushed()
        plans.append(facts(builder.build()))
    assert plans[0] == plans[1]
    assert '"n"' not in plans[0][1]
    assert "filter: [(n > cast(11 AS BIGINT))]" in plans[0][0]
    assert "by the limit" in plans[0][0]


def test_filters_that_java_cannot_write_may_mean_anything(numbers: Lake) -> None:
    """As those nested too deeply; here one that is no expression."""
    plans = []
    for builder in both_builders(numbers, {}):
        builder.pushFilters(bridge_of(numbers.spark).seq(["no expression"]))
        plans.append(facts(builder.build()))
    assert plans[0] == plans[1]
    assert "could not be read" in plans[0][0]
    assert plans[0][3] == "20"


def test_wrong_options_are_refused_in_java_too(numbers: Lake) -> None:
    collect_in_java(bridge_of(numbers.spark))
    table = f"{numbers.name}.db.collected"
    assert len(numbers.spark.read.option("tamis.scan.limits", "false").table(table).collect()) == 20
    with pytest.raises(PySparkException, match="nonsense"):
        numbers.spark.read.option("nonsense", "1").table(table).collect()


def test_a_scan_is_planned_by_one_call(numbers: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that Java knows is asked for: also not once for each plan that adaptive execution makes."""
    numbers.rows("SELECT n FROM lake.db.collected WHERE n > 1")  # from the first on, Java collects
    calls, real = Counter[str](), Callback.apply

    def counted(callback: Callback, call: str, argument: Any) -> Any:
        calls[call.split(":")[1]] += 1
        return real(callback, call, argument)

    monkeypatch.setattr(Callback, "apply", counted)
    assert sorted(numbers.rows("SELECT n FROM lake.db.collected WHERE n > 16")) == [(17,), (18,), (19,)]
    asked = dict(calls)
    assert asked["plannedScan"] == 1
    asked.pop("run", None)  # the end of an execution, for report hooks of other tests
    assert set(asked) <= {"plannedScan", "loadTable", "loadRelation", "columns"}, asked
