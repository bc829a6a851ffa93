"""Texts in a file of rows are read as the types of the table's columns, as ``tamis ingest`` and Spark read them."""

from __future__ import annotations

import datetime as dt
import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.conftest import Run

import tamis
from tamis.cli.row_file import rows_of
from tamis.errors import InvalidInput, StoreUnavailable
from tamis.storage.files.parquet.legacy_calendar import CUTOVER


def upserted(run: Run, tmp_path: Path, schema: pa.Schema, name: str, text: str, on: str = "id") -> list[dict[str, Any]]:
    """The rows after two upserts of the file: the second one finds its keys."""
    place = tmp_path / "t"
    tamis.create(place, schema)
    (tmp_path / name).write_text(text)
    for _ in range(2):
        done = run("upsert", place, tmp_path / name, "--on", on)
        assert done.code == 0, done.err
    found: list[dict[str, Any]] = tamis.open(place).scan().to_arrow().to_pylist()
    return sorted(found, key=repr)


def test_only_nothing_is_null_in_csv(run: Run, tmp_path: Path) -> None:
    schema = pa.schema([("country", pa.string()), ("f", pa.float64())])
    found = upserted(run, tmp_path, schema, "a.csv", "country,f\nNA,1.5\nnull,2\nN/A,\nnan,inf\n", on="country")
    assert {row["country"]: row["f"] for row in found} == {"NA": 1.5, "null": 2.0, "N/A": None, "nan": float("inf")}


@pytest.mark.parametrize("column", ["code", "CODE"])
def test_columns_of_csv_have_their_types_in_any_case(run: Run, tmp_path: Path, column: str) -> None:
    schema = pa.schema([("id", pa.int32()), ("code", pa.string())])
    found = upserted(run, tmp_path, schema, "a.csv", f"ID,{column}\n1,007\n2,1e3\n3,00012\n")
    assert [row["code"] for row in found] == ["007", "1e3", "00012"]


@pytest.mark.parametrize("key", ["code", "Code"])
def test_keys_of_json_have_their_types_in_any_case(run: Run, tmp_path: Path, key: str) -> None:
    schema = pa.schema([("id", pa.int32()), ("code", pa.string())])
    found = upserted(run, tmp_path, schema, "a.json", f'{{"id": 1, "{key}": "2020-01-02 03:04:05Z"}}\n')
    assert [row["code"] for row in found] == ["2020-01-02 03:04:05Z"]


def test_days_and_bytes_in_json(run: Run, tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int32()), ("day", pa.date32()), ("body", pa.binary())])
    lines = '{"id": 1, "day": "2020-01-02", "body": "YQ=="}\n{"id": 2, "day": null, "body": null}\n'
    assert upserted(run, tmp_path, schema, "a.json", lines) == [
        {"id": 1, "day": dt.date(2020, 1, 2), "body": b"a"},
        {"id": 2, "day": None, "body": None},
    ]


def test_bytes_in_json_that_are_not_base64_are_refused(run: Run, tmp_path: Path) -> None:
    tamis.create(tmp_path / "t", pa.schema([("id", pa.int32()), ("body", pa.binary())]))
    (tmp_path / "a.json").write_text('{"id": 1, "body": "?"}\n')
    assert "BAD_DATA" in run("upsert", tmp_path / "t", tmp_path / "a.json", "--on", "id").err


