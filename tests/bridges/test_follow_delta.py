"""Each version of a followed Delta table becomes a commit that has its rows."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tests.bridges import delta_logs as logs
from tests.bridges.foreign_tables import contents, sorted_rows
from tests.bridges.source_histories import DELTA, delta_rows, followed_delta, rows


@given(st.lists(st.lists(st.sampled_from(sorted(DELTA)), min_size=1, max_size=3), min_size=1, max_size=3))
@pytest.mark.merge
def test_a_delta_table_is_followed_through_any_history(
    tmp_path_factory: pytest.TempPathFactory, steps: list[list[str]]
) -> None:
    folder = tmp_path_factory.mktemp("delta")
    source = folder / "source"
    for start in (0, 10):
        deltalake.write_deltalake(source, rows(start), mode="append", partition_by=["p"])
    table = tamis.adopt(source, folder / "t", follow=True)
    assert isinstance(table, tamis.Table)
    first = 1
    for names in steps:
        for name in names:
            DELTA[name](source)
        before = contents(source)
        done = table.sync()
        assert contents(source) == before
        newest = deltalake.DeltaTable(source).version()
        assert (done.source_version, done.version) == (str(newest), newest - first)
        table.refresh()
        assert sorted_rows(table.scan().to_arrow()) == delta_rows(source)
        assert sorted_rows(table.scan("k > 8 AND p <> 'p2'").to_arrow()) == sorted_rows(
            deltalake.DeltaTable(source).to_pyarrow_table(filters=[("k", ">", 8), ("p", "!=", "p2")])
        )
    assert table.verify().ok
    for version in range(first, deltalake.DeltaTable(source).version() + 1):
        own = tamis.open(folder / "t", version=table.version_of_source(version))
        with contextlib.suppress(FileNotFoundError):
            assert sorted_rows(own.scan().to_arrow()) == delta_rows(source, version)


def vectored(folder: Path, *steps: Mapping[str, Any] | None) -> Callable[[int], None]:
    """Create a table of one file; each call of the result commits the file with that step's vector."""
    data = pa.table({"v": list(range(30))})
    metadata_action = {"metaData": logs.metadata([logs.field("v", "long")])}
    stats = {"minValues": {"v": 0}, "maxValues": {"v": 29}, "nullCount": {"v": 0}, "tightBounds": False}

    def added(step: int) -> dict[str, Any]:
        vector = steps[step]
        return logs.add(folder, "a.parquet", data, stats, **({} if vector is None else {"deletionVector": vector}))

    os.utime(
        logs.commit(folder, 0, [{"protocol": logs.protocol("deletionVectors")}, metadata_action, added(0)]), ns=(1, 1)
    )
    stamp = (folder / "a.parquet").stat()

    def take(step: int) -> None:
        before = steps[step - 1]
        gone = logs.remove("a.parquet", **({} if before is None else {"deletionVector": before}))
        os.utime(logs.commit(folder, step, [added(step), gone]), ns=(1, 1))  # by its time, the file could be a new one
        os.utime(folder / "a.parquet", ns=(stamp.st_mtime_ns, stamp.st_mtime_ns))

    return take


def part_ids(table: tamis.Table) -> list[str]:
    found: list[str] = table.metadata("parts")["part_id"].to_pylist()
    return found


def test_deletion_vectors_move_along(tmp_path: Path) -> None:
    gone = [None, [3], [3, 5], [5], list(range(30))]
    (tmp_path / "source").mkdir()
    (stored,) = logs.stored_vectors(tmp_path / "source", [3, 5])
    vectors = [None, logs.inline_vector([3]), stored, logs.inline_vector([5]), logs.inline_vector(range(30))]
    take = vectored(tmp_path / "source", *vectors)
    table = tamis.adopt(tmp_path / "source", tmp_path / "t", follow=True)
    assert isinstance(table, tamis.Table)
    ids = [part_ids(table)]
    for step in range(1, 5):
        take(step)
        table.sync()
        found = sorted(table.scan().to_arrow()["v"].to_pylist())
        assert found == sorted(set(range(30)) - set(gone[step] or ())), step
        ids.append(part_ids(table))
    assert ids[0] == ids[1] == ids[2]  # rows that go are deleted from the part
    assert ids[3] != ids[2]  # rows that come back make it another part
    assert ids[4] == []


