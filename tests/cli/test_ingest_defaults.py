"""Columns with a default that files of an ingestion lack: they get what an INSERT without them gets."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.conftest import Run
from tests.cli.inboxes import inbox_of, rows_by

import tamis
from tamis.world import world

pytestmark = pytest.mark.spark

ENDINGS = ["csv", "json", "parquet"]


def _table(tmp_path: Path, **columns: tuple[str, str]) -> Path:
    """Make a table of an id and of columns, each with its type and default."""
    path = tmp_path / "t"
    table = tamis.create(path, pa.schema({"id": pa.int64()}))
    for name, (kind, default) in columns.items():
        table.alter().add_column(name, kind, default=default).commit()
    return path


def _now() -> datetime:
    return datetime.fromtimestamp(world().now_micros() / 1_000_000, UTC)


def _write(path: Path, columns: dict[str, list[Any]]) -> None:
    rows = pa.table(columns)
    if path.suffix == ".parquet":
        pq.write_table(rows, path)
        return
    import pandas as pd

    frame = pd.DataFrame(columns)
    text = (
        frame.to_csv(index=False)
        if path.suffix == ".csv"
        else frame.to_json(orient="records", lines=True, date_format="iso")
    )
    path.write_text(text)


def _ingest(run: Run, table: Path, inbox: Path, *options: str) -> None:
    done = run("ingest", table, inbox, *options)
    assert done.code == 0, done.err


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_column_that_all_files_lack_has_its_default(spark: Any, run: Run, tmp_path: Path, ending: str) -> None:
    inbox, table = inbox_of(tmp_path, {}), tmp_path / "t"
    schema = pa.schema([pa.field("id", pa.int64()), pa.field("state", pa.string(), nullable=False)])
    change = tamis.create(table, schema).alter().set_default("state", "'open'")
    change.add_column("code", "CHAR(3)", default="'x'").add_column("more", "INT").commit()
    _write(inbox / f"a.{ending}", {"id": [1, 2]})
    _ingest(run, table, inbox)
    tamis.open(table).append(pa.table({"id": [3]}))
    assert rows_by(table, "id") == [{"id": n, "state": "open", "code": "x  ", "more": None} for n in (1, 2, 3)]


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("most", [1, 1 << 30])
def test_each_file_gets_the_defaults_of_what_it_lacks(
    spark: Any, run: Run, tmp_path: Path, ending: str, most: int
) -> None:
    """Names in any case, a NULL in a file, and how files share commits: none of them changes what a file lacks."""
    inbox = inbox_of(tmp_path, {})
    table = _table(tmp_path, state=("STRING", "'open'"), size=("BIGINT", "1 + 1"))
    _write(inbox / f"a b%20#.{ending}", {"id": [1]})
    _write(inbox / f"b[1]é.{ending}", {"id": [2], "STATE": ["shut"]})
    _write(inbox / f"c.{ending}", {"id": [3], "size": [7]})
    _write(inbox / f"d.{ending}", {"id": [4, 5], "size": [8, 9], "state": ["", None]})
    _ingest(run, table, inbox, f"--batch-bytes={most}")
    empty = None if ending == "csv" else ""
    assert rows_by(table, "id") == [
        {"id": 1, "state": "open", "size": 2},
        {"id": 2, "state": "shut", "size": 2},
        {"id": 3, "state": "open", "size": 7},
        {"id": 4, "state": empty, "size": 8},
        {"id": 5, "state": None, "size": 9},
    ]


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_default_that_moves_is_computed_by_the_load(spark: Any, run: Run, tmp_path: Path, ending: str) -> None:
    inbox, table = inbox_of(tmp_path, {}), _table(tmp_path, at=("TIMESTAMP", "current_timestamp()"))
    before = _now()
    _write(inbox / f"a.{ending}", {"id": [1]})
    _write(inbox / f"b.{ending}", {"id": [2], "at": [before]})
    _ingest(run, table, inbox)
    first, second = rows_by(table, "id")
    assert before < first["at"] <= _now()
    assert abs((second["at"] - before).total_seconds()) < 0.001


@pytest.mark.parametrize("options", [(), ("--read-option=multiLine=true",)])
def test_records_of_json_without_a_key_that_others_have(
    spark: Any, run: Run, tmp_path: Path, options: tuple[str, ...]
) -> None:
    """Also of a key whose values are all ``null`` or ``{}``, and in lists of records."""
    table = _table(tmp_path, state=("STRING", "'open'"), doc=("VARIANT", "parse_json('[0]')"))
    texts = {
        "a.json": '[{"id": 1}, {"id": 2, "state": "shut"}]',
        "b.json": '[{"id": 3, "state": null}]',
        "c.json": '[{"id": 4, "doc": {}}, {"id": 5, "doc": {"a": 1}}]',
        "d.json": '{"id": 6, "doc": {}}',
    }
    _ingest(run, table, inbox_of(tmp_path, texts), *options)
    rows = tamis.open(table).scan().to_spark(spark).selectExpr("id", "state", "to_json(doc)").sort("id").collect()
    assert [tuple(row) for row in rows] == [
        (1, None, "[0]"),
        (2, "shut", "[0]"),
        (3, None, "[0]"),
        (4, "open", "{}"),
        (5, "open", '{"a":1}'),
        (6, "open", "{}"),
    ]
