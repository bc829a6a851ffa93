"""CREATE TABLE AS SELECT and CREATE OR REPLACE: never half a table."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import tamis
from tamis.engine.operations.rows.append import create_with_parts
from tamis.errors import StoreUnavailable
from tamis.storage.object_store import Store


def history(lake: Any, name: str) -> list[str]:
    return [row[0] for row in lake.rows(f"SELECT operation FROM lake.{name}.history ORDER BY version")]


def test_create_as_select_is_one_commit(lake: Any) -> None:
    lake.sql("CREATE TABLE lake.db.t USING tamis CLUSTER BY (id) AS SELECT id, id % 7 AS m FROM range(1000)")
    assert history(lake, "db.t") == ["create"]
    assert lake.rows("SELECT count(*), sum(m) FROM lake.db.t") == [(1000, sum(i % 7 for i in range(1000)))]


def test_a_select_that_fails_leaves_nothing(lake: Any) -> None:
    lake.refused(
        "CREATE TABLE lake.db.t USING tamis AS SELECT IF(id = 90, CAST(raise_error('boom') AS BIGINT), id) AS x FROM range(0, 100, 1, 4)",
        "USER_RAISED_EXCEPTION",
    )
    assert lake.rows("SHOW TABLES IN lake.db") == []
    lake.sql("CREATE TABLE lake.db.t (a INT) USING tamis")


def test_create_or_replace(lake: Any) -> None:
    lake.sql("CREATE OR REPLACE TABLE lake.db.t USING tamis AS SELECT id AS x FROM range(10)")
    lake.sql("CREATE OR REPLACE TABLE lake.db.t USING tamis COMMENT 'two' AS SELECT 'a' AS y, id AS x FROM range(3)")
    assert history(lake, "db.t") == ["create", "replace"]
    assert sorted(lake.rows("SELECT * FROM lake.db.t")) == [("a", 0), ("a", 1), ("a", 2)]
    assert lake.rows("SELECT count(*) FROM lake.db.t VERSION AS OF 0") == [(10,)]
    lake.sql("CREATE OR REPLACE TABLE lake.db.t (z INT) USING tamis")
    assert lake.rows("SELECT * FROM lake.db.t") == []


def test_a_replacement_that_fails_changes_nothing(lake: Any) -> None:
    lake.sql("CREATE TABLE lake.db.t USING tamis AS SELECT id AS x FROM range(10)")
    lake.refused(
        "CREATE OR REPLACE TABLE lake.db.t USING tamis AS SELECT CAST(raise_error('boom') AS INT) AS y",
        "USER_RAISED_EXCEPTION",
    )
    assert history(lake, "db.t") == ["create"]
    assert lake.rows("SELECT count(x) FROM lake.db.t") == [(10,)]


def test_a_table_may_replace_itself(lake: Any) -> None:
    lake.sql("CREATE TABLE lake.db.t USING tamis AS SELECT id AS x FROM range(10)")
    lake.sql("CREATE OR REPLACE TABLE lake.db.t USING tamis AS SELECT x, x * 2 AS y FROM lake.db.t WHERE x > 6")
    assert sorted(lake.rows("SELECT * FROM lake.db.t")) == [(7, 14), (8, 16), (9, 18)]


def test_errors_are_sparks_own(lake: Any) -> None:
    lake.sql("CREATE TABLE lake.db.t USING tamis AS SELECT 1 AS x")
    lake.refused("CREATE TABLE lake.db.t USING tamis AS SELECT 1 AS x", "TABLE_OR_VIEW_ALREADY_EXISTS")
    lake.refused("REPLACE TABLE lake.db.nope USING tamis AS SELECT 1 AS x", "TABLE_OR_VIEW_NOT_FOUND")


def test_the_dataframe_writer(lake: Any) -> None:
    name = f"{lake.name}.db.t"
    lake.spark.range(5).writeTo(name).using("tamis").tableProperty("k", "v").create()
    lake.spark.range(3).writeTo(name).using("tamis").createOrReplace()
    lake.spark.range(2).writeTo(name).append()
    assert sorted(lake.rows("SELECT * FROM lake.db.t")) == [(0,), (0,), (1,), (1,), (2,)]


STAGED = {
    "create": "CREATE TABLE lake.db.t USING tamis AS SELECT id AS x FROM range(10)",
    "replace": "CREATE OR REPLACE TABLE lake.db.t USING tamis AS SELECT id AS x FROM range(10)",
}


@pytest.mark.parametrize("verb", STAGED)
@pytest.mark.parametrize("landed", [True, False])
def test_a_commit_of_unknown_outcome_keeps_its_files(
    lake: Any, monkeypatch: pytest.MonkeyPatch, verb: str, landed: bool
) -> None:
    """The store loses the answer to the commit's write, then all reads until the statement has failed."""
    if verb == "replace":
        lake.sql("CREATE TABLE lake.db.t USING tamis AS SELECT id AS x FROM range(3)")
    before = history(lake, "db.t") if verb == "replace" else []
    plain, lost = Store._run, [False]

    def run(store: Store, action: str, path: str, call: Any, *, create: bool = False) -> Any:
        if "_tamis/log/" in path and action == "write" and not lost[0]:
            lost[0] = True
            if landed:
                plain(store, action, path, call, create=create)
            raise StoreUnavailable("planned")
        if lost[0] and action in {"read", "write"}:
            raise StoreUnavailable("planned")
        return plain(store, action, path, call, create=create)

    with monkeypatch.context() as patched:
        patched.setattr(Store, "_run", run)
        lake.refused(STAGED[verb], "COMMIT_UNKNOWN")
    if landed:
        assert history(lake, "db.t") == [*before, verb]
        assert sorted(lake.rows("SELECT x FROM lake.db.t")) == [(i,) for i in range(10)]
    elif verb == "replace":
        assert history(lake, "db.t") == before
        assert sorted(lake.rows("SELECT x FROM lake.db.t")) == [(i,) for i in range(3)]
    if landed or verb == "replace":
        table = tamis.open(lake.folder / "db" / "t")
        table.vacuum("0s", dry_run=False, below_retention=True)
        assert {entry.path for entry in table.store.list("data")} == set(table.snapshot.parts(None)["path"].to_pylist())
    else:
        lake.sql(STAGED["create"])
        assert lake.rows("SELECT count(*) FROM lake.db.t") == [(10,)]