@pytest.mark.parametrize("flag", [True, False])
def test_a_file_that_is_named_again_is_no_other_file(tmp_path: Path, flag: bool) -> None:
    """Writers may add a file anew, to change its statistics."""
    source, table = followed_delta(tmp_path)
    action = next(
        line for line in (source / "_delta_log" / f"{1:020}.json").read_text().splitlines() if line.startswith('{"add"')
    )
    again = action.replace('"dataChange":true', f'"dataChange":{str(flag).lower()}')
    assert again.count("dataChange") == 1
    (source / "_delta_log" / f"{2:020}.json").write_text(again + "\n")
    table.sync()
    assert sorted_rows(table.scan().to_arrow()) == sorted_rows(pa.concat_tables([rows(0), rows(10)]))


def test_a_file_that_is_named_again_in_another_partition_moves(tmp_path: Path) -> None:
    folder = tmp_path / "source"

    def added(value: str) -> dict[str, Any]:
        return logs.add(folder, "a.parquet", pa.table({"v": [1, 2]}), {}, partitionValues={"p": value})

    metadata = logs.metadata([logs.field("v", "long"), logs.field("p", "long")], ["p"])
    logs.commit(folder, 0, [{"protocol": logs.PROTOCOL}, {"metaData": metadata}, first := added("1")])
    table = tamis.adopt(folder, tmp_path / "t", follow=True)
    assert isinstance(table, tamis.Table)
    logs.commit(folder, 1, [first])
    table.sync()
    before = part_ids(table)
    logs.commit(folder, 2, [{"add": {**first["add"], "partitionValues": {"p": "7"}}}])
    table.sync()
    assert table.scan("p = 7").to_arrow().to_pylist() == [{"v": 1, "p": 7}, {"v": 2, "p": 7}]
    assert len(table.scan().to_arrow()) == 2
    assert part_ids(table) != before
    assert len(before) == 1


def test_renames_follow(tmp_path: Path) -> None:
    def mapped(name: str, identifier: int) -> dict[str, Any]:
        ids = {"delta.columnMapping.id": identifier, "delta.columnMapping.physicalName": f"col-{identifier}"}
        return logs.field(name, "long", **ids)

    folder, mode = tmp_path / "source", {"delta.columnMapping.mode": "name"}
    first = logs.add(folder, "a.parquet", pa.table({"col-1": [1, 2], "col-2": [3, 4]}), {})
    metadata = logs.metadata([mapped("a", 1), mapped("b", 2)], **mode)
    logs.commit(folder, 0, [{"protocol": logs.protocol("columnMapping")}, {"metaData": metadata}, first])
    table = tamis.adopt(folder, tmp_path / "t", follow=True)
    assert isinstance(table, tamis.Table)
    second = logs.add(folder, "b.parquet", pa.table({"col-1": [5], "col-3": [6]}), {"minValues": {"col-1": 5}})
    renamed = logs.metadata([mapped("b", 1), mapped("c", 3)], **mode)  # b is dropped, and a takes its name
    logs.commit(folder, 1, [{"metaData": renamed}, second])
    table.sync()
    table.refresh()
    found = sorted(table.scan().to_arrow().to_pylist(), key=lambda r: int(r["b"]))
    assert found == [{"b": 1, "c": None}, {"b": 2, "c": None}, {"b": 5, "c": 6}]
    assert table.scan("b = 2").to_arrow().to_pylist() == [{"b": 2, "c": None}]
    old = tamis.open(tmp_path / "t", version=table.version_of_source(0)).scan().to_arrow()
    assert old.to_pylist() == [{"a": 1, "b": 3}, {"a": 2, "b": 4}]
    unmapped = logs.metadata([logs.field("b", "long"), logs.field("c", "long")])
    logs.commit(folder, 2, [{"metaData": unmapped}])
    with pytest.raises(tamis.errors.InvalidInput, match=r"SOURCE_LAYOUT.*column mapping"):
        table.sync()


