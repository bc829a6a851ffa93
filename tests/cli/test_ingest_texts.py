"""Texts of CSV and JSON files that Spark's readers alone would change, move to another day, or leave out."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.conftest import Run
from tests.cli.inboxes import inbox_of, rows_by

import tamis

pytestmark = pytest.mark.spark


@pytest.fixture
def paris(spark: Any) -> Iterator[Any]:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Paris")
    yield spark
    spark.conf.set("spark.sql.session.timeZone", before)


def test_quotes_of_each_file_are_read_as_it_writes_them(spark: Any, run: Run, tmp_path: Path) -> None:
    texts = {
        "a.csv": 'id,text\n1,"say ""hi"""\n2,"5"" disk"\n3,"C:\\dir\\"\n',
        "b.csv": 'id,text\n4,"say \\"hi\\", she said"\n',
        "c.csv": 'id,text\r\n5,"12 Main St\nSpringfield, IL"\r\n',
        "d.csv": 'id,text\n6,5" disk\n',
    }
    expected = ['say "hi"', '5" disk', "C:\\dir\\", 'say "hi", she said', "12 Main St\nSpringfield, IL", '5" disk']
    for at, names in enumerate([list(texts), ["a.csv"]]):  # the first files of a table, and later ones
        inbox = inbox_of(tmp_path, {name: texts[name] for name in names}, f"inbox{at}")
        done = run("ingest", tmp_path / f"t{at}", inbox)
        assert done.code == 0, done.err
        for name in texts.keys() - set(names):
            (inbox / name).write_text(texts[name])
        done = run("ingest", tmp_path / f"t{at}", inbox)
        assert done.code == 0, done.err
        assert rows_by(tmp_path / f"t{at}", "id") == [{"id": i, "text": t} for i, t in enumerate(expected, 1)]


def test_files_that_spark_wrote_are_read_as_it_reads_them(spark: Any, run: Run, tmp_path: Path) -> None:
    """Spark doubles backslashes within quotes. A quote in one file of a job tells for all of them."""
    texts = ["C:\\dir, x", 'say "hi"', "C:\\dir"]
    for at, some in enumerate([texts, texts[:1]]):
        rows = spark.createDataFrame(list(enumerate(some)), "id BIGINT, t STRING")
        rows.repartitionByRange(3, "id").write.csv(str(tmp_path / f"inbox{at}"), header=True)
    done = run("ingest", tmp_path / "t", tmp_path / "inbox0")
    assert done.code == 0, done.err
    assert rows_by(tmp_path / "t", "id") == [{"id": i, "t": t} for i, t in enumerate(texts)]
    done = run("ingest", tmp_path / "u", tmp_path / "inbox1")
    assert (done.code, "'escape=\\'" in done.err) == (1, True), done.err
    done = run("ingest", tmp_path / "u", tmp_path / "inbox1", "--read-option=escape=\\")
    assert done.code == 0, done.err
    assert rows_by(tmp_path / "u", "id") == [{"id": 0, "t": texts[0]}]


def test_line_ends_in_values_without_a_header(spark: Any, run: Run, tmp_path: Path) -> None:
    inbox = inbox_of(tmp_path, {"a.csv": '1,"x\ny"\n', "b.csv": '2,"say \\"hi\\""\n'})
    done = run("ingest", tmp_path / "t", inbox, "--read-option=header=false")
    assert done.code == 0, done.err
    assert rows_by(tmp_path / "t", "_c0") == [{"_c0": 1, "_c1": "x\ny"}, {"_c0": 2, "_c1": 'say "hi"'}]


def test_quotes_that_do_not_tell_are_refused(spark: Any, run: Run, tmp_path: Path) -> None:
    inbox = inbox_of(tmp_path, {"a.csv": 'id,text\n1,"abc\n2,def\n'})
    done = run("ingest", tmp_path / "t", inbox)
    assert (done.code, "BAD_DATA" in done.err) == (1, True)
    done = run("ingest", tmp_path / "t", inbox, "--read-option=quote=")
    assert done.code == 0, done.err
    assert rows_by(tmp_path / "t", "id") == [{"id": 1, "text": '"abc'}, {"id": 2, "text": "def"}]


