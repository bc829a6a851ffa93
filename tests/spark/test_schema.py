"""ALTER TABLE and evolving writes through Spark SQL, read by both readers; queries that were analysed before."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from tests.spark.capabilities import needs_filled_columns, needs_state_options, newer_statements

import tamis


@pytest.fixture(scope="module")
def lake(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = str(tmp_path_factory.mktemp("evolving"))
    tamis.attach(spark, "evolving", folder)
    spark.sql("CREATE NAMESPACE evolving.db")
    return folder


REFUSED = {
    "ADD COLUMN nn INT NOT NULL DEFAULT 3": "NOT NULL",
    "ADD COLUMN s.w INT DEFAULT 3": "BAD_DEFAULT",
    "ADD COLUMN A INT": "lready exists",
    "ALTER COLUMN b TYPE INT": "NOT_SUPPORTED_CHANGE_COLUMN",
    "ALTER COLUMN a TYPE SMALLINT": "NOT_SUPPORTED_CHANGE_COLUMN",
    "CLUSTER BY (l)": "BAD_CLUSTERING",
    "CLUSTER BY (a, a)": "`a` already exists|twice",
    "CLUSTER BY (nosuch)": "nosuch",
    "REPLACE COLUMNS (x INT)": "REPLACE COLUMNS",
    "SET TBLPROPERTIES ('tamis.schema.policy' = 'sideways')": "tamis.schema.policy",
}


def collected(spark: Any, sql: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in spark.sql(sql).collect()]


@pytest.mark.spark
def test_alter_table(spark: Any, lake: str) -> None:
    """Every change that people type, on parts that were written before it, by our reader, by Spark's, and under filters."""
    t = "evolving.db.t"
    spark.sql(
        f"CREATE TABLE {t} (a INT NOT NULL, b STRING, s STRUCT<x: INT, y: STRING>, l ARRAY<STRUCT<p: INT>>, f FLOAT, d DATE) USING tamis"
    )
    spark.sql(
        f"INSERT INTO {t} VALUES (1, 'p', named_struct('x', 1, 'y', 'u'), array(named_struct('p', 3)), 1.5, DATE'2020-01-01'), (2, 'q', NULL, NULL, NULL, NULL)"
    )
    for change in (
        "ADD COLUMN c BIGINT DEFAULT 1 + 1 FIRST",
        "ADD COLUMNS (s.z INT COMMENT 'zz' AFTER x, l.element.q STRING)",
        "ALTER COLUMN a TYPE BIGINT",
        "ALTER COLUMN a DROP NOT NULL",
        "ALTER COLUMN f TYPE DOUBLE",
        "ALTER COLUMN d TYPE TIMESTAMP_NTZ",
        "ALTER COLUMN c SET DEFAULT 42",
        "ADD COLUMN n TIMESTAMP DEFAULT current_timestamp()",
        "RENAME COLUMN s.y TO why",
        "ALTER COLUMN b FIRST",
    ):
        spark.sql(f"ALTER TABLE {t} {change}")
    assert spark.table(t).columns == ["b", "c", "a", "s", "l", "f", "d", "n"]
    needs_filled_columns(spark)
    spark.sql(f"INSERT INTO {t} (a) VALUES (3)")
    first = (
        "p",
        2,
        1,
        (1, None, "u"),
        [(3, None)],
        1.5,
        dt.datetime(2020, 1, 1),  # without a zone in Spark too
    )
    for lazy in ("auto", "on", "native"):
        spark.conf.set("tamis.read.lazy", lazy)
        try:
            found = collected(spark, f"SELECT b, c, a, s, l, f, d FROM {t} ORDER BY a")
        finally:
            spark.conf.unset("tamis.read.lazy")
        assert found == [first, ("q", 2, 2, None, None, None, None), (None, 42, 3, None, None, None, None)], lazy
    assert collected(
        spark, f"SELECT a FROM {t} WHERE d >= TIMESTAMP_NTZ'2020-01-01 00:00:00' AND f = 1.5D AND c = 2 AND s.z IS NULL"
    ) == [(1,)]
    assert collected(spark, f"SELECT count(DISTINCT n), count(n) FROM {t} WHERE a < 3") == [(1, 2)], "evaluated once"
    for statement, message in REFUSED.items():
        with pytest.raises(Exception, match="(?s).*" + message):
            spark.sql(f"ALTER TABLE {t} {statement}")
    spark.sql(f"ALTER TABLE {t} DROP COLUMN b")
    spark.sql(f"ALTER TABLE {t} DROP COLUMN IF EXISTS nosuch")
    spark.sql(f"ALTER TABLE {t} ADD COLUMN b INT")
    assert collected(spark, f"SELECT b FROM {t}") == [(None,)] * 3
    words = [word for (changes,) in collected(spark, f"SELECT changes FROM {t}.history") for word in changes]
    assert {"dropped `b` string", "added `b` int", "renamed `s.y` to `why`", "widened `a` from int to bigint"} <= set(
        words
    )


