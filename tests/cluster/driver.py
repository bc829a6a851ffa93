"""The drivers of the cluster's tests, each in a process of its own: ``python driver.py SCENARIO JSON`` prints what it found as JSON.

It is run by a shell in which no environment is active. What it prints in between (``READY`` and the application's id) tells the test when to act.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import tamis
from tamis.errors import TamisError
from tamis.world import world

SLOWLY = "java_method('java.lang.Thread', 'sleep', {millis}L)"
"""SQL that waits in each row, in the JVM of the executor."""


class Driver:
    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings
        conf = {
            "spark.master": settings["master"],
            "spark.executor.memory": "512m",
            "spark.driver.memory": "512m",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            "spark.local.dir": settings["folder"],
            "spark.sql.warehouse.dir": f"{settings['folder']}/warehouse",
            "spark.sql.shuffle.partitions": "4",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.executorEnv.PYTHONPATH": world().environment()["PYTHONPATH"],
            "spark.executorEnv.TAMIS_SIZES": world().environment().get("TAMIS_SIZES", ""),
            **settings.get("conf", {}),
        }
        builder = SparkSession.builder.appName("tamis-cluster")
        for key, value in conf.items():
            builder = builder.config(key, value)
        self.spark = builder.getOrCreate()
        self.spark.sparkContext.setLogLevel("OFF")
        tamis.attach(self.spark, "lake", settings["warehouse"], storage_options=settings["options"])

    def sql(self, text: str) -> list[list[Any]]:
        return [list(row) for row in self.spark.sql(text).collect()]

    def open(self, name: str) -> Any:
        return tamis.open(f"{self.settings['warehouse']}/db/{name}", storage_options=self.settings["options"])

    def while_running(self, work: Callable[[], Any], moment: Callable[[Any, float], bool]) -> Any:
        """Run ``work``, and print READY once ``moment`` holds for a stage; return whether it did, and the result."""
        found: list[Any] = []
        tracker = self.spark.sparkContext.statusTracker()

        def run() -> None:
            try:
                found.append(work())
            except Exception as error:
                found.append(f"{type(error).__name__}: {error}")

        thread = threading.Thread(target=run)
        thread.start()
        announced = False
        begun: dict[int, float] = {}
        while thread.is_alive():
            now = world().monotonic()
            stages = [info for stage in tracker.getActiveStageIds() if (info := tracker.getStageInfo(stage))]
            if not announced and any(moment(stage, now - begun.setdefault(stage.stageId, now)) for stage in stages):
                announced = True
                print(f"READY {self.spark.sparkContext.applicationId}", flush=True)
            world().sleep(0.01)
        thread.join()
        return [announced, found[0]]

    def jobs(self) -> list[Any]:
        context = self.spark.sparkContext._jsc.sc()
        context.listenerBus().waitUntilEmpty(60_000)
        found = context.statusStore().jobsList(None)
        return [found.apply(i) for i in range(found.size())]

    def failed_tasks(self) -> int:
        return sum(job.numFailedTasks() for job in self.jobs())

    def descriptions(self) -> list[str]:
        """What Tamis's own jobs were for."""
        texts = {job.description().get() for job in self.jobs() if job.description().isDefined()}
        return sorted(
            {text.removeprefix("Tamis: ").partition(" s3://")[0] for text in texts if text.startswith("Tamis: ")}
        )

    def python_of_executors(self) -> list[str]:
        rows = self.spark.sparkContext.parallelize(range(4), 4).map(lambda _: __import__("sys").executable).collect()
        return sorted(set(rows))

    def counted(self, name: str) -> list[Any]:
        return self.sql(f"SELECT count(*), count(DISTINCT id), sum(id) FROM lake.db.{name}")[0]


def some_tasks_done(stage: Any, seconds: float) -> bool:
    del seconds
    return bool(stage.numCompletedTasks > 0 and stage.numActiveTasks > 0)


