"""``_metadata`` tells the file of a row and its place there, whichever reader reads it and whatever stands above."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.bridges.foreign_files import write_file
from tests.spark.conftest import Lake

import tamis


@pytest.fixture(scope="module")
def filled(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Three parts of 100 rows, in a folder whose name has to be quoted in a URL; some rows are deleted."""
    folder = tmp_path_factory.mktemp("meta data é#%+") / "warehouse"
    tamis.attach(spark, "metas", folder)
    lake = Lake(spark, "metas", folder)
    lake.sql("CREATE NAMESPACE lake.db")
    lake.sql("CREATE TABLE lake.db.t (id BIGINT, what STRING, s STRUCT<a: INT>) USING tamis")
    for start in (0, 100, 200):
        rows = f"SELECT id, concat('w', id % 7), named_struct('a', CAST(id AS INT)) FROM range({start}, {start + 100}, 1, 1)"
        lake.sql(f"INSERT INTO lake.db.t {rows}")
    lake.sql("DELETE FROM lake.db.t WHERE id % 10 = 3")
    return lake


def file_of(url: str) -> Path:
    return Path(unquote(urlparse(url).path))


def expected(lake: Lake) -> dict[int, tuple[str, int, int]]:
    """Of each live row: the name of its file, the file's size, and the row's place, as Parquet says."""
    found = {}
    for path in (lake.folder / "db" / "t" / "data").rglob("*.parquet"):
        for at, key in enumerate(pq.read_table(path)["id"].to_pylist()):
            if key % 10 != 3:
                found[key] = path.name, path.stat().st_size, at
    assert len(found) == 270
    return found


MISSING = "MISSING_ATTRIBUTES.RESOLVED_ATTRIBUTE_MISSING_FROM_INPUT"
"""The error of newer Spark for DELETE by a metadata column: its rewriting of the statement loses the column."""
FIELDS = "_metadata.file_name AS n, _metadata.file_size AS b, _metadata.row_index AS i"


@pytest.mark.push_cases(2)
@pytest.mark.parametrize("lazy", ["auto", "native", "on", "off"])
def test_each_row_tells_its_file_and_its_place(filled: Lake, lazy: str) -> None:
    want = expected(filled)
    table = f"lake.db.t WITH ('tamis.read.lazy' = '{lazy}')"
    assert {r.id: (r.n, r.b, r.i) for r in filled.sql(f"SELECT id, {FIELDS} FROM {table}").collect()} == want
    some = filled.sql(f"SELECT what, {FIELDS}, id FROM {table} WHERE what = 'w3' AND s.a > 50").collect()
    assert {r.id: (r.n, r.b, r.i) for r in some} == {k: v for k, v in want.items() if k % 7 == 3 and k > 50}


def test_the_path_is_a_url_as_spark_writes_it(filled: Lake) -> None:
    for row in filled.sql(
        "SELECT DISTINCT _metadata.file_path AS p, _metadata.file_name AS n FROM lake.db.t"
    ).collect():
        assert row.p.startswith("file:/")
        assert file_of(row.p).is_file()
        assert row.p.endswith(f"/{row.n}")
    ours = {r.p for r in filled.sql("SELECT _metadata.file_path AS p FROM lake.db.t").collect()}
    folder = sorted({str(file_of(p).parent) for p in ours})
    plain = filled.spark.read.parquet(*folder)
    assert ours == {r.p for r in plain.select("_metadata.file_path").withColumnRenamed("file_path", "p").collect()}


def test_an_adopted_file_is_where_its_source_is(filled: Lake, tmp_path: Path) -> None:
    """As Spark names it, which reads the same files; statements find its rows by that name."""
    source = tmp_path / "a source é#%+"
    for day in ("a b", "c%3Ad"):
        write_file(source / f"day={day}" / "f 0.parquet", pa.table({"id": [len(day), 10 * len(day)]}))
    tamis.adopt(source, filled.folder / "db" / "adopted")
    filled.sql("INSERT INTO lake.db.adopted VALUES (77, 'e')")
    table = "lake.db.adopted"
    asked = "id, _metadata.file_path AS p, _metadata.file_name AS n, _metadata.file_size AS b"
    ours = {tuple(row) for row in filled.sql(f"SELECT {asked} FROM {table} WHERE id <> 77").collect()}
    plain = filled.spark.read.parquet(str(source))
    assert ours == {tuple(row) for row in plain.selectExpr(*asked.split(", ")).collect()}
    assert all(file_of(path).stat().st_size == size for _, path, _, size in ours)
    (own,) = filled.rows(f"SELECT _metadata.file_path FROM {table} WHERE id = 77")
    assert file_of(own[0]).is_file()
    path = next(path for key, path, *_ in ours if key == 3)
    assert filled.rows(f"SELECT id FROM {table} WHERE _metadata.file_path = '{path}' ORDER BY id") == [(3,), (30,)]
    filled.sql(f"UPDATE {table} SET id = id + 100 WHERE _metadata.file_path = '{path}'")
    assert filled.rows(f"SELECT id FROM {table} ORDER BY id") == [(5,), (50,), (77,), (103,), (130,)]


def test_it_is_hidden_unless_named(filled: Lake) -> None:
    assert filled.spark.table("metas.db.t").columns == ["id", "what", "s"]
    whole = filled.sql("SELECT _metadata FROM lake.db.t LIMIT 1")
    assert whole.schema["_metadata"].dataType.fieldNames() == ["file_path", "file_name", "file_size", "row_index"]
    assert whole.collect()[0]._metadata.file_path.startswith("file:/")
    assert filled.spark.table("metas.db.t").select("id", "_metadata.file_name").count() == 270
    assert (
        filled.spark.read.format("tamis").load(str(filled.folder / "db" / "t")).select("_metadata").distinct().count()
        == 270
    )