@pytest.mark.spark
def test_names_that_are_hard(spark: Any, lake: str) -> None:
    t = "evolving.db.names"
    spark.sql(f"CREATE TABLE {t} (k INT) USING tamis")
    spark.sql(f"INSERT INTO {t} VALUES (1)")
    for name in ("2", "10", "a.b", "wör`t", "it's", 'q"q'):
        quoted = "`" + name.replace("`", "``") + "`"
        spark.sql(f"ALTER TABLE {t} ADD COLUMN {quoted} INT DEFAULT 7")
        assert collected(spark, f"SELECT {quoted} FROM {t} WHERE {quoted} = 7") == [(7,)]
    spark.sql(f"ALTER TABLE {t} DROP COLUMN `2`")
    assert spark.table(t).columns == ["k", "10", "a.b", "wör`t", "it's", 'q"q']


@pytest.mark.spark
def test_queries_analysed_before_an_evolution(spark: Any, lake: str) -> None:
    """A DataFrame reads columns, not names: what it does not read may go, what it reads is found again by its id, and one that is no longer what it took it for fences it."""
    from pyspark.errors import SparkRuntimeException

    t = "evolving.db.held"
    spark.sql(
        f"CREATE TABLE {t} (a INT NOT NULL, b STRING, c CHAR(2), n INT, s STRUCT<x: INT, y: ARRAY<STRUCT<p: INT, q: INT>>>) USING tamis"
    )
    spark.sql(
        f"INSERT INTO {t} VALUES (1, 'x', 'cc', 5, named_struct('x', 2, 'y', array(named_struct('p', 3, 'q', 4))))"
    )
    whole = spark.table(t)
    cached = whole.select("a", "b").cache()
    assert cached.count() == 1, "what Spark caches it rebuilds, or forgets, when the table changes"
    for change in (
        "ADD COLUMN e INT DEFAULT 9",
        "DROP COLUMN b",
        "RENAME COLUMN n TO m",
        "ADD COLUMN n STRING DEFAULT 'other'",
        "DROP COLUMN s.y.element.q",
    ):
        spark.sql(f"ALTER TABLE {t} {change}")
    goes_on = {
        "a projection of what is unchanged, one renamed": (whole.select("c", "n"), ("cc", 5)),
        "a filter by the renamed one, whose name another has": (
            whole.where("n = 5").selectExpr("s.y[0].p", "n"),
            (3, 5),
        ),
        "an aggregate": (whole.where("n = 5").selectExpr("max(n)", "count(*)"), (5, 1)),
        "an order with a limit": (whole.orderBy("n").limit(1).select("c", "n"), ("cc", 5)),
        "with itself": (whole.alias("l").join(whole.alias("r"), "n").selectExpr("l.c", "n"), ("cc", 5)),
    }
    needs_state_options(spark)  # an older Spark refuses a schema that changed after the analysis
    for name, (frame, row) in goes_on.items():
        assert [tuple(found) for found in frame.collect()] == [row], name
    fenced = {
        "FENCED_READD_DELETED.*'b' was deleted. It is gone since schema 2. This reader holds schema 0": whole.select(
            "b"
        ),
        "FENCED_READD_DELETED.*'b' was deleted": whole.where("b = 'x'").select("c"),
        "FENCED_READD_DELETED.*'s.y.element.q' was deleted": whole.selectExpr("s.y[0].q"),
    }
    for message, frame in fenced.items():
        for _ in range(2):  # the same at each attempt
            with pytest.raises(SparkRuntimeException, match=message):
                frame.collect()
    copied = whole.select("c", "n")
    spark.sql(f"ALTER TABLE {t} DROP COLUMN c")
    with pytest.raises(SparkRuntimeException, match="FENCED_READD_DELETED"):
        copied.writeTo("evolving.db.copied").using("tamis").create()
    assert not spark.catalog.tableExists("evolving.db.copied")
    whole.select("n").writeTo("evolving.db.copied").using("tamis").create()
    assert collected(spark, "SELECT n FROM evolving.db.copied") == [(5,)], "the column that the frame meant"
    for change, message in (
        ("ALTER COLUMN a DROP NOT NULL", "FENCED_TIGHTEN.*'a' may be NULL by now"),
        ("ALTER COLUMN s.x TYPE BIGINT", "FENCED_TYPE_CHANGE.*'s.x' is bigint by now, and this reader takes it for"),
    ):
        held = spark.table(t)
        frames = [held.selectExpr("a + 1"), held.select("s.x"), held.select("n")]
        spark.sql(f"ALTER TABLE {t} {change}")
        for frame in frames:  # whatever they read: Spark may have simplified them by what has changed
            with pytest.raises(SparkRuntimeException, match=message):
                frame.collect()


