"""Executors run the right interpreter, and one that lacks a package, or has another Tamis, says so once and by name."""

from __future__ import annotations

import ast
import json
import pickle
import subprocess
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from tests.spark import bare_python as bare_python_of
from tests.spark.conftest import Lake

import tamis
from tamis.errors import InvalidInput
from tamis.spark.executors.executor_function import ExecutorFunction, executor_error
from tamis.spark.executors.worker_python import choose_python, is_this_machine
from tamis.world import World, use, world

SPARK = Path(tamis.__file__).parent / "spark"


# --- the rule ---


class Machine(World):
    def __init__(self, **environment: str) -> None:
        self._environment = environment

    def environment(self) -> Mapping[str, str]:
        return self._environment


class Conf:
    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values

    def get(self, key: str, otherwise: str) -> str:
        return self._values.get(key, otherwise)


class Context:
    """As much of a SparkContext as the rule asks, with the addresses that Spark reports of the driver and its executors."""

    def __init__(self, master: str, addresses: str = "", python: str = "python3", **conf: str) -> None:
        self.master, self.addresses, self.pythonExec = master, addresses, python
        self.conf = Conf({key.replace("__", "."): value for key, value in conf.items()})
        self.jobs = 0
        self._jsc = self
        self._jvm = types.SimpleNamespace(
            java=types.SimpleNamespace(
                util=types.SimpleNamespace(Collections=types.SimpleNamespace(singletonList=lambda one: [one]))
            )
        )

    def getConf(self) -> Conf:
        return self.conf

    def sc(self) -> Any:
        keys = types.SimpleNamespace(mkString=lambda _: self.addresses)
        return types.SimpleNamespace(getExecutorMemoryStatus=lambda: types.SimpleNamespace(keys=lambda: keys))

    def parallelize(self, values: list[str], slices: int) -> Any:
        assert (values, slices) == ([""], 1)
        return self

    def count(self) -> int:
        """The job for which an executor starts."""
        self.jobs += 1
        self.addresses += " 127.0.0.1:77"
        return 1


HERE, THERE = "127.0.0.1:1", "203.0.113.7:1"  # the second is an address for documentation: nobody has it
CLUSTER = "spark://127.0.0.1:7077"


@pytest.mark.parametrize(
    ("context", "environment", "python"),
    [
        (Context("local"), {}, sys.executable),
        (Context("local[2]"), {}, sys.executable),
        (Context("local[2]", python="/told"), {"PYSPARK_PYTHON": "/told"}, "/told"),
        (Context("local[2]"), {"PYSPARK_PYTHON": "python3"}, "python3"),  # it was set, so it stays
        (Context("local[2]", python="/set/by/hand"), {}, "/set/by/hand"),
        (Context("local[2]", spark__pyspark__python="/conf"), {}, "/conf"),
        (Context("local[2]", spark__executorEnv__PYSPARK_PYTHON="/env"), {}, "/env"),
        (Context("yarn", spark__pyspark__python="/conf", spark__executorEnv__PYSPARK_PYTHON="/env"), {}, "/conf"),
        (Context(CLUSTER, f"{HERE} {HERE}"), {}, sys.executable),
        (Context(CLUSTER, f"{HERE} {THERE}"), {}, "python3"),
        (Context(CLUSTER, f"{HERE} {HERE} {THERE}"), {}, "python3"),
        (Context(CLUSTER, f"{HERE} {HERE}", python="/told"), {"PYSPARK_PYTHON": "/told"}, "/told"),
        (Context("local-cluster[1,1,512]", f"{HERE} [::1]:5"), {}, sys.executable),
        (Context("k8s://x", f"{HERE} 203.0.113.7:1"), {}, "python3"),
    ],
)
def test_the_rule(context: Context, environment: dict[str, str], python: str) -> None:
    with use(Machine(**environment)):
        for _ in range(2):
            choose_python(context, wait=True)
            assert context.pythonExec == python
    assert context.jobs == 0


