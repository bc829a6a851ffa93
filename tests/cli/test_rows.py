"""delete, update, upsert, merge, restore, changes: the verbs of ``Table`` from the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.conftest import Run

import tamis

SCHEMA = pa.schema([("id", pa.int64()), ("kind", pa.string()), ("day", pa.date32())])


@pytest.fixture
def place(tmp_path: Path) -> str:
    """Three parts: ids 0 to 29, the days with them."""
    of = tamis.create(tmp_path / "t", SCHEMA)
    for first in range(0, 30, 10):
        ids = list(range(first, first + 10))
        of.append(pa.table({"id": ids, "kind": ["old"] * 10, "day": pa.array(ids, pa.date32())}, schema=SCHEMA))
    return of.path


def rows(place: str, row_filter: str | None = None) -> dict[int, str]:
    found = tamis.open(place).scan(row_filter).to_arrow()
    return dict(zip(found["id"].to_pylist(), found["kind"].to_pylist(), strict=True))


def test_delete(run: Run, place: str) -> None:
    done = run("delete", place, "--where", "id < 15", "--json")
    assert (done.json["rows_deleted"], done.json["parts_removed"], done.json["parts_read"]) == (15, 1, 1)
    assert "Deleting" in done.err
    assert sorted(rows(place)) == list(range(15, 30))
    assert "15 rows deleted" in run("delete", place, "--all-rows").out
    assert not rows(place)


@pytest.mark.parametrize(
    "arguments", [("delete",), ("delete", "--where", "id = 1", "--all-rows"), ("update", "--set", "kind='x'")]
)
def test_all_rows_must_be_asked_for(run: Run, place: str, arguments: tuple[str, ...]) -> None:
    assert run(arguments[0], place, *arguments[1:]).code == 2
    assert len(rows(place)) == 30


def test_update(run: Run, place: str) -> None:
    done = run("update", place, "--set", "kind=concat(kind, '=new')", "--set", "day=NULL", "-w", "id >= 28")
    assert "2 rows updated" in done.out
    assert rows(place, "day IS NULL") == {28: "old=new", 29: "old=new"}
    assert run("update", place, "--set", "kind", "--all-rows").code == 2


def write_parquet(path: Path, ids: list[int]) -> None:
    pq.write_table(pa.table({"id": ids, "kind": ["up"] * len(ids)}), path)


def write_csv(path: Path, ids: list[int]) -> None:
    path.write_text("\n".join(["id,kind", *(f"{i},up" for i in ids)]))


def write_json(path: Path, ids: list[int]) -> None:
    path.write_text("\n".join(json.dumps({"id": i, "kind": "up"}) for i in ids))


@pytest.mark.push_cases(1)
@pytest.mark.parametrize(("ending", "write"), [("parquet", write_parquet), ("csv", write_csv), ("jsonl", write_json)])
def test_upsert_of_a_file(
    run: Run, place: str, tmp_path: Path, ending: str, write: Callable[[Path, list[int]], None]
) -> None:
    write(tmp_path / f"new.{ending}", [29, 30])
    done = run("upsert", place, tmp_path / f"new.{ending}", "--on", "id", "--json").json
    assert (done["rows_updated"], done["rows_inserted"]) == (1, 1)
    assert rows(place, "id >= 28") == {28: "old", 29: "up", 30: "up"}
    assert rows(place, "day IS NULL") == {30: "up"}, "a column that the file lacks stays"


def test_text_has_the_types_of_the_table(run: Run, place: str, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("id,kind,day\n1,007,2020-01-02\n2,,\n")
    run("upsert", place, tmp_path / "new.csv", "--on", "id")
    found = tamis.open(place).scan("id IN (1, 2)", ["id", "kind", "day"]).to_arrow().sort_by("id").to_pylist()
    assert [(r["kind"], str(r["day"])) for r in found] == [("007", "2020-01-02"), (None, "None")]


@pytest.mark.parametrize(
    ("name", "text", "code"),
    [("a.csv", "id\nx\n", "BAD_DATA"), ("a.txt", "", "UNKNOWN_FORMAT"), ("a.parquet", "no", "BAD_DATA")],
)
def test_a_file_that_cannot_be_read_is_named(
    run: Run, place: str, tmp_path: Path, name: str, text: str, code: str
) -> None:
    (tmp_path / name).write_text(text)
    done = run("upsert", place, tmp_path / name, "--on", "id")
    assert done.code == 1
    assert f"[{code}]" in done.err
    assert name in done.err
    assert "[NO_FILES]" in run("upsert", place, tmp_path / "none.csv", "--on", "id").err


def test_merge(run: Run, place: str, tmp_path: Path) -> None:
    write_csv(tmp_path / "new.csv", [27, 28, 29, 30])
    clauses = [
        "MATCHED AND target.id = 27 AND source.kind <> ' THEN DELETE' THEN DELETE",
        "MATCHED AND target.id = 29 AND source.kind <> 'x THEN UPDATE SET kind = 1' THEN UPDATE SET kind = 'a, day = b', day = NULL",
        "when matched then update set kind = CASE WHEN target.id = 28 THEN concat(source.kind, ',', 'x=1') ELSE 'plain' END, `day` = NULL",
        "NOT MATCHED THEN INSERT (id, kind) VALUES (source.id, concat(source.kind, '!'))",
        "NOT MATCHED BY SOURCE AND target.id < 25 THEN DELETE",
    ]
    options = [part for clause in clauses for part in ("--when", clause)]
    done = run("merge", place, tmp_path / "new.csv", "--on", "target.id = source.id", *options, "--json")
    assert (done.json["rows_deleted"], done.json["rows_updated"], done.json["rows_inserted"]) == (26, 2, 1)
    assert rows(place) == {25: "old", 26: "old", 28: "up,x=1", 29: "a, day = b", 30: "up!"}
    assert sorted(rows(place, "day IS NULL")) == [28, 29, 30]


def test_merge_leaves_texts_that_the_table_does_not_type(run: Run, place: str, tmp_path: Path) -> None:
    """The codes 007 and 7 differ, and 2026-01-05 is not 2026-01-05 00:00:00."""
    tamis.open(place).update({"kind": "'007'"}, "id = 1")
    tamis.open(place).update({"kind": "'7'"}, "id = 2")
    (tmp_path / "new.csv").write_text("code,remark,amount\n007,2026-01-05,1.50\n")
    set_remark = ("--when", "MATCHED THEN UPDATE SET kind = concat(source.remark, ' ', source.amount)")
    done = run("merge", place, tmp_path / "new.csv", "--on", "target.kind = source.code", *set_remark, "--json")
    assert done.json["rows_updated"] == 1
    assert rows(place, "id < 3") == {0: "old", 1: "2026-01-05 1.50", 2: "7"}
    (tmp_path / "new.json").write_text(
        '{"id": 2, "s": {"at": ["2026-01-05"]}, "remark": "2026-01-05", "nothing": null}\n'
    )
    set_remark = ("--when", "MATCHED THEN UPDATE SET kind = concat(source.remark, ' ', source.s.at[0])")
    assert run("merge", place, tmp_path / "new.json", "--on", "target.id = source.id", *set_remark).code == 0
    assert rows(place, "id = 2") == {2: "2026-01-05 2026-01-05"}


def test_numbers_of_a_merge_are_cast_by_name(run: Run, place: str, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("number,n\n3,8\n")
    on = ("--on", "target.id = source.number", "--when")
    refused = run("merge", place, tmp_path / "new.csv", *on, "MATCHED THEN UPDATE SET id = source.n")
    assert "[UNSAFE_CAST] " in refused.err
    cast = "MATCHED AND source.n > 7 THEN UPDATE SET id = CAST(source.n * 100 AS BIGINT)"
    assert run("merge", place, tmp_path / "new.csv", *on, cast).code == 0
    assert rows(place, "id > 30") == {800: "old"}


def test_merge_of_whole_rows(run: Run, place: str, tmp_path: Path) -> None:
    pq.write_table(
        pa.table({"id": [29, 30], "kind": ["n", "n"], "day": pa.array([1, 2], pa.date32())}), tmp_path / "new.parquet"
    )
    options = ["--when", "MATCHED THEN UPDATE SET *", "--when", "NOT MATCHED THEN INSERT *"]
    assert (
        "1 row inserted, 1 row updated"
        in run("merge", place, tmp_path / "new.parquet", "--on", "target.id = source.id", *options).out
    )
    assert rows(place, "id > 27") == {28: "old", 29: "n", 30: "n"}


@pytest.mark.parametrize(
    "clause",
    [
        "DELETE",
        "MATCHED THEN INSERT *",
        "NOT MATCHED THEN DELETE",
        "NOT MATCHED THEN INSERT (id) VALUES (1, 2)",
        "MATCHED THEN UPDATE SET kind",
    ],
)
def test_a_clause_that_is_none_is_a_usage_error(run: Run, place: str, tmp_path: Path, clause: str) -> None:
    write_csv(tmp_path / "new.csv", [1])
    assert run("merge", place, tmp_path / "new.csv", "--on", "target.id = source.id", "--when", clause).code == 2
    assert tamis.open(place).version == 3


def test_restore_and_changes(run: Run, place: str) -> None:
    run("delete", place, "--where", "id = 3")
    assert [(r["id"], r["_change_type"]) for r in run("changes", place, 3, "--json").json] == [(3, "delete")]
    assert "delete" in run("changes", place, 3, 4).out
    done = run("restore", place, 1, "--json")
    assert (done.json["rows_inserted"], done.json["rows_deleted"]) == (10, 29)
    assert "Restoring version 1" in done.err
    assert sorted(rows(place)) == list(range(10))
    assert "there already" in run("restore", place, 5).out
    tamis.open(place).alter().drop_column("day").commit()
    assert "'day'" in run("restore", place, 3).err
    assert run("restore", place, 3, "--allow-dropped-columns").code == 0
    assert len(rows(place)) == 30
    assert "The first 20" in run("changes", place, 4).err


@pytest.mark.parametrize("name", ["--where", "-w", "--filter", "--row-filter"])
def test_a_filter_has_the_names_that_it_has_elsewhere(run: Run, place: str, name: str) -> None:
    assert [r["id"] for r in run("query", place, name, "id = 3", "--json").json] == [3]
