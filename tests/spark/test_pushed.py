"""Limits, orders and aggregates that Spark pushes into a scan: the rows are plain Spark's, and what is read is little."""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random  # noqa: TID251  # seeded: it asks the machine nothing
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import settings
from tests.new_reports import all_reports, reports_since

import tamis
from tamis.core.types.arrow import from_arrow_schema
from tamis.engine.scan import Report
from tamis.spark.scan import pushdown
from tamis.spark.scan.pushdown import aggregation_of, is_exact
from tamis.spark.scan.scan_builder import Builder

pytestmark = pytest.mark.spark

QUERIES = max(settings().max_examples // 15, 5)
SEED = 11 if settings().derandomize else Random().randrange(2**32)
COLUMNS = {
    "a": pa.int64(),
    "b": pa.float64(),
    "s": pa.string(),
    "d": pa.date32(),
    "m": pa.decimal128(8, 2),
    "id": pa.int64(),
}
LONG = "x" * 70
OWNED = [
    "a >= 5",
    "a >= 5 AND s IS NOT NULL",
    "b > 0 OR b IS NULL",
    "NOT (a = 6)",
    "s LIKE 'b%'",
    "b <=> double('NaN')",
    "a IN (5, 7, 11)",
    "id > 40 AND id < 160",
]
LEFT = ["a % 2 = 0", "upper(s) = 'B'", "year(d) = 2024", "1 / (id + 1) > 0 AND a > 5"]


class Both(NamedTuple):
    """The same rows here and in plain Parquet."""

    spark: Any
    ours: str
    plain: str

    def rows(self, text: str) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
        """What ``text``, about the table ``{t}``, gives here and there."""
        return tuple(
            [tuple(map(shown, row)) for row in self.spark.sql(text.format(t=t)).collect()]
            for t in (self.ours, self.plain)
        )  # type: ignore[return-value]


def shown(value: Any) -> Any:
    """Equal where Spark's values are: one NaN, one zero."""
    return (
        "NaN"
        if isinstance(value, float) and math.isnan(value)
        else 0.0
        if value == 0 and isinstance(value, float)
        else value
    )


def some_rows(rng: Any, start: int, count: int) -> list[dict[str, Any]]:
    """Few values, so that there are ties, constant columns, and columns of NULLs or NaNs alone."""
    base = rng.choice([0, 5, 10])
    choices: dict[str, list[Any]] = {
        "a": rng.choice([[base], [base, base + 1, None], [None], list(range(base, base + 9))]),
        "b": rng.choice([[math.nan], [0.0], [-0.0, 0.0], [base + 0.5, -1.0], [math.nan, 1.5, None], [None], [2.5]]),
        "s": rng.choice([["b"], [LONG], [LONG + "y", "c"], [None, "é"], ["a", "b", "bb"]]),
        "d": rng.choice([[19_700], [19_800, 19_801], [None, 19_000]]),
        "m": rng.choice([["1.50"], ["-2.25", "7.00"], [None]]),
    }
    return [{c: rng.choice(values) for c, values in choices.items()} | {"id": start + i} for i in range(count)]


def as_arrow(rows: list[dict[str, Any]]) -> pa.Table:
    columns = {
        c: pa.array([r[c] for r in rows], pa.string() if c == "m" else kind).cast(kind) for c, kind in COLUMNS.items()
    }
    return pa.table(columns)


@pytest.fixture(scope="module")
def both(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Both:
    """16 parts, some rows of them deleted here, and left out there."""
    root, rng, parts = tmp_path_factory.mktemp("pushed"), Random(SEED), []
    session = spark.newSession()
    tamis.attach(session, "pushed_lake", str(root / "lake"))
    table = tamis.create(root / "lake" / "db" / "t", pa.schema(COLUMNS))
    for load in range(16):
        parts.append(as_arrow(some_rows(rng, load * 12, rng.randint(1, 12))))
        table.append(parts[-1])
    table.delete("id % 5 = 1")
    pq.write_table(pa.concat_tables(parts), root / "plain.parquet")
    session.conf.set("spark.sql.parquet.filterPushdown", "false")
    session.conf.set("spark.sql.parquet.aggregatePushdown", "false")
    session.conf.set("spark.sql.shuffle.partitions", "2")
    session.read.parquet(str(root / "plain.parquet")).where("NOT (id % 5 = 1)").createOrReplaceTempView("plain_pushed")
    return Both(session, "pushed_lake.db.t", "plain_pushed")


def a_filter(rng: Any) -> str:
    return str(rng.choice(["", *(f" WHERE {c}" for c in (*OWNED, *LEFT))]))


def test_the_first_rows_of_an_order_are_plain_sparks(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the driver may look at one part only, and tasks read the others above the bound that it found."""
    rng, columns = Random(SEED + 1), list(COLUMNS)
    for turn in range(QUERIES):
        monkeypatch.setattr(pushdown, "LOOK_BYTES", 1 if turn % 2 else 2**26)
        chosen = rng.sample(["a", "b", "s", "d", "m"], rng.randint(1, 2))
        keys = [f"{c} {rng.choice(['ASC', 'DESC'])} NULLS {rng.choice(['FIRST', 'LAST'])}" for c in chosen]
        text = f"SELECT * FROM {{t}}{a_filter(rng)} ORDER BY {', '.join(keys)} LIMIT {rng.randint(1, 20)}"
        found, expected = both.rows(text)
        places = [columns.index(c) for c in chosen]
        assert [[r[p] for p in places] for r in found] == [[r[p] for p in places] for r in expected], (SEED, text)
        assert len({r[-1] for r in found}) == len(found), (SEED, text)


def test_an_audit_changes_no_answer(both: Both) -> None:
    """Parts of the sample are read although metadata answers for them, or leaves them out."""
    both.spark.conf.set("tamis.audit.percent", "100")
    try:
        for text in (
            "id, a FROM {t} WHERE a >= 5 ORDER BY a DESC NULLS LAST, id LIMIT 9",
            "count(*), min(a), max(d) FROM {t} WHERE id > 40",
        ):
            found, expected = both.rows(f"SELECT {text}")
            assert found == expected, (SEED, text)
        found, every = both.rows("SELECT id FROM {t} WHERE id > 40 LIMIT 1000")
        assert sorted(found) == sorted(every), SEED
    finally:
        both.spark.conf.unset("tamis.audit.percent")


@pytest.mark.push_cases(1)
@pytest.mark.parametrize("measures", ["count(*), min(x), max(day)", "count(x)", "min(ts)"])
def test_an_audit_adds_no_row_to_an_aggregate_of_nothing(spark: Any, ordered: str, measures: str) -> None:
    """The tasks that read the sample return partial aggregates too, so Spark must add them up."""
    query = f"SELECT {measures} FROM {{t}} WHERE ts > 5000"
    expected = spark.sql(query.format(t=f"(SELECT * FROM {ordered} SORT BY ts)")).collect()
    spark.conf.set("tamis.audit.percent", "100")
    try:
        assert spark.sql(query.format(t=ordered)).collect() == expected
    finally:
        spark.conf.unset("tamis.audit.percent")


def test_a_limit_gives_as_many_rows_as_plain_spark(both: Both) -> None:
    rng = Random(SEED + 2)
    for _ in range(max(QUERIES // 2, 4)):
        text, k = f"SELECT * FROM {{t}}{a_filter(rng)}", rng.randint(0, 25)
        found, every = both.rows(f"{text} LIMIT {k}")[0], both.rows(text)[1]
        assert len(found) == min(k, len(every)), (SEED, text, k)
        assert set(found) <= set(every), (SEED, text, k)
        assert len(both.rows(f"{text} LIMIT {k} OFFSET 3")[0]) == max(min(k, len(every) - 3), 0), (SEED, text, k)


def test_aggregates_are_plain_sparks(both: Both) -> None:
    rng = Random(SEED + 3)
    for _ in range(QUERIES):
        measures = [
            "count(*)",
            *(f"{f}({c})" for f in ("count", "min", "max", "sum") for c in ("a", "id", "m")),
            *(f"{f}({c})" for f in ("min", "max") for c in ("b", "s", "d")),
        ]
        asked = ", ".join(rng.sample(measures, rng.randint(1, 3)))
        group = ", ".join(rng.sample(["a", "b", "s", "d"], rng.choice([0, 0, 1, 1, 2])))
        text = f"SELECT {group + ', ' if group else ''}{asked} FROM {{t}}{a_filter(rng)}{' GROUP BY ' + group if group else ''}"
        found, expected = both.rows(text)
        assert sorted(found, key=repr) == sorted(expected, key=repr), (SEED, text)


SHAPES = [
    "SELECT DISTINCT a FROM {t} WHERE a >= 5",
    "SELECT DISTINCT s, a FROM {t} WHERE a >= 5",
    "SELECT count(DISTINCT a) FROM {t} WHERE a >= 5",
    "SELECT avg(a), max(id) FROM {t} WHERE a >= 5",
    "SELECT 1 WHERE EXISTS (SELECT * FROM {t} WHERE a = 6)",
    "SELECT count(*) FROM {t} WHERE id > 100000",
    "SELECT a, count(*) FROM {t} WHERE a >= 5 GROUP BY a HAVING count(*) > 2 ORDER BY a LIMIT 3",
    "SELECT max(a) + 1 FROM {t} WHERE a >= 5 AND id IN (SELECT id FROM {t} WHERE a > 6)",
    "SELECT count(*) FROM (SELECT * FROM {t} WHERE a >= 5 ORDER BY id LIMIT 7)",
    "SELECT id AS n FROM {t} WHERE a >= 5 ORDER BY n DESC LIMIT 4",
    "SELECT x.id, y.m FROM {t} x JOIN (SELECT a, max(id) m FROM {t} WHERE a >= 5 GROUP BY a) y ON x.id = y.m",
    "SELECT count(*) FILTER (WHERE a > 6) FROM {t} WHERE a >= 5",
    "SELECT count(*) FROM (SELECT max(id), count(*) FROM {t} WHERE id > 100000)",
    "SELECT 1 FROM (SELECT max(id) FROM {t})",
]


@pytest.mark.push_cases(5)
@pytest.mark.parametrize("text", SHAPES)
def test_shapes_of_queries(both: Both, text: str) -> None:
    found, expected = both.rows(text)
    assert sorted(found, key=repr) == sorted(expected, key=repr)


OFF = "WITH ('tamis.scan.aggregates' = 'off', 'tamis.scan.topk' = 'off', 'tamis.scan.limits' = 'off')"


def test_padded_and_collated_text_and_columns_that_came_later(both: Both) -> None:
    """With everything pushed as with nothing."""
    spark, name = both.spark, "pushed_lake.db.texts"
    spark.sql(f"CREATE TABLE {name} (c CHAR(3), v VARCHAR(5), l STRING COLLATE UTF8_LCASE, n INT) USING tamis")
    for rows in ("('a', 'a', 'A', 1), ('ab', 'b', 'a', 2)", "('b', 'b', 'b', 3)", "(NULL, NULL, NULL, 4)"):
        spark.sql(f"INSERT INTO {name} VALUES {rows}")
    spark.sql(f"ALTER TABLE {name} ADD COLUMN late INT DEFAULT 7")
    spark.sql(f"ALTER TABLE {name} ALTER COLUMN n TYPE BIGINT")
    spark.sql(f"INSERT INTO {name} VALUES ('z', 'z', 'Z', 5000000000, NULL)")
    for asked in (
        "SELECT min(c), max(c), min(v), max(v), min(l), max(l), max(n), count(late), min(late) FROM {t}",
        "SELECT c, count(*) FROM {t} GROUP BY c",
        "SELECT v, max(n) FROM {t} WHERE v > 'a' GROUP BY v",
        "SELECT l, count(*) FROM {t} GROUP BY l",
        "SELECT late, min(n) FROM {t} WHERE n < 4000000000 GROUP BY late",
        "SELECT c FROM {t} WHERE c = 'ab' LIMIT 5",
        "SELECT n FROM {t} WHERE v IS NOT NULL ORDER BY l DESC, n LIMIT 2",
        "SELECT n FROM {t} ORDER BY late NULLS LAST, c DESC LIMIT 4",
    ):
        found, expected = ([tuple(r) for r in spark.sql(asked.format(t=t)).collect()] for t in (name, f"{name} {OFF}"))
        assert sorted(found, key=repr) == sorted(expected, key=repr), asked


# --- what is read ---


@pytest.fixture(scope="module")
def ordered(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    """20 parts of 100 rows; ``ts`` rises, ``day`` is one value in each part, ``x`` is anywhere."""
    root, rng = tmp_path_factory.mktemp("pushed"), Random(1)
    tamis.attach(spark, "pushed_ordered", str(root))
    table = tamis.create(root / "db" / "t")
    for start in range(0, 2_000, 100):
        x = [rng.random() for _ in range(100)]
        table.append(
            pa.table(
                {
                    "ts": list(range(start, start + 100)),
                    "x": x,
                    "day": [f"d{start // 100 % 3}"] * 100,
                    "w": ["w" * 50] * 100,
                }
            )
        )
    return "pushed_ordered.db.t"


@pytest.fixture
def report(spark: Any, ordered: str) -> Callable[[str], tuple[list[Any], Report]]:
    """Rows and the one report of a query."""

    def run(text: str) -> tuple[list[Any], Report]:
        before = all_reports()
        rows = spark.sql(text.format(t=ordered)).collect()
        (found,) = reports_since(before)
        return [tuple(r) for r in rows], found

    return run


Run = Callable[[str], tuple[list[Any], Report]]


def test_parts_read_and_not_read(report: Run) -> None:
    rows, found = report("SELECT * FROM {t} WHERE ts >= 950 LIMIT 10")
    assert (len(rows), found.parts.kept, found.parts.skipped_limit) == (10, 1, 10)
    rows, found = report("SELECT ts FROM {t} WHERE ts >= 150 ORDER BY ts DESC LIMIT 5")
    assert [r[0] for r in rows] == [1_999, 1_998, 1_997, 1_996, 1_995]
    assert (found.parts.kept, found.parts.skipped_topk) == (1, 18)
    rows, found = report("SELECT * FROM {t} ORDER BY x DESC LIMIT 3")
    assert found.parts.skipped_topk >= 14
    assert found.rows.matched >= 3
    assert found.bytes.leader > 0
    assert any(
        e["conjunct"] == "ORDER BY x DESC LIMIT 3" and e["parts_skipped"] == found.parts.skipped_topk
        for e in found.because
    )
    rows, found = report("SELECT count(*), min(ts), max(ts) FROM {t} WHERE ts BETWEEN 150 AND 1849")
    assert (rows, found.parts.answered, found.parts.kept) == ([(1_700, 150, 1_849)], 16, 2)
    rows, found = report("SELECT day, count(*) FROM {t} GROUP BY day")
    assert (sorted(rows), found.parts.answered, found.bytes.leader + found.bytes.follower) == (
        [("d0", 700), ("d1", 700), ("d2", 600)],
        20,
        0,
    )
    rows, found = report("SELECT DISTINCT day FROM {t} WHERE ts >= 500")
    assert (sorted(rows), found.parts.answered, found.parts.kept) == ([("d0",), ("d1",), ("d2",)], 15, 0)
    rows, found = report("SELECT 1 WHERE EXISTS (SELECT * FROM {t} WHERE ts >= 950)")
    assert (rows, found.parts.kept) == ([(1,)], 1)
    rows, found = report("SELECT count(*) FROM {t} WHERE x > 2")
    assert (rows, found.parts.skipped_stats + found.parts.skipped_segment) == ([(0,)], 20)


def test_switches(spark: Any, ordered: str, report: Run) -> None:
    rows, found = report("SELECT count(*) FROM {t} WITH ('tamis.scan.aggregates' = 'off') WHERE ts >= 150")
    assert (rows, found.parts.answered) == ([(1_850,)], 0)
    rows, found = report("SELECT ts FROM {t} WITH ('tamis.scan.topk' = 'off') ORDER BY ts LIMIT 1")
    assert (rows, found.parts.skipped_topk) == ([(0,)], 0)
    rows, found = report("SELECT ts FROM {t} WITH ('tamis.scan.limits' = 'off') WHERE ts >= 150 LIMIT 1")
    assert (len(rows), found.parts.skipped_limit) == (1, 0)


@pytest.mark.parametrize("place", ["conf", "property"])
def test_switches_of_the_session_and_of_the_table(spark: Any, ordered: str, report: Run, place: str) -> None:
    asked = {
        "aggregates": ("SELECT count(*) FROM {t} WHERE ts >= 150", "answered"),
        "topk": ("SELECT ts FROM {t} ORDER BY ts LIMIT 1", "skipped_topk"),
        "limits": ("SELECT ts FROM {t} WHERE ts >= 150 LIMIT 1", "skipped_limit"),
    }
    for name, (text, stage) in asked.items():
        key = f"tamis.scan.{name}"
        assert report(text)[1].parts[stage] > 0
        spark.conf.set(key, "off") if place == "conf" else spark.sql(
            f"ALTER TABLE {ordered} SET TBLPROPERTIES ('{key}' = 'off')"
        )
        try:
            assert report(text)[1].parts[stage] == 0, name
        finally:
            spark.conf.unset(key) if place == "conf" else spark.sql(
                f"ALTER TABLE {ordered} UNSET TBLPROPERTIES ('{key}')"
            )


def test_the_plan_names_the_stage(spark: Any, ordered: str) -> None:
    """What metadata leaves out for a limit, an order, an aggregate stands in EXPLAIN."""

    def plan(text: str) -> str:
        return str(spark.sql(text.format(t=ordered))._jdf.queryExecution().executedPlan().toString())

    assert "10 by the limit" in plan("SELECT * FROM {t} WHERE ts >= 950 LIMIT 10")
    assert "18 by top-k" in plan("SELECT ts FROM {t} WHERE ts >= 150 ORDER BY ts DESC LIMIT 5")
    assert "16 answered from metadata" in plan("SELECT count(*), min(ts) FROM {t} WHERE ts BETWEEN 150 AND 1849")


def test_a_filter_is_sparks_own_but_under_a_limit_or_an_aggregate(spark: Any, ordered: str) -> None:
    """Spark's rules about joins look at filters: where nothing is gained by it, the scan leaves them where they are."""

    def filters(text: str) -> bool:
        return "Filter (" in spark.sql(text.format(t=ordered))._jdf.queryExecution().optimizedPlan().toString()

    assert filters("SELECT * FROM {t} WHERE ts >= 150")
    assert filters("SELECT * FROM {t} a JOIN {t} b ON a.ts = b.ts WHERE a.ts >= 150 LIMIT 3")
    assert filters("SELECT count(*) FROM {t} WHERE ts % 2 = 0")
    assert filters("SELECT count(*) FROM {t} WITH ('tamis.read.lazy' = 'native') WHERE ts >= 150")
    for measures in (
        "sum(x)",
        "count(*), avg(x)",
        "count(DISTINCT day)",
        "max(x) FILTER (WHERE ts > 200)",
        "min(ts) + sum(ts)",
    ):
        assert filters(f"SELECT {measures} FROM {{t}} WHERE ts >= 150"), measures
    assert not filters("SELECT count(*) FROM {t} WHERE ts >= 150")
    assert not filters("SELECT day, max(x) - min(x) FROM {t} WHERE ts >= 150 GROUP BY day")
    assert not filters("SELECT * FROM {t} WHERE ts >= 150 LIMIT 3")


@pytest.mark.push_cases(1)
@pytest.mark.parametrize("measure", ["count_if(IF(ts IN (24), ts, NULL) <> 1.5)", "count(CASE WHEN ts IN (24) THEN ts END > 1.5)", "max(IF(ts > 24, ts, NULL) <> 1.5)"])  # fmt: skip
def test_aggregates_that_spark_cannot_translate_are_never_offered(spark: Any, ordered: str, measure: str) -> None:
    """Spark translates every aggregate above a source that takes aggregates, and fails with an internal error on these."""
    plain = f"(SELECT ts FROM {ordered} SORT BY ts)"
    for where in ("", " WHERE ts >= 150"):
        (expected,) = spark.sql(f"SELECT {measure} FROM {plain}{where}").collect()
        assert spark.sql(f"SELECT {measure} FROM {ordered}{where}").collect() == [expected]


@pytest.mark.parametrize("order", ["ts = 1.5", "IF(ts IN (24), ts, NULL) <> 1.5", "NOT (ts <=> NULL AND ts = 1.5), ts"])
def test_orders_that_spark_cannot_translate_are_never_offered(spark: Any, ordered: str, order: str) -> None:
    """As for aggregates: with its filter owned, a scan would be offered every order."""
    query = "SELECT ts FROM {t} WHERE ts >= 150 ORDER BY {order}, ts LIMIT 3"
    expected = spark.sql(query.format(t=f"(SELECT ts FROM {ordered} SORT BY ts)", order=order)).collect()
    assert spark.sql(query.format(t=ordered, order=order)).collect() == expected


def test_aggregates_of_renamed_columns_are_answered_from_metadata(spark: Any, ordered: str) -> None:
    for text in (
        "SELECT max(b) FROM (SELECT ts AS b, ts AS c FROM {t})",
        "SELECT count(*), count(1), min(ts) + 1 FROM {t}",
    ):
        assert (
            "answered from metadata"
            in spark.sql(text.format(t=ordered))._jdf.queryExecution().executedPlan().toString()
        ), text


def test_a_limit_after_an_aggregate_is_sparks(spark: Any, ordered: str) -> None:
    """A limit counts groups then, not rows: a scan that answers aggregates takes over none."""
    from tamis.spark.jvm_bridge.adapter import bridge_of

    text = f"SELECT day, count(*) FROM {ordered} GROUP BY day"
    java = bridge_of(spark)
    answer = java.target(spark.sql(text)._jdf.queryExecution().optimizedPlan().collectLeaves().head().scan())
    made = Builder(java, answer.source, {}, None, ())
    expressions = java.cls("org.apache.spark.sql.connector.expressions.Expressions")
    ascending = java.enum("org.apache.spark.sql.connector.expressions.SortDirection", "ASCENDING")
    orders = java.array(
        "org.apache.spark.sql.connector.expressions.SortOrder", [expressions.sort(expressions.column("day"), ascending)]
    )
    assert made.pushLimit(2)
    made._answer = answer
    before = made._pushed
    assert not made.pushLimit(1)
    assert not made.pushTopN(orders, 1)
    assert made._pushed == before
    made._answer = None
    assert made.pushTopN(orders, 1), "it is the aggregate that stands in the way"
    for order in ("", " ORDER BY day DESC", " ORDER BY 2, 1"):
        assert len(spark.sql(f"{text}{order} LIMIT 2").collect()) == 2


def test_explaining_reads_no_part(spark: Any, ordered: str) -> None:
    """The look at the best parts waits until the query is run."""
    before = tamis.reports(1)
    plan = spark.sql(f"SELECT * FROM {ordered} ORDER BY x DESC LIMIT 3")._jdf.queryExecution().executedPlan().toString()
    assert "parts: 20 of 20" in plan
    assert tamis.reports(1) == before


def test_a_filter_that_may_fail_is_never_owned() -> None:
    from tamis.core.expr import conjuncts_of, parse_predicate

    schema = from_arrow_schema(pa.schema(COLUMNS)).assign_ids(0)
    owned = {
        text: is_exact(conjuncts_of(parse_predicate(text, schema)))
        for text in (
            "a >= 5",
            "a IN (1, 2) OR b <=> 1D",
            "a + 1 > 5",
            "1 / a > 0",
            "s > 5",
            "udf(a)",
            "CAST(s AS INT) = 1",
        )
    }
    assert owned == {"a >= 5": True, "a IN (1, 2) OR b <=> 1D": True, **dict.fromkeys(list(owned)[2:], False)}


def test_what_is_no_aggregation_of_ours() -> None:
    schema = from_arrow_schema(pa.schema({**COLUMNS, "l": pa.list_(pa.int64())})).assign_ids(0)
    assert aggregation_of(None, schema) is None
    assert aggregation_of("\0" + "0", schema) is None
    assert aggregation_of("\0" + "1\0l\0count\0", schema) is None
    assert aggregation_of("\0" + "0\0max\0l", schema) is None
    assert aggregation_of("\0" + "0\0count\0l", schema) is not None
