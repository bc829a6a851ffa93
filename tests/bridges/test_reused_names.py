"""Followed Delta tables without column mapping, whose readers find columns by name: a column keeps its older values, or is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

import tamis
from tamis.bridges.adoption import source_sync
from tests.bridges import delta_logs as logs
from tests.bridges.foreign_tables import sorted_rows
from tests.bridges.source_histories import followed_delta


def delta_rows(folder: Path) -> list[str]:
    return sorted_rows(deltalake.DeltaTable(folder).to_pyarrow_table())


WIDENED = [
    ("integer", "long", pa.int32(), pa.int64()),
    ("byte", "double", pa.int8(), pa.float64()),
    ("integer", "double", pa.int32(), pa.float64()),
    ("float", "double", pa.float32(), pa.float64()),
    ("short", "decimal(12,2)", pa.int16(), pa.decimal128(12, 2)),
    ("long", "decimal(20,0)", pa.int64(), pa.decimal128(20, 0)),
    ("decimal(5,1)", "decimal(12,2)", pa.decimal128(5, 1), pa.decimal128(12, 2)),
]


@pytest.mark.parametrize("nested", ["", "struct", "array"])
@pytest.mark.parametrize(("old", "new", "before", "after"), WIDENED)
def test_a_column_whose_type_was_widened_keeps_its_older_values(
    old: str, new: str, before: pa.DataType, after: pa.DataType, nested: str, tmp_path: Path
) -> None:
    folder, change = tmp_path / "source", {"fromType": old, "toType": new}

    def table_of(keys: list[int], kind: pa.DataType) -> pa.Table:
        column = pa.array(keys, pa.int8()).cast(kind)
        if nested == "struct":
            column = pa.StructArray.from_arrays([column], ["x"])
        elif nested == "array":
            column = pa.ListArray.from_arrays(pa.array(range(len(keys) + 1), pa.int32()), column)
        return pa.table({"k": keys, "v": column})

    def schema(kind: str, changes: list[dict[str, str]]) -> dict[str, Any]:
        more: dict[str, Any] = {"delta.typeChanges": changes} if changes else {}
        if nested == "struct":
            value = logs.field("v", {"type": "struct", "fields": [logs.field("x", kind, **more)]})
        elif nested == "array":
            more = {"delta.typeChanges": [{**c, "fieldPath": "element"} for c in changes]} if changes else {}
            value = logs.field("v", {"type": "array", "elementType": kind, "containsNull": True}, **more)
        else:
            value = logs.field("v", kind, **more)
        return {"metaData": logs.metadata([logs.field("k", "long"), value])}

    first = [
        {"protocol": logs.protocol("typeWidening")},
        schema(old, []),
        logs.add(folder, "a", table_of([7, -3], before)),
    ]
    logs.commit(folder, 0, first)
    table = tamis.adopt(folder, tmp_path / "t", follow=True)
    assert isinstance(table, tamis.Table)
    logs.commit(folder, 1, [schema(new, [change]), logs.add(folder, "b", table_of([9], after))])
    table.sync()
    table.refresh()
    name = {"": "v", "struct": "v.x", "array": "v[0]"}[nested]
    for followed in (table, tamis.adopt(folder, tmp_path / "fresh")):
        assert isinstance(followed, tamis.Table)
        values = followed.scan(f"{name} IS NOT NULL").to_arrow().sort_by("k")
        assert values.to_pylist() == table_of([-3, 7, 9], after).set_column(0, "k", [[-3, 7, 9]]).to_pylist()
        assert followed.scan(f"{name} < 8").count() == 2
        assert followed.scan(f"{name} = 7").count() == 1


@pytest.mark.parametrize("kind", ["integer", "string"])
def test_a_column_that_comes_back_while_older_files_hold_it_is_refused(kind: str, tmp_path: Path) -> None:
    """By its name, the file of ``b`` holds it again; by its id, it would be NULL."""
    source = tmp_path / "source"
    deltalake.write_deltalake(source, WITH_X, partition_by=["p"])
    table = tamis.adopt(source, tmp_path / "t", follow=True)
    assert isinstance(table, tamis.Table)
    deltalake.write_deltalake(source, WITHOUT_X, **PART)
    table.sync()
    table.refresh()
    assert sorted_rows(table.scan().to_arrow()) == delta_rows(source)
    changed = back() if kind == "integer" else back().set_column(2, "x", [["40"]])
    deltalake.write_deltalake(source, changed, **PART)
    refuses(table)
    if kind == "integer":
        fresh = tamis.adopt(source, tmp_path / "fresh")
        assert isinstance(fresh, tamis.Table)
        assert sorted_rows(fresh.scan().to_arrow()) == delta_rows(source)


PART = {"mode": "overwrite", "schema_mode": "overwrite", "predicate": "p = 'a'"}
"""Options of deltalake that replace the rows of one partition, and the schema."""
WITH_X = pa.table({"k": [1, 2], "p": ["a", "b"], "x": [10, 20]})
WITHOUT_X = pa.table({"k": [3], "p": ["a"]})


def back(name: str = "x") -> pa.Table:
    return pa.table({"k": [4], "p": ["a"], name: [40]})


def refuses(table: tamis.Table) -> None:
    with pytest.raises(tamis.errors.InvalidInput, match=r"SOURCE_LAYOUT.*'x'.*skip_history"):
        table.sync()


def test_a_column_that_files_held_beyond_the_schema_when_they_were_adopted(tmp_path: Path) -> None:
    source = tmp_path / "source"
    deltalake.write_deltalake(source, WITH_X, partition_by=["p"])
    deltalake.write_deltalake(source, WITHOUT_X, **PART)
    table = tamis.adopt(source, tmp_path / "t", follow=True)
    assert isinstance(table, tamis.Table)
    deltalake.write_deltalake(source, pa.table({"k": [3], "p": ["a"], "y": [1]}), **PART)
    table.sync()
    deltalake.write_deltalake(source, back(), **PART)
    refuses(table)
    deltalake.write_deltalake(source, back(), mode="overwrite", schema_mode="overwrite")
    table.sync(skip_history=True)
    table.refresh()
    assert sorted_rows(table.scan().to_arrow()) == delta_rows(source)


def test_a_file_that_was_added_again_under_a_schema_without_its_column(tmp_path: Path) -> None:
    folder = tmp_path / "source"
    more, fewer = (logs.inline_vector(rows) for rows in ([0, 1], [0]))
    with_x = logs.add(folder, "b", pa.table({"k": [1, 2, 3], "x": [10, 20, 30]}), {}, deletionVector=more)
    fields = [logs.field("k", "long"), logs.field("x", "long")]
    logs.commit(
        folder, 0, [{"protocol": logs.protocol("deletionVectors")}, {"metaData": logs.metadata(fields)}, with_x]
    )
    table = tamis.adopt(folder, tmp_path / "t", follow=True)
    assert isinstance(table, tamis.Table)
    logs.commit(folder, 1, [{"metaData": logs.metadata(fields[:1])}])
    again = {"add": {**with_x["add"], "deletionVector": fewer}}
    logs.commit(folder, 2, [logs.remove("b", deletionVector=more), again])
    table.sync()
    table.refresh()
    assert sorted(table.scan().to_arrow()["k"].to_pylist()) == [2, 3]
    logs.commit(folder, 3, [{"metaData": logs.metadata(fields)}])
    refuses(table)


def test_a_column_that_comes_back_in_another_case(tmp_path: Path) -> None:
    source = tmp_path / "source"
    deltalake.write_deltalake(source, WITH_X, partition_by=["p"])
    table = tamis.adopt(source, tmp_path / "t", follow=True)
    assert isinstance(table, tamis.Table)
    deltalake.write_deltalake(source, WITHOUT_X, **PART)
    deltalake.write_deltalake(source, back("X"), **PART)
    refuses(table)


def test_a_table_that_reads_null_since_an_older_release_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "source"
    deltalake.write_deltalake(source, WITH_X, partition_by=["p"])
    table = tamis.adopt(source, tmp_path / "t", follow=True)
    assert isinstance(table, tamis.Table)
    deltalake.write_deltalake(source, WITHOUT_X, **PART)
    deltalake.write_deltalake(source, back(), **PART)
    with monkeypatch.context() as older:
        older.setattr(source_sync, "_check_live_names", lambda *_: None)
        table.sync()
    refuses(tamis.open(tmp_path / "t"))
    deltalake.write_deltalake(source, back(), mode="append")
    refuses(tamis.open(tmp_path / "t"))
    deltalake.write_deltalake(source, back(), mode="overwrite")
    mended = tamis.open(tmp_path / "t")
    mended.sync(skip_history=True)
    mended.refresh()
    assert sorted_rows(mended.scan().to_arrow()) == delta_rows(source)


def test_the_history_may_be_skipped_where_the_files_are_gone_by_now(tmp_path: Path) -> None:
    source = tmp_path / "source"
    deltalake.write_deltalake(source, WITH_X, partition_by=["p"])
    table = tamis.adopt(source, tmp_path / "t", follow=True)
    assert isinstance(table, tamis.Table)
    deltalake.write_deltalake(source, WITHOUT_X, **PART)
    deltalake.write_deltalake(source, back(), **PART)
    deltalake.write_deltalake(source, back(), mode="overwrite", schema_mode="overwrite")
    refuses(table)
    table.sync(skip_history=True)
    table.refresh()
    assert sorted_rows(table.scan().to_arrow()) == delta_rows(source)


def test_a_column_that_comes_back_after_its_files_are_gone_is_another_one(tmp_path: Path) -> None:
    source, table = followed_delta(tmp_path)
    for data in (pa.table({"k": [1], "x": [10]}), pa.table({"k": [2]}), pa.table({"k": [3], "x": ["text"]})):
        deltalake.write_deltalake(source, data, mode="overwrite", schema_mode="overwrite")
        table.sync()
        table.refresh()
        assert sorted_rows(table.scan().to_arrow()) == delta_rows(source)
