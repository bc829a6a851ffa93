"""Statements that Spark's parser lacks (OPTIMIZE, VACUUM, REINDEX …): they do what users mean, for tables of ours alone."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.core.types.identifiers import backquote_path
from tamis.engine.operations.upkeep import vacuum
from tamis.errors import InvalidInput
from tamis.spark.sql.procedure import table_name
from tamis.spark.sql.statements import GRAMMAR, Statements


@pytest.fixture
def filled(lake: Any) -> Any:
    lake.sql("CREATE TABLE lake.db.t (a INT, b STRING) USING tamis")
    for a in range(4):
        tamis.open(lake.folder / "db" / "t").append(pa.table({"a": pa.array([a], pa.int32()), "b": ["it's"]}))
    return lake


def operations(lake: Any) -> list[str]:
    return [row[0] for row in lake.rows("SELECT operation FROM lake.db.t.history ORDER BY version DESC")]


def test_statements_of_upkeep_do_what_their_procedures_do(filled: Any) -> None:
    before = filled.rows("SELECT * FROM lake.db.t ORDER BY a")
    assert (
        filled.sql("DESCRIBE HISTORY lake.db.t").collect() == filled.sql("CALL lake.system.history('db.t')").collect()
    )
    assert [row[0] for row in filled.rows("desc /* the last */ history lake.db.t LIMIT 1;")] == [4]
    assert filled.sql("DESCRIBE DETAIL lake.db.t").collect()[0]["num_rows"] == 4
    done = filled.sql("-- small parts\nOPTIMIZE lake.db.`t` WHERE a < 3 AND b = 'it\\'s'").collect()[0]
    assert (done["parts_removed"], done["parts_added"]) == (3, 1)
    assert filled.sql("OPTIMIZE lake.db.t ZORDER BY (a, b)").collect()[0]["parts_removed"] == 2
    assert filled.rows("SELECT * FROM lake.db.t ORDER BY a") == before
    assert operations(filled)[:2] == ["compact", "compact"]
    below = "table => 'db.t', retention_hours => 0, below_retention => true"
    assert len(filled.rows(f"CALL lake.system.vacuum({below})")) > 4, "the objects that would go"
    assert operations(filled)[0] == "compact"
    assert filled.sql("VACUUM lake.db.t").collect()[0]["objects"] == 0, "all is younger than a week"
    at = filled.rows("SELECT CAST(timestamp AS STRING) FROM lake.db.t.history WHERE version = 1")[0][0]
    filled.sql("RESTORE TABLE lake.db.t TO VERSION AS OF 2")
    assert filled.rows("SELECT count(*) FROM lake.db.t") == [(2,)]
    filled.sql(f"RESTORE lake.db.t TO TIMESTAMP AS OF '{at}'")
    assert filled.rows("SELECT count(*) FROM lake.db.t") == [(1,)]
    for dry in ("", " DRY RUN"):
        filled.refused(f"VACUUM lake.db.t RETAIN 167.9 HOURS{dry}", "BELOW_RETENTION")
    filled.refused("CALL lake.system.vacuum(table => 'db.t', retention => '1d', dry_run => false)", "BELOW_RETENTION")
    assert operations(filled)[0] == "restore"
    assert filled.sql(f"CALL lake.system.vacuum({below}, dry_run => false)").collect()[0]["objects"] > 4
    assert operations(filled)[0] == "vacuum"


def test_statements_about_indexes_do_what_their_procedures_do(filled: Any) -> None:
    table = tamis.open(filled.folder / "db" / "t")
    for statement in (
        "REINDEX lake.db.t",
        "reindex index `by b` ON TABLE lake.db.t",
        "REFRESH INDEX `BY B` ON lake.db.t",
    ):
        filled.sql("CREATE INDEX `by b` ON lake.db.t (b) OPTIONS (build = 'deferred')")
        assert [len(row["missing"]) for row in filled.sql("SHOW INDEXES FROM lake.db.t").collect()] == [4]
        assert filled.sql(statement).collect()[0]["parts_added"] == 1
        assert table.indexes()[0].missing == {}
        filled.sql("DROP INDEX `by b` ON lake.db.t")
    assert filled.rows("SHOW INDEXES IN TABLE lake.db.t") == []
    filled.refused("REINDEX INDEX nothing ON lake.db.t", "INDEX_NOT_FOUND")
    filled.refused("REINDEX lake.db.nope", "TABLE_OR_VIEW_NOT_FOUND")
    filled.refused("SHOW INDEXES FROM default.t", "INVALID_STATEMENT_OR_CLAUSE")


def test_the_names_are_those_of_the_session_and_of_later_ones(filled: Any) -> None:
    filled.spark.sql(f"USE {filled.name}.db")
    assert filled.sql("DESCRIBE DETAIL t").collect()[0]["num_rows"] == 4
    assert filled.sql("OPTIMIZE db.t").collect()[0]["parts_removed"] == 4
    later = filled.spark.newSession()
    assert later.sql(f"DESCRIBE DETAIL {filled.name}.db.t").collect()[0]["num_parts"] == 1
    assert filled.spark.sql("SELECT :n AS n", args={"n": 7}).collect()[0]["n"] == 7, "parameters still come through"


def test_what_is_not_ours_is_left_to_spark(filled: Any) -> None:
    filled.refused("OPTIMIZE default.t", "PARSE_SYNTAX_ERROR")
    filled.refused("VACUUM", "PARSE_SYNTAX_ERROR")
    filled.refused("DESCRIBE HISTORY nowhere", "TABLE_OR_VIEW_NOT_FOUND")
    filled.sql("CREATE TABLE lake.db.history (a INT, b STRING) USING tamis")
    filled.spark.sql(f"USE {filled.name}.db")
    assert filled.rows("DESCRIBE history a")[0] == ("col_name", "a"), "a column of a table of that name"
    filled.refused("OPTIMIZE lake.db.nope", "TABLE_OR_VIEW_NOT_FOUND")
    assert "tamis.open('/x/y')" in filled.refused("OPTIMIZE tamis.`/x/y`", "UNSUPPORTED_STATEMENT")
    assert "ZORDER BY" in filled.refused("OPTIMIZE lake.db.t WEHRE a = 1", "PARSE_ERROR")


@pytest.mark.parametrize(
    "text",
    [
        "OPTIMIZE spark_catalog.default.t",
        "VACUUM spark_catalog.default.t",
        "VACUUM delta.`/data/t`",
        "REINDEX spark_catalog.default.t",
        "RESTORE spark_catalog.default.t TO VERSION AS OF 1",
    ],
)
def test_tables_of_other_catalogs_and_formats_are_left_to_spark_after_use(filled: Any, text: str) -> None:
    filled.spark.sql(f"USE {filled.name}.db")
    filled.refused(text, "PARSE_SYNTAX_ERROR")


class Known:
    """A catalog that has every table but needs no Spark."""

    bridge = SimpleNamespace(active_session=lambda: SimpleNamespace(conf={}))

    def name(self) -> str:
        return "la`ke"


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("OPTIMIZE lake.db.t FULL", ["compact"]),
        (
            "optimize lake.db.t where s = 'a\\\\b' ZORDER BY a",
            ["compact", "filter", "s = 'a\\\\b'", "cluster_by", "a", "curve", "zorder"],
        ),
        (
            "OPTIMIZE lake.db.t ZORDER BY (a, `b,c`) -- nightly",
            ["compact", "cluster_by", "a, `b,c`", "curve", "zorder"],
        ),
        ("OPTIMIZE lake.db.t ZORDER BY (a) /* so */;", ["compact", "cluster_by", "a", "curve", "zorder"]),
        ("OPTIMIZE lake.db.t WHERE f(zorder) = 1", ["compact", "filter", "f(zorder) = 1"]),
        ("VACUUM lake.db.t", ["vacuum", "dry_run", False]),
        ("VACUUM lake.db.t FULL RETAIN 0.5 HOURS DRY RUN", ["vacuum", "retention_hours", 0.5, "dry_run", True]),
        ("VACUUM lake.db.t DRY RUN RETAIN 168 HOURS", ["vacuum", "retention_hours", 168.0, "dry_run", True]),
        ("RESTORE lake.db.t VERSION AS OF '3'", ["restore", "version", 3]),
        ("DESC HISTORY lake.db.t LIMIT 5", ["history", "limit", 5]),
        ("REINDEX lake.db.t", ["repair_index"]),
        ("REINDEX TABLE lake.db.t;", ["repair_index"]),
        ("REINDEX INDEX ik ON TABLE lake.db.t", ["repair_index", "index", "ik"]),
        ("REFRESH INDEX `on` ON lake.db.t", ["repair_index", "index", "on"]),
        ("SHOW INDEXES ON lake.db.t", ["list_indexes"]),
        ("SHOW INDEXES IN TABLE lake.db.t", ["list_indexes"]),
        ("REINDEX lake.db.t ik", "REINDEX"),
        ("REFRESH INDEX ik ON lake.db.t WHERE a = 1", "REFRESH INDEX"),
        ("SHOW INDEXES FROM lake.db.t LIKE 'a'", "SHOW INDEXES"),
        ("RESTORE lake.db.t VERSION AS OF ٣", "RESTORE"),
        ("RESTORE lake.db.t VERSION AS OF 9223372036854775808", "RESTORE"),
        ("DESCRIBE HISTORY lake.db.t LIMIT ٣", "DESCRIBE HISTORY"),
        ("VACUUM lake.db.t RETAIN ٣ HOURS", "VACUUM"),
        ("VACUUM lake.db.t LITE", "UNSUPPORTED_STATEMENT"),
        ("VACUUM lake.db.t RETAIN 7 DAYS", "VACUUM"),
        ("VACUUM lake.db.t RETAIN week HOURS", "VACUUM"),
        ("RESTORE lake.db.t", "RESTORE"),
        ("RESTORE lake.db.t TO VERSION AS OF -1", "RESTORE"),
        ("RESTORE lake.db.t TO TIMESTAMP AS OF now()", "RESTORE"),
        ("DESCRIBE HISTORY lake.db.t LIMIT", "DESCRIBE HISTORY"),
        ("DESCRIBE DETAIL lake.db.t EXTENDED", "DESCRIBE DETAIL"),
    ],
)
def test_the_grammar(monkeypatch: pytest.MonkeyPatch, text: str, call: Any) -> None:
    monkeypatch.setattr(Statements, "_ours", lambda _self, names, there: (Known(), names[1:]))
    statements = Statements(None)  # type: ignore[arg-type]  # asked for no catalog here
    if isinstance(call, list):
        assert statements.apply("statement", text) == ["la`ke", call[0], "table", "`db`.`t`", *call[1:]]
        return
    with pytest.raises(InvalidInput) as caught:
        statements.apply("statement", text)
    if call in GRAMMAR:
        assert (caught.value.code, caught.value.name) == ("PARSE_ERROR", call)
        assert GRAMMAR[call] in caught.value.remedy
    else:
        assert caught.value.code == call


def test_a_session_that_cannot_be_taught_still_attaches(
    lake: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    from py4j.protocol import Py4JError

    from tamis.spark.jvm_bridge.adapter import Bridge

    known = Bridge.helper

    def refusing(self: Bridge, name: str) -> Any:
        if name == "Statements":
            raise Py4JError("a field that is final for good")
        return known(self, name)

    monkeypatch.setattr(Bridge, "helper", refusing)
    tamis.attach(lake.spark, f"{lake.name}_more", tmp_path / "more")


NAMES = ["a`b", "`", "``", "a`.`b", "a``b", "a.b", "it's", 'say "x"', "a -- b", "ünï"]
EVERY_PUSH = {"a`b", "``", "a.b"}


@pytest.mark.parametrize("name", [n if n in EVERY_PUSH else pytest.param(n, marks=pytest.mark.merge) for n in NAMES])
def test_statements_act_on_the_table_that_is_named(lake: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tables have the names that wrong quoting would reach: parts of the name, other numbers of backquotes."""
    tables = {name, "a", "b", "s", name.replace("`", ""), name.replace("``", "`"), name.replace("`", "``")} - {""}
    for each in tables:
        quoted = each.replace("`", "``")
        lake.sql(f"CREATE TABLE lake.db.`{quoted}` AS SELECT 1 AS x, 1 AS y")
        lake.sql(f"INSERT INTO lake.db.`{quoted}` VALUES (2, 2)")
    asked = f"lake.db.`{name.replace('`', '``')}`"
    assert lake.sql(f"DESCRIBE DETAIL {asked}").collect()[0]["num_rows"] == 2
    lake.sql(f"OPTIMIZE {asked} WHERE x > 0 ZORDER BY (x, y)")
    lake.sql(f"RESTORE {asked} TO VERSION AS OF 0")
    monkeypatch.setattr(vacuum, "SAFE_RETENTION", timedelta(0))
    lake.sql(f"VACUUM {asked} RETAIN 0 HOURS")
    history = lake.rows(f"DESCRIBE HISTORY {asked}")
    assert [row[2] for row in history[:3]] == ["vacuum", "restore", "compact"], history
    for each in tables - {name}:
        quoted = each.replace("`", "``")
        assert sorted(lake.rows(f"SELECT x FROM lake.db.`{quoted}`")) == [(1,), (2,)], each
        assert len(lake.rows(f"DESCRIBE HISTORY lake.db.`{quoted}`")) == 2, each