def test_what_only_spark_unpacks_is_read_if_it_has_no_quotes(spark: Any, run: Run, tmp_path: Path) -> None:
    inbox, table = inbox_of(tmp_path, {}), tmp_path / "t"
    (inbox / "a.csv.deflate").write_bytes(zlib.compress(b"id,t\n" + b"".join(b"%d,x\n" % i for i in range(9_000))))
    done = run("ingest", table, inbox)
    assert done.code == 0, done.err
    assert tamis.open(table).scan().count() == 9_000
    (inbox / "b.csv.deflate").write_bytes(zlib.compress(b'id,t\n-1,"y"\n'))
    assert "BAD_DATA" in run("ingest", table, inbox).err
    assert run("ingest", table, inbox, "--read-option=escape=\\").code == 0
    assert rows_by(table, "id")[0] == {"id": -1, "t": "y"}


def test_an_empty_file_that_only_spark_unpacks_hides_no_other(spark: Any, run: Run, tmp_path: Path) -> None:
    inbox = inbox_of(tmp_path, {"a.csv.deflate": "", "b.csv": 'id,t\n1,"say \\"hi\\""\n'})
    done = run("ingest", tmp_path / "t", inbox)
    assert done.code == 0, done.err
    assert rows_by(tmp_path / "t", "id") == [{"id": 1, "t": 'say "hi"'}]


def test_texts_that_a_number_or_an_instant_would_change_stay_texts(spark: Any, run: Run, tmp_path: Path) -> None:
    rows = "id,zip,seat,at,price,when,day,month\n1,00712,12D,08:15:00,1.50,2026-01-05 10:00:00,2026-01-05,2026-01\n"
    expected = {
        "zip": "00712",
        "seat": "12D",
        "at": "08:15:00",
        "month": "2026-01",
        "price": 1.5,
        "when": datetime(2026, 1, 5, 10, tzinfo=UTC),
        "day": date(2026, 1, 5),
    }
    more = {"b.csv": "seat,id,zip,at,price,when,day,month\n14F,2,1,9:30,2,2026-01-06T10:00:00+01:00,2026-01-06,2026\n"}
    for at, files in enumerate([{"a.csv": rows}, {"a.csv": rows, **more}]):  # of one header, and of several
        done = run("ingest", tmp_path / f"t{at}", inbox_of(tmp_path, files, f"inbox{at}"))
        assert done.code == 0, done.err
        assert rows_by(tmp_path / f"t{at}", "id")[0] == {"id": 1, **expected}


def test_times_without_a_zone_are_utc(paris: Any, run: Run, tmp_path: Path) -> None:
    table, expected = tmp_path / "t", datetime(2026, 1, 5, 10, tzinfo=UTC)
    inbox = inbox_of(tmp_path, {"a.csv": "id,at\n1,2026-01-05 10:00:00\n"})
    assert run("ingest", table, inbox).code == 0
    (inbox / "b.csv").write_text("id,at\n2,2026-01-05T10:00:00\n")
    assert run("ingest", table, inbox).code == 0
    (inbox / "c.json").write_text(
        '{"id": 3, "at": "2026-01-05 10:00:00"}\n{"id": 4, "at": "2026-01-05T11:00:00+01:00"}\n'
    )
    assert run("ingest", table, inbox, "--format=json").code == 0
    (inbox / "d.csv").write_text("id,at\n5,2026-01-05 11:00:00\n")
    assert run("ingest", table, inbox, "--format=csv", "--read-option=timeZone=Europe/Paris").code == 0
    assert [row["at"] for row in rows_by(table, "id")] == [expected] * 5


