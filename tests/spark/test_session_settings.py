"""Settings of a session that Spark reads when it evaluates an expression: filters under them equal Spark's over Parquet."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tamis

pytestmark = pytest.mark.spark
PARTS = [["abc", "straße", '{"a": [""], "b": 1}'], ["ΑΣ", "ǆ", '{"a": [1], "b": ""}'], [None, "", "x"]]
SPLIT, CASE, EMPTY = (
    "spark.sql.legacy.truncateForEmptyRegexSplit",
    "spark.sql.icu.caseMappings.enabled",
    "spark.sql.legacy.json.allowEmptyString.enabled",
)
FALLBACK = "spark.sql.legacy.json.enableDateTimeParsingFallback"
CASES = [  # a split of unlimited pieces by a text is computed here, which the setting does not change
    (SPLIT, "split(s, '', 2)[1] = 'bc'"),
    (SPLIT, "split(s, '', 2)[1] = 'b'"),
    (CASE, "upper(s) = 'STRASSE'"),
    (CASE, "lower(s) = 'ας'"),
    (EMPTY, "from_json(s, 'a ARRAY<INT>, b INT').a IS NOT NULL"),
    (EMPTY, "from_json(s, 'a ARRAY<INT>, b INT').b IS NULL"),
    (FALLBACK, "from_json(s, 'a STRING, b DATE').b IS NULL"),
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


@pytest.mark.parametrize("value", ["true", "false"])
@pytest.mark.parametrize(("name", "condition"), CASES)
def test_filters_follow_the_setting(session: Any, name: str, condition: str, value: str) -> None:
    with setting(session, name, value):
        assert ids(session, "settings_lake.db.t", condition) == ids(session, "plain", condition)
        negated = f"NOT ({condition})"
        assert ids(session, "settings_lake.db.t", negated) == ids(session, "plain", negated)


@pytest.mark.parametrize(("name", "condition"), [CASES[0], CASES[4]])
def test_spark_answers_differ_by_the_setting(session: Any, name: str, condition: str) -> None:
    """Otherwise the test above could pass without following the setting."""
    with setting(session, name, "true"):
        under_setting = ids(session, "plain", condition)
    assert under_setting != ids(session, "plain", condition)


def test_usual_sessions_still_skip(session: Any) -> None:
    assert ids(session, "settings_lake.db.t", "upper(s) = 'ABC'") == [0]
    assert tamis.reports(1)[0].parts.kept == 2
    with setting(session, CASE, "false"):
        assert ids(session, "settings_lake.db.t", "upper(s) = 'ABC'") == [0]
        assert tamis.reports(1)[0].parts.kept == 3
