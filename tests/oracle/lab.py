"""Where tables are made, here and in the model: one Spark session, one catalog, one folder."""

from __future__ import annotations

import itertools
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.functions import pandas_udf, udf
from pyspark.sql.types import LongType

import tamis
from tests.oracle import foreign_sources
from tests.oracle import history as h
from tests.oracle.kinds import KINDS, embedded_array
from tests.oracle.model import CardinalityError, Model
from tests.oracle.planted import append_loosely, write_as

CATALOG = "oracle"
STATIC = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.default.parallelism": "1",
    "spark.driver.memory": "2g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.files.maxPartitionBytes": "1g",
}


class StepFailed(Exception):
    """A step of a history was refused or failed here although plain Spark does it, or did not fail although it must."""


@dataclass
class Built:
    """A table and its model."""

    history: h.History
    name: str
    folder: Path
    model: Model
    versions: list[int] = field(default_factory=list)
    """The table's version after each step."""
    source: foreign_sources.Contents = field(default_factory=dict)
    """What was found where an adopted table's source lies."""

    @property
    def columns(self) -> h.Columns:
        return self.model.columns

    @property
    def format(self) -> str:
        first = self.history[0]
        assert isinstance(first, h.Create)
        return "several" if "several formats" in self.features else first.format

    @property
    def adopted(self) -> bool:
        return isinstance(self.history[0], h.Adopt)

    @property
    def features(self) -> set[str]:
        return h.features_of(self.history)

    def open(self) -> Any:
        return tamis.open(str(self.folder))

    def ours(self, step: int | None = None) -> str:
        """What names the table in SQL, as it was after ``step``."""
        return f"{CATALOG}.db.{self.name}" + ("" if step is None else f" VERSION AS OF {self.versions[step]}")

    def plain(self, step: int | None = None) -> str:
        return self.model.view if step is None else self.model.states[step][0]


