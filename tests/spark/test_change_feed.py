"""The change feed through Spark's interfaces: each tells the rows of the procedure, with the bounds that its users expect."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from tests.spark.capabilities import has_changes, needs_changes, needs_state_options
from tests.spark.conftest import Lake

import tamis
from tamis.errors import SchemaFenced
from tamis.spark.jvm_bridge.adapter import bridge_of
from tamis.spark.sql.table_changes import TableChanges

EVERY = [
    *[(1, "insert", n, "a") for n in (1, 2, 3)],
    (2, "update_postimage", 2, "b"),
    (2, "update_preimage", 2, "a"),
    (3, "delete", 1, "a"),
    (5, "insert", 9, "c"),
    (5, "update_postimage", 3, "c"),
    (5, "update_preimage", 3, "a"),
]
"""All changes of the table of ``filled``, with images. Version 4 is a compaction."""


@pytest.fixture(scope="module")
def filled(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """A table that the tests only read."""
    folder = tmp_path_factory.mktemp("feed") / "warehouse"
    tamis.attach(spark, "feeds", folder)
    return fill(Lake(spark, "feeds", folder))


def fill(lake: Lake) -> Lake:
    lake.sql("CREATE NAMESPACE IF NOT EXISTS lake.db")
    lake.sql("CREATE TABLE lake.db.t (id BIGINT, what STRING) USING tamis")
    lake.sql("INSERT INTO lake.db.t SELECT id, 'a' FROM range(1, 4, 1, 1)")
    lake.sql("UPDATE lake.db.t SET what = 'b' WHERE id = 2")
    lake.sql("DELETE FROM lake.db.t WHERE id = 1")
    lake.sql("OPTIMIZE lake.db.t")
    lake.sql(
        "MERGE INTO lake.db.t USING (SELECT id FROM VALUES (3), (9) AS s(id)) AS s ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET what = 'c' WHEN NOT MATCHED THEN INSERT (id, what) VALUES (s.id, 'c')"
    )
    return lake


def feed_rows(df: Any) -> list[tuple[Any, ...]]:
    assert df.columns == ["id", "what", "_change_type", "_commit_version", "_commit_timestamp"]
    return sorted((r._commit_version, r._change_type, r.id, r.what) for r in df.collect())


def plain(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The rows as a feed without images tells them."""
    kinds = {"update_preimage": "delete", "update_postimage": "insert"}
    return sorted((version, kinds.get(kind, kind), *rest) for version, kind, *rest in rows)


def within(first: int, last: int) -> list[tuple[Any, ...]]:
    return [row for row in EVERY if first <= row[0] <= last]


def test_the_procedure_tells_images(filled: Lake) -> None:
    assert feed_rows(filled.sql("CALL lake.system.changes('db.t', 0, keys => 'id')")) == EVERY
    assert feed_rows(filled.sql("CALL lake.system.changes('db.t', 0)")) == plain(EVERY)
    net = feed_rows(
        filled.sql("CALL lake.system.changes(table => 'db.t', from_version => 1, keys => '`id`', net => true)")
    )
    assert net == [
        (5, "delete", 1, "a"),
        (5, "insert", 9, "c"),
        *[(5, "update_postimage", 2, "b"), (5, "update_postimage", 3, "c")],
        *[(5, "update_preimage", 2, "a"), (5, "update_preimage", 3, "a")],
    ]
    filled.refused("CALL lake.system.changes('db.t', 0, keys => 'nosuch')", "COLUMN_NOT_FOUND")


