"""A filter as Catalyst hands it over means the same in our language: same rows, same failures; what is not understood is opaque."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.spark.translated import translated

from tamis.core import expr
from tamis.core.expr import Call, Column, Literals, Mode, Opaque
from tamis.core.types import Schema
from tamis.core.types.arrow import to_arrow_schema
from tamis.spark.jvm_bridge.catalyst import Translation
from tamis.spark.jvm_bridge.spark_types import from_spark

pytestmark = pytest.mark.spark

ROWS = """
SELECT id,
  if(id % 7 = 0, NULL, cast(id % 50 - 25 as int)) i,
  if(id % 11 = 0, NULL, cast(id % 40 - 20 as tinyint)) b,
  if(id % 13 = 0, NULL, id * 1000000007 - 50000000000) l,
  if(id % 5 = 0, if(id % 2 = 0, double('NaN'), NULL), if(id % 9 = 0, -0.0D, id / 7D - 10)) x,
  if(id % 6 = 0, float('NaN'), cast(id / 10F as float)) f,
  cast(if(id % 8 = 0, NULL, id / 100 - 1) as decimal(10, 2)) d,
  CASE id % 6 WHEN 0 THEN NULL WHEN 1 THEN '' WHEN 2 THEN concat('ab', id) WHEN 3 THEN concat('ä%_', id) WHEN 4 THEN cast(id as string) ELSE 'z' END s,
  cast(if(id % 3 = 0, NULL, concat('k', id)) as binary) y,
  id % 4 = 0 t,
  if(id % 10 = 0, NULL, date_add(date'1969-12-01', cast(id * 13 as int))) dt,
  if(id % 12 = 0, NULL, timestamp_micros(id * 86400000000 * 5 + id * 3600000001 - 400000000000000)) ts,
  if(id % 12 = 1, NULL, cast(timestamp_micros(id * 86400000000 * 3) as timestamp_ntz)) tn,
  if(id % 5 = 2, NULL, named_struct('a', if(id % 4 = 1, NULL, cast(id as int)), 'n', named_struct('b', concat('v', id)))) st,
  if(id % 4 = 3, NULL, make_dt_interval(0, cast(id as int), 0, 0)) dti
FROM range(300)
"""


@pytest.fixture(scope="module")
def table(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Schema, dict[int, pa.Array]]:
    """The rows as plain Parquet under Spark, their schema with ids, and the same rows as Arrow columns by id."""
    path = tmp_path_factory.mktemp("catalyst") / "rows"
    spark.sql(ROWS).coalesce(1).write.parquet(str(path))
    frame = spark.read.parquet(str(path))
    schema = from_spark(frame._jdf.schema().json()).assign_ids(0)
    target = to_arrow_schema(schema)
    rows = frame.orderBy("id").toArrow()
    columns = {f.id: rows.column(f.name).cast(target.field(f.name).type) for f in schema}
    return frame, schema, columns


@pytest.fixture(scope="module")
def read(table: Any) -> Callable[[str], Translation]:
    """Translates a condition as Spark's optimiser leaves it."""
    frame, schema, _ = table
    return lambda condition: translated(frame, condition, schema)


UNDERSTOOD = """
i > 3
i >= 3 AND i < 10
i <> 4
NOT (i = 4 OR b = 2)
i = 4 OR b = 2
i <=> NULL OR b <=> 3
i IN (1, 2, NULL)
i IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13)
i NOT IN (1, 2, 3)
l BETWEEN -30000000000 AND 0
x > 5
x = 'NaN'
x < 0.0
x <= -0.0
isnan(x)
f >= 12.5
f = float('NaN')
d = 0.5
d > 1
s = ''
s > 'ab' AND s <= 'z'
s LIKE 'ab%'
s LIKE '%1'
s LIKE '%b1%'
s LIKE 'a_1%'
s LIKE 'ä|%%' ESCAPE '|'
startswith(s, 'ab')
s IN ('z', 'ab2')
s IS NULL
s IS NOT NULL AND i IS NULL
t
NOT t
t = false
y = X'6B31'
dt > date'1970-06-01'
dt BETWEEN '1970-01-01' AND '1971-01-01'
year(dt) = 1971
ts > timestamp'1960-01-01 12:00:00.000001'
ts < '1970-01-01'
year(ts) = 1960
date(ts) = date'1957-05-12'
date_trunc('MONTH', ts) = timestamp'1960-01-01'
ts + INTERVAL 3 DAYS > timestamp'1960-01-01'
tn >= timestamp_ntz'1970-03-01 00:00:00'
st.a = 4
st.n.b = 'v17' OR st.a IS NULL
st IS NULL
dti > INTERVAL '10' HOUR
i + 1 > 3
i * 2 - b = 4
try_add(i, 1) = 3
-i > 3
i / 2 > 3
cast(i AS STRING) = '4'
cast(i AS BIGINT) = 4
try_cast(s AS INT) = 4
coalesce(i, 0) = 0
CASE WHEN i > 3 THEN b > 2 ELSE t END
if(i > 3, b, i) = 2
split_part(s, 'b', 2) = '8'
split(s, '_')[0] LIKE 'a%'
s RLIKE '^a[bc]'
s RLIKE 'b1'
lower(s) = 'z'
sqrt(b) > 3
next_day(dt, 'MON') > date'1970-06-01'
trunc(dt, 'Q') = date'1970-04-01'
from_unixtime(b / 2) >= '1970-01-01 00:00:07'
cast(b / 2D AS TIMESTAMP) > timestamp'1970-01-01 00:00:03'
i % 7 = 3
""".strip().splitlines()


