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
from tamis.cli.ingest_batch import Batch
from tamis.cli.ingest_load import load_files
from tamis.cli.source_folders import list_files

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


@pytest.mark.parametrize("moment", ["spark_session", "load_files"])
@pytest.mark.parametrize("filled", [False, True])
def test_two_calls_at_once_take_no_file_twice(
    spark: Any, filled: bool, moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other call commits, the table's first schema or a further epoch, while this one starts Spark or has read its files."""
    inbox, table = tmp_path / "inbox", tmp_path / "t"
    if filled:
        csv(inbox, "0.csv", "0,x")
        ingest.ingest_folder(str(table), str(inbox))
    csv(inbox, "a.csv", "1,x")
    between: list[bool] = []
    plain = getattr(ingest, moment)

    def slow(*arguments: Any) -> Any:
        found = plain(*arguments)
        if not between:
            between.append(True)
            assert ingest.ingest_folder(str(table), str(inbox))["rows"] == 1
        return found

    monkeypatch.setattr(ingest, moment, slow)
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


def packed(folder: Path, name: str, text: str, encoding: str = "utf-8") -> None:
    folder.mkdir(exist_ok=True)
    with pa.output_stream(folder / name) as file:
        file.write(text.encode(encoding))


@pytest.mark.parametrize("most", [1, 1 << 30])
@pytest.mark.parametrize("place", ["inbox", "in[b]ox"])
def test_each_csv_is_read_by_its_own_header(spark: Any, run: Run, tmp_path: Path, most: int, place: str) -> None:
    inbox, table = tmp_path / place, tmp_path / "t"
    csv(inbox, "a.csv", "1,10,100", header="id,name,qty")
    assert run("ingest", table, inbox).code == 0
    csv(inbox, "b.csv", "2,20,200", header="id,name,qty")
    csv(inbox, "c.csv", "300,30,3", header="QTY,name,Id")
    csv(inbox, "d.csv", "4", header="id")
    packed(inbox, "e.csv.gz", "name,id\n50,5\n")
    unpacks_zst = not spark.version.startswith("4.0")  # there, Hadoop needs a library of the machine
    packed(inbox, f"f.csv.{'zst' if unpacks_zst else 'gz'}", "\n \nname,id\n60,6\n")
    packed(inbox, "g.csv", '\ufeff"id","qty"\n7,700')
    packed(inbox, "h.csv", "")
    packed(inbox, "i.csv", "\n\n")
    packed(inbox, "j.csv", "qty,id")
    done = run("ingest", table, inbox, "--batch-bytes", most, "--json").json
    assert (done["files"], done["commits"]) == (9, 9 if most == 1 else 1)
    assert rows(table) == [
        (1, 10, 100),
        (2, 20, 200),
        (3, 30, 300),
        (4, None, None),
        (5, 50, None),
        (6, 60, None),
        (7, None, 700),
    ]


@pytest.mark.parametrize("place", ["inbox", "in[b]ox"])
def test_the_first_csvs_are_put_together_by_name(spark: Any, run: Run, tmp_path: Path, place: str) -> None:
    """Types are those of all values, whatever file has them."""
    inbox, table = tmp_path / place, tmp_path / "t"
    for at, (name, text) in enumerate(
        {
            "a.csv": "id;when;note\n1;;x;\n",
            "b.csv": "note;ID\nNA;2.5\n' y;\"';3\n",
            "c.csv": "when;day\n05.01.2026;1\n",
        }.items()
    ):
        place_of = inbox / f"at={at}"
        place_of.mkdir(parents=True)
        (place_of / name).write_text(text)
    options = ["sep=;", "quote='", "nullValue=NA", "dateFormat=dd.MM.yyyy", "mode=PERMISSIVE"]
    done = run("ingest", table, inbox, *(f"--read-option={o}" for o in options))
    assert done.code == 0, done.err
    found = tamis.open(table).scan().to_arrow().sort_by([("at", "ascending"), ("id", "ascending")]).to_pylist()
    empty = {"id": None, "when": None, "note": None, "day": None}
    assert found == [
        {**empty, "id": 1.0, "note": "x", "at": 0},
        {**empty, "id": 2.5, "at": 1},
        {**empty, "id": 3.0, "note": ' y;"', "at": 1},
        {**empty, "when": dt.date(2026, 1, 5), "day": 1, "at": 2},
    ]


def test_a_csv_with_another_column_is_refused_beside_others(spark: Any, run: Run, tmp_path: Path) -> None:
    inbox, table = tmp_path / "inbox", tmp_path / "t"
    csv(inbox, "a.csv", "1,x")
    run("ingest", table, inbox)
    csv(inbox, "b.csv", "2,x", "3,y", "4,z")
    csv(inbox, "c.csv", "4,z", header="n,nope")
    assert "[UNKNOWN_COLUMN] The files have a column 'nope'" in run("ingest", table, inbox).err
    assert rows(table) == [(1, "x")]


@pytest.mark.parametrize(
    ("options", "first", "second", "names"),
    [
        (["multiLine=true"], '"n","a\nb"\n1,x\n', '"n","a\nc"\n2,y\n', ("a\nb", "a\nc")),
        (["multiLine=true"], '"a\nb","n"\nx,1\n', '"a\nc","n"\ny,2\n', ("a\nb", "a\nc")),
        (["multiLine=true", "quote='"], "n,'a\nb'\n1,x\n", "n,'a\nc'\n2,y\n", ("a\nb", "a\nc")),
        (["comment=#"], "#made\nn,b\n1,x\n", "#made\nb,n\ny,2\n", ("b", "b")),
        (["lineSep=|"], "n,a\nb|1,x|", "n,a\nc|2,y|", ("a\nb", "a\nc")),
        (["encoding=UTF-16LE", "lineSep=\n"], "n,\u010ab\n1,x\n", "n,\u010ac\n2,y\n", ("\u010ab", "\u010ac")),
    ],
)
def test_headers_that_are_no_plain_line(
    spark: Any, run: Run, tmp_path: Path, options: list[str], first: str, second: str, names: tuple[str, str]
) -> None:
    inbox, table = tmp_path / "inbox", tmp_path / "t"
    encoding = "utf-16-le" if "UTF-16LE" in options[0] else "utf-8"
    for name, text in (("a.csv", first), ("b.csv", second)):
        packed(inbox, name, text, encoding)
    done = run("ingest", table, inbox, *(f"--read-option={o}" for o in options))
    assert done.code == 0, done.err
    found = tamis.open(table).scan().to_arrow().sort_by("n").to_pylist()
    given = [{name: value for name, value in row.items() if value is not None} for row in found]
    assert given == [{"n": 1, names[0]: "x"}, {"n": 2, names[1]: "y"}]


def test_csv_without_headers_goes_by_position(spark: Any, run: Run, tmp_path: Path) -> None:
    inbox, table = tmp_path / "inbox", tmp_path / "t"
    for name, text in (("a.csv", "1,x\n"), ("b.csv", "2,y\n")):
        packed(inbox, name, text)
        assert run("ingest", table, inbox, "--read-option", "HEADER=False").code == 0
    assert rows(table) == [(1, "x"), (2, "y")]


def test_spark_reads_one_header_of_each_kind(
    spark: Any, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inbox, table = tmp_path / "inbox", tmp_path / "t"
    for n in range(6):
        csv(inbox, f"{n}.csv", f"{n},x", header="n,word" if n % 2 else "word,n")
    loads: list[Any] = []
    reader = type(spark.read)
    whole = reader.load

    def counted(self: Any, paths: Any) -> Any:
        loads.append(paths)
        return whole(self, paths)

    monkeypatch.setattr(reader, "load", counted)
    batch = Batch(inbox, "csv", list_files(inbox), (), {})
    load_files(spark, tamis.create(table), batch)
    assert sorted(len(paths) for paths in loads) == [1, 1, 3, 3, 3, 3]