def test_a_table_that_came_first_is_left_alone(lake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another writer creates the table while a CREATE TABLE AS SELECT writes its rows, which are removed."""

    def second(*given: Any, **named: Any) -> Any:
        tamis.create(lake.folder / "db" / "t", pa.schema([("y", pa.int64())])).append(pa.table({"y": [7]}))
        return create_with_parts(*given, **named)

    monkeypatch.setattr("tamis.spark.catalog.staged_table.create_with_parts", second)
    lake.refused(STAGED["create"], "TABLE_EXISTS")
    table = tamis.open(lake.folder / "db" / "t")
    assert table.scan().to_arrow().to_pylist() == [{"y": 7}]
    assert {entry.path for entry in table.store.list("data")} == set(table.snapshot.parts(None)["path"].to_pylist())


def of_source(lake: Any, how: str) -> None:
    """Make ``db.made`` of the columns a and x of ``db.source``, where x has a default."""
    rows, path = lake.spark.table(f"{lake.name}.db.source"), str(lake.folder / "db" / "made")
    match how:
        case "CTAS":
            lake.sql("CREATE TABLE lake.db.made USING tamis AS SELECT a, x FROM lake.db.source")
        case "RTAS":
            lake.sql("CREATE TABLE lake.db.made (z INT) USING tamis")
            lake.sql("CREATE OR REPLACE TABLE lake.db.made USING tamis AS SELECT * FROM lake.db.source")
        case "writeTo":
            rows.writeTo(f"{lake.name}.db.made").using("tamis").create()
        case "saveAsTable":
            rows.write.format("tamis").saveAsTable(f"{lake.name}.db.made")
        case "save":
            rows.write.format("tamis").save(path)
        case "mergeSchema":
            lake.sql("CREATE TABLE lake.db.made (a BIGINT) USING tamis")
            rows.write.format("tamis").mode("append").option("mergeSchema", "true").save(path)
        case "append":
            tamis.create(path).append(rows)


@pytest.mark.parametrize("how", ["CTAS", "RTAS", "writeTo", "saveAsTable", "save", "mergeSchema", "append"])
@pytest.mark.push_cases(3)
def test_rows_bring_no_default_of_the_table_that_they_were_in(lake: Any, how: str) -> None:
    lake.sql("CREATE TABLE lake.db.source (a BIGINT, x INT DEFAULT 7) USING tamis")
    lake.sql("INSERT INTO lake.db.source (a) VALUES (1)")
    of_source(lake, how)
    lake.sql("INSERT INTO lake.db.made (a) VALUES (2)")
    assert sorted(lake.rows("SELECT a, x FROM lake.db.made")) == [(1, 7), (2, None)]


@pytest.mark.parametrize("name", ["format", "Format", "tamis.format"])
@pytest.mark.push_cases(2)
def test_the_format_of_the_files_is_an_option_of_what_makes_a_table(lake: Any, name: str) -> None:
    rows = lake.spark.range(3)
    rows.write.format("tamis").option(name, "orc").saveAsTable(f"{lake.name}.db.saved")
    rows.writeTo(f"{lake.name}.db.created").using("tamis").option(name, "orc").create()
    lake.sql(f"CREATE TABLE lake.db.asked USING tamis OPTIONS ('{name}' = 'orc') AS SELECT 1 AS id")
    lake.sql(f"CREATE TABLE lake.db.plain (id INT) USING tamis TBLPROPERTIES ('{name}' = 'orc')")
    for table in ("saved", "created", "asked", "plain"):
        assert tamis.open(lake.folder / "db" / table).snapshot.head.format == "orc"
    with pytest.raises(Exception, match="UNKNOWN_FORMAT"):
        rows.write.format("tamis").option(name, "nonsense").saveAsTable(f"{lake.name}.db.other")
    assert lake.rows("SHOW TABLES IN lake.db LIKE 'other'") == []