@pytest.mark.push_cases(24)
@pytest.mark.parametrize("condition", UNDERSTOOD)
def test_a_condition_keeps_its_meaning(
    spark: Any, table: Any, read: Callable[[str], Translation], condition: str
) -> None:
    frame, _, columns = table
    filters = read(condition).conjuncts
    assert not [n for c in filters for n in c.walk() if isinstance(n, Opaque)], "not understood"
    keep, failed, _ = expr.filter_mask(filters, columns, 300)
    assert not failed.any()
    assert np.flatnonzero(keep).tolist() == sorted(r.id for r in frame.where(condition).select("id").collect())


@pytest.mark.parametrize("condition", ["cast(s AS INT) = 4", "10 / i > 1", "l * l > 5", "b + cast(120 AS TINYINT) > 3"])
def test_what_spark_raises_fails_here_too(table: Any, read: Callable[[str], Translation], condition: str) -> None:
    frame, _, columns = table
    _, failed, error = expr.filter_mask(read(condition).conjuncts, columns, 300)
    assert failed.any()
    assert error
    with pytest.raises(Exception, match=r"\[[A-Z_.]+\]"):
        frame.where(condition).select("id").collect()


@pytest.mark.parametrize(
    ("ansi", "condition", "mode"),
    [
        (True, "i + 1 > 3", Mode.ANSI),
        (True, "try_add(i, 1) > 3", Mode.TRY),
        (False, "i + 1 > 3", Mode.LEGACY),
        (True, "cast(s AS INT) = 3", Mode.ANSI),
        (True, "try_cast(s AS INT) = 3", Mode.TRY),
        (False, "cast(s AS INT) = 3", Mode.LEGACY),
    ],
)
def test_the_mode_of_each_node_is_its_own(
    spark: Any, read: Callable[[str], Translation], ansi: bool, condition: str, mode: Mode
) -> None:
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", str(ansi).lower())
    try:
        calls = [
            n
            for c in read(condition).conjuncts
            for n in c.walk()
            if isinstance(n, Call) and n.function in {"add", "cast"}
        ]
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)
    assert {n.mode for n in calls} == {mode}


def test_times_are_those_of_the_session(spark: Any, read: Callable[[str], Translation]) -> None:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Kathmandu")
    try:
        filters = read("date_trunc('DAY', ts) = timestamp'1960-01-01'").conjuncts
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    assert {n.zone for c in filters for n in c.walk() if isinstance(n, Call) and n.function == "date_trunc"} == {
        "Asia/Kathmandu"
    }


@pytest.mark.parametrize(
    "condition", ["soundex(s) = 'x'", "rand() > i", "hash(i, s) = 3 OR i = 2", "aes_encrypt(y, y) = y"]
)
def test_what_the_catalogue_lacks_is_opaque_and_keeps_its_columns(
    read: Callable[[str], Translation], condition: str
) -> None:
    filters = read(condition).conjuncts
    strange = [n for c in filters for n in c.walk() if isinstance(n, Opaque)]
    assert strange
    assert all(n.text for n in strange)
    named = {n.name for c in filters for n in c.walk() if isinstance(n, Column)}
    assert named == {
        name
        for name in ("i", "s", "y")
        if name in condition.replace("soundex", "").replace("hash", "").replace("aes_encrypt", "")
    }


def test_inferred_null_checks_come_last(read: Callable[[str], Translation]) -> None:
    functions = [c.function for c in read("cast(s AS INT) > 5 AND i = 3").conjuncts if isinstance(c, Call)]
    assert functions == ["gt", "eq", "is_not_null", "is_not_null"]


def test_a_null_check_that_can_fail_shields_nothing(read: Callable[[str], Translation]) -> None:
    filters = read("coalesce(cast(s AS INT), 1) IS NOT NULL AND i = 3").conjuncts
    assert not [
        c for c in filters if isinstance(c, Call) and c.function == "is_not_null" and not isinstance(c.args[0], Column)
    ]


def test_a_long_list_is_one_array(read: Callable[[str], Translation]) -> None:
    (condition, *_) = read(f"l IN ({', '.join(str(i) for i in range(20_000))}, NULL)").conjuncts
    assert isinstance(condition, Call)
    values = condition.args[1]
    assert isinstance(values, Literals)
    assert len(values.array) == 20_001
    assert values.array.null_count == 1


def test_a_long_chain_does_not_nest(spark: Any, read: Callable[[str], Translation]) -> None:
    (condition,) = read(" OR ".join(f"(i + {n} > 30 AND b > {n})" for n in range(150))).conjuncts
    assert isinstance(condition, Call)
    assert condition.function == "or"


def test_text_that_is_no_unicode_is_opaque(spark: Any, read: Callable[[str], Translation]) -> None:
    filters = read("s = cast(X'FF61' AS STRING)").conjuncts
    assert any(isinstance(n, Opaque) for c in filters for n in c.walk())


def test_the_path_of_a_struct_field_is_ids(table: Any, read: Callable[[str], Translation]) -> None:
    _, schema, _ = table
    (top, outer, inner) = schema.find(("st", "n", "b"))
    columns = {n.ids: n.name for c in read("st.n.b = 'v17'").conjuncts for n in c.walk() if isinstance(n, Column)}
    assert columns == {(top.id, outer.id, inner.id): "st.n.b"}
