"""DELETE, UPDATE and MERGE in SQL against the same by Spark's DataFrame operations over plain data; row by row positions; history."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.spark.conftest import Lake

import tamis
from tamis.engine.operations.layout.index_commits import commit_indexed
from tamis.engine.operations.rows import row_change
from tamis.storage.commit_log import load

COLUMNS = "id BIGINT, v INT, s STRING, at TIMESTAMP"
DATA = "id, CAST(id % 7 AS INT) AS v, IF(id % 5 = 0, NULL, concat('s', id)) AS s, timestamp_seconds(id * 86400) AS at"


@pytest.fixture
def made(lake: Lake) -> Lake:
    lake.sql(f"CREATE TABLE lake.db.t ({COLUMNS}) USING tamis CLUSTER BY (id)")
    for first in (0, 40, 80):
        lake.sql(f"INSERT INTO lake.db.t SELECT {DATA} FROM range({first}, {first + 40})")
    lake.spark.range(0, 120).selectExpr(*_split(DATA)).createOrReplaceTempView("plain")
    return lake


def _split(text: str) -> list[str]:
    parts, depth = [""], 0
    for c in text:
        depth += (c == "(") - (c == ")")
        if c == "," and not depth:
            parts.append("")
        else:
            parts[-1] += c
    return parts


def check(lake: Lake, expected: Any) -> None:
    """The table's rows are those of ``expected`` by every reader, and ``plain`` follows."""
    rows = sorted(map(tuple, expected.collect()), key=repr)
    assert sorted(lake.rows("SELECT * FROM lake.db.t"), key=repr) == rows
    assert lake.rows("SELECT count(*) FROM lake.db.t") == [(len(rows),)]
    table = tamis.open(lake.folder / "db" / "t")
    assert table.scan().count() == len(rows)
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == sorted(r[0] for r in rows)
    fixed = lake.spark.createDataFrame(rows, expected.schema)
    fixed.createOrReplaceTempView("plain")


CONDITIONS = [
    "id < 10",  # by metadata and vectors
    "v = 3 AND s IS NULL OR id BETWEEN 40 AND 44",
    "at < date_trunc('month', TIMESTAMP '1970-02-10 00:00:00') AND id % 2 = 0",
    "id IN (SELECT id + 60 FROM range(5))",
    "s LIKE 's5%' AND rtrim(reverse(s)) <> 'x'",
    "id <= 10 AND nullif(v, 3000000000) <> 1.5",  # Spark's rule for deletes by metadata cannot translate it
]


def test_delete_as_a_filter(made: Lake) -> None:
    for condition in CONDITIONS:
        made.sql(f"DELETE FROM lake.db.t WHERE {condition}")
        check(made, made.spark.sql(f"SELECT * FROM plain WHERE id NOT IN (SELECT id FROM plain WHERE {condition})"))
    before = made.rows("SELECT count(*) FROM lake.db.t VERSION AS OF 3")
    assert before == [(120,)]
    made.sql("DELETE FROM lake.db.t")
    assert made.rows("SELECT count(*) FROM lake.db.t") == [(0,)]
    made.sql("INSERT INTO lake.db.t SELECT * FROM lake.db.t VERSION AS OF 1")
    made.sql("TRUNCATE TABLE lake.db.t")
    assert made.rows("SELECT count(*) FROM lake.db.t") == [(0,)]


def test_update_as_a_projection(made: Lake) -> None:
    statements = {
        "id BETWEEN 30 AND 50": {"v": "v * 10", "s": "upper(s)"},
        "s IS NULL AND v > 20": {"s": "'none'"},
        "id = (SELECT max(id) FROM plain)": {"id": "id + 1000", "at": "NULL"},
    }
    for condition, values in statements.items():
        made.sql(f"UPDATE lake.db.t SET {', '.join(f'{c} = {t}' for c, t in values.items())} WHERE {condition}")
        columns = [
            f"CASE WHEN hit THEN {values[c]} ELSE {c} END AS {c}" if c in values else c for c in ("id", "v", "s", "at")
        ]
        hit = f"(SELECT p.*, coalesce({condition}, false) AS hit FROM plain p)"
        check(made, made.spark.sql(f"SELECT {', '.join(columns)} FROM {hit}"))
    metrics = dict(made.rows("SELECT metrics FROM lake.db.t.history LIMIT 1")[0][0])
    assert (metrics["rows_updated"], metrics["parts_thinned"] + metrics["parts_removed"]) == (1, 1)


