"""Casts and conversions whose meaning a setting changes, and times near the ends of their types, beside Spark's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException

import tamis

ROWS = (
    "SELECT 1 AS id, TIMESTAMP_NTZ'2024-03-05 00:00:00' AS n, TIMESTAMP'9999-12-31 00:00:00' AS ts, 12 AS y, 'ab' AS s, DATE'1582-10-10' AS d",
    "SELECT 2, TIMESTAMP_NTZ'2024-03-05 12:00:00', TIMESTAMP'2024-01-01 00:00:00', 5850000, 'abc', DATE'2024-01-01'",
    "SELECT 3, TIMESTAMP_NTZ'2024-03-10 02:30:00', TIMESTAMP'2024-01-02 00:00:00', 2024, 'x', CAST('+10000-01-01' AS DATE)",
)
FAR = "SELECT 4, TIMESTAMP_NTZ'2024-03-05 00:00:00', TIMESTAMP'2024-01-01 00:00:00', 9999999, 'far', CAST('+300000-01-01' AS DATE)"

ZONE = ("spark.sql.session.timeZone", "America/Los_Angeles")
NO_ANSI = ("spark.sql.ansi.enabled", "false")
CHARS = ("spark.sql.preserveCharVarcharTypeInfo", "true")
LEGACY = ("spark.sql.legacy.timeParserPolicy", "LEGACY")


@pytest.fixture(scope="module", params=["on", "off"])
def casts(request: pytest.FixtureRequest, spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Tables ``odd`` and ``far``, a part a row, with the row filter before Spark's and without; views of both rows."""
    made, root = spark.newSession(), tmp_path_factory.mktemp("casts")
    tamis.attach(made, f"casts_{request.param}", str(root / "lake"))
    made.sql(f"CREATE NAMESPACE casts_{request.param}.db")
    made.sql(f"USE casts_{request.param}.db")
    made.conf.set("tamis.read.lazy", request.param)
    for name, rows in (("odd", ROWS), ("far", (*ROWS, FAR))):
        text = " UNION ALL ".join(rows)
        made.conf.set(f"{name}.path", str(root / "lake" / "db" / name))
        made.sql(f"CREATE TABLE {name} USING tamis AS {text} LIMIT 0")
        for row in rows:
            made.sql(f"INSERT INTO {name} {row}")
        made.sql(text).write.parquet(str(root / name))
        made.read.parquet(str(root / name)).createOrReplaceTempView(f"plain_{name}")
    return made


@contextmanager
def under(spark: Any, *settings: tuple[str, str]) -> Iterator[None]:
    for key, value in settings:
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, _ in settings:
            spark.conf.unset(key)


def ids(spark: Any, table: str, condition: str) -> list[int]:
    return sorted(row[0] for row in spark.sql(f"SELECT id FROM {table} WHERE {condition}").collect())


@pytest.mark.parametrize(
    ("condition", "settings"),
    [
        ("to_date(n, 'yyyy-MM-dd') = DATE'2024-03-04'", (ZONE,)),
        ("to_timestamp(n, 'yyyy') = TIMESTAMP'2024-03-04 16:00:00'", (ZONE,)),
        ("try_to_timestamp(n, 'yyyy') = TIMESTAMP'2024-03-09 18:30:00'", (ZONE, NO_ANSI)),
        ("to_date(n) = DATE'2024-03-05'", (ZONE,)),
        ("unix_seconds(n) = 1709596800", (ZONE,)),
        ("unix_millis(n) > 1709596800000", (ZONE,)),
        ("unix_micros(n) = 1710037800000000", (ZONE, NO_ANSI)),
        ("to_timestamp(d, 'yyyy') = TIMESTAMP'2024-01-01 00:00:00'", (ZONE,)),
        ("CAST(ts AS INT) IS NULL", (NO_ANSI,)),
        ("coalesce(CAST(ts AS INT), 0) = 0", (NO_ANSI,)),
        ("CAST(ts AS INT) > 0", (NO_ANSI,)),
        ("make_date(y, 1, 1) = DATE'+5850000-01-01'", (NO_ANSI,)),
        ("make_date(y, 1, 1) IS NOT NULL", ()),
        ("CAST(s AS CHAR(5)) = 'ab   '", (CHARS,)),
        ("CAST(concat(s, '   ') AS VARCHAR(4)) = 'ab  '", (CHARS,)),
        ("CAST(s AS CHAR(5)) = 'ab'", ()),
        ("CAST(d AS STRING) = '1582-10-15'", (LEGACY,)),
        ("CAST(d AS STRING) = '10000-01-01'", (LEGACY,)),
        ("concat(d, '') = '1582-10-15'", (LEGACY,)),
        ("CAST(d AS STRING) = '1582-10-10'", ()),
        ("d - DATE'1970-01-01' > INTERVAL '1' DAY", ()),
    ],
)
def test_rows_are_sparks_under_each_setting(casts: Any, condition: str, settings: tuple[tuple[str, str], ...]) -> None:
    with under(casts, *settings):
        try:
            wanted = ids(casts, "plain_odd", condition)
        except AnalysisException:
            pytest.skip("this Spark knows the function for other types only")
        assert wanted
        assert ids(casts, "odd", condition) == wanted
    if not {CHARS, LEGACY} & {*settings}:
        options = {"timezone": dict(settings).get(ZONE[0], "UTC"), "ansi": str(NO_ANSI not in settings).lower()}
        found = tamis.open(casts.conf.get("odd.path")).scan(condition, ["id"], options=options).to_arrow()
        assert sorted(found["id"].to_pylist()) == wanted


@pytest.mark.parametrize(
    ("condition", "settings"),
    [
        ("CAST(y AS VARCHAR(2)) = '12'", (CHARS,)),
        ("d - DATE'1970-01-01' > INTERVAL '1' DAY", ()),
        ("d - DATE'1970-01-01' > INTERVAL '1' DAY", (NO_ANSI,)),
    ],
)
def test_errors_are_sparks_under_each_setting(
    casts: Any, condition: str, settings: tuple[tuple[str, str], ...]
) -> None:
    with under(casts, *settings):
        for table in ("plain_far", "far"):
            with pytest.raises((PySparkException, Py4JJavaError)):
                ids(casts, table, condition)
