"""The command that makes a table over the files of another."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest
from tests.bridges import iceberg_tables as ice
from tests.bridges.foreign_files import write_file
from tests.bridges.foreign_tables import contents
from tests.cli.conftest import Run

import tamis


def rows_of(place: str) -> list[int]:
    return sorted(tamis.open(place).scan().to_arrow()["n"].to_pylist())


def test_a_delta_table(run: Run, tmp_path: Path) -> None:
    source, place = tmp_path / "source", str(tmp_path / "t")
    deltalake.write_deltalake(source, pa.table({"n": [1, 2, 3]}))
    deltalake.write_deltalake(source, pa.table({"n": [4]}), mode="append")
    before = contents(source)
    dry = run("adopt", source, place, "--dry-run")
    assert (dry.code, dry.err) == (0, "Reading the source …\n")
    assert "(delta, version 1): 2 files" in dry.out
    assert dry.out.endswith("4 rows.\n  n: bigint\nNothing was written.\n")
    assert not (tmp_path / "t").exists()
    planned = run("adopt", source, place, "--dry-run", "--json").json
    assert (planned["kind"], planned["files"], planned["rows"], planned["version"]) == ("delta", 2, 4, None)
    done = run("adopt", source, place, "--follow", "--property", "owner=me", "--json")
    assert done.json == {**planned, "version": 0}
    assert (rows_of(place), tamis.open(place).snapshot.head.properties["owner"]) == ([1, 2, 3, 4], "me")
    deltalake.write_deltalake(source, pa.table({"n": [5]}), mode="append")
    assert run("sync", place).code == 0
    assert rows_of(place) == [1, 2, 3, 4, 5]
    assert run("adopt", source, place).err.rpartition("\n[")[2].startswith("TABLE_EXISTS")
    older = str(tmp_path / "older")
    assert run("adopt", source, older, "--source-option", "version=0").code == 0
    assert rows_of(older) == [1, 2, 3]
    assert {k: v for k, v in contents(source).items() if k in before} == before


def test_compaction_moves_the_rows_where_asked(run: Run, tmp_path: Path) -> None:
    source, place = tmp_path / "source", str(tmp_path / "t")
    deltalake.write_deltalake(source, pa.table({"n": [1, 2, 3]}))
    before = contents(source)
    assert run("adopt", source, place).code == 0
    assert "0 parts became 0" in run("compact", place).out
    assert "1 part became 1" in run("compact", place, "--adopted").out
    assert contents(source) == before
    shutil.rmtree(source)
    assert rows_of(place) == [1, 2, 3]


def test_a_copy_is_the_tables_own(run: Run, tmp_path: Path) -> None:
    source, place = tmp_path / "source", str(tmp_path / "t")
    deltalake.write_deltalake(source, pa.table({"n": [1, 2, 3]}))
    deltalake.DeltaTable(source).delete("n = 2")
    done = run("adopt", source, place, "--mode", "copy")
    assert (done.code, done.out.splitlines()[-1]) == (0, f"Version 0 of {place}.")
    assert rows_of(place) == [1, 3]
    assert not tamis.open(place).snapshot.head.sources
    assert "follow" in run("adopt", source, tmp_path / "u", "--mode", "copy", "--follow").err
    assert "mode cannot be" in run("adopt", source, tmp_path / "u", "--mode", "move").err


def test_an_iceberg_table_of_a_catalog(run: Run, tmp_path: Path) -> None:
    catalog = ice.catalog(tmp_path)
    table = catalog.create_table("n.t", pa.schema([("n", pa.int64())]))
    table.append(pa.table({"n": [1, 2]}))
    uri = ("--source-option", "catalog=local", "--source-option", f"catalog.uri={catalog.properties['uri']}")
    done = run("adopt", "n.t", tmp_path / "t", *uri, "--follow")
    assert done.code == 0, done.err
    table.append(pa.table({"n": [3]}))
    assert run("sync", tmp_path / "t", *uri).code == 0
    assert rows_of(str(tmp_path / "t")) == [1, 2, 3]
    place = table.metadata_location
    assert run("adopt", place, tmp_path / "fixed").code == 0
    assert "SOURCE_FIXED" in run("adopt", place, tmp_path / "u", "--follow").err


def test_a_folder(run: Run, tmp_path: Path) -> None:
    write_file(tmp_path / "source" / "day=007" / "a.parquet", pa.table({"n": [1], "b": [b"x"]}))
    place = str(tmp_path / "t")
    done = run("adopt", tmp_path / "source", place, "--partition-types", "day STRING", "--binary-as-string")
    assert done.code == 0, done.err
    assert tamis.open(place).scan().to_arrow().to_pylist() == [{"n": 1, "b": "x", "day": "007"}]
    assert "day STRING" not in done.out
    assert "  day: string" in done.out


@pytest.mark.parametrize("option", ["--source-option", "--storage-option"])
def test_a_credential_is_not_shown(run: Run, tmp_path: Path, option: str) -> None:
    done = run("adopt", tmp_path, tmp_path / "t", option, "topsecret")
    assert done.code == 2
    assert "topsecret" not in done.err


def test_describe_shows_the_sources(run: Run, tmp_path: Path) -> None:
    source, place = tmp_path / "source", str(tmp_path / "t")
    for n in (1, 2):
        deltalake.write_deltalake(source, pa.table({"n": [n, n + 10]}), mode="append")
    assert run("adopt", source, place, "--follow").code == 0
    assert f"delta: {source}, version 1, followed: 2 parts, 2 of them not analyzed" in run("describe", place).out
    deltalake.DeltaTable(source).delete("n = 1")
    assert run("sync", place).code == 0
    assert run("analyze", place, "--where", "n = 2").code == 0
    (described,) = run("describe", place, "--json").json["sources"]
    assert described == {
        "kind": "delta",
        "location": str(source),
        "source_version": "2",
        "followed": True,
        "parts": 2,
        "rows": 3,
        "bytes": described["bytes"],
        "parts_not_analyzed": 1,
    }
    assert tamis.open(place).metadata("sources").to_pylist() == [described]
    assert run("analyze", place).code == 0
    assert run("describe", place).out.count("not analyzed") == 0
    own = tamis.create(tmp_path / "own", "n BIGINT")
    assert own.metadata("sources").num_rows == 0


def test_ingest_names_adopt(run: Run, tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path / "source", pa.table({"n": [1]}))
    done = run("ingest", tmp_path / "t", tmp_path / "source")
    assert done.code == 1
    assert "tamis adopt" in done.err


def test_what_cannot_be_adopted_leaves_nothing(run: Run, tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    done = run("adopt", tmp_path / "source", tmp_path / "t")
    assert (done.code, "SOURCE_NOT_FOUND" in done.err) == (1, True)
    assert not (tmp_path / "t").exists()
    assert json.dumps(sorted(p.name for p in tmp_path.iterdir())) == '["source"]'