def test_merge_as_a_join(made: Lake) -> None:
    made.spark.sql(
        "SELECT id * 3 AS id, 100 AS v, 'm' AS s, CAST(NULL AS TIMESTAMP) AS at FROM range(20, 50)"
    ).createOrReplaceTempView("source")
    made.sql(
        """MERGE INTO lake.db.t t USING source s ON t.id = s.id
        WHEN MATCHED AND t.v = 0 THEN DELETE
        WHEN MATCHED AND t.v < 3 THEN UPDATE SET v = t.v + s.v
        WHEN MATCHED THEN UPDATE SET *
        WHEN NOT MATCHED AND s.id % 2 = 0 THEN INSERT (id, v) VALUES (s.id, -1)
        WHEN NOT MATCHED BY SOURCE AND t.id > 110 THEN DELETE
        WHEN NOT MATCHED BY SOURCE AND t.id < 3 THEN UPDATE SET s = 'alone'"""
    )
    joined = (
        "(SELECT p.*, q.id AS qid, q.v AS qv, q.s AS qs, q.at AS qat FROM plain p LEFT JOIN source q ON p.id = q.id)"
    )
    kept = f"""SELECT id, CASE WHEN qid IS NULL THEN v WHEN v < 3 THEN v + qv ELSE qv END AS v,
        CASE WHEN qid IS NULL AND id < 3 THEN 'alone' WHEN qid IS NULL OR v < 3 THEN s ELSE qs END AS s, CASE WHEN qid IS NULL OR v < 3 THEN at ELSE qat END AS at
        FROM {joined} WHERE NOT (qid IS NOT NULL AND v = 0) AND NOT (qid IS NULL AND id > 110)"""
    new = "SELECT q.id, -1, CAST(NULL AS STRING), CAST(NULL AS TIMESTAMP) FROM source q LEFT ANTI JOIN plain p ON p.id = q.id WHERE q.id % 2 = 0"
    check(made, made.spark.sql(f"{kept} UNION ALL {new}"))
    made.spark.sql("SELECT 60L AS id FROM range(2)").createOrReplaceTempView("twice")
    version = load(tamis.open(made.folder / "db" / "t").store).version
    with pytest.raises(Exception, match="MERGE_CARDINALITY_VIOLATION"):
        made.sql("MERGE INTO lake.db.t t USING twice s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 1")
    assert load(tamis.open(made.folder / "db" / "t").store).version == version


def test_by_path_with_a_dataframe(made: Lake) -> None:
    table = tamis.open(made.folder / "db" / "t")
    source = made.spark.sql(
        "SELECT id, CAST(5 AS INT) AS v, 'u' AS s, CAST(NULL AS TIMESTAMP) AS at FROM range(42, 45) UNION ALL SELECT 500, 5, 'u', NULL"
    )
    result = table.upsert(source, on=["id"])
    assert (result.rows_updated, result.rows_inserted, result.rows_deleted) == (3, 1, 0)
    assert result.parts_read == 1  # the parts without a key of the source are not read
    assert result.bytes_read > 0
    assert table.delete("id = 500", spark=made.spark).rows_deleted == 1
    assert table.update({"v": "v + 1"}, "id BETWEEN 42 AND 44", spark=made.spark).rows_updated == 3
    merge = table.merge(source, "target.id = source.id").when_matched_delete(condition="source.id = 44")
    assert merge.when_matched_update({"s": "concat(target.s, source.s)"}).execute().as_dict() | {"bytes_written": 0, "bytes_read": 0, "version": 0} == {
        "version": 0, "rows_inserted": 0, "rows_updated": 2, "rows_deleted": 1, "parts_added": 1, "parts_removed": 1, "parts_rewritten": 0,
        "bytes_written": 0, "parts_read": 2, "parts_thinned": 0, "bytes_read": 0,
    }  # fmt: skip
    found = table.scan("v IN (5, 6) AND s LIKE 'u%'", ["id", "v", "s"]).to_arrow().to_pylist()
    assert found == [{"id": 42, "v": 6, "s": "uu"}, {"id": 43, "v": 6, "s": "uu"}]
    assert [row["operation"] for row in table.history(4).to_pylist()] == ["merge", "update", "delete", "merge"]


def test_positions_are_where_the_rows_stand(made: Lake) -> None:
    made.sql("DELETE FROM lake.db.t WHERE id IN (41, 43)")
    rows = made.rows("SELECT id, _tamis_position, _tamis_part FROM lake.db.t WHERE id >= 40 AND id < 46")
    assert [r[:2] for r in rows] == [(40, 0), (42, 2), (44, 4), (45, 5)]
    assert {r[2] for r in rows} == {tamis.open(made.folder / "db" / "t").metadata("parts")["part_id"][1].as_py()}
    assert made.rows("SELECT count(_tamis_position) FROM lake.db.t") == [(118,)]


