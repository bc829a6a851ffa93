"""Times under a session's own rules: patterns of Spark 2, zones whose offsets the JVM has otherwise, intervals cut off."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tamis
from tamis.core.expr import Call, Opaque, parse_predicate
from tamis.core.expr.time_zones import zone_named
from tamis.core.types import INTEGER, TIMESTAMP, Field, Schema
from tamis.spark.jvm_bridge import node_settings
from tamis.spark.jvm_bridge.adapter import bridge_of
from tamis.spark.jvm_bridge.catalyst import known_nodes, translate_filters
from tamis.spark.jvm_bridge.node_settings import zone_table

pytestmark = pytest.mark.spark
SCHEMA = Schema((Field("id", INTEGER, id=1), Field("ts", TIMESTAMP, id=2)))
LAZY = {"tamis.read.lazy": "on", "tamis.read.native_bytes": "0"}


@pytest.fixture(scope="module")
def session(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    root: Path = tmp_path_factory.mktemp("times")
    made = spark.newSession()
    tamis.attach(made, "times_lake", str(root))
    made.sql("CREATE NAMESPACE times_lake.db")
    for key, value in LAZY.items():
        made.conf.set(key, value)
    return made, root


def both(session: tuple[Any, Path], name: str, parts: list[pa.Table]) -> Any:
    """A table with these parts, and ``<name>_plain``, a view of the same rows."""
    spark, root = session
    table = tamis.create(root / "db" / name, parts[0].schema)
    for part in parts:
        table.append(part)
    spark.createDataFrame(pa.concat_tables(parts).to_pandas()).createOrReplaceTempView(f"{name}_plain")
    return spark


def ids(spark: Any, name: str, condition: str) -> list[int]:
    return sorted(row[0] for row in spark.sql(f"SELECT id FROM {name} WHERE {condition}").collect())


TEXTS = [["2024-05-05 10:00:00", "x"], ["2024-1-5", "6"], ["2024-05-05", None]]
TIMES = [dt.datetime(2024, 1, 1), dt.datetime(9999, 5, 5), dt.datetime(1582, 10, 4)]


@pytest.fixture(scope="module")
def patterns(session: tuple[Any, Path]) -> Any:
    parts = [
        pa.table({"id": pa.array([2 * at, 2 * at + 1], pa.int32()), "s": texts, "ts": [TIMES[at]] * 2})
        for at, texts in enumerate(TEXTS)
    ]
    return both(session, "patterns", parts)


@pytest.mark.parametrize("policy", ["LEGACY", "CORRECTED"])
@pytest.mark.parametrize(
    "condition",
    [
        "to_date(s, 'yyyy-MM-dd') = DATE'2024-05-05'",
        "to_date(s, 'yyyy-MM-dd') = DATE'2024-01-05'",
        "try_to_timestamp(s, 'yyyy-MM-dd HH:mm:ss') IS NOT NULL",
        "unix_timestamp(s) > 0",
        "date_format(ts, 'yyyy') >= '9999'",
        "from_unixtime(id * 400000000000, 'yyyy') > '2'",
    ],
)
def test_patterns_mean_what_the_policy_says(patterns: Any, condition: str, policy: str) -> None:
    patterns.conf.set("spark.sql.legacy.timeParserPolicy", policy)
    patterns.conf.set("spark.sql.ansi.enabled", "false")
    try:
        assert ids(patterns, "times_lake.db.patterns", condition) == ids(patterns, "patterns_plain", condition)
    finally:
        patterns.conf.unset("spark.sql.legacy.timeParserPolicy")
        patterns.conf.unset("spark.sql.ansi.enabled")


def test_a_pattern_that_spark_refuses_is_refused(patterns: Any) -> None:
    patterns.conf.set("spark.sql.legacy.timeParserPolicy", "EXCEPTION")
    patterns.conf.set("spark.sql.ansi.enabled", "false")
    try:
        for name in ("patterns_plain", "times_lake.db.patterns"):
            with pytest.raises(Exception, match="INCONSISTENT_BEHAVIOR_CROSS_VERSION"):
                ids(patterns, name, "to_date(s, 'yyyy-MM-dd') = DATE'2024-01-05'")
    finally:
        patterns.conf.unset("spark.sql.legacy.timeParserPolicy")
        patterns.conf.unset("spark.sql.ansi.enabled")


def test_patterns_of_usual_sessions_still_skip(patterns: Any) -> None:
    assert ids(patterns, "times_lake.db.patterns", "date_format(ts, 'yyyy') = '2024'") == [0, 1]
    assert tamis.reports(1)[0].parts.kept == 1


DAYS = [dt.timedelta(days=1, hours=23, minutes=59, seconds=59, microseconds=999_999), dt.timedelta(days=3)]
CUT = [
    "CAST(d AS INTERVAL DAY) = INTERVAL '1' DAY",
    "CAST(d AS INTERVAL HOUR) = INTERVAL '47' HOUR",
    "CAST(d AS INTERVAL DAY TO MINUTE) = INTERVAL '1 23:59' DAY TO MINUTE",
    "CAST(d AS INTERVAL DAY) <> INTERVAL '1' DAY",
    "CAST(-d AS INTERVAL DAY) >= INTERVAL '-1' DAY",
    "CAST(d AS INTERVAL MINUTE TO SECOND) > INTERVAL '4000:00' MINUTE TO SECOND",
]


@pytest.fixture(scope="module")
def intervals(session: tuple[Any, Path]) -> Any:
    return both(
        session,
        "intervals",
        [
            pa.table({"id": pa.array([at], pa.int32()), "d": pa.array([value], pa.duration("us"))})
            for at, value in enumerate(DAYS)
        ],
    )


@pytest.mark.parametrize("condition", CUT)
def test_an_interval_is_cut_off_behind_its_last_field(intervals: Any, condition: str) -> None:
    wanted = ids(intervals, "intervals_plain", condition)
    assert ids(intervals, "times_lake.db.intervals", condition) == wanted
    made = f"intervals_{CUT.index(condition)}"
    intervals.sql(f"CREATE TABLE times_lake.db.{made} AS SELECT * FROM times_lake.db.intervals")
    intervals.sql(f"DELETE FROM times_lake.db.{made} WHERE {condition}")
    assert ids(intervals, f"times_lake.db.{made}", "true") == ids(intervals, "intervals_plain", f"NOT ({condition})")


def trees(spark: Any, condition: str) -> str:
    """A filter's text for Python, of a plan over the columns of ``SCHEMA``."""
    frame = spark.sql(f"SELECT * FROM VALUES (1, TIMESTAMP'2024-01-01') AS t(id, ts) WHERE {condition}")
    owner = bridge_of(spark)
    analyzed = frame._jdf.queryExecution().analyzed()
    while analyzed.getClass().getSimpleName() != "Filter":
        analyzed = analyzed.children().head()
    return str(owner.helper("TreeText").render(owner.seq([analyzed.condition()]), known_nodes()))


