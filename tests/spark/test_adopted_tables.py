"""Adopted tables through Spark: what plain Spark reads of the same files, every statement over them, and what becomes of their source."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from tests.bridges.foreign_files import contents, patched, write_file, writer_of
from tests.oracle import adoptions, foreign_sources
from tests.oracle import history as h
from tests.spark.conftest import Lake

import tamis

ROWS = 300
GONE = (0, 7, 120, *range(280, 290), 299)
LEFT = [k for k in range(ROWS) if k not in GONE]


def rows_of(keys: list[int]) -> dict[str, list[Any]]:
    return {
        "k": keys,
        "v": [k * 7 % 100 for k in keys],
        "s": [f"s{k % 50:02}" for k in keys],
        "p": [k // 100 for k in keys],
    }


MERGE = pytest.mark.merge


@pytest.fixture(params=[pytest.param("folder", marks=MERGE), "hive", "delta", pytest.param("iceberg", marks=MERGE)])
def adopted(request: pytest.FixtureRequest, lake: Lake) -> tuple[tamis.Table, set[int]]:
    """The table ``lake.db.t``, and the keys of its rows."""
    source = request.param
    deleted = GONE if source in adoptions.DELETES else ()
    step = h.Adopt(
        {"k": "bigint", "v": "int", "s": "string", "p": "int"},
        source=source,
        values=rows_of([*range(ROWS)]),
        files=3,
        row_group=25,
        partition="p" if source in {"hive", "delta"} else None,
        deleted=deleted,
        options={"deletes": "vectors"},
    )
    path = lake.folder / "db" / "t"
    foreign_sources.adopt(step, path)
    return tamis.open(path), set(range(ROWS)) - set(deleted)


def keys(lake: Lake, text: str) -> list[Any]:
    return [row[0] for row in lake.rows(text)]


@pytest.mark.push_cases(1)
def test_every_statement_leaves_the_source_as_it_is(lake: Lake, adopted: tuple[tamis.Table, set[int]]) -> None:
    table, left = adopted
    path = Path(table.path)
    before = foreign_sources.contents(path)
    assert before
    live = {k: (k * 7 % 100, f"s{k % 50:02}", k // 100) for k in left}

    def check() -> None:
        assert {k: (v, s, p) for k, v, s, p in lake.rows("SELECT k, v, s, p FROM lake.db.t")} == live
        assert lake.rows("SELECT count(*), max(k), min(k) FROM lake.db.t") == [(len(live), max(live), min(live))]
        assert foreign_sources.contents(path) == before

    check()
    lake.sql("DELETE FROM lake.db.t WHERE k % 10 = 3 OR k >= 295")
    live = {k: row for k, row in live.items() if not (k % 10 == 3 or k >= 295)}
    check()
    lake.sql("UPDATE lake.db.t SET s = 'new', v = v + 1 WHERE k BETWEEN 100 AND 140")
    live = {k: (v + 1, "new", p) if 100 <= k <= 140 else (v, s, p) for k, (v, s, p) in live.items()}
    check()
    lake.sql(
        "MERGE INTO lake.db.t AS t USING (SELECT id AS k FROM range(250, 310, 5)) AS u ON t.k = u.k "
        "WHEN MATCHED THEN UPDATE SET s = 'merged' WHEN NOT MATCHED THEN INSERT (k, v, s, p) VALUES (u.k, 0, 'in', 9)"
    )
    for k in range(250, 310, 5):
        live[k] = (live[k][0], "merged", live[k][2]) if k in live else (0, "in", 9)
    check()
    version = tamis.open(path).version
    lake.sql("INSERT INTO lake.db.t VALUES (1000, 1, 'own', 1)")
    live[1000] = (1, "own", 1)
    lake.sql("CALL lake.system.compact(table => 'db.t')").collect()
    check()
    lake.sql("CALL lake.system.vacuum('db.t', dry_run => true)").collect()
    lake.sql("CALL lake.system.create_index('db.t', 'by_v', 'v')").collect()
    lake.spark.conf.set("tamis.index.use", "lookup")
    try:
        for v in (8, 50, 99):
            assert sorted(keys(lake, f"SELECT k FROM lake.db.t WHERE v = {v}")) == sorted(
                k for k, row in live.items() if row[0] == v
            )
    finally:
        lake.spark.conf.unset("tamis.index.use")
    lake.sql("ALTER TABLE lake.db.t RENAME COLUMN s TO label")
    lake.sql("ALTER TABLE lake.db.t ADD COLUMN more INT DEFAULT 5")
    assert lake.rows("SELECT DISTINCT label, more FROM lake.db.t WHERE k = 101") == [("new", 5)]
    lake.sql("ALTER TABLE lake.db.t RENAME COLUMN label TO s")
    check()
    assert len(keys(lake, f"SELECT k FROM lake.db.t VERSION AS OF {version}")) == len(live) - 1
    lake.sql("CALL lake.system.restore('db.t', 0, allow_dropped_columns => true)").collect()
    live = {k: (k * 7 % 100, f"s{k % 50:02}", k // 100) for k in left}
    check()
    lake.sql("CALL lake.system.compact('db.t', adopted => true)").collect()
    check()
    tamis.open(path).vacuum("0m", dry_run=False, below_retention=True)
    check()
    assert tamis.open(path).snapshot.parts()["source"].null_count == len(tamis.open(path).snapshot.parts())


@pytest.mark.push_cases(1)
def test_projections_orders_limits_and_joins(lake: Lake, adopted: tuple[tamis.Table, set[int]]) -> None:
    _, left = adopted
    assert sorted(keys(lake, "SELECT s FROM lake.db.t WHERE k = 101")) == ["s01"]
    assert len(keys(lake, "SELECT 1 FROM lake.db.t")) == len(left)
    assert lake.rows("SELECT count(*) FROM lake.db.t WHERE k >= 0") == [(len(left),)]
    assert keys(lake, "SELECT k FROM lake.db.t ORDER BY k DESC LIMIT 20") == sorted(left, reverse=True)[:20]
    assert (
        keys(lake, "SELECT k FROM lake.db.t WHERE v < 50 ORDER BY k LIMIT 95")
        == [k for k in sorted(left) if k * 7 % 100 < 50][:95]
    )
    assert len(keys(lake, "SELECT k FROM lake.db.t LIMIT 295")) == min(295, len(left))
    lake.sql("SELECT id AS key FROM range(115, 125)").createOrReplaceTempView("some_keys")
    joined = keys(lake, "SELECT t.k FROM lake.db.t AS t JOIN some_keys ON t.k = some_keys.key")
    assert sorted(joined) == [k for k in range(115, 125) if k in left]
    assert lake.rows("SELECT p, count(*), max(k) FROM lake.db.t GROUP BY p ORDER BY p") == [
        (p, len(some), max(some)) for p in range(3) if (some := [k for k in left if k // 100 == p])
    ]


@pytest.mark.push_cases(1)
def test_a_stream_reads_the_rows_and_what_comes_after(lake: Lake, adopted: tuple[tamis.Table, set[int]]) -> None:
    _, left = adopted
    place = lake.folder.parent
    frame = lake.spark.readStream.table(f"{lake.name}.db.t")
    for more in (set[int](), {1000}):
        if more:
            lake.sql("INSERT INTO lake.db.t VALUES (1000, 1, 'own', 1)")
        query = frame.writeStream.format("parquet").option("checkpointLocation", str(place / "checkpoint"))
        query.trigger(availableNow=True).start(str(place / "out")).awaitTermination()
        found = lake.spark.read.parquet(str(place / "out"))
        assert sorted(row[0] for row in found.select("k").collect()) == sorted(left | more)


TYPES = """
    SELECT CAST(id AS TINYINT) AS i8, CAST(id AS SMALLINT) AS i16, CAST(id AS INT) AS i32, id AS i64,
      CAST(id / 3 AS FLOAT) AS f32, IF(id = 3, double('NaN'), id / 7) AS f64,
      CAST(id * 1.5 AS DECIMAL(9,2)) AS d9, CAST(id * 1.5 AS DECIMAL(18,4)) AS d18,
      CAST(id * 100000000000000000000.25 AS DECIMAL(38,5)) AS d38,
      id % 2 = 0 AS b, CAST(id AS STRING) AS s, CAST(concat('x', id) AS BINARY) AS x,
      DATE'1500-03-01' + CAST(id AS INT) AS old, DATE'2024-01-01' + CAST(id AS INT) AS day,
      TIMESTAMP'1600-01-01 12:34:56.789012' + make_interval(0, 0, 0, CAST(id AS INT)) AS ts,
      TIMESTAMP_NTZ'0001-01-02 03:04:05.000006' + make_interval(0, 0, 0, CAST(id AS INT)) AS ntz,
      named_struct('a', id, 'b', named_struct('c', CAST(id AS STRING))) AS st,
      array(id, NULL, id + 1) AS ar, array(array(id), array()) AS aa,
      map(concat('k', id), named_struct('v', id)) AS m, IF(id % 4 = 0, NULL, id) AS n
    FROM range(20)
