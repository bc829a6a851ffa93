"""Tables in every format through Spark: written by SQL, read as plain Spark reads the same rows, by tasks that share one large part."""

from __future__ import annotations

from typing import Any

import pytest

import tamis

pytestmark = pytest.mark.spark

ROWS = """
SELECT id n, cast(id % 7 as int) few, concat('t', id % 1000) s, timestamp'0100-01-01' + make_dt_interval(cast(id as int)) at,
  date'0001-01-01' + cast(id as int) day, cast(id / 3 as decimal(20, 4)) price, if(id % 5 = 0, double('NaN'), id / 7D) x, id % 2 = 0 even,
  array(id, NULL) l, map('k', id) m, if(id % 3 = 0, NULL, named_struct('a', id, 'b', cast(id as string))) st, cast(cast(id as string) as binary) raw,
  make_dt_interval(0, 0, 0, id / 1000) span
FROM range(60000)
"""
QUERIES = [
    "SELECT * FROM {t} WHERE s IN ('t18', 't999') AND even ORDER BY n",
    "SELECT n, st.b, l, m FROM {t} WHERE st.a % 1000 = 7 OR x = double('NaN') AND n < 300 ORDER BY n",
    "SELECT few, count(*), min(day), max(at), sum(price), max(span) FROM {t} GROUP BY few ORDER BY few",
    "SELECT count(*) FROM {t} WHERE day < date'0050-01-01' AND raw IS NOT NULL",
]


@pytest.mark.parametrize("form", ["parquet", "vortex", "orc"])
@pytest.mark.push_cases(1)
def test_every_format(lake: Any, form: str) -> None:
    lake.spark.sql(ROWS).repartition(1).sortWithinPartitions("n").createOrReplaceTempView("rows_as_they_are")
    lake.sql(
        f"CREATE TABLE lake.db.t USING tamis TBLPROPERTIES ('tamis.format' = '{form}') AS SELECT * FROM rows_as_they_are"
    )
    files = [p.suffix for p in (lake.folder / "db" / "t" / "data").iterdir()]
    assert files == [f".{form}"] * len(files)
    before = lake.spark.conf.get("spark.sql.files.openCostInBytes")
    for opening in (before, "10b"):  # with small tasks one part goes to several
        lake.spark.conf.set("spark.sql.files.openCostInBytes", opening)
        for query in QUERIES:
            expected = [str(tuple(r)) for r in lake.spark.sql(query.format(t="rows_as_they_are")).collect()]
            assert [str(row) for row in lake.rows(query.format(t="lake.db.t"))] == expected, query
    report = tamis.reports()[0]
    assert report.rows["matched"] == int(expected[0].strip("(,)"))
    assert (
        report.blocks["total"]
        == report.blocks["skipped_stats"] + report.blocks["skipped_filter"] + report.blocks["read"]
    )
    lake.spark.conf.set("spark.sql.files.openCostInBytes", before)


def test_the_format_as_an_option(lake: Any) -> None:
    lake.sql("CREATE TABLE lake.db.optional (id BIGINT) USING tamis OPTIONS (format 'orc')")
    lake.sql("INSERT INTO lake.db.optional VALUES (1)")
    assert lake.rows("SELECT format FROM lake.db.optional.parts") == [("orc",)]
    lake.refused("CREATE TABLE lake.db.other (id BIGINT) USING tamis OPTIONS (format 'csv')", "UNKNOWN_FORMAT")
