"""Scan and write nodes have SQL metrics in Spark's status store, from which the Spark UI and its API read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.spark.conftest import Lake

pytestmark = pytest.mark.spark


def shown(spark: Any, node: str, *, outer: bool = False) -> dict[str, str]:
    """Return a node's latest metrics, by description; ``outer`` leaves out executions within others."""
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(30_000)
    store = spark._jsparkSession.sharedState().statusStore()
    executions = store.executionsList()
    for at in reversed(range(executions.size())):
        found = executions.apply(at).executionId()
        if outer and found != executions.apply(at).rootExecutionId():
            continue
        values = store.executionMetrics(found)
        nodes = store.planGraph(found).allNodes()
        for i in range(nodes.size()):
            if nodes.apply(i).name().startswith(node):
                metrics = nodes.apply(i).metrics()
                asked = [metrics.apply(m) for m in range(metrics.size())]
                metric_values = {m.name(): values.get(m.accumulatorId()) for m in asked}
                return {name: str(value.get()) for name, value in metric_values.items() if value.isDefined()}
    raise AssertionError(f"No execution has a node {node}.")


@pytest.fixture
def filled(lake: Lake) -> Lake:
    lake.sql("CREATE TABLE lake.db.t (id BIGINT, s STRING) USING tamis")
    for first in (0, 100, 200):
        lake.sql(f"INSERT INTO lake.db.t SELECT /*+ COALESCE(1) */ id, 'x' FROM range({first}, {first + 100})")
    return lake


@pytest.mark.parametrize("reader", ["off", "native"])
def test_a_scan_shows_what_was_skipped(filled: Lake, reader: str) -> None:
    rows = filled.rows(f"SELECT * FROM lake.db.t WITH ('tamis.read.lazy' = '{reader}') WHERE id = 150")
    assert rows == [(150, "x")]
    metrics = shown(filled.spark, "BatchScan")
    assert metrics["parts in the table"] == "3"
    assert metrics["parts to read"] == "1"
    assert metrics["segments skipped"] == "2"
    assert metrics["parts skipped in skipped segments"] == "2"
    assert metrics["table version"] == "3"
    assert metrics["parts skipped by an index"] == "0"
    assert metrics["number of output rows"]
    assert metrics["size of the table"].endswith(("B", "KiB"))


def test_a_write_shows_its_commit(filled: Lake) -> None:
    metrics = shown(filled.spark, "AppendData")
    assert (metrics["committed version"], metrics["rows inserted"], metrics["parts added"]) == ("3", "100", "1")
    assert metrics["rows deleted"] == "0"
    assert metrics["bytes written"].endswith(("B", "KiB"))


def test_an_update_and_a_join_show_their_metrics(filled: Lake) -> None:
    filled.sql("UPDATE lake.db.t SET s = 'y' WHERE id = 150 OR id = 250")
    assert shown(filled.spark, "AppendData")["rows updated"] == "2"
    filled.sql("CREATE TABLE lake.db.k (id BIGINT, name STRING) USING tamis")
    filled.sql("INSERT INTO lake.db.k VALUES (250, 'a'), (1, 'b')")
    filled.sql("SELECT t.* FROM lake.db.t JOIN lake.db.k ON t.id = k.id WHERE k.name = 'a'").collect()
    metrics = shown(filled.spark, f"BatchScan {filled.name}.db.t")
    assert (metrics["parts skipped by join keys"], metrics["parts to read"]) == ("3", "2"), "of this execution's plan"


NOOP: Callable[[Any], Any] = lambda writer: writer.format("noop")  # noqa: E731
EACH: Callable[[Any], Any] = lambda writer: writer.foreachBatch(lambda df, epoch: df.collect())  # noqa: E731


@pytest.mark.parametrize("sink", [NOOP, EACH], ids=["sink", "foreachBatch"])
def test_a_micro_batch_shows_what_it_skipped(filled: Lake, tmp_path: Path, sink: Callable[[Any], Any]) -> None:
    def run() -> dict[str, str]:
        rows = filled.spark.readStream.table(f"{filled.name}.db.t").where("id = 150")
        query = sink(rows.writeStream).option("checkpointLocation", str(tmp_path / "checkpoint"))
        query.trigger(availableNow=True).start().awaitTermination(60)
        return shown(filled.spark, "MicroBatchScan", outer=sink is EACH)

    metrics = run()
    assert (metrics["parts in the range"], metrics["parts to read"], metrics["segments skipped"]) == ("3", "1", "2")
    assert metrics["parts skipped in skipped segments"] == "2"
    assert metrics["table version"] == "3"
    assert metrics["size of the range"].endswith(("B", "KiB"))
    assert "parts in the table" not in metrics, "the scan of the stream has none"
    filled.sql("INSERT INTO lake.db.t SELECT /*+ COALESCE(1) */ id, 'x' FROM range(300, 310)")
    metrics = run()
    assert (metrics["parts in the range"], metrics["parts to read"], metrics["table version"]) == ("1", "0", "4")
    assert metrics["size of the parts to read"] == "0.0 B"


@pytest.mark.parametrize("sink", [NOOP, EACH], ids=["sink", "foreachBatch"])
def test_the_tasks_of_a_micro_batch_report_their_metrics(
    filled: Lake, tmp_path: Path, sink: Callable[[Any], Any]
) -> None:
    """With ``foreachBatch``, in the execution that the consumer started."""
    rows = filled.spark.readStream.table(f"{filled.name}.db.t").where("id >= 150")
    query = sink(rows.writeStream).option("checkpointLocation", str(tmp_path / "checkpoint"))
    query.trigger(availableNow=True).start().awaitTermination(60)
    metrics = shown(filled.spark, "MicroBatchScan")
    if sink is EACH and metrics == shown(filled.spark, "MicroBatchScan", outer=True):
        assert not filled.spark.version.startswith("4.3")
        pytest.skip("this Spark does not show the plan of a micro-batch in what its consumer starts")
    assert metrics["number of output rows"] == "150"
    assert "B" in metrics["data returned from Python workers"]
    assert not metrics["data returned from Python workers"].startswith("0")