class Lab:
    """Makes tables of histories. Use it as a context: the folder goes when it ends."""

    def __init__(self, folder: Path) -> None:
        builder = SparkSession.builder.master("local[2]").appName("tamis-oracle")
        for key, value in STATIC.items():
            builder = builder.config(key, value)
        home = folder / "spark"
        builder = builder.config(
            "spark.driver.extraJavaOptions",
            f"-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -Duser.timezone=UTC -Dderby.system.home={home}",
        )
        self.spark = builder.config("spark.sql.warehouse.dir", str(home)).getOrCreate()
        self.spark.sparkContext.setLogLevel("OFF")
        self.folder, self.lake = folder, folder / "lake"
        tamis.attach(self.spark, CATALOG, str(self.lake))
        self.spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {CATALOG}.db")
        register(self.spark)
        self._numbers = itertools.count()

    def build(self, history: h.History) -> Built:
        """Runs the steps here and in the model. Raises ``StepFailed`` where the two do not agree whether one can be done."""
        name = f"t{next(self._numbers)}"
        built = Built(history, name, self.lake / "db" / name, Model(self.spark, self.folder / "plain", name))
        (self.folder / "plain").mkdir(exist_ok=True)
        for number, step in enumerate(history):
            wanted: str | None = None
            try:
                built.model.take(step)
            except CardinalityError:
                wanted = "MERGE_CARDINALITY_VIOLATION"
            except PySparkException:  # a predicate that fails on a row
                wanted = ""
            error = self._attempt(built, step)
            if (error is None) != (wanted is None) or (wanted and wanted not in str(error)):
                expected = "no error" if wanted is None else wanted or "an error"
                raise StepFailed(f"Step {number}, {step!r}: expected {expected}, got {error or 'none'}.")
            built.versions.append(built.open().version)
            if built.source and built.source != foreign_sources.contents(built.folder):
                raise StepFailed(f"Step {number}, {step!r}: the source of the table was changed.")
        return built

    def forget(self, built: Built) -> None:
        """Removes a table and its model's views and files."""
        shutil.rmtree(built.folder, ignore_errors=True)
        foreign_sources.forget(built.folder)
        for view in {state for state, _ in built.model.states}:
            self.spark.catalog.dropTempView(view)
        for path in (self.folder / "plain").glob(f"{built.name}_*"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    def _attempt(self, built: Built, step: h.Step) -> str | None:
        try:
            self._take(built, step)
        except Exception as error:
            return f"{type(error).__name__}: {str(error)[:300]}"
        return None

    def _sql(self, text: str) -> None:
        self.spark.sql(text).collect()

    def _take(self, built: Built, step: h.Step) -> None:
        by_sql, name = getattr(step, "how", "") == "sql", built.ours()
        match step:
            case h.Adopt(values=values):
                foreign_sources.adopt(step, built.folder, self.spark, built.model.stage(values, step.columns))
                built.source = foreign_sources.contents(built.folder)
            case h.Create():
                self._create(built, step)
            case h.Append(values) if by_sql:
                self._sql(f"INSERT INTO {name} SELECT * FROM {built.model.stage(values, built.columns)}")
            case h.Delete(predicate) if by_sql:
                self._sql(f"DELETE FROM {name} WHERE {predicate}")
            case h.Update(sets, predicate) if by_sql:
                self._sql(f"UPDATE {name} SET {', '.join(f'{c} = {e}' for c, e in sets.items())} WHERE {predicate}")
            case h.Overwrite(values, predicate) if by_sql:
                self._sql(
                    f"INSERT INTO {name} REPLACE WHERE {predicate} SELECT * FROM {built.model.stage(values, built.columns)}"
                )
            case h.Merge() if by_sql:
                self._merge(built, step)
            case h.Compact() if by_sql:
                self._sql(f"CALL {CATALOG}.system.compact(table => 'db.{built.name}')")
            case _:
                change_embedded(built.folder, step, built.columns, built.versions)

    def _create(self, built: Built, step: h.Create) -> None:
        listed = ", ".join(definitions(step))
        options = {**step.properties, "tamis.format": step.format}
        properties = ", ".join(f"'{key}' = '{value}'" for key, value in options.items())
        cluster = f" CLUSTER BY ({', '.join(step.cluster_by)})" if step.cluster_by else ""
        self._sql(f"CREATE TABLE {built.ours()} ({listed}) USING tamis{cluster} TBLPROPERTIES ({properties})")

    def _merge(self, built: Built, step: h.Merge) -> None:
        words = {"matched": "MATCHED", "not_matched": "NOT MATCHED", "by_source": "NOT MATCHED BY SOURCE"}
        source = built.model.stage(step.values, built.columns)
        if step.unsteady:
            self.spark.sql(f"SELECT * FROM {source} WHERE oracle_udf(1) = 2").createOrReplaceTempView(
                f"{source}_unsteady"
            )
            source = f"{source}_unsteady"
        text = f"MERGE INTO {built.ours()} AS target USING {source} AS source ON {step.on}"
        for clause in step.clauses:
            text += f" WHEN {words[clause.when]}" + (f" AND {clause.condition}" if clause.condition else "")
            if clause.sets is None:
                text += " THEN DELETE"
            elif clause.when == "not_matched":
                text += f" THEN INSERT ({', '.join(clause.sets)}) VALUES ({', '.join(clause.sets.values())})"
            else:
                text += " THEN UPDATE SET " + ", ".join(f"{c} = {e}" for c, e in clause.sets.items())
        self._sql(text)


def register(spark: Any) -> None:
    """The functions of the queries: in Python, in pandas, and one that Catalyst takes for one that may differ each time."""
    add = udf(lambda x: None if x is None else x + 1, LongType())
    spark.udf.register("oracle_udf", add)
    spark.udf.register("oracle_unsteady", add.asNondeterministic())
    spark.udf.register("oracle_pandas", pandas_udf(_doubled, LongType()))


def _doubled(x: pd.Series) -> pd.Series:
    return x * 2


def definitions(step: h.Create) -> list[str]:
    """The columns of a table in SQL."""
    rules = {name: f" GENERATED ALWAYS AS ({expression})" for name, expression in step.generated.items()}
    return [f"{name} {KINDS[kind].sql}{rules.get(name, '')}" for name, kind in step.columns.items()]


def arrow(values: dict[str, list[Any]], columns: h.Columns) -> pa.Table:
    return pa.table({name: embedded_array(columns[name], found) for name, found in values.items()})


def _embedded_merge(table: Any, step: h.Merge, columns: h.Columns) -> None:
    merge = table.merge(arrow(step.values, columns), step.on)
    for c in step.clauses:
        match c.when, c.sets:
            case "matched", None:
                merge = merge.when_matched_delete(condition=c.condition)
            case "matched", sets:
                merge = merge.when_matched_update(sets, condition=c.condition)
            case "not_matched", sets:
                merge = merge.when_not_matched_insert(sets, condition=c.condition)
            case _, None:
                merge = merge.when_not_matched_by_source_delete(condition=c.condition)
            case _, sets:
                merge = merge.when_not_matched_by_source_update(sets, condition=c.condition)
    merge.execute()


def change_embedded(path: Path, step: h.Step, columns: h.Columns, versions: list[int]) -> None:
    """Any step but the first, without Spark. ``columns`` are those before it, ``versions`` those after each step so far."""
    table = tamis.open(str(path))
    match step:
        case h.Append(values):
            data = arrow(values, columns)
            append_loosely(table, data, step.loose) if step.loose else table.append(data)
        case h.Format(name):
            write_as(table, name)
        case h.Delete(predicate):
            table.delete(predicate)
        case h.Update(sets, predicate):
            table.update(sets, predicate)
        case h.Overwrite(values, predicate):
            table.overwrite(arrow(values, columns), predicate, allow_outside=True)
        case h.Merge():
            _embedded_merge(table, step, columns)
        case h.Restore(at):
            table.restore(versions[at])
        case h.Compact():
            table.compact()
        case h.Properties(values):
            table.alter().set_properties(values).commit()
        case _:
            _alter(table, path, step)


def _alter(table: Any, folder: Path, step: h.Step) -> None:
    """Columns and indexes."""
    match step:
        case h.Rename(name, to):
            table.alter().rename_column(name, to).commit()
        case h.Drop(name):
            table.alter().drop_column(name).commit()
        case h.Add(name, kind, default):
            table.alter().add_column(name, KINDS[kind].sql, default=default).commit()
        case h.Widen(name, kind):
            table.alter().widen(name, KINDS[kind].sql).commit()
        case h.Index(name, columns, build, repair):
            table.create_index(name, list(columns), build=build)
            if repair:
                table.repair_index(name)
        case h.Repair():
            table.repair_index()
        case h.ForgetSegments():
            for index in table.indexes():
                if covered := list(index.covered)[::2]:
                    table.drop_index_segments(index.name, covered)
        case h.DamageIndex(how):
            for path in sorted((folder / "index").rglob("*")):
                if path.is_file():
                    _damage(path, how)


def _damage(path: Path, how: str) -> None:
    data = path.read_bytes()
    if how == "gone":
        path.unlink()
    elif how == "cut":
        path.write_bytes(data[: len(data) // 2])
    else:
        path.write_bytes(data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 4]) + data[len(data) // 2 + 1 :])