REFUSED = [
    ("x.csv", "id,day,at,s\n2,2026-01-06 23:30:00,,\n"),
    ("x.csv", "id,day,at,s\n2,2026-01-06 garbage,,\n"),
    ("x.csv", "id,day,at,s\n2,,08:15:00,\n"),
    ("x.csv", "id,day,at,s\n2,,T8:15,\n"),
    ("x.csv", "id,day,at,s\n2,,202601,\n"),
    ("x.csv", "id,day,at,s\n2,2026-01,,\n"),
    ("x.json", '{"id": 2, "day": "2026-01-06 23:30:00"}\n'),
    ("x.json", '{"id": 2, "at": "08:15:00"}\n'),
    ("x.json", '{"id": 2, "at": 1767600000000}\n'),
    ("x.json", '{"id": 2, "more": {"at": ["2026-01-05", "08:15"]}}\n'),
    ("x.json", '{"id": 2, "more": {"by": {"k": "08:15"}}}\n'),
    ("x.json", '{"id": 2, "at": "2026"}\n'),
    ("x.json", '{"id": 2, "at": "202601"}\n'),
    ("x.json", '{"id": 2, "at": "+2026"}\n'),
    ("x.json", '{"id": 2}{"id": 3}\n'),
    ("x.json", '{"id": 2}],{"id": 3}\n'),
    ("x.json", '{"id": 2}] garbage\n'),
    ("x.json", '{"id": 2},0] garbage\n'),
    ("x.json", '{"id": 2} trailing garbage\n'),
    ("x.json", '{"id": 2}, {"id": 3}\n'),
]


@pytest.mark.parametrize(("name", "text"), REFUSED)
def test_what_spark_would_change_or_leave_out_is_refused(
    spark: Any, run: Run, tmp_path: Path, name: str, text: str
) -> None:
    table = tamis.create(
        tmp_path / "t",
        "id BIGINT, day DATE, at TIMESTAMP, s STRING, more STRUCT<at: ARRAY<TIMESTAMP>, by: MAP<STRING, TIMESTAMP>>",
    )
    done = run("ingest", table.path, inbox_of(tmp_path, {name: text}))
    assert done.code == 1, done.out
    assert table.refresh().scan().count() == 0
    assert "BAD_DATA" in done.err, done.err


@pytest.mark.parametrize("ending", ["csv", "json", "parquet"])
def test_folders_whose_times_spark_would_change_are_refused(spark: Any, run: Run, tmp_path: Path, ending: str) -> None:
    """Whatever format an option says: Spark does not use it for folders."""
    table = tamis.create(tmp_path / "t", "id BIGINT, day DATE, at TIMESTAMP, n TIMESTAMP_NTZ")
    folders = ["day=2026-01", "at=08%3A15", "at=2026", "n=2026-01-05 garbage", "day=2026-01-05", "at=2026-1-5 8%3A15"]
    formats = [f"--read-option={kind}Format=dd/MM/yyyy" for kind in ("date", "timestamp", "timestampNTZ")]
    for at, folder in enumerate(folders):
        (tmp_path / str(at) / folder).mkdir(parents=True)
        pq.write_table(pa.table({"id": [at]}), tmp_path / "x.parquet")
        data = {"csv": b"id\n%d\n" % at, "json": b'{"id": %d}\n' % at}.get(ending)
        file = tmp_path / str(at) / folder / f"a.{ending}"
        file.write_bytes(data or (tmp_path / "x.parquet").read_bytes())
        done = run("ingest", table.path, tmp_path / str(at), *formats)
        assert (done.code, "BAD_DATA" in done.err) == ((1, True) if at < 4 else (0, False)), (folder, done.err)
        assert "dateFormat" not in done.err
    day = {"id": 4, "day": date(2026, 1, 5), "at": None, "n": None}
    assert rows_by(tmp_path / "t", "id") == [
        day,
        {**day, "id": 5, "day": None, "at": datetime(2026, 1, 5, 8, 15, tzinfo=UTC)},
    ]


