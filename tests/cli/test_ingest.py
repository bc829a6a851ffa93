"""Ingesting a folder: each file once, whatever happens in between."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.conftest import Run

import tamis
from tamis.cli import ingest
from tamis.cli.ingest_load import load_files

pytestmark = pytest.mark.spark


def rows(path: Path) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in tamis.open(path).scan().to_arrow().to_pylist())


def csv(folder: Path, name: str, *lines: str, header: str = "n,word") -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("\n".join([header, *lines]) + "\n")


@pytest.mark.merge
def test_each_file_once(spark: Any, run: Run, tmp_path: Path) -> None:
    inbox, table = tmp_path / "inbox", tmp_path / "t"
    csv(inbox, "a.csv", "1,x", "2,y")
    csv(inbox, "b.csv", "3,")
    first = run("ingest", table, inbox, "--cluster-by", "n", "--json")
    assert first.code == 0
    assert (first.json["files"], first.json["rows"], first.json["known"]) == (2, 3, 0)
    assert run("ingest", table, inbox, "--json").json["files"] == 0
    csv(inbox, "c.csv", "4,z")
    third = run("ingest", table, inbox, "--json").json
    assert (third["files"], third["rows"], third["known"]) == (1, 1, 2)
    assert rows(table) == [(1, "x"), (2, "y"), (3, None), (4, "z")]
    assert run("describe", table, "--json").json["clustering_columns"] == ["n"]


def test_batches_are_commits(spark: Any, run: Run, tmp_path: Path) -> None:
    inbox, table = tmp_path / "inbox", tmp_path / "t"
    for i in range(3):
        csv(inbox, f"{i}.csv", f"{i},x")
    done = run("ingest", table, inbox, "--batch-bytes", 1, "--json").json
    assert (done["files"], done["commits"], done["version"]) == (3, 3, 3)


def test_parquet_and_json(spark: Any, run: Run, tmp_path: Path) -> None:
    inbox, table = tmp_path / "inbox", tmp_path / "t"
    (inbox / "deep").mkdir(parents=True)
    pq.write_table(pa.table({"n": [1], "word": ["x"]}), inbox / "deep" / "a.parquet")
    assert run("ingest", table, inbox, "--json").json["rows"] == 1
    pq.write_table(pa.table({"n": [2]}), inbox / "b.parquet")  # a column less: NULL
    assert run("ingest", table, inbox, "--json").json["rows"] == 1
    other = tmp_path / "other"
    other.mkdir()
    (other / "c.jsonl").write_text(json.dumps({"word": "z", "n": 3}) + "\n")
    assert run("ingest", table, other, "--json").json["rows"] == 1
    assert tamis.open(table).scan("n = 2 AND word IS NULL").count() == 1
    assert tamis.open(table).scan("n = 3 AND word = 'z'").count() == 1


def test_what_does_not_fit_is_refused_and_nothing_is_taken(spark: Any, run: Run, tmp_path: Path) -> None:
    inbox, table = tmp_path / "inbox", tmp_path / "t"
    csv(inbox, "a.csv", "1,x")
    run("ingest", table, inbox)
    csv(inbox, "b.csv", "1,x,2", header="n,word,extra")
    done = run("ingest", table, inbox)
    assert (done.code, "extra" in done.err) == (1, True)
    csv(inbox, "b.csv", "one,x")
    assert run("ingest", table, inbox).code == 1
    assert rows(table) == [(1, "x")]
    csv(inbox, "b.csv", "2,y")  # put right: taken now
    assert run("ingest", table, inbox, "--json").json["rows"] == 1


def test_a_call_killed_after_its_commit_does_not_repeat_it(
    spark: Any, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inbox, table = tmp_path / "inbox", tmp_path / "t"
    for i in range(2):
        csv(inbox, f"{i}.csv", f"{i},x")
    whole = ingest._append

    def dies(*arguments: Any) -> int | None:
        whole(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(ingest, "_append", dies)
    with pytest.raises(KeyboardInterrupt):
        ingest.ingest_folder(str(table), str(inbox), batch_bytes=1)
    monkeypatch.undo()
    assert run("ingest", table, inbox, "--json").json["known"] == 1
    assert rows(table) == [(0, "x"), (1, "x")]


@pytest.mark.parametrize("filled", [False, True])
def test_two_calls_at_once_take_no_file_twice(
    spark: Any, filled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other call commits while this one has read its files and not yet committed, the table's first schema or a further epoch."""
    inbox, table = tmp_path / "inbox", tmp_path / "t"
    if filled:
        csv(inbox, "0.csv", "0,x")
        ingest.ingest_folder(str(table), str(inbox))
    csv(inbox, "a.csv", "1,x")
    between: list[bool] = []

    def slow(*arguments: Any) -> Any:
        df = load_files(*arguments)
        if not between:
            between.append(True)
            assert ingest.ingest_folder(str(table), str(inbox))["rows"] == 1
        return df

    monkeypatch.setattr(ingest, "load_files", slow)
    assert ingest.ingest_folder(str(table), str(inbox))["rows"] == 0
    assert rows(table) == [(0, "x"), (1, "x")][not filled :]