@pytest.mark.push_cases(4)
@pytest.mark.parametrize(
    ("bounds", "first", "last"),
    [
        ("VERSION 2 TO VERSION 3", 2, 3),
        ("VERSION 2 INCLUSIVE TO VERSION 3 INCLUSIVE", 2, 3),
        ("VERSION 2 EXCLUSIVE TO VERSION 5", 3, 5),
        ("VERSION 2 TO VERSION 5 EXCLUSIVE", 2, 4),
        ("VERSION 2 EXCLUSIVE TO VERSION 3 EXCLUSIVE", 3, 2),
        ("VERSION 0 TO VERSION 0 EXCLUSIVE", 1, 0),
        ("VERSION 0", 0, 5),
        ("VERSION '4'", 4, 5),
        ("VERSION 5 EXCLUSIVE", 6, 5),
        ("VERSION 6", 6, 5),
        ("TIMESTAMP '1999-01-01' TO TIMESTAMP '2199-01-01'", 0, 5),
        ("TIMESTAMP '2199-01-01'", 6, 5),
    ],
)
def test_changes_from(filled: Lake, bounds: str, first: int, last: int) -> None:
    needs_changes(filled.spark)
    query = f"SELECT * FROM lake.db.t CHANGES FROM {bounds}"
    assert feed_rows(filled.sql(query)) == plain(within(first, last))
    assert feed_rows(filled.sql(f"{query} WITH ('computeUpdates' = 'true', 'keyColumns' = 'id')")) == within(
        first, last
    )
    assert feed_rows(filled.sql(f"{query} WITH ('keyColumns' = 'ID')")) == within(first, last)


def test_changes_from_a_time_to_a_time(filled: Lake) -> None:
    needs_changes(filled.spark)
    stamps = {r.version: r.timestamp for r in filled.sql("SELECT version, timestamp FROM lake.db.t.history").collect()}
    for start, end, first, last in (
        ("", "", 2, 3),
        ("EXCLUSIVE", "", 3, 3),
        ("", "EXCLUSIVE", 2, 2),
        ("EXCLUSIVE", "EXCLUSIVE", 3, 2),
    ):
        range_ = f"TIMESTAMP '{stamps[2]}' {start} TO TIMESTAMP '{stamps[3]}' {end}"
        assert feed_rows(filled.sql(f"SELECT * FROM lake.db.t CHANGES FROM {range_}")) == plain(within(first, last)), (
            range_
        )


def test_changes_are_filtered_joined_and_counted(filled: Lake) -> None:
    needs_changes(filled.spark)
    changes = "lake.db.t CHANGES FROM VERSION 1 WITH ('keyColumns' = 'id')"
    assert filled.rows(f"SELECT _change_type, count(*) FROM {changes} GROUP BY 1 ORDER BY 1") == [
        ("delete", 1),
        ("insert", 4),
        ("update_postimage", 2),
        ("update_preimage", 2),
    ]
    assert filled.rows(
        f"SELECT c.id FROM {changes} AS c JOIN lake.db.t USING (id) WHERE c._change_type = 'insert' ORDER BY 1"
    ) == [
        (2,),
        (3,),
        (9,),
    ]
    net = "SELECT * FROM lake.db.t CHANGES FROM VERSION 3 TO VERSION 5 WITH ('deduplicationMode' = 'netChanges', 'keyColumns' = 'id')"
    assert [row[1:] for row in feed_rows(filled.sql(net))] == [
        ("delete", 1, "a"),
        ("insert", 9, "c"),
        ("update_postimage", 3, "c"),
        ("update_preimage", 3, "a"),
    ]


def test_a_primary_key_says_which_rows_are_one(lake: Lake) -> None:
    needs_changes(lake.spark)
    fill(lake)
    tamis.open(lake.folder / "db" / "t").alter().add_primary_key("pk", ["id"]).commit()
    query = "SELECT * FROM lake.db.t CHANGES FROM VERSION 1 TO VERSION 6 WITH ('computeUpdates' = 'true')"
    assert feed_rows(lake.sql(query)) == EVERY
    assert feed_rows(lake.sql("SELECT * FROM lake.db.t CHANGES FROM VERSION 1")) == plain(EVERY), (
        "images have to be asked for"
    )


def test_read_changes(filled: Lake) -> None:
    if not hasattr(filled.spark.read, "changes"):
        pytest.skip("Spark's reader has no changes")
    options = {"startingVersion": "2", "endingVersion": "5", "keyColumns": "id"}
    read = filled.spark.read.options(**options).changes(f"{filled.name}.db.t")
    assert feed_rows(read) == within(2, 5)
    options |= {"startingBoundInclusive": "false", "endingBoundInclusive": "false", "computeUpdates": "true"}
    assert feed_rows(filled.spark.read.options(**options).changes(f"{filled.name}.db.t")) == within(3, 4)