def test_attach_does_not_wait_for_executors_and_a_job_does() -> None:
    context = Context(CLUSTER, HERE)
    with use(Machine()):
        choose_python(context, wait=False)
        assert (context.pythonExec, context.jobs) == ("python3", 0)
        choose_python(context, wait=True)
        assert (context.pythonExec, context.jobs) == (sys.executable, 1)


def test_an_executor_that_joins_elsewhere_ends_the_use_of_the_drivers_python() -> None:
    context = Context(CLUSTER, f"{HERE} {HERE}")
    with use(Machine()):
        choose_python(context, wait=True)
        assert context.pythonExec == sys.executable
        context.addresses += f" {THERE}"
        choose_python(context, wait=True)
        assert context.pythonExec == "python3"


@pytest.mark.parametrize(
    ("host", "here"),
    [("127.0.0.1", True), ("localhost", True), ("203.0.113.7", False), ("no.such.host.invalid", False)],
)
def test_this_machine(host: str, here: bool) -> None:
    assert is_this_machine(host) == here


# --- what an executor says ---


def said_by(shipped: bytes) -> InvalidInput:
    """The driver's error for what an executor raises as it unpickles a function."""
    with pytest.raises(RuntimeError) as caught:
        pickle.loads(shipped)
    error = executor_error(RuntimeError(f"Job aborted … Traceback …\nRuntimeError: {caught.value}\n\tat org.apache"))
    assert isinstance(error, InvalidInput)
    assert str(error) == str(caught.value)  # a query of the user's shows the one, a job of ours the other
    assert sys.executable in error.message
    return error


def test_a_shipped_function_is_the_function() -> None:
    assert ExecutorFunction(len)("abc") == 3
    assert pickle.loads(cloudpickle.dumps(ExecutorFunction(len))) is len
    limit = 7
    assert pickle.loads(cloudpickle.dumps(ExecutorFunction(lambda x: x + limit)))(1) == 8


@pytest.mark.parametrize(("process", "frozen"), [("pyspark.worker", True), ("tamis", False)])
def test_a_worker_does_not_visit_what_is_imported_after_each_task(process: str, frozen: bool) -> None:
    """Spark's worker collects garbage after each task; the process of a driver goes on as it was."""
    shipped = cloudpickle.dumps(ExecutorFunction(len))
    script = f"import gc, pickle, {process}; pickle.loads({shipped!r}); print(gc.get_freeze_count() > 1_000)"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == [str(frozen)]