@pytest.mark.spark
def test_writes_that_bring_columns(spark: Any, lake: str) -> None:
    t = "evolving.db.merge"
    spark.sql(f"CREATE TABLE {t} (a INT, s STRUCT<x: INT>) USING tamis")
    statement = (
        f"INSERT WITH SCHEMA EVOLUTION INTO {t} BY NAME SELECT 1 AS a, 'new' AS n, named_struct('x', 1, 'w', 5) AS s"
    )
    with newer_statements(spark):
        spark.sql(statement)
    assert collected(spark, f"SELECT a, n, s FROM {t}") == [(1, "new", (1, 5))]
    held = tamis.open(f"{lake}/db/merge")
    held.append(spark.sql("SELECT 2 AS a, 'm' AS more"), merge_schema=True)
    spark.sql(f"ALTER TABLE {t} DROP COLUMN more")
    spark.sql(f"ALTER TABLE {t} ADD COLUMN more INT")
    held.append(spark.sql("SELECT 3 AS a, 'text' AS more"))  # rows of the schema that it holds: that column is gone
    assert collected(spark, f"SELECT a, more FROM {t} ORDER BY a") == [(1, None), (2, None), (3, None)]


@pytest.mark.spark
@pytest.mark.merge
def test_a_table_is_clustered_anew(spark: Any, lake: str) -> None:
    """ALTER TABLE … CLUSTER BY, and rows as in a plain Spark table before, between and after; also by parts of both orders."""
    t = "evolving.db.clustered"
    spark.sql(f"CREATE TABLE {t} (a INT, b INT, s STRUCT<x: INT>) USING tamis CLUSTER BY (a, b)")
    rows = "SELECT CAST(id % 20 AS INT) AS a, CAST(id DIV 20 AS INT) AS b, named_struct('x', CAST(id AS INT)) AS s FROM range({})"
    spark.sql(rows.format(400)).where("a + b BETWEEN 15 AND 23").repartition(4).createOrReplaceTempView(
        "clustered_rows"
    )
    filters = ["a = 3 AND b = 12", "b = 3 AND a = 12", "a <= 3 AND b >= 12", "b <= 3 AND a >= 12", "s.x = 77 AND b < 9"]

    def same(plain: str) -> None:
        for condition in filters:
            found, wanted = (
                sorted(collected(spark, f"SELECT a, b, s.x FROM {source} WHERE {condition}")) for source in (t, plain)
            )
            assert found == wanted, condition

    def ordered() -> set[bool]:
        return {row[0] for row in collected(spark, f"SELECT ordered FROM {t}.parts")}

    def clustering() -> list[str]:
        found: list[str] = tamis.open(f"{lake}/db/clustered").detail()["clustering_columns"][0].as_py()
        return found

    spark.sql(f"INSERT INTO {t} SELECT * FROM clustered_rows")
    same("clustered_rows")
    assert ordered() == {True}
    spark.sql(f"ALTER TABLE {t} CLUSTER BY (b, s.x)")
    assert (clustering(), ordered()) == (["b", "s.x"], {False})
    assert "cluster_by(b, s.x)" in collected(spark, f"SHOW CREATE TABLE {t}")[0][0].lower()
    same("clustered_rows")
    spark.sql(f"INSERT INTO {t} SELECT * FROM clustered_rows WHERE a < 10")
    spark.sql(
        "CREATE OR REPLACE TEMP VIEW clustered_twice AS SELECT * FROM clustered_rows UNION ALL SELECT * FROM clustered_rows WHERE a < 10"
    )
    assert ordered() == {False, True}
    same("clustered_twice")
    spark.sql(f"OPTIMIZE {t}")
    assert ordered() == {True}
    same("clustered_twice")
    spark.sql(f"ALTER TABLE {t} CLUSTER BY NONE")
    assert (clustering(), ordered()) == ([], {False})
    spark.sql(f"INSERT INTO {t} SELECT * FROM clustered_rows WHERE a >= 10")
    spark.sql(
        "CREATE OR REPLACE TEMP VIEW clustered_thrice AS SELECT * FROM clustered_rows UNION ALL SELECT * FROM clustered_rows"
    )
    same("clustered_thrice")