def test_a_renamed_partition_column_follows(tmp_path: Path) -> None:
    def mapped(name: str, identifier: int) -> dict[str, Any]:
        ids = {"delta.columnMapping.id": identifier, "delta.columnMapping.physicalName": f"col-{identifier}"}
        return logs.field(name, "long", **ids)

    def added(name: str, value: int) -> dict[str, Any]:
        return logs.add(folder, name, pa.table({"col-1": [value]}), {}, partitionValues={"col-2": str(value * 10)})

    folder, mode = tmp_path / "source", {"delta.columnMapping.mode": "name"}
    metadata = logs.metadata([mapped("v", 1), mapped("p", 2)], ["p"], **mode)
    logs.commit(folder, 0, [{"protocol": logs.protocol("columnMapping")}, {"metaData": metadata}, added("a", 1)])
    table = tamis.adopt(folder, tmp_path / "t", follow=True)
    assert isinstance(table, tamis.Table)
    renamed = logs.metadata([mapped("v", 1), mapped("q", 2)], ["q"], **mode)
    logs.commit(folder, 1, [{"metaData": renamed}])
    logs.commit(folder, 2, [added("b", 2)])
    table.sync()
    for found in (table.refresh(), tamis.adopt(folder, tmp_path / "later")):
        assert sorted((r["v"], r["q"]) for r in found.scan().to_arrow().to_pylist()) == [(1, 10), (2, 20)]
        assert found.scan("q = 20").to_arrow().to_pylist() == [{"v": 2, "q": 20}]
    moved = logs.metadata([mapped("v", 1), mapped("q", 2)], ["v"], **mode)
    logs.commit(folder, 3, [{"metaData": moved}])
    with pytest.raises(tamis.errors.InvalidInput, match=r"SOURCE_LAYOUT.*partition columns"):
        table.sync()


@pytest.mark.parametrize("kind", ["string", "long", "char(3)"])
def test_a_void_column_that_gets_a_type_follows(tmp_path: Path, kind: str) -> None:
    """No file has values of VOID, so that it is the same column."""
    folder, value = tmp_path / "source", 7 if kind == "long" else "xyz"
    said = {"__CHAR_VARCHAR_TYPE_STRING": kind} if kind == "char(3)" else {}
    columns = [logs.field("k", "long"), logs.field("v", "void")]
    first = logs.add(folder, "a.parquet", pa.table({"k": [1]}), {})
    logs.commit(folder, 0, [{"protocol": logs.PROTOCOL}, {"metaData": logs.metadata(columns)}, first])
    table = tamis.adopt(folder, tmp_path / "t", follow=True)
    assert isinstance(table, tamis.Table)
    typed = logs.metadata([logs.field("k", "long"), logs.field("v", "string" if said else kind, **said)])
    second = logs.add(folder, "b.parquet", pa.table({"k": [2], "v": [value]}), {})
    logs.commit(folder, 1, [{"metaData": typed}, second])
    table.sync()
    table.refresh()
    assert sorted_rows(table.scan().to_arrow()) == sorted_rows(tamis.adopt(folder, tmp_path / "n").scan().to_arrow())
    text = repr(value)
    assert table.scan(f"v = {text}").to_arrow().to_pylist() == [{"k": 2, "v": value}]
    assert table.scan("v IS NULL").to_arrow().to_pylist() == [{"k": 1, "v": None}]


def test_a_column_that_came_with_an_overwrite_is_another_one(tmp_path: Path) -> None:
    source, table = followed_delta(tmp_path)
    for data in (
        pa.table({"k": ["text"], "extra": [1]}),
        pa.table({"k": ["text"]}),
        pa.table({"k": ["text"], "other": [2]}),
    ):
        deltalake.write_deltalake(source, data, mode="overwrite", schema_mode="overwrite")
    table.sync()
    table.refresh()
    assert sorted_rows(table.scan("k = 'text'").to_arrow()) == delta_rows(source)
    ids = [f["id"] for s in table.metadata("schemas").to_pylist() for f in _fields(s)]
    assert len(set(ids)) == 6  # k, p, s; k, extra; other


def _fields(schema: Mapping[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(schema["json"])["fields"]
    return found