@pytest.mark.parametrize(
    ("query", "condition"),
    [
        ("VERSION 3 TO VERSION 2", "BAD_VERSION"),
        ("VERSION 3 TO VERSION 9", "VERSION_NOT_FOUND"),
        ("VERSION 9", "BAD_VERSION"),
        ("VERSION 7", "BAD_VERSION"),
        ("VERSION 6 EXCLUSIVE", "BAD_VERSION"),
        ("VERSION 6 TO VERSION 5", "BAD_VERSION"),
        ("VERSION 'x'", "BAD_VERSION"),
        ("VERSION 1 WITH ('computeUpdates' = 'true')", "BAD_OPTION"),
        ("VERSION 1 WITH ('keyColumns' = 'nosuch')", "COLUMN_NOT_FOUND"),
        ("VERSION 1 WITH ('keyColumn' = 'id')", "UNKNOWN_OPTION"),
        ("VERSION 1 WITH ('mergeSchema' = 'true')", "BAD_OPTION"),
    ],
)
def test_changes_that_cannot_be_told(filled: Lake, query: str, condition: str) -> None:
    needs_changes(filled.spark)
    filled.refused(f"SELECT * FROM lake.db.t CHANGES FROM {query}", condition)


def test_keys_that_are_not_unique_are_named_by_the_query(lake: Lake) -> None:
    filled = fill(lake)
    filled.sql("INSERT INTO lake.db.t VALUES (9, 'd')")
    filled.sql("UPDATE lake.db.t SET what = 'e' WHERE id = 9")
    text = filled.refused("CALL lake.system.changes('db.t', 0, keys => 'id')", "DUPLICATE_KEYS")
    assert "Version 7" in text
    assert "id = 9" in text
    needs_changes(filled.spark)
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException, match=r"DUPLICATE_KEYS.*id = 9"):  # raised by an executor
        filled.sql("SELECT * FROM lake.db.t CHANGES FROM VERSION 1 WITH ('keyColumns' = 'id')").collect()


def test_a_replaced_table_has_a_feed_from_its_replacement_on(lake: Lake) -> None:
    from pyspark.errors import PySparkException

    fill(lake)
    lake.sql("CREATE OR REPLACE TABLE lake.db.t (id BIGINT, what STRING) USING tamis")  # version 6
    lake.sql("INSERT INTO lake.db.t VALUES (1, 'new')")
    lake.sql("UPDATE lake.db.t SET what = 'newer'")
    late = [(7, "insert", 1, "new"), (8, "update_postimage", 1, "newer"), (8, "update_preimage", 1, "new")]
    path = str(lake.folder / "db" / "t")
    for query in (
        "SELECT * FROM table_changes('lake.db.t', {first}, NULL, 'id')",
        "CALL lake.system.changes('db.t', {before}, keys => 'id')",
        *(
            ["SELECT * FROM lake.db.t CHANGES FROM VERSION {first} WITH ('keyColumns' = 'id')"]
            * has_changes(lake.spark)
        ),
    ):
        assert feed_rows(lake.sql(query.format(first=7, before=6))) == late
        for first in (0, 5, 6):
            text = lake.refused(query.format(first=first, before=max(first - 1, 0)), "TABLE_REPLACED")
            assert "Version 6" in text
            assert "startingVersion = 7" in text
    read = lake.spark.read.format("tamis").options(readChangeFeed="true", keyColumns="id")
    assert feed_rows(read.option("startingVersion", 7).load(path)) == late
    assert feed_rows(read.options(startingVersion=1, endingVersion=5).load(path)) == EVERY, "before it was replaced"
    with pytest.raises(PySparkException, match=r"TABLE_REPLACED.*Version 6"):
        lake.spark.read.format("tamis").options(readChangeFeed="true", startingVersion="6").load(path)
    of = tamis.open(path)
    for net in (False, True):
        with pytest.raises(SchemaFenced, match="Version 6") as error:
            of.changes(3, net=net)
        assert error.value.code == "TABLE_REPLACED"
    assert of.changes(6).to_arrow().num_rows == 3