def test_the_clustering_of_a_table_stays(spark: Any, run: Run, tmp_path: Path) -> None:
    inbox, table = tmp_path / "inbox", tmp_path / "t"
    csv(inbox, "a.csv", "1,x")
    run("ingest", table, inbox, "--cluster-by", "n")
    done = run("ingest", table, inbox, "--cluster-by", "word")
    assert (done.code, "CLUSTERING_DIFFERS" in done.err) == (1, True)


def write(place: Path, n: int) -> None:
    """A file with the row ``n``, of the kind that its ending says."""
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.suffix == ".parquet":
        pq.write_table(pa.table({"n": [n]}), place)
    else:
        place.write_text(f"n\n{n}\n" if place.suffix == ".csv" else json.dumps({"n": n}) + "\n")


@pytest.mark.push_cases(1)
@pytest.mark.parametrize("ending", ["csv", "json", "parquet"])
def test_partition_folders_are_columns(spark: Any, run: Run, tmp_path: Path, ending: str) -> None:
    inbox, table = tmp_path / "inbox", tmp_path / "t"

    def write_below(folder: str, n: int) -> None:
        write(inbox / folder / f"a.{ending}", n)

    write_below("day=2026-01-05/code=a%2Fb", 1)
    write_below("day=__HIVE_DEFAULT_PARTITION__/code=x", 2)
    assert run("ingest", table, inbox).code == 0
    write_below("day=2026-01-06/code=007", 3)
    assert run("ingest", table, inbox).code == 0
    day = dt.date
    assert rows(table) == [(1, day(2026, 1, 5), "a/b"), (2, None, "x"), (3, day(2026, 1, 6), "007")]
    write_below("day=tomorrow/code=y", 4)
    refused = run("ingest", table, inbox)
    assert refused.code == 1
    assert "tomorrow" in refused.err
    assert len(rows(table)) == 3
    write_below("day=2026-01-07", 5)
    assert run("ingest", table, inbox).err.startswith("[PARTITIONS_DIFFER] ")


@pytest.mark.parametrize("ending", ["csv", "json", "parquet"])
def test_names_are_no_patterns(spark: Any, run: Run, tmp_path: Path, ending: str) -> None:
    inbox, table = tmp_path / "in[b]ox {1,2}", tmp_path / "t"
    names = ["r[1]", "r1", "a*", "ab", "q?", "b\\c", "{p,q}", "p", " s", "c%20d", "h#h", "c,d", "d/[f]", "d/f"]
    for n, name in enumerate(names[::2]):
        write(inbox / f"{name}.{ending}", 2 * n)
    assert run("ingest", table, inbox, "--json").json["rows"] == 7
    for n, name in enumerate(names[1::2]):
        write(inbox / f"{name}.{ending}", 2 * n + 1)
    assert run("ingest", table, inbox, "--json").json["rows"] == 7
    assert rows(table) == [(n,) for n in range(14)]


@pytest.mark.parametrize("ending", ["csv", "json", "parquet"])
def test_partition_folders_are_no_patterns(spark: Any, run: Run, tmp_path: Path, ending: str) -> None:
    inbox, table = tmp_path / "in[b]ox", tmp_path / "t"
    for n, code in enumerate(["[ab]", "a", "x*", "xy"]):
        write(inbox / f"code={code}" / f"f.{ending}", n)
    assert run("ingest", table, inbox, "--batch-bytes", 1, "--json").json["commits"] == 4
    assert rows(table) == [(0, "[ab]"), (1, "a"), (2, "x*"), (3, "xy")]


def test_names_that_spark_cannot_read_are_refused(spark: Any, run: Run, tmp_path: Path) -> None:
    inbox, table = tmp_path / "inbox", tmp_path / "t"
    write(inbox / "at 10:00.csv", 1)
    refused = run("ingest", table, inbox)
    assert "[FILE_NAME] The file 'at 10:00.csv' cannot be ingested: " in refused.err
    (inbox / "at 10:00.csv").rename(inbox / "at[10].csv")
    refused = run("ingest", table, inbox, "--read-option", "multiline=TRUE")
    assert "[FILE_NAME] " in refused.err
    write(inbox / "10:00" / "[x].csv", 2)
    assert "[FILE_NAME] " in run("ingest", table, inbox).err
    (inbox / "10:00" / "[x].csv").rename(inbox / "10:00" / "x.csv")
    assert run("ingest", table, inbox, "--json").json["rows"] == 2