def verbs(driver: Driver) -> dict[str, Any]:
    """Each statement and verb once; after each, the rows as Spark and as Python without Spark count them."""
    out: dict[str, Any] = {}

    def note(step: str) -> None:
        table = driver.open("t")
        embedded = table.scan(selected_fields=("id",)).to_arrow()["id"].to_pylist()
        out[step] = [driver.counted("t"), [len(embedded), len(set(embedded)), sum(embedded)]]

    driver.sql("CREATE NAMESPACE lake.db")
    driver.sql("CREATE TABLE lake.db.t (id BIGINT, user INT, s STRING) USING tamis CLUSTER BY (id)")
    driver.sql("INSERT INTO lake.db.t SELECT id, cast(id % 97 AS int), concat('row ', id) FROM range(0, 20000, 1, 4)")
    note("insert")
    driver.open("t").append(driver.spark.range(20_000, 21_000).selectExpr("id", "1 AS user", "'new' AS s"))
    note("append")
    driver.sql("CREATE TABLE lake.db.u USING tamis AS SELECT * FROM lake.db.t WHERE id % 2 = 0")
    out["ctas"] = driver.counted("u")
    driver.sql(
        "MERGE INTO lake.db.t AS t USING (SELECT id, 5 AS user FROM range(20500, 22000)) AS s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET user = s.user WHEN NOT MATCHED THEN INSERT (id, user, s) VALUES (s.id, s.user, 'merged')"
    )
    note("merge")
    driver.sql("UPDATE lake.db.t SET s = upper(s) WHERE user = 96")
    out["update"] = driver.sql("SELECT count(*) FROM lake.db.t WHERE s LIKE 'ROW%'")
    driver.sql("DELETE FROM lake.db.t WHERE id % 10 = 3")
    note("delete")
    driver.open("t").delete("user = 96 AND length(s) > 0", spark=driver.spark)
    note("delete_by_path")
    driver.sql("CREATE INDEX by_user ON lake.db.t (user)")
    out["index"] = driver.sql("SELECT count(*) FROM lake.db.t WHERE user = 11")
    out["indexes"] = len(driver.open("t").indexes())
    driver.open("t").compact(spark=driver.spark)
    note("compact")
    out["scan"] = driver.open("t").scan("id < 50").to_spark(driver.spark).count()
    driver.sql("CREATE TABLE lake.db.s (id BIGINT, user INT, s STRING) USING tamis")
    query = (
        driver.spark.readStream.table("lake.db.t").writeStream.trigger(availableNow=True)
        .option("checkpointLocation", f"{driver.settings['folder']}/checkpoint").toTable("lake.db.s")
    )  # fmt: skip
    query.awaitTermination(300)
    out["stream"] = driver.counted("s")
    out["python"] = driver.python_of_executors()
    out["failed"] = driver.failed_tasks()
    out["jobs"] = driver.descriptions()
    return out


def killed_in_write(driver: Driver) -> dict[str, Any]:
    driver.sql("CREATE NAMESPACE lake.db")
    driver.sql("CREATE TABLE lake.db.t (id BIGINT, waited STRING) USING tamis")
    statement = f"INSERT INTO lake.db.t SELECT id, {SLOWLY.format(millis=20)} FROM range(0, 400, 1, 8)"
    ran = driver.while_running(lambda: driver.sql(statement), some_tasks_done)
    return {
        "ran": ran,
        "rows": driver.counted("t"),
        "failed": driver.failed_tasks(),
        "commits": driver.open("t").version,
    }


def wait(number: int) -> str:
    world().sleep(0.04)
    return str(number)


def killed_in_merge(driver: Driver) -> dict[str, Any]:
    driver.sql("CREATE NAMESPACE lake.db")
    driver.sql("CREATE TABLE lake.db.t (id BIGINT, n INT, waited STRING) USING tamis")
    driver.sql("INSERT INTO lake.db.t SELECT id, 0, 'x' FROM range(0, 300, 1, 4)")
    driver.spark.udf.register("wait", wait)  # SLOWLY is not deterministic for Spark, as a condition of a MERGE must be
    source = "(SELECT id, 1 AS n, wait(id) AS waited FROM range(200, 600, 1, 8))"
    statement = (
        f"MERGE INTO lake.db.t AS t USING {source} AS s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET n = t.n + 1 WHEN NOT MATCHED THEN INSERT (id, n, waited) VALUES (s.id, 1, s.waited)"
    )
    ran = driver.while_running(
        lambda: driver.sql(statement), lambda stage, seconds: bool(stage.numActiveTasks > 0 and seconds > 2)
    )
    sums = driver.sql("SELECT sum(n), max(n) FROM lake.db.t")[0]
    return {"ran": ran, "rows": driver.counted("t"), "sums": sums, "failed": driver.failed_tasks()}


def append_users(driver: Driver, rows: int = 50_000) -> None:
    """Create ``lake.db.t`` with six parts of ``rows`` rows each, written without Spark."""
    driver.sql("CREATE NAMESPACE lake.db")
    driver.sql("CREATE TABLE lake.db.t (id BIGINT, user INT) USING tamis CLUSTER BY (user)")
    for n in range(6):
        table = driver.open("t")
        ids = range(n * rows, (n + 1) * rows)
        table.append(
            pa.table({"id": pa.array(ids, pa.int64()), "user": pa.array([i % 1_000 for i in ids], pa.int32())})
        )


def some_task_runs(stage: Any, seconds: float) -> bool:
    """The first Python worker of an executor takes a second to start, so the task is not done yet."""
    del seconds
    return bool(stage.numActiveTasks > 0)


def killed_in_index_build(driver: Driver) -> dict[str, Any]:
    append_users(driver, 500_000)  # a task takes seconds, so that it still runs when its executor is killed
    ran = driver.while_running(lambda: driver.sql("CREATE INDEX by_id ON lake.db.t (id)"), some_task_runs)
    table = driver.open("t")
    scan = table.scan("id = 123456")
    rows = scan.to_arrow().num_rows
    assert scan.report is not None
    return {
        "ran": ran,
        "failed": driver.failed_tasks(),
        "coverage": [[found.name, len(found.covered), len(found.missing)] for found in table.indexes()],
        "needle": [rows, scan.report.rows.leader, driver.sql("SELECT count(*) FROM lake.db.t WHERE id = 123456")],
        "problems": table.verify().problems.to_pylist(),
    }


