"""Which releases of Spark are taken, and what is asked of each: its classes are probed, its number only for the refusal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import tamis
from tamis.cli.session import spark_session
from tamis.core.types import Generation
from tamis.errors import InvalidInput
from tamis.spark.catalog.create_table import requested_definition
from tamis.spark.jvm_bridge.adapter import bridge_of
from tamis.spark.jvm_bridge.session_checks import check_version
from tamis.spark.scan import python_source
from tamis.spark.scan.pushed_filters import java_builder
from tamis.spark.sql.newer_statements import NEWER, newer_statements
from tamis.spark.sql.statements import Statements
from tamis.spark.write.insert_by_path import append
from tamis.spark.write.spark_compact import executor_workers

ADD = '{"type": "struct", "fields": [{"name": "a", "type": "integer", "nullable": true, "metadata": {}}]}'


def code(version: str) -> str | None:
    """The code of the refusal; None if the version is taken."""
    try:
        check_version(version)
    except InvalidInput as error:
        return error.code
    return None


@pytest.mark.parametrize("version", ["4.0.0", "4.0.2-amzn-1", "4.1.4", "4.2.0", "4.3.0", "4.3.1-SNAPSHOT"])
def test_supported_releases_are_taken(version: str) -> None:
    assert code(version) is None


@pytest.mark.parametrize("version", ["3.5.9", "3.5.1-databricks", "4.4.0", "5.0.0", "40.0.0", "", "main"])
def test_other_releases_are_refused_by_name(version: str) -> None:
    with refused(version):
        check_version(version)


class Untouched:
    """A session of Spark 3.5 of which nothing may be asked but its version: no JVM, no context."""

    version = "3.5.9"
    _jsparkSession = None  # it has one, as a classic session does

    def createDataFrame(self) -> None:
        raise AssertionError("asked")


@contextmanager
def refused(version: str = "3.5.9") -> Iterator[None]:
    with pytest.raises(InvalidInput) as caught:
        yield
    assert caught.value.code == "UNSUPPORTED_SPARK"
    assert str(caught.value).startswith(f"[UNSUPPORTED_SPARK] Tamis needs Spark 4.0 to 4.3; this is {version}.")


def test_every_entry_refuses_before_it_touches_the_jvm(tmp_path: Path) -> None:
    spark: Any = Untouched()
    table = tamis.create(tmp_path / "t", pa.schema([("a", pa.int64())]))
    frame = SimpleNamespace(sparkSession=spark, createTempView=lambda _: None)
    spark.catalog = SimpleNamespace(dropTempView=lambda _: None)
    with refused():
        tamis.attach(spark, "lake", tmp_path)
    with refused():
        append(table, frame, merge_schema=True)
    with refused():
        table.delete("a = 1", spark=spark)
    with refused():
        table.update({"a": "2"}, "a = 1", spark=spark)
    with refused():
        table.scan("a = 1").to_spark(spark)
    with refused():
        executor_workers(spark)
    assert table.refresh().version == 0


def test_the_bridge_compiles_nothing_for_another_spark() -> None:
    compiled: Any = SimpleNamespace(sparkContext=SimpleNamespace(_gateway=Untouched()), version="3.5.9")
    with refused():
        bridge_of(compiled)


def test_the_command_line_refuses_before_spark_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark.__version__", "3.5.9")
    monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: pytest.fail("Spark was asked"))
    with refused(), spark_session():
        pass


class Java:
    """A bridge that records what is called, of a Spark with the given constructors and methods."""

    def __init__(self, *offered: tuple[str, int]) -> None:
        self.offered = offered
        self.made: list[tuple[str, int]] = []

    def has_method(self, class_name: str, method: str, count: int) -> bool:
        return (f"{class_name.rpartition('.')[2]}.{method}", count) in self.offered

    def new(self, name: str, *arguments: object) -> None:
        self.made.append((name.rpartition(".")[2], len(arguments)))

    def scala_object(self, name: str) -> str:
        return name

    def dict(self, java_map: dict[str, str]) -> dict[str, str]:
        return java_map

    def static(self, _: str, method: str) -> Any:
        assert method == "v2ColumnsToStructType"
        return lambda columns: columns.struct


@pytest.mark.parametrize(("offered", "arguments"), [([("PythonPartitionReaderFactory.new", 5)], 5), ([], 4)])
def test_the_reader_factory_gets_the_arguments_that_it_has(
    offered: list[tuple[str, int]], arguments: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    java: Any = Java(*offered)
    monkeypatch.setattr(python_source, "_python_source", lambda *_: "source")
    monkeypatch.setattr(python_source, "executor_function_by", lambda _, __, function: function)
    monkeypatch.setattr("pyspark.SparkContext._active_spark_context", object())
    python_source.python_reader(java, len, "schema")  # type: ignore[arg-type]  # any function pickles
    assert java.made == [("PythonPartitionReaderFactory", arguments)]


@pytest.mark.parametrize("pushes", [True, False])
def test_builders_get_filters_of_a_spark_that_pushes_them_to_file_scans_only(pushes: bool) -> None:
    """Spark 4.0 asks its own FileScanBuilder alone. Without one of that class nothing would be skipped."""
    push = (lambda builder, filters: builder.pushFilters(filters)) if pushes else (lambda *_: None)
    java: Any = SimpleNamespace(
        implement=lambda _, target, *__: target,
        make_once=lambda _, __, make: make(),
        scala_object=lambda _: SimpleNamespace(pushFilters=push),
        seq=lambda items: items,
        helper=lambda name: SimpleNamespace(over=lambda proxy: (name, proxy)),
    )
    assert java_builder(java, [], "target") == ("target" if pushes else ("FileFilters", "target"))


@pytest.mark.spark
def test_filters_limits_and_aggregates_reach_the_scan(lake: Any) -> None:
    lake.sql("CREATE TABLE lake.db.t (a INT) USING tamis")
    for value in range(3):
        lake.sql(f"INSERT INTO lake.db.t VALUES ({value})")
    for text, skipped in {
        "SELECT a FROM lake.db.t WHERE a + 0 > 1": "by statistics",
        "SELECT a FROM lake.db.t WHERE a >= 0 LIMIT 1": "by the limit",
        "SELECT max(a) FROM lake.db.t WHERE a > 0": "answered from metadata",
    }.items():
        assert len(lake.rows(text)) == 1
        assert skipped in str(tamis.reports()[0]), text


class JavaArray(list[Any]):
    """Py4J's class of this name, here of columns whose ``StructType`` is ``struct``."""

    def __init__(self, *columns: Any, struct: Any) -> None:
        super().__init__(columns)
        self.struct = struct