@pytest.mark.slow
@given(st.lists(st.text(min_size=1), min_size=1, max_size=4))
def test_names_come_back_from_their_text(names: list[str]) -> None:
    assert table_name(backquote_path(names)) == tuple(names)


@pytest.mark.parametrize("text", ["", None, "db.", ".t", "db..t", "`db", "db.`t", "`a`b", "db.``", "db.`a``"])
def test_what_is_no_name_is_refused(text: str | None) -> None:
    with pytest.raises(InvalidInput) as caught:
        table_name(text)
    assert caught.value.code == "BAD_NAME"


def test_a_name_is_not_read_as_that_of_a_table_without_the_catalog(lake: Any) -> None:
    lake.sql("CREATE TABLE lake.db.t AS SELECT 1 AS x")
    lake.refused(f"RESTORE lake.{lake.name}.db.t TO VERSION AS OF 0", "TABLE_OR_VIEW_NOT_FOUND")
    assert len(lake.rows("DESCRIBE HISTORY lake.db.t")) == 1


@pytest.mark.parametrize("escaped", ["false", "true"])
def test_a_condition_means_what_the_session_says(lake: Any, escaped: str) -> None:
    lake.spark.conf.set("spark.sql.parser.escapedStringLiterals", escaped)
    try:
        for text in ("it's", "a\\d"):
            literal = text.replace("'", "\\'") if escaped == "false" else text
            literal = literal.replace("\\d", "\\\\d") if escaped == "false" else literal
            lake.sql("CREATE OR REPLACE TABLE lake.db.t (s STRING) TBLPROPERTIES ('tamis.write.part_bytes' = '1MB')")
            table = tamis.open(lake.folder / "db" / "t")
            for word in (text, text, "other", "zzz"):
                table.append(pa.table({"s": [word]}))
            quoted = f'"{literal}"' if "'" in literal else f"'{literal}'"
            assert lake.sql(f"OPTIMIZE lake.db.t WHERE s = {quoted}").collect()[0]["parts_removed"] == 2, text
    finally:
        lake.spark.conf.unset("spark.sql.parser.escapedStringLiterals")