UTC = dt.UTC
NOT_READ = {
    "json": [
        b'{"id": 1, "s": "\xe9"}\n',
        b'null\n{"id": 1}\n',
        b'{"id": 1}\nnull\n',
        b"\xef\xbb\xbf null",
        b'{"id": 1, "local": "2026-01-05T10:00:00+02:00"}\n',
        b'{"id": 1, "at": "2026-01-05 10:00:00"}\n',
        b'{"id": 1, "one": {"local": "2026-01-05T10:00:00Z"}}\n',
        b'{"id": 1, "bytes": {"b": "YQ=="}}\n',
        b'{"id": 1, "bytes": {"B": "YQ=="}}\n',
        b'{"id": 1, "one": {"LOCAL": "2026-01-05T10:00:00"}}\n',
        b'{"id": 1, "one": {"local": "2026-01-05T10:00:00", "more": 1}}\n',
        b'{"id": 1, "x": {"X": 1}}\n',
        b'{"id": 1, "x": {"x": 1, "y": 2}}\n',
        b'{"id": 1, "xs": [{"x": 1, "y": 2}]}\n',
    ],
    "csv": [
        b"id,s\n1,\xe9\n",
        b"id,n\n1,0x10\n",
        b"id\n0X1\n",
        b"id,n\n1,1.0\n",
        b"id,n\n1, \n",
        b'id,n\n1,""\n',
        b"id,n\n1,\xc2\xa05\n",
        b"id,n,n\n1,2,3\n",
        b"id,local\n1,2026-01-05T10:00:00+02:00\n",
        b"id,at\n1,2026-01-05 10:00:00\n",
    ],
}
TYPED = pa.schema(
    [
        ("id", pa.int32()),
        ("n", pa.int64()),
        ("s", pa.string()),
        ("local", pa.timestamp("us")),
        ("at", pa.timestamp("us", "UTC")),
        ("one", pa.struct([("local", pa.timestamp("us"))])),
        ("bytes", pa.struct([("n", pa.int64()), ("b", pa.binary())])),
        ("x", pa.struct([("x", pa.int32())])),
        ("xs", pa.list_(pa.struct([("x", pa.int32())]))),
    ]
)


@pytest.mark.parametrize(
    ("ending", "data"), [(ending, data) for ending, texts in NOT_READ.items() for data in texts], ids=str
)
def test_values_that_would_change_are_refused(run: Run, tmp_path: Path, ending: str, data: bytes) -> None:
    table = tamis.create(tmp_path / "t", TYPED)
    (tmp_path / f"a.{ending}").write_bytes(data)
    done = run("upsert", tmp_path / "t", tmp_path / f"a.{ending}", "--on", "id")
    assert done.code == 1
    assert "[BAD_DATA]" in done.err or "[UNSAFE_CAST]" in done.err
    assert table.refresh().version == 0


def test_instants_and_whole_numbers(run: Run, tmp_path: Path) -> None:
    schema = pa.schema([TYPED.field(name) for name in ("id", "n", "s", "local", "at", "one")])
    record = (
        '{"id": 1, "n": -7, "s": "{} null", "local": "2026-01-05 10:00:00", "at": "2026-01-05T10:00:00+02:00", '
        '"one": {"local": "2026-01-05T10:00:00.000001"}}\n'
    )
    instants = {"local": dt.datetime(2026, 1, 5, 10), "at": dt.datetime(2026, 1, 5, 8, tzinfo=UTC)}
    assert upserted(run, tmp_path, schema, "a.json", record) == [
        {"id": 1, "n": -7, "s": "{} null", **instants, "one": {"local": dt.datetime(2026, 1, 5, 10, 0, 0, 1)}}
    ]
    (tmp_path / "a.csv").write_text("id,n,local,at\n 2 , 8,2026-01-05T10:00:00,2026-01-05T10:00:00+02:00\n3,,,\n")
    assert run("upsert", tmp_path / "t", tmp_path / "a.csv", "--on", "id").code == 0
    nothing = {"s": None, "one": None}
    assert tamis.open(tmp_path / "t").scan("id > 1").to_arrow().sort_by("id").to_pylist() == [
        {"id": 2, "n": 8, **instants, **nothing},
        {"id": 3, "n": None, "local": None, "at": None, **nothing},
    ]


def test_fields_beside_bytes_in_json(run: Run, tmp_path: Path) -> None:
    schema = pa.schema([TYPED.field(name) for name in ("id", "bytes", "xs")])
    record = '{"id": 1, "bytes": {"n": 1}, "xs": [{"x": 1}, null]}\n{"id": 2, "bytes": null, "xs": null}\n'
    assert upserted(run, tmp_path, schema, "a.json", record) == [
        {"id": 1, "bytes": {"n": 1, "b": None}, "xs": [{"x": 1}, None]},
        {"id": 2, "bytes": None, "xs": None},
    ]


def test_null_records_of_compressed_files_are_refused(run: Run, tmp_path: Path) -> None:
    tamis.create(tmp_path / "t", TYPED)
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(b'null\n{"id": 1}\n'))
    done = run("upsert", tmp_path / "t", tmp_path / "a.json.gz", "--on", "id", "--format", "json")
    assert "BAD_DATA" in done.err