@pytest.mark.parametrize("how", ["saveAsTable", "overwriteSchema"])
def test_a_table_replaced_by_a_data_frame_has_no_feed_across(lake: Lake, how: str) -> None:
    fill(lake)
    path = str(lake.folder / "db" / "t")
    df = lake.spark.range(2)
    if how == "saveAsTable":
        df.write.mode("overwrite").format("tamis").saveAsTable(f"{lake.name}.db.t")
    else:
        df.write.format("tamis").mode("overwrite").option("overwriteSchema", "true").save(path)
    of = tamis.open(path)
    with pytest.raises(SchemaFenced, match="Version 6"):
        of.changes(0)
    assert of.changes(6).to_arrow().num_rows == 0
    assert of.changes(0, 5).to_arrow().num_rows == 9


def test_a_column_named_as_one_of_the_feed_is_refused(lake: Lake) -> None:
    lake.sql("CREATE TABLE lake.db.own (id BIGINT, _Commit_Version STRING) USING tamis")
    lake.sql("INSERT INTO lake.db.own VALUES (1, 'mine')")
    assert "Rename" in lake.refused("SELECT * FROM table_changes('lake.db.own', 0)", "RESERVED_NAME")
    lake.refused("CALL lake.system.changes('db.own', 0)", "RESERVED_NAME")
    needs_changes(lake.spark)
    lake.refused("SELECT * FROM lake.db.own CHANGES FROM VERSION 0", "RESERVED_NAME")


def test_a_stream_of_changes_is_refused(filled: Lake) -> None:
    needs_changes(filled.spark)
    from pyspark.errors import PySparkException

    def stream() -> None:
        df = filled.spark.readStream.option("startingVersion", "1").changes(f"{filled.name}.db.t")
        df.writeStream.format("memory").queryName("changes").start().awaitTermination()

    with pytest.raises(PySparkException, match="Streaming reads of the change feed are not supported"):
        stream()


# --- readChangeFeed ---


def test_the_change_feed_of_a_table_of_a_catalog(filled: Lake) -> None:
    needs_state_options(filled.spark)
    read = filled.spark.read.option("readChangeFeed", "true")
    name = f"{filled.name}.db.t"
    assert feed_rows(read.option("startingVersion", 2).table(name)) == plain(within(2, 5))
    images = filled.spark.read.options(readChangeData="true", startingVersion="2", endingVersion="3", keyColumns="id")
    assert feed_rows(images.table(name)) == within(2, 3)
    query = "SELECT * FROM lake.db.t WITH ('readChangeFeed' = 'true', 'startingVersion' = '3', 'keyColumns' = 'id')"
    assert feed_rows(filled.sql(query)) == within(3, 5)
    assert filled.spark.read.option("readChangeFeed", "false").table(name).columns == ["id", "what"]
    both = "SELECT count(*) FROM lake.db.t AS now CROSS JOIN lake.db.t WITH ('readChangeFeed' = 'true', 'startingVersion' = '5')"
    assert filled.rows(both) == [(3 * 3,)], "a table and its feed in one query"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, "startingVersion or startingTimestamp"),
        ({"startingVersion": "9"}, "after version 5"),
        ({"startingVersion": "1", "versionAsOf": "1"}, "Time travel cannot be combined"),
        ({"startingVersion": "1", "mergeSchema": "true"}, "mergeSchema"),
        ({"startingVersion": "1", "endingBoundInclusive": "true"}, "endingBoundInclusive"),
        ({"startingVersion": "1", "keyColumns": "x"}, "no column 'x'"),
    ],
)
def test_what_a_feed_of_a_table_refuses(filled: Lake, options: dict[str, str], says: str) -> None:
    needs_state_options(filled.spark)
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException, match=says):
        filled.spark.read.options(readChangeFeed="true", **options).table(f"{filled.name}.db.t").collect()


def test_the_feed_by_path_tells_images(filled: Lake) -> None:
    read = filled.spark.read.format("tamis").options(readChangeFeed="true", startingVersion="0", keyColumns="id")
    assert feed_rows(read.load(str(filled.folder / "db" / "t"))) == EVERY
    assert feed_rows(read.option("startingVersion", 6).load(str(filled.folder / "db" / "t"))) == [], (
        "what a poller reads"
    )


