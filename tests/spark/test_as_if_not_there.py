"""Whatever ``attach`` puts into a session behaves, for what is not ours, as if it were not there: errors above all."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

import tamis

STATEMENTS = [
    # The parser: syntax, names, types, literals.
    "SELEC 1", "SELECT", "SELECT 1 +", "SELECT (1", "SELECT 'a", "SELECT `a", "SELECT 1 /* open", "SELECT 1; SELECT 2", "SELECT 1 FROM", "", ";", "-- nothing",
    "SELECT 99999999999999999999L", "SELECT 300Y", "SELECT 1.0e999D", "SELECT X'1'", "SELECT DATE 'no'", "SELECT INTERVAL 1 fortnight", "SELECT CAST(1 AS NOPE)",
    "SELECT CAST(1 AS DECIMAL(99, 1))", "SELECT CAST(1 AS ARRAY)", "CREATE TABLE t (a INT, a INT)", "CREATE TABLE t (a NOPE)", "CREATE TABLE a.b.c.d.e (x INT)",
    "SELECT * FROM t TABLESAMPLE (200 PERCENT)", "SELECT * FROM t VERSION AS OF", "SELECT /*+ BROADCAST(x */ 1", "INSERT INTO", "MERGE INTO t USING s",
    "SELECT 1 GROUP BY ALL HAVING", "WITH a AS (SELECT 1), a AS (SELECT 2) SELECT * FROM a", "SELECT sum(1) OVER (PARTITION", "ALTER TABLE t ADD COLUMN", "SHOW NOTHING",
    "SET TIME ZONE 'nowhere'", "SET x.y", "CALL", "CALL nope.system.p()", "CALL spark_catalog.system.p(1)", "DESCRIBE", "DESC HISTORY", "DESCRIBE DETAIL", "DESCRIBE HISTORY nope.t",
    "DESCRIBE DETAIL nope", "OPTIMIZE", "OPTIMIZE nope", "OPTIMIZE spark_catalog.default.t WHERE a", "VACUUM", "VACUUM nope RETAIN x", "RESTORE", "RESTORE TABLE nope TO VERSION AS OF 1",
    # Parameters.
    "SELECT :b", "SELECT :a, :b", "SELECT ?", "SELECT IDENTIFIER(:b)",
    # Analysis: names, types, grouping, sub-queries.
    "SELECT nope", "SELECT * FROM nope", "SELECT * FROM spark_catalog.nope.t", "SELECT * FROM nope.db.t", "SELECT nope(1)", "SELECT substring()", "SELECT a FROM VALUES (1) AS t(b)",
    "SELECT t.a.b FROM VALUES (1) AS t(a)", "SELECT a, count(*) FROM VALUES (1, 2) AS t(a, b) GROUP BY b", "SELECT array(1, map(1, 2))", "SELECT 1 + array(1)", "SELECT sum(sum(1))",
    "SELECT (SELECT a, b FROM VALUES (1, 2) AS t(a, b))", "SELECT 1 UNION SELECT 1, 2", "SELECT * FROM VALUES (1), (1, 2)", "SELECT explode(1)", "SELECT a FROM VALUES (1) AS t(a), VALUES (2) AS s(a)",
    "SELECT row_number()", "SELECT a FROM VALUES (1) AS t(a) ORDER BY nope", "SELECT 1 LIMIT -1", "SELECT 1 LIMIT 'a'", "SELECT a FROM VALUES (1) AS t(a) WHERE sum(a) > 1", "DROP TABLE nope",
    "DROP NAMESPACE nope", "USE nope.nope", "INSERT INTO nope VALUES (1)", "DELETE FROM nope", "UPDATE nope SET a = 1", "DELETE FROM VALUES (1)", "MERGE INTO nope USING nope2 ON 1 = 1 WHEN MATCHED THEN DELETE",
    "ALTER TABLE nope ADD COLUMN a INT", "CREATE VIEW v AS SELECT nope", "CACHE TABLE nope", "REFRESH TABLE nope", "DESCRIBE nope", "SHOW COLUMNS IN nope", "CREATE INDEX i ON nope (a)", "TRUNCATE TABLE nope",
    "SELECT * FROM plain_view VERSION AS OF 1", "INSERT INTO plain_view VALUES (1)", "DELETE FROM plain_view", "SELECT from_json('1', 'nope nope')", "SELECT * FROM range('a')", "SELECT * FROM nope(1)",
    "SELECT a FROM plain_view GROUP BY 7", "SELECT raise_error(1, 2, 3)", "DECLARE VARIABLE x INT DEFAULT nope", "SET VARIABLE nope = 1", "EXECUTE IMMEDIATE 'SELECT nope'", "EXECUTE IMMEDIATE 'SELEC'",
    # Execution.
    "SELECT 1 / 0", "SELECT CAST('a' AS INT)", "SELECT element_at(array(1), 5)", "SELECT raise_error('mine')", "SELECT 2147483647 + 1", "SELECT (SELECT a FROM VALUES (1), (2) AS t(a))",
    "SELECT to_date('x', 'yyyy')", "SELECT assert_true(a > 99) FROM plain_view", "SELECT decode(1 / 0)", "SELECT sum(9223372036854775807) FROM plain_view", "SELECT make_date(2020, 13, 1)",
    "SELECT a / (a - a) FROM plain_view LIMIT 1", "SELECT count(*), max(1 / (a - a)) FROM plain_view", "SELECT x.a FROM plain_view x JOIN plain_view y ON x.a = y.a WHERE 1 / (x.a - x.a) = 1",
    "SELECT * FROM parquet.`/nowhere/at/all`", "SELECT * FROM nope.`/nowhere`",
    # And what works.
    "SELECT a, count(*) FROM plain_view GROUP BY a ORDER BY a LIMIT 3", "SELECT max(a), min(a), count(a) FROM plain_view WHERE a > 1", "SELECT :a", "DESCRIBE plain_view", "SHOW TABLES",
]  # fmt: skip

PARSED = [
    ("parsePlan", ["SELECT 1", "SELEC", "", "SELECT :b"]),
    ("parseQuery", ["SELECT 1", "INSERT INTO t VALUES (1)", "SELEC"]),
    ("parseExpression", ["a + 1", "a +", "", ":b", "CAST(a AS nope)", "cast(1 as decimal(99,1))"]),
    ("parseTableIdentifier", ["a.b", "a.b.c.d", "1a", "a b"]),
    ("parseFunctionIdentifier", ["a.b", "a.b.c.d", "1a", "a b"]),
    ("parseMultipartIdentifier", ["a.b.c.d", "a..b", "", "a b"]),
    ("parseTemporalTableIdentifier", ["a.b", "a VERSION AS OF 1", "1 2"]),
    ("parseRoutineParam", ["a INT", "a INT DEFAULT", "a nope"]),
    ("splitStatements", ["SELECT 1; SELECT 2", "SELECT 'a"]),
    ("parseTableSchema", ["a INT, b STRING", "a", "a nope", ""]),
    ("parseDataType", ["INT", "struct<a:int>", "nope", "decimal(99,1)", ""]),
]


@pytest.fixture(scope="module")
def pair(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """Two sessions of one application: as Spark made it (its parser taken out of what was put around it), and attached."""
    folder: Path = tmp_path_factory.mktemp("pair")
    attached = spark.newSession()
    tamis.attach(attached, "asif", folder)
    attached.sql("CREATE NAMESPACE IF NOT EXISTS asif.db")
    attached.sql("CREATE TABLE IF NOT EXISTS asif.db.t AS SELECT 1 AS a")
    attached.sql("SELECT * FROM asif.db.t WHERE a > 0 LIMIT 1").collect()  # all strategies and rules are in place
    plain = spark.newSession()
    state = plain._jsparkSession.sessionState()
    field = state.getClass().getDeclaredField("sqlParser")
    field.setAccessible(True)
    field.set(state, plain._jvm.org.apache.spark.sql.execution.SparkSqlParser())
    for session in (attached, plain):
        session.range(5).selectExpr("id AS a").createOrReplaceTempView("plain_view")
    return plain, attached


def outcome(run: Any) -> Any:
    """What an error says that a program can see, or what came out."""
    try:
        return run()
    except PySparkException as error:
        parameters = error.getMessageParameters()
        context = [
            (c.startIndex(), c.stopIndex(), c.fragment())
            for c in error.getQueryContext() or []
            if "SQL" in str(c.contextType())
        ]
        return (
            type(error).__name__,
            error.getCondition(),
            error.getSqlState(),
            json.dumps(parameters, sort_keys=True),
            context,
        )
    except Py4JJavaError as error:  # what PySpark has no class for
        java = error.java_exception
        return java.getClass().getName(), re.sub(r"#[0-9]+L?", "#", str(java.getMessage()))
    except Exception as error:
        return type(error).__name__, str(error)


def asked(session: Any, text: str) -> Any:
    return outcome(lambda: [tuple(row) for row in session.sql(text, args={"a": 1} if ":" in text else None).collect()])


@pytest.mark.parametrize("text", STATEMENTS)
@pytest.mark.push_cases(14)
def test_statements_end_as_in_a_session_without_ours(pair: tuple[Any, Any], text: str) -> None:
    plain, attached = (asked(session, text) for session in pair)
    assert attached == plain


def test_most_of_these_statements_fail(pair: tuple[Any, Any]) -> None:
    found = [asked(pair[0], text) for text in STATEMENTS]
    assert sum(isinstance(f, tuple) and len(f) == 5 and f[1] is not None for f in found) > 100


@pytest.mark.push_cases(4)
@pytest.mark.parametrize(("method", "texts"), PARSED, ids=[m for m, _ in PARSED])
def test_every_method_of_the_parser(pair: tuple[Any, Any], spark: Any, method: str, texts: list[str]) -> None:
    try:
        _same_from_both(pair, method, texts)
    finally:  # later tests of this process expect their own session
        spark._jvm.SparkSession.setActiveSession(spark._jsparkSession)


def _same_from_both(pair: tuple[Any, Any], method: str, texts: list[str]) -> None:
    for text in texts:
        outcomes = []
        for session in pair:
            session._jvm.SparkSession.setActiveSession(session._jsparkSession)
            parser = session._jsparkSession.sessionState().sqlParser()
            outcomes.append(
                outcome(lambda: str(getattr(parser, method)(text).toString()))  # noqa: B023  # called at once
            )
        if outcomes[0][1] is not None and f"Method {method}(" in str(outcomes[0][1]):
            pytest.skip(f"The parser of this Spark has no {method}.")
        assert outcomes[0] == outcomes[1], text


def test_no_method_of_the_parser_is_left_out(pair: tuple[Any, Any]) -> None:
    jvm = pair[0]._jvm
    interface = jvm.org.apache.spark.util.Utils.classForName(
        "org.apache.spark.sql.catalyst.parser.ParserInterface", False, True
    )
    methods = {
        m.getName() for m in interface.getMethods() if not jvm.java.lang.reflect.Modifier.isStatic(m.getModifiers())
    }
    assert methods <= {m for m, _ in PARSED} | {"parsePlanWithParameters"}, (
        "parsePlanWithParameters is what session.sql with arguments calls"
    )


def test_exceptions_of_spark_are_not_wrapped(pair: tuple[Any, Any]) -> None:
    for session in pair:
        with pytest.raises(PySparkException) as caught:
            session.sql("SELECT :b", args={"a": 1})
        assert caught.value.getCondition() == "UNBOUND_SQL_PARAMETER"