@pytest.mark.spark
def test_merging_schemas_widens(spark: Any, lake: str, tmp_path: Any) -> None:
    """By path and by a table object: rows as in a plain union of what was written."""
    path = str(tmp_path / "t")
    narrow = spark.sql(
        "SELECT CAST(id AS INT) AS a, CAST(id AS DECIMAL(5,2)) AS d, CAST(id / 4 AS FLOAT) AS f, DATE'2020-01-01' AS t FROM range(5)"
    )
    wide = spark.sql(
        "SELECT id + 5000000000 AS a, CAST(id + 0.1234 AS DECIMAL(12,4)) AS d, id / 3 AS f, TIMESTAMP_NTZ'2021-01-01 05:00:00' AS t, 'n' AS n FROM range(5)"
    )
    narrow.write.format("tamis").save(path)
    with pytest.raises(Exception, match=r"(?s)DATA_MISMATCH|EXTRA|CAST_OVERFLOW|INCOMPATIBLE_DATA"):
        wide.drop("n").write.format("tamis").mode("append").save(path)
    wide.write.format("tamis").mode("append").option("mergeSchema", "true").save(path)
    needs_filled_columns(spark)
    tamis.open(path).append(narrow, merge_schema=True)
    table = spark.read.format("tamis").load(path)
    assert table.schema.simpleString() == "struct<a:bigint,d:decimal(12,4),f:double,t:timestamp_ntz,n:string>"
    narrow.unionByName(wide, allowMissingColumns=True).unionByName(
        narrow, allowMissingColumns=True
    ).createOrReplaceTempView("widened_plain")
    table.createOrReplaceTempView("widened")
    for condition in (
        "true",
        "a >= 3 AND d < 4.2",
        "f > 0.7D",
        "t > TIMESTAMP_NTZ'2020-06-01 00:00:00'",
        "n IS NULL AND a = 2",
    ):
        found, wanted = (
            sorted(collected(spark, f"SELECT a, d, f, t FROM {source} WHERE {condition}"))
            for source in ("widened", "widened_plain")
        )
        assert found == wanted, condition


@pytest.mark.spark
@pytest.mark.parametrize("lazy", ["native", "auto"])
@pytest.mark.usefixtures("lake")
def test_a_widened_map_key_is_read_from_older_files_too(spark: Any, lazy: str) -> None:
    name = f"evolving.db.keys_{lazy}"
    spark.sql(f"CREATE TABLE {name} (id BIGINT, m MAP<INT, STRING>, s MAP<STRUCT<x: INT, y: STRING>, INT>) TBLPROPERTIES ('tamis.read.lazy' = '{lazy}')")  # fmt: skip
    spark.sql(f"INSERT INTO {name} VALUES (0, map(1, 'a'), map(struct(1 AS x, 'k' AS y), 5)), (1, NULL, NULL)")
    spark.sql(f"ALTER TABLE {name} ALTER COLUMN m.key TYPE BIGINT")
    spark.sql(f"ALTER TABLE {name} ALTER COLUMN s.key.x TYPE BIGINT")
    spark.sql(f"INSERT INTO {name} VALUES (2, map(1099511627776, 'z', 1, 'q'), map(struct(1099511627776, 'k'), 6))")
    assert collected(spark, f"SELECT id, map_entries(m) FROM {name} ORDER BY id") == [
        (0, [(1, "a")]),
        (1, None),
        (2, [(1099511627776, "z"), (1, "q")]),
    ]
    assert collected(spark, f"SELECT id FROM {name} WHERE m[1] IS NOT NULL ORDER BY id") == [(0,), (2,)]
    assert collected(spark, f"SELECT id FROM {name} WHERE map_contains_key(m, 1099511627776)") == [(2,)]
    assert collected(spark, f"SELECT id, map_values(s) FROM {name} WHERE element_at(map_keys(s), 1).x = 1") == [
        (0, [5])
    ]