def test_a_table_is_defined_by_a_table_info_or_by_its_parts() -> None:
    """Spark 4.0 passes Column[] (or a StructType), partitioning and properties; later ones a TableInfo."""
    java: Any = Java()
    conf = SimpleNamespace(sessionLocalTimeZone=lambda: "UTC", ansiEnabled=lambda: True)
    session = SimpleNamespace(sessionState=lambda: SimpleNamespace(conf=lambda: conf))
    java.cls = lambda _: SimpleNamespace(active=lambda: session)
    struct = SimpleNamespace(json=lambda: ADD)
    properties = {"provider": "tamis", "comment": "c", "owner": "me", "k": "v"}
    column = SimpleNamespace(generationExpression=lambda: None, identityColumnSpec=lambda: None)
    columns = JavaArray(column, struct=struct)
    info = SimpleNamespace(columns=lambda: columns, partitions=list, properties=lambda: properties, constraints=list)
    one = requested_definition(java, info)
    assert (one.comment, one.properties, [f.name for f in one.schema.fields]) == ("c", {"k": "v"}, ["a"])
    assert requested_definition(java, struct, [], properties) == one
    assert requested_definition(java, columns, [], properties) == one
    column.generationExpression = lambda: "b + 1"
    generated = requested_definition(java, columns, [], properties).schema.fields[0].generated
    assert generated == Generation("b + 1", "UTC", ansi=True), "lost where columns are taken by their types alone"