def documents(folder: Path, name: str, *records: Any) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("".join(json.dumps(record) + "\n" for record in records))


NESTED = {"n": 1, "word": "007", "s": {"x": 1, "deep": [{"y": 1}]}}


def test_keys_of_json_are_found_in_any_case(spark: Any, run: Run, tmp_path: Path) -> None:
    """In one file, in files of one commit that differ, and in fields at any depth; what is missing is NULL."""
    inbox, table = tmp_path / "inbox", tmp_path / "t"
    documents(inbox, "a.json", NESTED)
    assert run("ingest", table, inbox).code == 0
    documents(inbox, "b.json", {"N": 2, "Word": "008", "S": {"X": 2, "DEEP": [{"Y": 2}, {}]}})
    documents(inbox, "c.json", {"n": 3, "word": 9, "s": {"X": 3}}, {"n": 4, "s": {"deep": [{"y": 4}]}})
    documents(inbox, "d.json", {"N": 5})
    assert run("ingest", table, inbox, "--json").json["commits"] == 1
    found = tamis.open(table).scan().to_arrow().sort_by("n").to_pylist()
    assert found == [
        NESTED,
        {"n": 2, "word": "008", "s": {"x": 2, "deep": [{"y": 2}, {"y": None}]}},
        {"n": 3, "word": "9", "s": {"x": 3, "deep": None}},
        {"n": 4, "word": None, "s": {"x": None, "deep": [{"y": 4}]}},
        {"n": 5, "word": None, "s": None},
    ]


@pytest.mark.parametrize(
    ("record", "code", "name"),
    [
        ({"n": 2, "z": 1}, "UNKNOWN_COLUMN", "'z'"),
        ({"n": 2, "s": {"x": 1, "z": None}}, "UNKNOWN_COLUMN", "'s.z'"),
        ({"n": 2, "S": {"Deep": [{}, {"y": 1, "z": 1}]}}, "UNKNOWN_COLUMN", "'s.deep.z'"),
        ({"n": 2, "N": 3}, "AMBIGUOUS_COLUMN", "'n'"),
        ({"n": 2, "s": {"x": 1, "X": None}}, "AMBIGUOUS_COLUMN", "'s.x'"),
    ],
)
@pytest.mark.parametrize("place", ["inbox", "in[b]ox"])
def test_keys_of_json_that_the_table_lacks_are_refused(
    spark: Any, run: Run, tmp_path: Path, record: Any, code: str, name: str, place: str
) -> None:
    inbox, table = tmp_path / place, tmp_path / "t"
    documents(inbox, "a.json", NESTED)
    assert run("ingest", table, inbox).code == 0
    documents(inbox, "b.json", {"n": 7}, record)
    documents(inbox, "c.json", {"n": 8})
    refused = run("ingest", table, inbox, "--read-option", "samplingRatio=0.01")
    assert f"[{code}] " in refused.err
    assert name in refused.err
    assert tamis.open(table).scan().count() == 1


def test_the_first_json_files_must_agree_in_their_keys(spark: Any, run: Run, tmp_path: Path) -> None:
    inbox, table = tmp_path / "inbox", tmp_path / "t"
    documents(inbox, "a.json", {"n": 1, "s": {"x": 1}})
    documents(inbox, "b.json", {"n": 1, "s": {"X": 1}})
    refused = run("ingest", table, inbox)
    assert "[AMBIGUOUS_COLUMN] " in refused.err


def test_keys_of_maps_and_variants_are_data(spark: Any, run: Run, tmp_path: Path) -> None:
    inbox, table = tmp_path / "inbox", tmp_path / "t"
    spark.sql(
        "SELECT 0 n, parse_json('{}') v, map('k', named_struct('x', 1)) m, array(map('k', 'a')) a, '{}' text"
    ).createOrReplaceTempView("ingest_maps")
    created = tamis.create(table)
    created.append(spark.table("ingest_maps"))
    record = {"N": 1, "V": {"b": 1, "B": 2}, "M": {"k": {"X": 1}, "K": {"X": 2}}, "a": [{"K": "1", "k": "2"}]}
    documents(inbox, "a.json", {**record, "text": {"b": 1, "B": 2}})
    assert run("ingest", table, inbox).code == 0
    found = tamis.open(table).scan("n = 1").to_arrow().to_pylist()[0]
    assert found.pop("v")["metadata"].endswith(b"bB")
    assert found == {
        "n": 1,
        "m": [("k", {"x": 1}), ("K", {"x": 2})],
        "a": [[("K", "1"), ("k", "2")]],
        "text": '{"b": 1, "B": 2}',
    }
    documents(inbox, "b.json", {"n": 2, "m": {"k": {"x": 1, "z": 1}}})
    assert "[UNKNOWN_COLUMN] The files have a column 'm.z'" in run("ingest", table, inbox).err