def killed_in_stream(driver: Driver) -> dict[str, Any]:
    """Three micro-batches, an executor killed in one of them; then more rows and a restarted query."""
    driver.sql("CREATE NAMESPACE lake.db")
    driver.sql("CREATE TABLE lake.db.t (id BIGINT) USING tamis")
    driver.sql("CREATE TABLE lake.db.s (id BIGINT, waited STRING) USING tamis")
    for n in range(6):
        driver.open("t").append(pa.table({"id": pa.array(range(n * 50, (n + 1) * 50), pa.int64())}))

    def copy(millis: int) -> str:
        query = (
            driver.spark.readStream.option("maxFilesPerTrigger", 2).table("lake.db.t")
            .selectExpr("id", f"{SLOWLY.format(millis=millis)} AS waited")
            .writeStream.trigger(availableNow=True)
            .option("checkpointLocation", f"{driver.settings['folder']}/checkpoint").toTable("lake.db.s")
        )  # fmt: skip
        query.awaitTermination(300)
        return str(query.exception())

    ran = driver.while_running(lambda: copy(60), lambda stage, seconds: some_task_runs(stage, seconds) and seconds > 1)
    first = driver.counted("s")
    driver.open("t").append(pa.table({"id": pa.array(range(300, 350), pa.int64())}))
    restarted = copy(0)
    return {
        "ran": ran,
        "failed": driver.failed_tasks(),
        "rows": first,
        "restarted": [restarted, driver.counted("s")],
        "commits": driver.open("s").version,
    }


def killed_in_upkeep(driver: Driver) -> dict[str, Any]:
    append_users(driver)
    ran = driver.while_running(lambda: driver.open("t").compact(spark=driver.spark).parts_removed, some_task_runs)
    return {
        "ran": ran,
        "rows": driver.counted("t"),
        "failed": driver.failed_tasks(),
        "parts": len(driver.open("t").scan().plan().parts),
    }


def late_worker(driver: Driver) -> dict[str, Any]:
    driver.sql("CREATE NAMESPACE lake.db")
    driver.sql("CREATE TABLE lake.db.t (id BIGINT, waited STRING) USING tamis")
    executors = lambda: driver.spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1  # noqa: E731
    driver.sql("INSERT INTO lake.db.t SELECT id, 'x' FROM range(0, 10, 1, 2)")
    before = executors()
    statement = f"INSERT INTO lake.db.t SELECT id, {SLOWLY.format(millis=100)} FROM range(10, 1210, 1, 60)"
    ran = driver.while_running(lambda: driver.sql(statement), some_tasks_done)
    tasks = driver.spark.sparkContext._jsc.sc().statusStore().executorList(True)
    by_executor = {tasks.apply(i).id(): tasks.apply(i).completedTasks() for i in range(tasks.size())}
    return {
        "ran": ran,
        "rows": driver.counted("t"),
        "executors": [before, executors()],
        "tasks": by_executor,
        "python": driver.python_of_executors(),
    }


def without_tamis(driver: Driver) -> dict[str, Any]:
    """``PYSPARK_PYTHON`` names an interpreter that has no Tamis."""
    driver.sql("CREATE NAMESPACE lake.db")
    driver.sql("CREATE TABLE lake.db.t (id BIGINT) USING tamis")
    for n in range(3):
        driver.open("t").append(pa.table({"id": [n]}))
    outcomes: dict[str, Any] = {}
    steps: dict[str, Callable[[], Any]] = {
        "append": lambda: driver.open("t").append(driver.spark.range(0, 10, 1, 2)),
        "compact": lambda: driver.open("t").compact(spark=driver.spark),
        "insert": lambda: driver.sql("INSERT INTO lake.db.t SELECT id FROM range(0, 10, 1, 2)"),
        "select": lambda: driver.sql("SELECT * FROM lake.db.t WHERE id % 2 = 0"),
    }
    before = 0
    for name, step in steps.items():
        try:
            outcomes[name] = ["", str(step())]
        except (TamisError, PySparkException) as error:
            outcomes[name] = [type(error).__name__, str(error)]
        failed = driver.failed_tasks()
        outcomes[name].append(failed - before)
        before = failed
    return {"outcomes": outcomes, "version": driver.open("t").version}


SCENARIOS = {
    f.__name__: f
    for f in (
        verbs,
        killed_in_write,
        killed_in_merge,
        killed_in_upkeep,
        killed_in_index_build,
        killed_in_stream,
        late_worker,
        without_tamis,
    )
}

if __name__ == "__main__":
    this = Driver(json.loads(sys.argv[2]))
    print("FOUND " + json.dumps(SCENARIOS[sys.argv[1]](this)), flush=True)
    this.spark.stop()