@pytest.mark.parametrize("package", ["tamis", "pyroaring"])
def test_a_missing_package_is_named(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyroaring import BitMap

    shipped = cloudpickle.dumps(ExecutorFunction(BitMap))
    monkeypatch.setitem(sys.modules, package, None)
    error = said_by(shipped)
    assert (error.code, error.name) == ("MISSING_PACKAGE", package)
    assert f"which has no {package}." in error.message
    assert f"tamis[spark]=={tamis.__version__}" in error.remedy
    assert "PYSPARK_PYTHON" in error.remedy


def test_a_folder_named_tamis_is_not_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = cloudpickle.dumps(ExecutorFunction(len))
    monkeypatch.setitem(sys.modules, "tamis", types.ModuleType("tamis"))
    assert said_by(shipped).code == "MISSING_PACKAGE"


def test_another_version_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = cloudpickle.dumps(ExecutorFunction(len))
    ours = tamis.__version__
    other = types.ModuleType("tamis")
    monkeypatch.setattr(other, "__version__", "0.0.9", raising=False)
    monkeypatch.setitem(sys.modules, "tamis", other)
    error = said_by(shipped)
    assert (error.code, error.name) == ("VERSION_DIFFERS", "0.0.9")
    assert f"with tamis 0.0.9, the driver {sys.executable} with tamis {ours}." in error.message


def test_other_failures_are_not_ours() -> None:
    assert executor_error(RuntimeError("[MISSING_PACKAGE] The format vortex needs the package vortex-data.")) is None


def test_every_function_for_executors_is_shipped() -> None:
    """``mapInArrow``, and ``map`` and ``flatMap`` of an RDD, take a shipped function, or one that ``executor_function`` returned."""
    loose = []
    for path in sorted(SPARK.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            on_rdd = node.func.attr in {"map", "flatMap", "mapPartitions"} and "parallelize" in ast.unparse(node.func)
            if on_rdd or node.func.attr in {"mapInArrow", "mapInPandas"}:
                given = ast.unparse(node.args[0])
                shipped = given.startswith("executor_function(") or f"{given} = executor_function(" in path.read_text()
                loose += [] if shipped else [f"{path.name}: {given}"]
    assert loose == []


# --- on executors without Tamis ---


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bare_python_of.made(tmp_path_factory.mktemp("bare"))


@pytest.fixture
def bare(spark: Any, bare_python: Path) -> Iterator[Callable[[], None]]:
    """From the call on, executors run an interpreter without Tamis."""
    context = spark.sparkContext
    before = context.pythonExec
    yield lambda: setattr(context, "pythonExec", str(bare_python))
    context.pythonExec = before


VERBS: dict[str, Callable[[Any, Any], Any]] = {
    "append": lambda table, df: table.append(df),
    "overwrite": lambda table, df: table.overwrite(df, "id < 5"),
    "merge": lambda table, df: table.upsert(df, on=["id"]),
    "delete": lambda table, df: table.delete("length(s) > 3 AND id % 2 = 0", spark=df.sparkSession),
    "update": lambda table, df: table.update({"s": "'x'"}, "id % 2 = 0", spark=df.sparkSession),
    "compact": lambda table, df: table.compact(spark=df.sparkSession),
}


def table_of_parts(path: Path) -> Any:
    table = tamis.create(path, pa.schema({"id": pa.int64(), "s": pa.string()}))
    for n in range(12):
        table.append(pa.table({"id": range(n * 10, n * 10 + 10), "s": ["text"] * 10}))
    return table


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.push_cases(2)
def test_each_verb_names_the_missing_package(
    verb: str, spark: Any, bare: Callable[[], None], tmp_path: Path, bare_python: Path
) -> None:
    table = table_of_parts(tmp_path / "t")
    version = table.version
    df = spark.range(20).selectExpr("id", "cast(id AS string) AS s")
    bare()
    with pytest.raises(InvalidInput) as caught:
        VERBS[verb](table, df)
    assert (caught.value.code, caught.value.name) == ("MISSING_PACKAGE", "tamis")
    assert str(bare_python.parent) in caught.value.message
    assert tamis.open(tmp_path / "t").version == version


def test_queries_name_the_missing_package(lake: Lake, bare: Callable[[], None]) -> None:
    """In SQL and in a DataFrame of a scan, as PySpark shows what a Python worker raises."""
    lake.sql("CREATE TABLE lake.db.t (id BIGINT, s STRING) USING tamis")
    lake.sql("INSERT INTO lake.db.t SELECT id, cast(id AS string) FROM range(100)")
    scan = tamis.open(lake.folder / "db" / "t").scan("id < 50")
    bare()
    for run in (
        lambda: lake.rows("SELECT * FROM lake.db.t WHERE id % 7 = 3"),
        lambda: scan.to_spark(lake.spark).collect(),
        lambda: lake.sql("INSERT INTO lake.db.t SELECT id, 'x' FROM range(5)"),
    ):
        with pytest.raises(Exception, match=r"\[MISSING_PACKAGE\] The executor on .*, which has no tamis\. Install"):
            run()


ONE_TASK = """
import json, sys
sys.path[:0] = json.loads(sys.argv[1])
from pyspark.sql import SparkSession
import pyarrow as pa, tamis

spark = (SparkSession.builder.master("local[1,50]").config("spark.ui.enabled", "false").config("spark.driver.host", "127.0.0.1")
         .config("spark.driver.bindAddress", "127.0.0.1").config("spark.ui.showConsoleProgress", "false").getOrCreate())
spark.sparkContext.setLogLevel("OFF")
spark.sparkContext.pythonExec = sys.argv[2]
table = tamis.create(sys.argv[3], pa.schema({"id": pa.int64()}))
codes = []
try:
    table.append(spark.range(10))
except tamis.TamisError as error:
    codes.append(error.code)
sc = spark.sparkContext._jsc.sc()
sc.listenerBus().waitUntilEmpty(30_000)
jobs = sc.statusStore().jobsList(None)
print(json.dumps([codes, sum(jobs.apply(i).numFailedTasks() for i in range(jobs.size()))]))
spark.stop()
"""


@pytest.mark.spark
@pytest.mark.merge
def test_the_first_task_ends_the_job(bare_python: Path, tmp_path: Path) -> None:
    """The first task ends the job although Spark may try a task 50 times."""
    environment = {k: v for k, v in world().environment().items() if k not in {"PYSPARK_PYTHON", "PYTHONPATH"}}
    run = subprocess.run(
        [sys.executable, "-c", ONE_TASK, json.dumps(sys.path[1:]), str(bare_python), str(tmp_path / "t")],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-3000:]
    codes, failed = json.loads(run.stdout.splitlines()[-1])
    assert codes == ["MISSING_PACKAGE"]
    assert 1 <= failed < 10


NOT_ACTIVE = """
import json, sys
sys.path[:0] = json.loads(sys.argv[1])
import pyarrow as pa, pyarrow.parquet
from pyspark.sql import SparkSession
import tamis
from tamis.cli.ingest import ingest_folder

folder = sys.argv[2]
pa.parquet.write_table(pa.table({"id": range(100), "s": ["text"] * 100}), folder + "/new/1.parquet")
done = {"ingest": ingest_folder(folder + "/t", folder + "/new")["rows"]}
table = tamis.open(folder + "/t")
for n in range(1, 8):
    table.append(pa.table({"id": range(n * 100, n * 100 + 100), "s": ["text"] * 100}))
spark = (SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config("spark.driver.host", "127.0.0.1")
         .config("spark.driver.bindAddress", "127.0.0.1").config("spark.ui.showConsoleProgress", "false").getOrCreate())
spark.sparkContext.setLogLevel("OFF")
df = spark.range(795, 805).selectExpr("id", "'new' AS s")
verbs = {
    "append": lambda: table.append(df).rows_inserted,
    "upsert": lambda: table.upsert(spark.range(3).selectExpr("id", "'upserted' AS s"), on=["id"]).rows_updated,
    "update": lambda: table.update({"s": "'x'"}, "id % 100 = 7", spark=spark).rows_updated,
    "delete": lambda: table.delete("length(s) > 3 AND id % 100 = 9", spark=spark).rows_deleted,
    "to_spark": lambda: table.scan("id >= 100").to_spark(spark).count(),
    "compact": lambda: table.compact(spark=spark).parts_removed > 0,
}
for name, verb in verbs.items():
    spark.sparkContext.pythonExec = "python3"  # as PySpark sets it
    done[name] = verb()
    assert spark.sparkContext.pythonExec == sys.executable
tamis.attach(spark, "lake", folder + "/lake")
spark.sparkContext.pythonExec = "python3"
spark.sql("CREATE NAMESPACE lake.db")
spark.sql("CREATE TABLE lake.db.t USING tamis AS SELECT id FROM range(10)")
done["select"] = spark.sql("SELECT count(id) FROM lake.db.t WHERE id % 2 = 0").first()[0]
print(json.dumps(done))
spark.stop()
"""


@pytest.mark.spark
@pytest.mark.merge
def test_no_environment_needs_to_be_active(bare_python: Path, tmp_path: Path) -> None:
    """The first ``python3`` on PATH has no Tamis, and nothing tells Spark of another."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "new").mkdir()
    (tmp_path / "bin" / "python3").symlink_to(bare_python)
    environment = {k: v for k, v in world().environment().items() if k not in {"PYSPARK_PYTHON", "PYTHONPATH"}}
    environment["PATH"] = f"{tmp_path / 'bin'}:{environment['PATH']}"
    run = subprocess.run(
        [sys.executable, "-c", NOT_ACTIVE, json.dumps(sys.path[1:]), str(tmp_path)],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-3000:]
    assert json.loads(run.stdout.splitlines()[-1]) == {
        "ingest": 100, "append": 10, "upsert": 3, "update": 8, "delete": 8, "to_spark": 703, "compact": True, "select": 5,
    }  # fmt: skip
