"""A dropped column of a followed Iceberg table comes back under its id with the values that PyIceberg reads."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.types import StringType

from tests.bridges import iceberg_tables as ice
from tests.bridges.followed_iceberg_tables import DATA, Followed, made


@pytest.mark.parametrize("before", [True, False], ids=["dropped before the adoption", "dropped after it"])
@pytest.mark.parametrize("appends", [True, False])
def test_a_dropped_column_comes_back(tmp_path: Path, before: bool, appends: bool) -> None:
    source = made(tmp_path, DATA)
    if before:
        with source.update_schema(allow_incompatible_changes=True) as update:
            update.delete_column("c")
    followed = Followed(tmp_path, source)
    if not before:
        followed.change_schema(lambda update: update.delete_column("c"))
        followed.append({"k": 5})
        assert followed.sync() >= 1
    version = followed.table.version
    followed.set_schema(0)
    if appends:
        followed.append({"k": 3, "c": "c"})
    assert followed.sync() == 1 + appends
    rows = followed.check("c = 'a'", "c > 'a'", "c IS NOT NULL")
    assert {row["c"] for row in rows} >= {"a", "b"}
    assert followed.table.scan(version=version).to_arrow().column_names == ["k"], "the past stays"
    assert followed.sync() == 0


def test_a_change_feed_shows_the_values_that_came_back(tmp_path: Path) -> None:
    followed = Followed(tmp_path, made(tmp_path, DATA))
    followed.append({"k": 3, "c": "c"})
    followed.append({"k": 4, "c": None})
    followed.change_schema(lambda update: update.delete_column("c"))
    followed.sync()  # takes the appends under the schema without the column
    version = followed.table.version
    followed.set_schema(0)
    followed.sync()
    changes = followed.table.changes(version).to_arrow().to_pylist()
    shown = [(row["k"], row["c"], row["_change_type"]) for row in changes]
    assert sorted(shown, key=str) == [(3, "c", "insert"), (3, None, "delete")]


def test_a_file_that_was_added_while_the_column_was_dropped_lacks_it(tmp_path: Path) -> None:
    followed = Followed(tmp_path, made(tmp_path, DATA))
    followed.append({"k": 3, "c": "c"})
    followed.change_schema(lambda update: update.delete_column("c"))
    followed.sync()  # takes the append under the schema without the column
    followed.set_schema(0)
    followed.sync()
    assert [row["c"] for row in followed.check("c = 'c'", "c = 'a'")] == ["a", "b", "c"]


def test_a_field_of_a_struct_comes_back(tmp_path: Path) -> None:
    kind = pa.struct([("u", pa.int64()), ("w", pa.string())])
    data = pa.table({"k": [1, 2], "s": pa.array([{"u": 1, "w": "x"}, None], kind)})
    followed = Followed(tmp_path, made(tmp_path, data))
    followed.change_schema(lambda update: update.delete_column(("s", "w")))
    followed.sync()
    followed.set_schema(0)
    followed.sync()
    followed.check("s.w = 'x'", "s.w IS NULL")


LINE = pa.struct([("u", pa.int64()), ("w", pa.string())])


@pytest.mark.parametrize(
    ("kind", "values", "path", "filters"),
    [
        (
            pa.list_(LINE),
            [[{"u": 1, "w": "x"}, None], None],
            ("s", "element", "w"),
            ("get(s, 0).w = 'x'", "exists(s, e -> e.w = 'x')", "exists(s, e -> e.w IS NULL)"),
        ),
        (
            pa.map_(pa.string(), LINE),
            [[("a", {"u": 1, "w": "x"})], []],
            ("s", "value", "w"),
            ("s['a'].w = 'x'", "s['a'].w IS NULL"),
        ),
        (
            pa.struct([("in", LINE), ("v", pa.int64())]),
            [{"in": {"u": 1, "w": "x"}, "v": 1}, {"in": None, "v": 2}],
            ("s", "in", "w"),
            ("s.in.w = 'x'", "s.in.w IS NULL", "s.v = 2"),
        ),
    ],
    ids=["list", "map", "struct"],
)
def test_a_field_below_comes_back(
    tmp_path: Path, kind: pa.DataType, values: list[object], path: tuple[str, ...], filters: tuple[str, ...]
) -> None:
    data = pa.table({"k": [1, 2], "s": pa.array(values, kind)})
    followed = Followed(tmp_path, made(tmp_path, data))
    followed.append(data.to_pylist()[0] | {"k": 3})
    followed.change_schema(lambda update: update.delete_column(path))
    followed.sync()  # takes the append under the schema without the field
    followed.set_schema(0)
    followed.sync()
    followed.check(*filters)


def test_an_equality_delete_by_a_column_that_came_back_is_applied(tmp_path: Path) -> None:
    followed = Followed(tmp_path, made(tmp_path, DATA))
    followed.append({"k": 3, "c": "c"})
    followed.change_schema(lambda update: update.delete_column("c"))
    followed.sync()
    followed.set_schema(0)
    file = ice.equality_file(followed.source, pa.table({"c": ["a", "c"]}), {"c": 2})
    changed = ice.commit_deletes(ice.metadata_of(followed.source), [file])
    with contextlib.closing(sqlite3.connect(tmp_path / "catalog.db")) as catalog, catalog:
        catalog.execute("UPDATE iceberg_tables SET metadata_location = ?", (changed.as_uri(),))
    followed.sync()
    assert followed.table.scan().to_arrow().to_pylist() == [{"k": 2, "c": "b"}]
    assert followed.table.scan("c = 'a'").count() == 0
    assert followed.table.scan("c = 'b'").count() == 1


def test_a_partition_column_comes_back(tmp_path: Path) -> None:
    source = made(tmp_path, DATA, "c")
    with source.update_spec() as spec:
        spec.remove_field("c")
    followed = Followed(tmp_path, source)
    followed.change_schema(lambda update: update.delete_column("c"))
    followed.sync()
    followed.set_schema(0)
    followed.sync()
    followed.check("c = 'a'", "c IN ('b')")


def test_an_index_finds_the_values_that_came_back(tmp_path: Path) -> None:
    followed = Followed(tmp_path, made(tmp_path, DATA))
    followed.table.create_index("by_c", "c")
    followed.table.drop_index("by_c")
    followed.change_schema(lambda update: update.delete_column("c"))
    followed.sync()
    followed.set_schema(0)
    followed.sync()
    followed.table.create_index("by_c", "c")
    assert followed.table.scan("c = 'b'", ["k"]).to_arrow()["k"].to_pylist() == [2]
    followed.append({"k": 3, "c": "b"})
    followed.sync()
    assert sorted(followed.table.scan("c = 'b'", ["k"]).to_arrow()["k"].to_pylist()) == [2, 3]


def test_a_new_column_takes_no_file_again(tmp_path: Path) -> None:
    followed = Followed(tmp_path, made(tmp_path, DATA))
    parts = followed.table.snapshot.parts()["part_id"].to_pylist()
    followed.change_schema(lambda update: update.add_column("d", StringType()))
    followed.append({"k": 3, "c": "c", "d": "d"})
    followed.sync()
    followed.check("d IS NULL", "d = 'd'")
    assert set(parts) < set(followed.table.snapshot.parts()["part_id"].to_pylist())


def test_columns_of_one_name_and_two_ids_are_two(tmp_path: Path) -> None:
    source = made(tmp_path, DATA)
    with source.update_schema(allow_incompatible_changes=True) as update:
        update.delete_column("c")
    with source.update_schema() as update:
        update.add_column("c", StringType())
    source.append(pa.Table.from_pylist([{"k": 3, "c": "n"}, {"k": 4, "c": "x"}], source.schema().as_arrow()))
    followed = Followed(tmp_path, source)
    assert [row["c"] for row in followed.check("c IS NOT NULL", "c = 'a'", "c = 'n'")] == [None, None, "n", "x"]