@pytest.mark.parametrize("ending", ["csv", "json"])
def test_long_rows(run: Run, tmp_path: Path, ending: str) -> None:
    long = "{} null " * 400_000
    text = f'{{"id": 1, "s": "{long}"}}\n' if ending == "json" else f"id,s\n1,{long}\n"
    schema = pa.schema([("id", pa.int32()), ("s", pa.string())])
    assert upserted(run, tmp_path, schema, f"a.{ending}", text) == [{"id": 1, "s": long}]


def test_quoted_line_ends_in_a_csv_that_is_read_in_pieces(run: Run, tmp_path: Path) -> None:
    tamis.create(tmp_path / "t", pa.schema([("id", pa.int64()), ("s", pa.string())]))
    body = ("y" * 99 + "\n") * 10
    with (tmp_path / "a.csv").open("w") as file:
        file.write("id,s\n")
        file.writelines(f'{key},"{key}:{body}"\n' for key in range(18_000))
    done = run("upsert", tmp_path / "t", tmp_path / "a.csv", "--on", "id")
    assert done.code == 0, done.err
    found = tamis.open(tmp_path / "t").scan("id % 4567 = 0").to_arrow().to_pylist()
    assert [row["s"] for row in sorted(found, key=lambda row: row["id"])] == [
        f"{row}:{body}" for row in range(0, 18_000, 4567)
    ]


@pytest.mark.parametrize("column", ["one", "document"])
def test_cells_of_nested_columns_are_texts_in_csv(run: Run, tmp_path: Path, column: str) -> None:
    """Else the code 007 would be the number 7."""
    table = tamis.create(tmp_path / "t", "id INT, code STRING, one STRUCT<x: INT>, document VARIANT")
    table.append(pa.table({"id": [1], "code": ["old"]}))
    (tmp_path / "a.csv").write_text(f"id,{column}\n1,007\n")
    clause = f"MATCHED THEN UPDATE SET code = source.{column}"
    done = run("merge", tmp_path / "t", tmp_path / "a.csv", "--on", "target.id = source.id", "--when", clause)
    assert done.code == 0, done.err
    assert table.refresh().scan(None, ["code"]).to_arrow()["code"].to_pylist() == ["007"]


LACKING = {
    "lines": '{"id": 1, "kind": "x"}\n{"id": 2, "kind": null}\n{"id": 3}\n',
    "two-in-a-line": '{"id": 1, "kind": "x"}\n{"id": 2, "kind": null}{"id": 3}',
    "over-lines": '\ufeff{"id": 1,\n"kind": "x"}\n\n{"id":\n2, "kind":null} \r\n {"id": 3}\n\n',
    "below": '{"id": 1, "kind": "x"}\n{"id": 2, "kind": null}\n{"id": 3, "tags": ["kind"]}\n',
    "in-a-text": '{"id": 1, "kind": "x"}\n{"id": 2, "kind": null}\n{"id": 3, "text": "{\\"kind\\": 1}\\n{"}\n',
    "empty": '{"id": 1, "kind": "x"}\n{"id": 2, "kind": null}\n{}',
}
KINDS = pa.schema([("id", pa.int64()), ("kind", pa.string()), ("tags", pa.list_(pa.string())), ("text", pa.string())])


@pytest.mark.parametrize("verb", ["upsert", "merge"])
@pytest.mark.parametrize("text", LACKING.values(), ids=LACKING)
def test_a_key_that_only_some_records_have_is_refused(run: Run, tmp_path: Path, text: str, verb: str) -> None:
    """Else the others would set the column to NULL."""
    table = tamis.create(tmp_path / "t", KINDS)
    (tmp_path / "a.json").write_text(text, encoding="utf-8")
    clauses = ["--on", "target.id = source.id", "--when", "NOT MATCHED THEN INSERT (id) VALUES (source.id)"]
    done = run(verb, tmp_path / "t", tmp_path / "a.json", *(clauses if verb == "merge" else ["--on", "id"]))
    assert done.code == 1
    assert "[BAD_DATA] Record" in done.err
    assert "has no key" in done.err
    assert table.refresh().version == 0