def test_a_zone_that_the_jvm_has_otherwise_is_taken_from_it(
    session: tuple[Any, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if Python's tables were those of Berlin, whatever the zone."""
    spark, _ = session
    wanted = zone_named("America/New_York")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        text = trees(spark, "hour(ts) = 3 AND id > 1")
        of_variant = trees(spark, "try_variant_get(try_parse_json(CAST(id AS STRING)), '$', 'timestamp') > ts")
    finally:
        spark.conf.unset("spark.sql.session.timeZone")
    assert set(json.loads(text)["zones"]) == {"America/New_York"}
    usual, of_id = translate_filters(text, SCHEMA, zone_table(bridge_of(spark))).conjuncts
    monkeypatch.setattr(node_settings, "zone_named", lambda _: zone_named("Europe/Berlin"))
    other, same = translate_filters(text, SCHEMA, zone_table(bridge_of(spark))).conjuncts
    assert (of_id, same) == (parse_predicate("id > 1", SCHEMA), of_id)
    (before,), (after,) = (
        {node.zone for node in one.walk() if isinstance(node, Call) and node.zone} for one in (usual, other)
    )
    assert before == "America/New_York" != after
    (found,) = translate_filters(of_variant, SCHEMA, zone_table(bridge_of(spark))).conjuncts
    assert {node.zone for node in found.walk() if isinstance(node, Call) and node.zone} == {after}
    table = zone_named(after)
    assert table.checksum == wanted.checksum
    moments = np.arange(-5_000_000_000, 30_000_000_000, 86_400 * 9 + 12_345) * 1_000_000
    assert (table.offset(moments) == wanted.offset(moments)).all()
    assert (table.instants(moments) == wanted.instants(moments)).all()


@pytest.mark.parametrize(
    "condition",
    [
        "from_utc_timestamp(ts, 'America/New_York') > TIMESTAMP'2024-01-01'",
        "to_utc_timestamp(ts, 'America/New_York') > TIMESTAMP'2024-01-01'",
        "convert_timezone('America/New_York', 'Asia/Tokyo', CAST(ts AS TIMESTAMP_NTZ)) > TIMESTAMP_NTZ'2024-01-01'",
        "make_timestamp(2024, 1, id, 1, 1, 1, 'America/New_York') > ts",
    ],
)
def test_a_zone_among_the_arguments_is_left_to_spark(
    session: tuple[Any, Path], monkeypatch: pytest.MonkeyPatch, condition: str
) -> None:
    text, table = trees(session[0], condition), zone_table(bridge_of(session[0]))
    own = zone_named
    monkeypatch.setattr(node_settings, "zone_named", lambda n: own("Europe/Berlin" if n == "America/New_York" else n))
    assert any(isinstance(node, Opaque) for node in translate_filters(text, SCHEMA, table).conjuncts[0].walk())


def test_rows_in_zones_that_differ_are_sparks(session: tuple[Any, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are tested in workers of their own, which get the JVM's table with the filter."""
    spark, root = session
    moments = [dt.datetime(1994, 1, 15, 23, 30), dt.datetime(2024, 7, 1, 2, 30), dt.datetime(2026, 12, 1, 8, 30)]
    parts = [
        pa.table({"id": pa.array([at], pa.int32()), "ts": pa.array([moment], pa.timestamp("us", "UTC"))})
        for at, moment in enumerate(moments)
    ]
    table = tamis.create(root / "db" / "zones", parts[0].schema)
    for part in parts:
        table.append(part)
    table.append(pa.concat_tables(parts))
    plain = root / "zones.parquet"
    pq.write_table(pa.concat_tables([*parts, *parts]), plain)
    spark.read.parquet(str(plain)).createOrReplaceTempView("zones_plain")
    monkeypatch.setattr(node_settings, "zone_named", lambda _: zone_named("UTC"))
    try:
        for name in ("WET", "America/Vancouver", "Asia/Tehran", "America/New_York", "Europe/Stockholm"):
            spark.conf.set("spark.sql.session.timeZone", name)
            hours = {row[0] for row in spark.sql("SELECT DISTINCT hour(ts) FROM zones_plain").collect()}
            for hour in {*hours, 25}:
                condition = f"hour(ts) = {hour}"
                assert ids(spark, "times_lake.db.zones", condition) == ids(spark, "zones_plain", condition), name
    finally:
        spark.conf.unset("spark.sql.session.timeZone")


def test_checksums_tell_which_zones_are_the_jvms(session: tuple[Any, Path]) -> None:
    """In every zone of the JVM, equal checksums mean equal offsets at all samples."""
    spark, _ = session
    jvm = spark._jvm
    names = [n for n in sorted(jvm.java.time.ZoneId.getAvailableZoneIds()) if not n.startswith("SystemV/")][::25]
    moments = np.arange(-5_000_000_000, 6_000_000_000, 86_400 * 47 + 12_345)
    same = 0
    for name in [*names, "Europe/Berlin", "America/Los_Angeles", "Pacific/Apia", "+05:30", "UTC"]:
        checksum = json.loads(trees(spark, f"to_utc_timestamp(ts, '{name}') > ts"))["zones"][name]
        rules = jvm.java.time.ZoneId.of(name).getRules()
        ours = np.broadcast_to(zone_named(name).offset(moments * 1_000_000) // 1_000_000, moments.shape)
        if checksum == zone_named(name).checksum:
            for at in range(0, len(moments), 97):
                offset = rules.getOffset(jvm.java.time.Instant.ofEpochSecond(int(moments[at]))).getTotalSeconds()
                assert offset == ours[at], (name, moments[at])
        same += checksum == zone_named(name).checksum
    assert same > len(names) // 2, "most zones are the same"


UNUSUAL_TEXTS = [
    "2026-11-20 12:00:00 America/Edmonton",
    "2026-10-20 12:00:00 Africa/Casablanca",
    "2024-01-01 00:00:00 a=b",
    "2024-01-01 00:00:00 UTC=eJwzNjMwAAACAgDK",
    "2024-01-01 00:00:00 UTC",
    "2024-01-01 00:00:00 SystemV/EST5",
    "ɤ",
    "a",
    "Ɤ",
    "é",
]
"""Times in regions, whose offsets may be other ones in the JVM, and letters that a later Unicode gave a partner."""


@pytest.fixture(scope="module")
def unusual_texts(session: tuple[Any, Path]) -> Any:
    parts = [pa.table({"id": pa.array([at], pa.int32()), "s": [text]}) for at, text in enumerate(UNUSUAL_TEXTS)]
    return both(session, "unusual_texts", [*parts, pa.concat_tables(parts)])


@pytest.mark.parametrize(
    "condition",
    [
        "try_cast(s AS TIMESTAMP) = TIMESTAMP'2026-11-20 19:00:00Z'",
        "try_cast(s AS TIMESTAMP) = TIMESTAMP'2026-11-20 18:00:00Z'",
        "try_cast(s AS TIMESTAMP) < TIMESTAMP'2026-10-20 11:30:00Z'",
        "try_cast(s AS TIMESTAMP) IS NOT NULL",
        "try_cast(s AS TIMESTAMP) IS NULL",
        "try_cast(s AS TIMESTAMP_NTZ) IS NULL",
        "upper(s) = '\ua7cb'",
        "upper(s) <> 'ɤ'",
        "lower(s) = 'ɤ'",
        "upper(s) = 'É' OR lower(s) = 'a'",
    ],
)
@pytest.mark.push_cases(4)
def test_unusual_texts_are_left_to_spark(unusual_texts: Any, condition: str) -> None:
    assert ids(unusual_texts, "times_lake.db.unusual_texts", condition) == ids(
        unusual_texts, "unusual_texts_plain", condition
    )
    for query in (
        "SELECT count(*), min(id), max(id) FROM {t} WHERE {c}",
        "SELECT count(*) FROM (SELECT id FROM {t} WHERE {c} LIMIT 3)",
        "SELECT id FROM {t} WHERE {c} ORDER BY id DESC LIMIT 3",
    ):
        ours, plain = (
            unusual_texts.sql(query.format(t=t, c=condition)).collect()
            for t in ("times_lake.db.unusual_texts", "unusual_texts_plain")
        )
        assert ours == plain, query


@pytest.mark.parametrize(
    "condition", ["try_cast(s AS TIMESTAMP) = TIMESTAMP'2026-11-20 19:00:00Z'", "upper(s) = '\ua7cb'"]
)
@pytest.mark.parametrize("statement", ["DELETE FROM {t} WHERE {c}", "UPDATE {t} SET id = id + 100 WHERE {c}"])
def test_unusual_texts_are_changed_as_spark_reads_them(unusual_texts: Any, statement: str, condition: str) -> None:
    name = "times_lake.db.odd_changed"
    unusual_texts.sql(f"CREATE OR REPLACE TABLE {name} AS SELECT * FROM times_lake.db.unusual_texts")
    unusual_texts.sql(statement.format(t=name, c=condition))
    changed = len(ids(unusual_texts, "unusual_texts_plain", condition))
    assert changed
    left = ids(unusual_texts, name, "id < 100")
    assert left == ids(unusual_texts, "unusual_texts_plain", f"NOT coalesce({condition}, false)")


USUAL = 1_717_200_000_000_000
"""2024-06-01 in UTC."""
FAR = {"late": [USUAL, 2**63 - 1], "early": [-(2**63), USUAL + 1]}


@pytest.fixture(scope="module")
def far_times(session: tuple[Any, Path]) -> Any:
    spark, root = session
    times = [time for part in FAR.values() for time in part]
    table = tamis.create(root / "db" / "far_times", pa.schema([("id", pa.int32()), ("ts", pa.timestamp("us", "UTC"))]))
    for at in (0, 2):
        column = pa.array(times[at : at + 2], pa.timestamp("us", "UTC"))
        table.append(pa.table({"id": pa.array([at, at + 1], pa.int32()), "ts": column}))
    rows = ", ".join(f"({at}, {time}L)" for at, time in enumerate(times))
    spark.sql(f"SELECT id, timestamp_micros(m) AS ts FROM VALUES {rows} AS v(id, m)").createOrReplaceTempView(
        "far_times_plain"
    )
    return spark


@pytest.mark.parametrize("zone", ["+09:00", "-05:00", "Asia/Tokyo", "America/New_York"])
@pytest.mark.push_cases(2)
def test_far_times_have_sparks_local_times(far_times: Any, zone: str) -> None:
    """A program's largest time, for "never", lies beyond 64 bits in local time east of UTC."""
    far_times.conf.set("spark.sql.session.timeZone", zone)
    try:
        for condition in (
            "year(ts) >= 2024",
            "CAST(ts AS DATE) <= DATE'2024-12-31'",
            "hour(ts) >= 12",
            "CAST(ts AS STRING) > '2'",
            "date_format(ts, 'yyyy-MM-dd') LIKE '%-01-%'",
            "timestampdiff(DAY, ts, TIMESTAMP'2024-01-01 00:00:00') > 100",
        ):
            for asked in (condition, f"NOT ({condition})"):
                wanted = ids(far_times, "far_times_plain", asked)
                assert ids(far_times, "times_lake.db.far_times", asked) == wanted, asked
    finally:
        far_times.conf.unset("spark.sql.session.timeZone")


ODD = pa.table(
    {
        "id": pa.array(range(4), pa.int32()),
        "s": ["20240101000000123", "2024-01-01T23:00:00", "2024-01-01t01:00:00", "-0000-01-01"],
        "n": [1, 1, 0, 0],
        "z": [0, 0, 1, 1],
        "d": [dt.date(2024, 1, 3)] * 4,
        "x": [0.5, 1.0, 2.0, -1.0],
        "y": [0.0, float("inf"), float("inf"), float("inf")],
    }
)


@pytest.fixture(scope="module")
def odd_values(session: tuple[Any, Path]) -> tuple[Any, tamis.Table]:
    spark = both(session, "odd_values", [ODD.slice(1, 2), ODD.take([0, 3])])
    return spark, tamis.open(session[1] / "db" / "odd_values")


@pytest.mark.parametrize(
    ("condition", "embedded"),
    [
        ("try_to_timestamp(s, 'yyyyMMddHHmmssSSS') IS NULL", False),
        ("try_to_timestamp(s, \"yyyy-MM-dd'T'HH:mm:ss\") = TIMESTAMP'2024-01-01 01:00:00'", True),
        ("try_to_timestamp(s, 'yyyy-MM-dd') IS NULL", True),
        ("try_divide(n + 9223372036854775807L, z) IS NULL", True),
        ("try_mod(n + 9223372036854775807L, z) IS NULL", True),
        ("DATE'2024-01-01' + (d - DATE'2024-01-01') = '2024-01-03 12:00:00'", True),
        ("isnan(power(x, y))", False),
        ("power(1.0D, y) > 2", False),
    ],
)
@pytest.mark.push_cases(4)
def test_odd_values_are_sparks(odd_values: tuple[Any, tamis.Table], condition: str, embedded: bool) -> None:
    spark, table = odd_values
    wanted = ids(spark, "odd_values_plain", condition)
    assert wanted
    assert ids(spark, "times_lake.db.odd_values", condition) == wanted
    if embedded:
        assert sorted(table.scan(condition).to_arrow()["id"].to_pylist()) == wanted