def test_days_and_formats_of_the_user_are_taken(spark: Any, run: Run, tmp_path: Path) -> None:
    table = tamis.create(tmp_path / "t", "id BIGINT, d DATE, at TIMESTAMP, n TIMESTAMP_NTZ")
    texts = {"a.csv": "id,d\n1,2026-1-5\n2, 2026-01-05\n", "b.json": '{"id": 3, "d": "2026-1-5"}\n'}
    inbox = inbox_of(tmp_path, texts)
    for kind in ("csv", "json"):
        assert run("ingest", table.path, inbox, f"--format={kind}").code == 0
    assert table.refresh().scan("d = DATE'2026-01-05'").count() == 3
    (inbox / "c.csv").write_text("id,d,at,n\n4,05/01/2026,10:15 05/01/2026,10:15 05/01/2026\n")
    formats = {
        "dateFormat": "dd/MM/yyyy",
        "timestampFormat": "HH:mm dd/MM/yyyy",
        "timestampNTZFormat": "HH:mm dd/MM/yyyy",
    }
    options = [f"--read-option={name}={form}" for name, form in formats.items()]
    done = run("ingest", table.path, inbox, "--format=csv", *options)
    assert done.code == 0, done.err
    (row,) = table.refresh().scan("id = 4").to_arrow().to_pylist()
    assert (row["d"], row["at"]) == (date(2026, 1, 5), datetime(2026, 1, 5, 10, 15, tzinfo=UTC))
    assert row["n"] == row["at"].replace(tzinfo=None)
    first = inbox_of(tmp_path, {"a.csv": "id,at\n1,10:15 05/01/2026\n"}, "first")
    assert run("ingest", tmp_path / "u", first, *options[1:2]).code == 0
    assert rows_by(tmp_path / "u", "id") == [{"id": 1, "at": datetime(2026, 1, 5, 10, 15, tzinfo=UTC)}]


HEALTHY: list[tuple[str, bytes, tuple[str, ...]]] = [
    ("a mark", '\ufeff{"id": 1}'.encode(), ("multiLine=true",)),
    ("UTF-16", '{"id": 1}'.encode("utf-16"), ("multiLine=true",)),
    ("comments", b'// head\n{"id": 1} // c\n', ("allowComments=true",)),
    ("blank lines", b'\t\n{"id": 1}\n \n', ()),
    ("nothing else", b"\n", ("multiLine=true",)),
    ("a long text", b'{"id": 1, "t": "%s"}' % (b"x" * 21_000_000), ("maxStringLen=100000000",)),
    ("single quotes", b"{'id': 1}\n", ()),
    ("a list", b'[{"id": 1}, {"id": 1}]\n', ()),
]


@pytest.mark.parametrize(("data", "options"), [case[1:] for case in HEALTHY], ids=[case[0] for case in HEALTHY])
@pytest.mark.push_cases(3)
def test_healthy_json_is_taken(spark: Any, run: Run, tmp_path: Path, data: bytes, options: tuple[str, ...]) -> None:
    table, inbox = tamis.create(tmp_path / "t", "id BIGINT, t STRING"), inbox_of(tmp_path, {})
    (inbox / "a.json").write_bytes(data)
    done = run("ingest", table.path, inbox, *(f"--read-option={o}" for o in options))
    assert done.code == 0, done.err
    assert set(table.refresh().scan().to_arrow()["id"].to_pylist()) <= {1}


def test_a_column_of_variants_takes_whole_rows(spark: Any, run: Run, tmp_path: Path) -> None:
    inbox = inbox_of(tmp_path, {"a.csv": "id,t\n1,x\n"})
    done = run("ingest", tmp_path / "t", inbox, "--read-option=singleVariantColumn=row")
    assert done.code == 0, done.err
    assert tamis.open(tmp_path / "t").scan().count() == 1