def test_beside_filters_limits_aggregates_and_joins(filled: Lake) -> None:
    want = expected(filled)
    names = sorted({name for name, _, _ in want.values()})
    assert len(names) == 3
    for name in names:
        keys = {k for k, v in want.items() if v[0] == name}
        assert {
            r.id for r in filled.sql(f"SELECT id FROM lake.db.t WHERE _metadata.file_name = '{name}'").collect()
        } == keys
        assert filled.rows(f"SELECT count(*) FROM lake.db.t WHERE _metadata.file_name = '{name}' AND id > 150") == [
            (len({k for k in keys if k > 150}),)
        ]
    counted = filled.rows("SELECT _metadata.file_name, count(*), min(id) FROM lake.db.t GROUP BY 1 ORDER BY 3")
    assert [row[1:] for row in counted] == [(90, 0), (90, 100), (90, 200)]
    assert filled.rows("SELECT count(DISTINCT _metadata.file_path), max(_metadata.row_index) FROM lake.db.t") == [
        (3, 99)
    ]
    first = filled.rows("SELECT id, _metadata.file_name FROM lake.db.t ORDER BY id DESC LIMIT 2")
    assert first == [(299, want[299][0]), (298, want[298][0])]
    limited = filled.rows("SELECT id, _metadata.row_index FROM lake.db.t WHERE id >= 40 LIMIT 5")
    assert len(limited) == 5
    assert all(want[key][2] == place for key, place in limited)
    joined = filled.rows(
        "SELECT a.id, a._metadata.file_name, b._metadata.row_index FROM lake.db.t AS a JOIN lake.db.t AS b ON a.id = b.id + 100"
        " WHERE b.id < 20"
    )
    assert len(joined) == 18
    assert all((name, place) == (want[key][0], want[key - 100][2]) for key, name, place in joined)


def test_rows_are_changed_by_their_file(lake: Lake) -> None:
    from pyspark.errors import AnalysisException

    lake.sql("CREATE TABLE lake.db.t (id BIGINT) USING tamis")
    for start in (0, 5):
        lake.sql(f"INSERT INTO lake.db.t SELECT id FROM range({start}, {start + 5}, 1, 1)")
    (name,) = lake.rows("SELECT _metadata.file_name FROM lake.db.t WHERE id = 7")[0]
    lake.sql(f"UPDATE lake.db.t SET id = id + 100 WHERE _metadata.file_name = '{name}' AND id < 7")
    assert sorted(lake.rows("SELECT id FROM lake.db.t")) == [(n,) for n in (0, 1, 2, 3, 4, 7, 8, 9, 105, 106)]
    try:
        lake.sql(f"DELETE FROM lake.db.t WHERE _metadata.file_name = '{name}'")
    except AnalysisException as error:
        if error.getCondition() != MISSING:
            raise
        lake.sql(f"DELETE FROM lake.db.t WHERE id IN (SELECT id FROM lake.db.t WHERE _metadata.file_name = '{name}')")
    assert sorted(lake.rows("SELECT id FROM lake.db.t")) == [(n,) for n in (0, 1, 2, 3, 4, 105, 106)]


def test_a_column_of_that_name_hides_it(lake: Lake) -> None:
    lake.sql("CREATE TABLE lake.db.t (id INT, _metadata STRUCT<file_name: STRING>) USING tamis")
    lake.sql("INSERT INTO lake.db.t VALUES (1, named_struct('file_name', 'mine'))")
    assert lake.rows("SELECT _metadata.file_name FROM lake.db.t WHERE _metadata.file_name = 'mine'") == [("mine",)]
    lake.refused("SELECT _metadata.file_path FROM lake.db.t", "FIELD_NOT_FOUND")


def test_a_plan_from_before_such_a_column_gives_no_other_values(lake: Lake) -> None:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    lake.sql("CREATE TABLE lake.db.t (id INT) USING tamis")
    lake.sql("INSERT INTO lake.db.t VALUES (1)")
    before = lake.sql("SELECT id, _metadata.file_name AS n FROM lake.db.t")
    lake.sql("ALTER TABLE lake.db.t ADD COLUMN _metadata STRUCT<file_name: STRING>")
    try:
        rows = before.collect()
    except (PySparkException, Py4JJavaError):  # Spark 4.1 does not see that the schema has changed, and fails in a task
        return
    assert [r.n.endswith(".parquet") for r in rows] == [True]


def test_other_formats_tell_it_too(lake: Lake) -> None:
    lake.sql("CREATE TABLE lake.db.t (id INT) USING tamis TBLPROPERTIES ('tamis.format' = 'orc')")
    lake.sql("INSERT INTO lake.db.t SELECT CAST(id AS INT) FROM range(1, 3, 1, 1)")
    found = lake.rows("SELECT id, _metadata.row_index, _metadata.file_name LIKE '%.orc' FROM lake.db.t ORDER BY id")
    assert found == [(1, 0, True), (2, 1, True)]


@pytest.mark.push_cases(1)
@pytest.mark.parametrize("columns", [("id", "_metadata.file_name"), ("_metadata",), ("id", "_tamis_part")])
def test_a_stream_refuses_it(filled: Lake, columns: tuple[str, ...]) -> None:
    """Spark asks a stream for the columns of the table only, and would take other memory for the rest."""
    from pyspark.errors import PySparkException

    df = filled.spark.readStream.table("metas.db.t").select(*columns)
    name = columns[-1].partition(".")[0]
    for stream in (df, df.where(f"{columns[-1]} IS NOT NULL")):
        query = stream.writeStream.format("noop").trigger(availableNow=True).start()
        with pytest.raises(PySparkException, match=f"does not read the metadata column {name}"):
            query.awaitTermination()