"""


@pytest.mark.parametrize(
    ("times", "legacy"), [("INT96", "true"), ("TIMESTAMP_MICROS", "false"), ("TIMESTAMP_MILLIS", "false")]
)
@pytest.mark.merge
def test_types_of_files_that_spark_wrote(lake: Lake, times: str, legacy: str) -> None:
    """Decimals of every physical type, times with and without a zone, and whatever is nested: the rows that plain Spark reads."""
    place = lake.folder.parent / "source"
    settings = {
        "spark.sql.parquet.outputTimestampType": times,
        "spark.sql.parquet.writeLegacyFormat": legacy,
        "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
        "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    }
    before = {key: lake.spark.conf.get(key) for key in settings}
    for key, value in settings.items():
        lake.spark.conf.set(key, value)
    try:
        lake.spark.sql(TYPES).repartition(2).write.option("parquet.block.row.count.limit", "4").parquet(str(place))
    finally:
        for key, value in before.items():
            lake.spark.conf.set(key, value)
    bytes_before = contents(place)
    tamis.adopt(place, lake.folder / "db" / "t")
    plain = lake.spark.read.parquet(str(place))
    plain.createOrReplaceTempView("plain_types")
    ours = lake.spark.table(f"{lake.name}.db.t")
    assert ours.dtypes == plain.dtypes
    assert sorted(map(repr, ours.collect())) == sorted(map(repr, plain.collect()))
    for column, literal in {
        "i8": "3",
        "d9": "4.50",
        "d18": "4.5000",
        "d38": "300000000000000000000.75",
        "f64": "double('NaN')",
        "s": "'3'",
        "x": "X'7833'",
        "old": "DATE'1500-03-04'",
        "day": "DATE'2024-01-04'",
        "ts": "TIMESTAMP'1600-01-04 12:34:56.789'",
        "ntz": "TIMESTAMP_NTZ'0001-01-05 03:04:05.000006'",
        "st.a": "3",
        "st.b.c": "'3'",
        "n": "3",
    }.items():
        for comparison in ("=", "<", ">="):
            text = f"SELECT i64 FROM {{}} WHERE {column} {comparison} {literal} ORDER BY 1"
            assert keys(lake, text.format("lake.db.t")) == keys(lake, text.format("plain_types")), text
    for measure in ("min(d38)", "max(ts)", "max(f64)", "min(old)", "max(s)", "count(n)", "max(x)"):
        text = f"SELECT {measure} FROM {{}}"
        assert repr(lake.rows(text.format("lake.db.t"))) == repr(lake.rows(text.format("plain_types"))), measure
    assert tamis.open(lake.folder / "db" / "t").verify().ok
    assert contents(place) == bytes_before


def test_dates_of_the_old_calendar_are_those_that_plain_spark_reads(lake: Lake) -> None:
    """Spark's own reader rebases them, too; times that depend on the writer's time zone are refused by name."""
    place = lake.folder.parent / "source"
    days = pa.array([-719_164, -500_000, -141_428, -141_427, 0], pa.int32()).view(pa.date32())
    notes = {"org.apache.spark.version": "2.4.8", "org.apache.spark.legacyDateTime": ""}
    write_file(place / "a.parquet", pa.table({"day": days, "k": range(5)}).replace_schema_metadata(notes))
    tamis.adopt(place, lake.folder / "db" / "t")
    read = lake.spark.read.option("datetimeRebaseMode", "LEGACY").parquet(str(place))
    texts = "CAST(day AS STRING) AS day"
    assert lake.rows(f"SELECT k, {texts} FROM lake.db.t ORDER BY k") == [
        tuple(row) for row in read.selectExpr("k", texts).orderBy("k").collect()
    ]
    assert keys(lake, "SELECT k FROM lake.db.t WHERE day < DATE'1582-10-05' ORDER BY k") == [0, 1, 2]
    moments = pa.array([dt.datetime(1500, 1, 1)], pa.timestamp("us", "UTC"))
    write_file(lake.folder.parent / "times" / "a.parquet", pa.table({"t": moments}).replace_schema_metadata(notes))
    tamis.adopt(lake.folder.parent / "times", lake.folder / "db" / "u")
    with pytest.raises(Exception, match="LEGACY_CALENDAR"):
        lake.rows("SELECT t FROM lake.db.u")


@pytest.mark.parametrize("legacy", ["int96", "datetime"])
@pytest.mark.parametrize("stored", ["INT96", "TIMESTAMP_MICROS"])
def test_times_that_spark_wrote_with_the_other_calendar_are_read_where_plain_spark_reads_them_as_they_are(
    lake: Lake, stored: str, legacy: str
) -> None:
    """A mark for one way of storing says nothing of the other, and nothing of times without a zone."""
    place = str(lake.folder.parent / "source")
    settings = {
        f"spark.sql.parquet.{mode}RebaseModeInWrite": "LEGACY" if mode == legacy else "CORRECTED"
        for mode in ("int96", "datetime")
    } | {"spark.sql.parquet.outputTimestampType": stored}
    old, ntz = "TIMESTAMP'1500-03-01 01:02:03'", "TIMESTAMP_NTZ'1500-03-01 01:02:03'"
    try:
        for name, value in settings.items():
            lake.spark.conf.set(name, value)
        lake.spark.sql(
            f"SELECT {old} AS t, named_struct('a', {old}, 'b', {ntz}) AS s, array({old}) AS l, map('k', {old}) AS m, "
            f"{ntz} AS n, array({ntz}) AS nl, DATE'1500-02-28' AS d, 1 AS k"
        ).coalesce(1).write.parquet(place)
    finally:
        for name in settings:
            lake.spark.conf.unset(name)
    tamis.adopt(place, lake.folder / "db" / "t")
    lake.spark.read.parquet(place).createOrReplaceTempView("written")

    def texts(table: str, *columns: str) -> list[tuple[Any, ...]]:
        return lake.rows(f"SELECT {', '.join(f'CAST({one} AS STRING)' for one in columns)} FROM {table}")

    assert texts("lake.db.t", "n", "nl", "d", "s.b") == texts("written", "n", "nl", "d", "s.b")
    assert keys(lake, f"SELECT k FROM lake.db.t WHERE n = {ntz}") == [1]
    refused = (stored == "INT96") == (legacy == "int96")
    for column in ("t", "s", "l", "m"):
        if not refused:
            assert texts("lake.db.t", column) == texts("written", column)
            continue
        with pytest.raises(Exception, match="LEGACY_CALENDAR"):
            texts("lake.db.t", column)
    if not refused:
        assert keys(lake, f"SELECT k FROM lake.db.t WHERE t = {old}") == [1]


def test_a_following_table_refuses_statements(lake: Lake) -> None:
    source = lake.folder.parent / "source"
    deltalake.write_deltalake(source, pa.table({"k": [1, 2], "s": ["a", "b"]}))
    tamis.adopt(source, lake.folder / "db" / "t", follow=True)
    for text in (
        "INSERT INTO lake.db.t VALUES (3, 'c')",
        "DELETE FROM lake.db.t WHERE k = 1",
        "UPDATE lake.db.t SET s = 'x' WHERE k = 1",
        "MERGE INTO lake.db.t AS t USING (SELECT 1L AS k) AS u ON t.k = u.k WHEN MATCHED THEN DELETE",
        "ALTER TABLE lake.db.t ADD COLUMN more INT",
        "TRUNCATE TABLE lake.db.t",
    ):
        with pytest.raises(Exception, match="FOLLOWING_TABLE"):
            lake.sql(text).collect()
        assert lake.rows("SELECT * FROM lake.db.t ORDER BY k") == [(1, "a"), (2, "b")]
    lake.sql("CALL lake.system.create_index('db.t', 'by_k', 'k')").collect()
    assert lake.rows("SELECT s FROM lake.db.t WHERE k = 2") == [("b",)]


HARM: dict[str, tuple[str, Callable[[Path], object]]] = {
    "gone": ("PART_MISSING", Path.unlink),
    "written again": ("SOURCE_CHANGED", lambda path: path.write_bytes(path.read_bytes())),
    "longer": ("SOURCE_CHANGED", lambda path: path.write_bytes(b"PAR1" + path.read_bytes())),
    "another writer's": ("SOURCE_CHANGED", lambda path: patched(path, writer_of(path), b"x")),
}


@pytest.mark.parametrize(("harm", "lazy"), list(zip(HARM, ("on", "off", "native", "on"), strict=True)))
@pytest.mark.push_cases(2)
def test_a_file_that_is_gone_or_changed_is_named(lake: Lake, harm: str, lazy: str) -> None:
    code, change = HARM[harm]
    place = lake.folder.parent / "source"
    for at in range(3):
        write_file(place / f"{at}.parquet", pa.table({"k": range(at * 10, at * 10 + 10), "s": [str(at)] * 10}))
    tamis.adopt(place, lake.folder / "db" / "t")
    lake.spark.conf.set("tamis.read.lazy", lazy)
    try:
        assert len(lake.rows("SELECT * FROM lake.db.t")) == 30
        change(place / "1.parquet")
        for text in (
            "SELECT k, s FROM lake.db.t",
            "SELECT s FROM lake.db.t WHERE k = 15",
            "SELECT max(k) FROM lake.db.t",
        ):
            with pytest.raises(Exception, match=rf"{code}(.|\n)*1\.parquet"):
                lake.rows(text)
        assert lake.rows("SELECT s FROM lake.db.t WHERE k = 25") == [("2",)], "other files are read"
        (problem,) = tamis.open(lake.folder / "db" / "t").verify().problems.to_pylist()
        problem_code = "SOURCE_GONE" if code == "PART_MISSING" else code
        assert (problem["code"], problem["object"]) == (problem_code, "1.parquet")
    finally:
        lake.spark.conf.unset("tamis.read.lazy")