@pytest.mark.spark
def test_methods_and_constructors_are_probed_by_their_parameters(spark: Any) -> None:
    owner = bridge_of(spark)
    assert owner.has_method("java.util.ArrayList", "add", 2)
    assert owner.has_method("java.util.ArrayList", "new", 1)
    assert not owner.has_method("java.util.ArrayList", "add", 3)
    assert not owner.has_method("java.util.ArrayList", "new", 2)
    assert not owner.has_method("java.util.ArrayList", "there is none", 0)
    assert not owner.has_method("org.apache.spark.NoSuchClass", "new", 0)


NEWER_TEXTS = {
    "ALTER TABLE": "alter table {0}.db.t ADD CONSTRAINT c CHECK (a > 0)",
    "CREATE TABLE": "CREATE TABLE IF NOT EXISTS {0}.db.u LIKE {0}.db.t",
    "INSERT WITH": "INSERT WITH SCHEMA EVOLUTION INTO {0}.db.t BY NAME SELECT 2 AS a, 3 AS b",
    "MERGE WITH": "merge with schema evolution into {0}.db.t USING (SELECT 1 AS a, 2 AS b) s ON {0}.db.t.a = s.a "
    "WHEN NOT MATCHED THEN INSERT *",
}


def test_each_newer_statement_has_a_text() -> None:
    assert set(NEWER_TEXTS) == set(NEWER)


@pytest.mark.push_cases(2)
@pytest.mark.spark
@pytest.mark.parametrize("words", sorted(NEWER_TEXTS))
def test_a_statement_of_a_newer_spark_is_refused_by_name_and_nothing_is_left_out(lake: Any, words: str) -> None:
    """Where Spark has it, it runs; elsewhere it ends with our error, and never writes rows without their new column."""
    lake.sql("CREATE TABLE lake.db.t (a INT) USING tamis")
    text = NEWER_TEXTS[words].format(lake.name)
    if words not in newer_statements(bridge_of(lake.spark)):
        lake.sql(text)
        return
    shown = lake.refused(text, "UNSUPPORTED_STATEMENT")
    assert f"needs Spark {NEWER[words].since} or newer" in shown
    assert lake.rows("SELECT * FROM lake.db.t") == []


@pytest.mark.parametrize("words", sorted(NEWER_TEXTS))
def test_the_refusal_names_the_statement_and_what_does_the_same(words: str) -> None:
    java: Any = SimpleNamespace(active_session=lambda _=None: SimpleNamespace(version="4.0.5"))
    asked = Statements(java)
    asked._catalog = lambda names: ("ours", names) if names[0] == "lake" else None  # type: ignore[method-assign]
    with pytest.raises(InvalidInput) as caught:
        asked.apply("statement", NEWER_TEXTS[words].format("lake"))
    assert caught.value.code == "UNSUPPORTED_STATEMENT"
    assert caught.value.name == NEWER[words].statement
    assert "4.0.5" in caught.value.message
    assert "tamis." in caught.value.remedy
    assert asked.apply("statement", NEWER_TEXTS[words].format("other")) is None


def test_statements_that_only_begin_alike_are_left_to_spark() -> None:
    java: Any = SimpleNamespace(active_session=lambda _=None: SimpleNamespace(version="4.0.5"))
    asked = Statements(java)
    asked._catalog = lambda names: ("ours", names)  # type: ignore[method-assign]
    assert asked.apply("statement", "CREATE TABLE lake.db.like (a INT) USING tamis") is None
    assert asked.apply("statement", "ALTER TABLE lake.db.t ADD COLUMN check INT") is None
    assert asked.apply("statement", "ALTER TABLE lake.db.t RENAME TO lake.db.u") is None
    assert asked.apply("statement", "CREATE TABLE lake.db.u AS SELECT * FROM t WHERE s LIKE 'a%'") is None


def test_what_is_lacking_is_probed() -> None:
    everything: Any = SimpleNamespace(has_method=lambda *_: True, has_class=lambda _: True)
    nothing: Any = SimpleNamespace(has_method=lambda *_: False, has_class=lambda _: False)
    assert newer_statements(everything) == []
    assert newer_statements(nothing) == list(NEWER)