@pytest.mark.parametrize(
    "text",
    [
        '{"id": 1, "kind": null}\n{"kind": "x", "id": 2}\n',
        '{"id": 1, "k\\u0069nd": null}\n{"id": 2, "kind": "x"}\n',
        f'\ufeff{{"id": 1, "kind": null, "n": {"1" * 5_000}e-4999}}\n{{"id": 2, "kind": "x", "n": NaN}}\n',
        '{"id": 1, "kind": null}{"id": 2,\n"kind": "x"}\n \n',
        '\n\n{"id": 1, "kind": null}\r\n\r\n{"id": 2, "kind": "x"}' + "\n" * 200_000,
    ],
)
def test_null_is_stored_where_every_record_says_it(run: Run, tmp_path: Path, text: str) -> None:
    table = tamis.create(tmp_path / "t", KINDS.append(pa.field("n", pa.float64())))
    table.append(pa.table({"id": [1], "kind": ["old"]}))
    (tmp_path / "a.json").write_text(text, encoding="utf-8")
    done = run("upsert", tmp_path / "t", tmp_path / "a.json", "--on", "id")
    assert done.code == 0, done.err
    found = tamis.open(tmp_path / "t").scan(None, ["id", "kind"]).to_arrow().to_pylist()
    assert {row["id"]: row["kind"] for row in found} == {1: None, 2: "x"}


def test_a_key_that_no_record_has_keeps_its_values(run: Run, tmp_path: Path) -> None:
    table = tamis.create(tmp_path / "t", KINDS)
    table.append(pa.table({"id": [1], "kind": ["old"], "text": ["old"]}))
    (tmp_path / "a.json").write_text('{"id": 1, "kind": null}\n')
    assert run("upsert", tmp_path / "t", tmp_path / "a.json", "--on", "id").code == 0
    assert tamis.open(tmp_path / "t").scan().to_arrow().to_pylist() == [
        {"id": 1, "kind": None, "tags": None, "text": "old"}
    ]


OLD_DAYS = pa.array([-719_164, CUTOVER - 1, CUTOVER, None], pa.int32()).view(pa.date32())
MEANT = [dt.date(1, 1, 1), dt.date(1582, 10, 4), dt.date(1582, 10, 15), None]
NOTES = {
    "spark": {"org.apache.spark.version": "2.4.8"},
    "legacy": {"org.apache.spark.version": "4.1.0", "org.apache.spark.legacyDateTime": ""},
    "hive": {"writer.date.proleptic": "false"},
}


@pytest.mark.parametrize("notes", NOTES.values(), ids=NOTES)
def test_days_of_the_old_calendar_in_parquet(run: Run, tmp_path: Path, notes: dict[str, str]) -> None:
    nested = {
        "one": pa.StructArray.from_arrays([OLD_DAYS], names=["day"]),
        "days": pa.ListArray.from_arrays([0, 1, 2, 3, 4], OLD_DAYS),
        "by": pa.MapArray.from_arrays([0, 1, 2, 3, 4], list("abcd"), OLD_DAYS),
    }
    rows = pa.table({"id": [0, 1, 2, 3], "day": OLD_DAYS, **nested})
    tamis.create(tmp_path / "t", rows.schema)
    pq.write_table(rows.replace_schema_metadata(notes), tmp_path / "a.parquet")
    done = run("upsert", tmp_path / "t", tmp_path / "a.parquet", "--on", "id")
    assert done.code == 0, done.err
    found = tamis.open(tmp_path / "t").scan().to_arrow().sort_by("id")
    assert found["day"].to_pylist() == MEANT
    assert [row["day"] for row in found["one"].to_pylist()] == MEANT
    assert [day for (day,) in found["days"].to_pylist()] == MEANT
    assert [day for ((_, day),) in found["by"].to_pylist()] == MEANT