# --- table_changes ---


@pytest.mark.parametrize(
    ("arguments", "first", "last"),
    [
        ("2, 3", 2, 3),
        ("2", 2, 5),
        ("3, NULL", 3, 5),
        ("1 + 1, CAST(3 AS BIGINT)", 2, 3),
        ("'1999-01-01', 3", 0, 3),
        ("0, '2199-01-01'", 0, 5),
        ("6", 6, 5),
        ("6, '2199-01-01'", 6, 5),
        ("'2198-01-01', '2199-01-01'", 6, 5),
    ],
)
def test_table_changes(filled: Lake, arguments: str, first: int, last: int) -> None:
    assert feed_rows(filled.sql(f"SELECT * FROM table_changes('lake.db.t', {arguments})")) == plain(within(first, last))


def test_table_changes_tells_images_and_is_found_by_every_session(filled: Lake) -> None:
    query = "SELECT * FROM table_changes('lake.db.t', 2, NULL, 'id')".replace("lake.", f"{filled.name}.")
    assert feed_rows(filled.spark.sql(query)) == within(2, 5)
    assert feed_rows(filled.spark.newSession().sql(query)) == within(2, 5)
    filled.sql(f"USE {filled.name}.db")
    try:
        assert feed_rows(filled.sql("SELECT * FROM TABLE_CHANGES('t', 5)")) == plain(within(5, 5))
        filled.spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW feed AS {query} WHERE _commit_version > 2")
        assert feed_rows(filled.spark.table("feed")) == within(3, 5)
    finally:
        filled.sql("USE spark_catalog.default")


def test_arguments_for_tables_of_other_catalogs_are_not_judged(filled: Lake) -> None:
    """Delta Lake takes times as TIMESTAMP: its function decides."""
    bridge = bridge_of(filled.spark)
    asked: list[Any] = []
    changes = TableChanges(bridge, SimpleNamespace(apply=asked.append))
    parser = filled.spark._jsparkSession.sessionState().sqlParser()
    texts = ("'spark_catalog.default.t'", "current_timestamp() - INTERVAL 1 DAY")
    given = [parser.parseExpression(text) for text in texts]
    arguments = SimpleNamespace(length=lambda: len(given), apply=given.__getitem__)
    changes.apply(arguments)
    assert asked == [arguments]


@pytest.mark.parametrize(
    ("arguments", "condition"),
    [
        ("'lake.db.t'", "BAD_OPTION"),
        ("'lake.db.t', NULL", "BAD_OPTION"),
        ("'lake.db.t', 1.5", "BAD_OPTION"),
        ("'lake.db.t', -1", "BAD_OPTION"),
        ("'lake.db.t', DATE'2020-01-01'", "BAD_OPTION"),
        ("'lake.db.t', CAST(rand() AS INT)", "BAD_OPTION"),
        ("'lake.db.t', 'soon'", "BAD_TIMESTAMP"),
        ("'lake.db.t', 9", "BAD_OPTION"),
        ("'lake.db.t', 7", "BAD_OPTION"),
        ("'lake.db.t', 6, 5", "BAD_OPTION"),
        ("'lake.db.t', '2199-01-01', '2198-01-01'", "BAD_OPTION"),
        ("'lake.db.t', 3, 2", "BAD_OPTION"),
        ("'lake.db.t', 1, 2, 'id', 4", "BAD_OPTION"),
        ("'lake.db.t', 1, 99", "VERSION_NOT_FOUND"),
        ("'lake.db.t', 1, 5, 'x'", "COLUMN_NOT_FOUND"),
        ("'lake.db.nosuch', 1", "TABLE_OR_VIEW_NOT_FOUND"),
        ("'spark_catalog.default.t', 1", "BAD_OPTION"),
        ("'', 1", "BAD_NAME"),
    ],
)
def test_what_table_changes_refuses(filled: Lake, arguments: str, condition: str) -> None:
    filled.refused(f"SELECT * FROM table_changes({arguments})", condition)
