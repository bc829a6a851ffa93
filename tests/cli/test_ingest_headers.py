"""Headers of the CSV files of one ingestion that Spark alone would take for rows, or for no columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run
from tests.cli.inboxes import inbox_of, rows_by

import tamis
from tamis.cli import ingest_csv
from tamis.cli.ingest_batch import Batch
from tamis.cli.source_folders import list_files

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("options", [(), ("inferSchema=true",)])
def test_headers_with_and_without_quotes_name_the_same_columns(
    spark: Any, run: Run, tmp_path: Path, options: tuple[str, ...]
) -> None:
    """Spark would take the second header for a row, and all columns for texts."""
    inbox, table = inbox_of(tmp_path, {"a.csv": "id,qty\n1,10\n", "b.csv": '"id","qty"\n2,20\n'}), tmp_path / "t"
    done = run("ingest", table, inbox, *(f"--read-option={o}" for o in options))
    assert done.code == 0, done.err
    assert rows_by(table, "id") == [{"id": 1, "qty": 10}, {"id": 2, "qty": 20}]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_files_with_line_ends_in_values_share_a_header(spark: Any, run: Run, tmp_path: Path, end: str) -> None:
    """Spark reads one file of each header by itself before it reads all."""
    inbox = inbox_of(tmp_path, {})
    for at in range(3):
        (inbox / f"{at}.csv").write_bytes(f'id,t{end}{at},"x\ny"{end}'.encode())
    batch = Batch(inbox, "csv", list_files(inbox), (), {})
    groups, headers = ingest_csv._groups(spark, ingest_csv._by_quoting(spark, batch))
    assert (headers, [(len(part.files), list(columns)) for part, columns in groups]) == (1, [(3, ["id", "t"])])
    done = run("ingest", tmp_path / "t", inbox)
    assert done.code == 0, done.err
    assert rows_by(tmp_path / "t", "id") == [{"id": at, "t": "x\ny"} for at in range(3)]


@pytest.mark.parametrize("place", ["inbox", "in[b]ox"])
def test_first_files_may_hold_headers_only(spark: Any, run: Run, tmp_path: Path, place: str) -> None:
    inbox, table = inbox_of(tmp_path, {"a.csv": "id\n", "b.csv": "name\n"}, place), tmp_path / "t"
    done = run("ingest", table, inbox)
    assert done.code == 0, done.err
    found = tamis.open(table)
    assert (found.schema.names, found.scan().count()) == (["id", "name"], 0)


def test_columns_without_headers_are_the_tables_by_position(spark: Any, run: Run, tmp_path: Path) -> None:
    table = tmp_path / "t"
    inbox = inbox_of(tmp_path, {"a.csv": "id,name,more\n1,x,a\n"})
    assert run("ingest", table, inbox).code == 0
    (inbox / "b.csv").write_text("2,y\n")
    done = run("ingest", table, inbox, "--read-option=header=false")
    assert done.code == 0, done.err
    assert rows_by(table, "id") == [{"id": 1, "name": "x", "more": "a"}, {"id": 2, "name": "y", "more": None}]
    (inbox / "c.csv").write_text("3,z,b,4\n")
    refused = run("ingest", table, inbox, "--read-option=header=false")
    assert refused.code != 0
    assert "UNKNOWN_COLUMN" in refused.err


def test_no_option_hides_keys_of_json(spark: Any, run: Run, tmp_path: Path) -> None:
    table = tmp_path / "t"
    inbox = inbox_of(tmp_path, {"a.json": '{"id": 1, "a": [1]}\n'})
    assert run("ingest", table, inbox).code == 0
    (inbox / "b.json").write_text('{"ID": 2, "A": []}\n')
    done = run("ingest", table, inbox, "--read-option=dropFieldIfAllNull=true")
    assert done.code == 0, done.err
    assert rows_by(table, "id") == [{"a": [1], "id": 1}, {"a": [], "id": 2}]


@pytest.mark.parametrize("names", [("a[1].json", "b.json"), ("d{1}/a.json", "d{1}/b.json")])
def test_no_name_of_a_file_hides_keys_of_json(spark: Any, run: Run, tmp_path: Path, names: tuple[str, str]) -> None:
    table, first = tmp_path / "t", '{"id": 1, "s": {"x": 1}}\n'
    inbox = inbox_of(tmp_path, {"a.json": first})
    assert run("ingest", table, inbox).code == 0
    for name, text in zip(names, ('{"id": 2, "s": {"x": 2}}\n', '{"ID": 3, "s": {"X": 3}}\n'), strict=True):
        (inbox / name).parent.mkdir(exist_ok=True)
        (inbox / name).write_text(text)
    done = run("ingest", table, inbox)
    assert done.code == 0, done.err
    assert rows_by(table, "id") == [{"id": n, "s": {"x": n}} for n in (1, 2, 3)]
    other = tmp_path / "other"
    assert "AMBIGUOUS_COLUMN" in run("ingest", other, inbox).err