@pytest.mark.parametrize("mark", ["legacyINT96", "legacyDateTime"])
@pytest.mark.parametrize("stored", ["INT96", "INT64", "TIMESTAMP_NTZ"])
def test_times_of_the_old_calendar_in_parquet(run: Run, tmp_path: Path, mark: str, stored: str) -> None:
    kind = pa.timestamp("us", None if stored == "TIMESTAMP_NTZ" else "UTC")
    moment = dt.datetime(1850, 1, 1, tzinfo=None if kind.tz is None else UTC)
    rows = pa.table({"id": [1], "at": pa.array([moment], kind)})
    table = tamis.create(tmp_path / "t", rows.schema)
    notes = {"org.apache.spark.version": "4.1.0", f"org.apache.spark.{mark}": ""}
    whole = rows.replace_schema_metadata(notes)
    pq.write_table(whole, tmp_path / "a.parquet", use_deprecated_int96_timestamps=stored == "INT96")
    done = run("upsert", tmp_path / "t", tmp_path / "a.parquet", "--on", "id")
    if (stored, mark) in {("INT96", "legacyINT96"), ("INT64", "legacyDateTime")}:
        assert done.code == 1
        assert "[LEGACY_CALENDAR]" in done.err
    else:
        assert done.code == 0, done.err
        assert table.refresh().scan().to_arrow()["at"].to_pylist() == [moment]


def test_far_instants_as_int96_in_parquet(run: Run, tmp_path: Path) -> None:
    rows = pa.table({"id": [1], "at": pa.array([dt.datetime(9999, 12, 31, tzinfo=UTC)], pa.timestamp("us", "UTC"))})
    table = tamis.create(tmp_path / "t", rows.schema)
    pq.write_table(rows, tmp_path / "a.parquet", use_deprecated_int96_timestamps=True)
    done = run("upsert", tmp_path / "t", tmp_path / "a.parquet", "--on", "id")
    assert done.code == 0, done.err
    assert table.refresh().scan().to_arrow().equals(rows)


@pytest.mark.parametrize("name", ["a.csv.gz", "a.json.gz", "late.csv.gz", "header.csv", "header.json", "pages.parquet"])
def test_files_that_cannot_be_read_are_named(run: Run, tmp_path: Path, name: str) -> None:
    """Their errors looked like those of the output, or like defects."""
    file = tmp_path / name
    kind = next(kind for kind in ("csv", "json", "parquet") if kind in name)
    if name == "late.csv.gz":  # the first block is whole
        lines = "".join(f"{at},{at * 0x9E3779B97F4A7C15 % 2**64:x}\n" for at in range(1_000_000))
        file.write_bytes(gzip.compress(f"id,s\n{lines}".encode(), 1)[:-1_000])
    elif kind == "parquet":
        pq.write_table(pa.table({"id": range(10_000), "s": ["x"] * 10_000}), file)
        data = file.read_bytes()
        file.write_bytes(data[:4] + b"\x5a" * 4_000 + data[4_004:])
    elif name.endswith(".gz"):
        file.write_bytes(gzip.compress(b'{"id": 1}\n' if kind == "json" else b"id,s\n1,x\n")[:-9])
    else:
        file.write_bytes(('{"id": 1, "caf\xe9": 2}\n' if kind == "json" else "id,caf\xe9\n1,2\n").encode("cp1252"))
    table = tamis.create(tmp_path / "t", pa.schema([("id", pa.int64()), ("s", pa.string())]))
    done = run("upsert", tmp_path / "t", file, "--on", "id", "--format", kind)
    assert done.code == 1
    assert f"[BAD_DATA] {file} cannot be read as {kind}: " in " ".join(done.err.split("\n"))
    assert table.refresh().version == 0


def test_a_file_that_may_not_be_read_is_named(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tamis.create(tmp_path / "t", KINDS)
    (tmp_path / "a.parquet").write_bytes(b"")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(pq, "ParquetFile", refuse)
    with (
        pytest.raises(InvalidInput, match=r"cannot be read as parquet: .*Permission denied"),
        rows_of(str(tmp_path / "a.parquet"), None, KINDS),
    ):
        pass


def test_errors_of_what_uses_the_rows_stay_as_they_are(tmp_path: Path) -> None:
    """Else a full disk would look like a damaged file."""
    (tmp_path / "a.csv").write_text("id\n1\n")
    for error in (OSError(28, "No space left on device"), StoreUnavailable("It did not answer.", name="x")):
        with pytest.raises(OSError) as caught, rows_of(str(tmp_path / "a.csv"), None, KINDS):
            raise error
        assert caught.value is error