def test_instants_at_any_depth_of_json_are_taken(spark: Any, run: Run, tmp_path: Path) -> None:
    table = tamis.create(
        tmp_path / "t", "id BIGINT, more STRUCT<at: ARRAY<TIMESTAMP>, by: MAP<STRING, TIMESTAMP>>, n STRUCT<x: INT>"
    )
    inbox = inbox_of(
        tmp_path,
        {
            "a.json": '{"id": 1, "more": {"at": ["2026-01-05", null], "by": {"k": 1767600000}}}\n\n{"id": 2, "n": {"x": 1}}\n'
        },
    )
    done = run("ingest", table.path, inbox)
    assert done.code == 0, done.err
    first, second = rows_by(tmp_path / "t", "id")
    assert first["more"]["at"] == [datetime(2026, 1, 5, tzinfo=UTC), None]
    assert first["more"]["by"] == [("k", datetime(2026, 1, 5, 8, tzinfo=UTC))]
    assert second == {"id": 2, "more": None, "n": {"x": 1}}


def test_records_of_several_lines_are_one_value(spark: Any, run: Run, tmp_path: Path) -> None:
    inbox = inbox_of(tmp_path, {"a.json": '{\n"id": 1\n}\n', "b.json": '[{"id": 2},\n{"id": 3}]\n'})
    done = run("ingest", tmp_path / "t", inbox, "--read-option=multiLine=true")
    assert done.code == 0, done.err
    assert rows_by(tmp_path / "t", "id") == [{"id": 1}, {"id": 2}, {"id": 3}]
    (inbox / "c.json").write_text('{\n"id": 4\n}\n{\n"id": 5\n}\n')
    done = run("ingest", tmp_path / "t", inbox, "--read-option=multiLine=true")
    assert (done.code, "BAD_DATA" in done.err) == (1, True)


def test_headers_of_packed_files_are_their_own(spark: Any, run: Run, tmp_path: Path) -> None:
    """Written within one second, the files begin with the same bytes up to a line end."""
    inbox = inbox_of(tmp_path, {})
    for name, text in {"a": "first,last\nAda,Lovelace\n", "b": "last,first\nHopper,Grace\n"}.items():
        (inbox / f"{name}.csv.GZ").write_bytes(gzip.compress(text.encode(), mtime=0x0A))
    done = run("ingest", tmp_path / "t", inbox)
    assert done.code == 0, done.err
    assert rows_by(tmp_path / "t", "first") == [
        {"first": "Ada", "last": "Lovelace"},
        {"first": "Grace", "last": "Hopper"},
    ]


@pytest.mark.parametrize("ending", ["csv", "json", "parquet"])
def test_columns_of_char_and_varchar(spark: Any, run: Run, tmp_path: Path, ending: str) -> None:
    """Spark's readers refuse such types; the insert pads and checks the texts."""
    table, inbox = tmp_path / "t", inbox_of(tmp_path, {})
    change = tamis.create(table, pa.schema({"id": pa.int64()})).alter()
    change.add_column("c", "CHAR(3)").add_column("v", "ARRAY<VARCHAR(3)>").add_column("k", "CHAR(2)").commit()
    part = inbox / "k=x"
    part.mkdir()
    if ending == "csv":
        (part / "a.csv").write_text("id,c\n1,ab\n")
    elif ending == "json":
        (part / "a.json").write_text('{"id": 1, "c": "ab"}\n')
    else:
        pq.write_table(pa.table({"id": [1], "c": ["ab"]}), part / "a.parquet")
    done = run("ingest", table, inbox)
    assert done.code == 0, done.err
    assert rows_by(table, "id") == [{"id": 1, "c": "ab ", "v": None, "k": "x "}]
    (part / f"b.{ending}").write_text('{"id": 2, "c": "abcd"}\n' if ending == "json" else "id,c\n2,abcd\n")
    if ending == "parquet":
        pq.write_table(pa.table({"id": [2], "c": ["abcd"]}), part / "b.parquet")
    refused = run("ingest", table, inbox)
    assert refused.code != 0
    assert "EXCEED_LIMIT_LENGTH" in refused.err
