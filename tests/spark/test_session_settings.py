"""Settings of a session that Spark reads when it evaluates an expression: under other values than its defaults, Spark decides."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.spark.translated import translated

import tamis
from tamis.core.expr import Opaque
from tamis.core.types import INTEGER, STRING, Field, Schema
from tamis.spark.jvm_bridge.catalyst import Translation

pytestmark = pytest.mark.spark
SCHEMA = Schema((Field("id", INTEGER, id=1), Field("s", STRING, id=2)))
PARTS = [["abc", "straße", '{"a": [""], "b": 1}'], ["ΑΣ", "ǆ", '{"a": [1], "b": ""}'], [None, "", "x"]]
CASE, POLICY = "spark.sql.icu.caseMappings.enabled", "spark.sql.legacy.timeParserPolicy"
UPPER, LOWER = "upper(s) = 'ABC'", "lower(s) = 'ας'"
NUMBER, DAY = "from_json(s, 'a STRING, b INT').b = 1", "to_date(s, 'yyyy-MM-dd') = DATE'2024-05-05'"
CASES = [
    (CASE, "false", UPPER),
    (CASE, "false", LOWER),
    (POLICY, "LEGACY", DAY),
    (POLICY, "LEGACY", NUMBER),
    ("spark.sql.json.enablePartialResults", "false", NUMBER),
    ("spark.sql.json.enableExactStringParsing", "false", NUMBER),
    ("spark.sql.legacy.json.allowEmptyString.enabled", "true", NUMBER),
    ("spark.sql.legacy.json.enableDateTimeParsingFallback", "true", NUMBER),
    ("spark.sql.legacy.json.enableDateTimeParsingFallback", "false", NUMBER),
]


@pytest.fixture(scope="module")
def session(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    root: Path = tmp_path_factory.mktemp("settings")
    made = spark.newSession()
    tamis.attach(made, "settings_lake", str(root))
    made.sql("CREATE NAMESPACE settings_lake.db")
    parts = [pa.table({"id": pa.array(range(3 * at, 3 * at + 3), pa.int32()), "s": s}) for at, s in enumerate(PARTS)]
    table = tamis.create(root / "db" / "t", parts[0].schema)
    for part in parts:
        table.append(part)
    pq.write_table(pa.concat_tables(parts), root / "plain.parquet")
    made.read.parquet(str(root / "plain.parquet")).createOrReplaceTempView("plain")
    made.conf.set("spark.sql.ansi.enabled", "false")
    made.conf.set("tamis.read.lazy", "on")
    made.conf.set("tamis.read.native_bytes", "0")
    return made


@contextmanager
def setting(session: Any, name: str, value: str) -> Iterator[None]:
    session.conf.set(name, value)
    try:
        yield
    finally:
        session.conf.unset(name)


def ids(session: Any, name: str, condition: str) -> list[int]:
    return sorted(row[0] for row in session.sql(f"SELECT id FROM {name} WHERE {condition}").collect())


def has_opaque(found: Translation) -> bool:
    return any(isinstance(node, Opaque) for conjunct in found.conjuncts for node in conjunct.walk())


@pytest.mark.parametrize(("name", "value", "condition"), CASES)
def test_spark_decides_under_another_value(session: Any, name: str, value: str, condition: str) -> None:
    plain = session.table("plain")
    assert not has_opaque(translated(plain, condition, SCHEMA))
    with setting(session, name, value):
        assert has_opaque(translated(plain, condition, SCHEMA))


@pytest.mark.parametrize(("name", "value", "condition"), CASES)
def test_rows_are_sparks_under_the_setting(session: Any, name: str, value: str, condition: str) -> None:
    with setting(session, name, value):
        for asked in (condition, f"NOT ({condition})"):
            assert ids(session, "settings_lake.db.t", asked) == ids(session, "plain", asked)


def test_parts_are_skipped_under_the_defaults_only(session: Any) -> None:
    assert ids(session, "settings_lake.db.t", UPPER) == [0]
    assert tamis.reports(1)[0].parts.kept == 2
    with setting(session, CASE, "false"):
        assert ids(session, "settings_lake.db.t", UPPER) == [0]
        assert tamis.reports(1)[0].parts.kept == 3