def _meanwhile(lake: Lake, monkeypatch: pytest.MonkeyPatch, other: Callable[[tamis.Table], object]) -> None:
    """``other`` lands after the next statement has read, and before it commits."""
    waiting = [other]

    def commit(*given: Any, **named: Any) -> Any:
        if waiting:
            waiting.pop()(tamis.open(lake.folder / "db" / "t"))
        return commit_indexed(*given, **named)

    monkeypatch.setattr(row_change, "commit_indexed", commit)


def _merge(keys: str) -> str:
    source = f"(SELECT id, CAST(-1 AS INT) AS v, 'm' AS s, CAST(NULL AS TIMESTAMP) AS at FROM range({keys}))"
    return f"MERGE INTO lake.db.t t USING {source} s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"


UPDATE = "UPDATE lake.db.t SET v = -1 WHERE id BETWEEN 5 AND 8"
DELETE = "DELETE FROM lake.db.t WHERE id BETWEEN 5 AND 8"
BY_SPARK = "DELETE FROM lake.db.t WHERE id BETWEEN 5 AND 8 AND rtrim(reverse(s)) <> 'x'"
PAIRS: dict[str, tuple[str, Callable[[tamis.Table], object], str | None]] = {
    "update, delete of the same row": (UPDATE, lambda t: t.delete("id = 5"), "CONFLICT_ROWS"),
    "update, delete of another row of the part": (UPDATE, lambda t: t.delete("id = 9"), None),
    "update that asks for other rows, delete of another row of the part": (
        UPDATE + " AND v <= (SELECT max(v) FROM lake.db.t)",
        lambda t: t.delete("id = 9"),
        "CONFLICT_READ",
    ),
    "delete that Spark decides, delete of another row of the part": (BY_SPARK, lambda t: t.delete("id = 9"), None),
    "update, rows that match come": (UPDATE, lambda t: t.append(t.scan("id = 6").to_arrow()), "CONFLICT_READ"),
    "update, rows that cannot match come": (UPDATE, lambda t: t.append(t.scan("id = 9").to_arrow()), None),
    "delete, its rows are rewritten": (DELETE, lambda t: t.update({"v": "7"}, "id = 6"), "CONFLICT_ROWS"),
    "delete that Spark decides, rows that match come": (
        BY_SPARK,
        lambda t: t.append(t.scan("id = 6").to_arrow()),
        "CONFLICT_READ",
    ),
    "merge, its new key comes": (
        _merge("115, 125"),
        lambda t: t.upsert(t.scan("id = 116").to_arrow(), on=["id"]),
        "CONFLICT_",
    ),
    "merge, another key comes": (_merge("115, 125"), lambda t: t.delete("id = 7"), None),
    "update, a compaction that takes its part": (UPDATE, lambda t: t.compact(), "CONFLICT_REMOVED"),
}


OFTEN = {
    "update, delete of the same row",
    "update, delete of another row of the part",
    "update that asks for other rows, delete of another row of the part",
}
"""Those of every run; the others are the long one's."""


@pytest.mark.parametrize(
    ("statement", "other", "code"),
    [pytest.param(*pair, id=name, marks=() if name in OFTEN else pytest.mark.nightly) for name, pair in PAIRS.items()],
)
@pytest.mark.push_cases(4)
def test_a_statement_and_another_commit_are_as_one_after_the_other(
    made: Lake,
    monkeypatch: pytest.MonkeyPatch,
    statement: str,
    other: Callable[[tamis.Table], object],
    code: str | None,
) -> None:
    path = made.folder / "db" / "t"
    _meanwhile(made, monkeypatch, other)
    if code is not None:
        with pytest.raises(Exception, match=rf"\[{code}"):
            made.sql(statement)
        assert tamis.open(path).version == 4, "the other alone"
        made.sql(statement)  # and again, on what is there now
        assert tamis.open(path).version == 5
        return
    made.sql(statement)
    seen = sorted(made.rows("SELECT * FROM lake.db.t"), key=repr)
    assert tamis.open(path).version == 5
    tamis.open(path).restore(3)
    other(tamis.open(path))
    made.sql(statement)
    assert sorted(made.rows("SELECT * FROM lake.db.t"), key=repr) == seen
