"""A followed Iceberg table has the rows of PyIceberg when a name in files without ids comes to mean another column."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.types import StringType

from tests.bridges.followed_iceberg_tables import ABSENT, RIGHT, WRONG, Followed, bare, bare_source


@pytest.mark.parametrize("appends", [True, False])
@pytest.mark.parametrize(
    ("first", "then", "found"),
    [(ABSENT, RIGHT, ["a", "b"]), (WRONG, RIGHT, ["a", "b"]), (RIGHT, WRONG, []), (RIGHT, ABSENT, [])],
)
def test_a_name_mapping_is_corrected(
    tmp_path: Path, first: dict[int, list[str]], then: dict[int, list[str]], found: list[str], appends: bool
) -> None:
    followed = bare(tmp_path, first)
    followed.map_names(then)
    if appends:
        followed.append({"k": 3, "c": "c"})
    followed.sync()
    rows = {row["k"]: row["c"] for row in followed.table.scan().to_arrow().to_pylist()}
    assert rows == {1: found[0] if found else None, 2: found[1] if found else None} | ({3: "c"} if appends else {})
    fresh = followed.adopt("fresh", follow=False)
    for text in ("c = 'a'", "c IS NULL", "c IS NOT NULL"):
        assert followed.table.scan(text).count() == fresh.scan(text).count(), text
    assert followed.sync() == 0


@pytest.mark.parametrize("once", [True, False], ids=["in one synchronization", "in several"])
@pytest.mark.parametrize("how", ["renamed", "dropped", "dropped before the adoption"])
def test_a_name_comes_to_mean_another_column(tmp_path: Path, how: str, once: bool) -> None:
    followed = bare(tmp_path)
    if how == "dropped before the adoption":
        followed.change_schema(lambda update: update.delete_column("c"))
        followed.adopt("again")
        (tmp_path / "t").rename(tmp_path / "old")
        (tmp_path / "again").rename(tmp_path / "t")
    elif how == "renamed":
        followed.change_schema(lambda update: update.rename_column("c", "d"))
    else:
        followed.change_schema(lambda update: update.delete_column("c"))
    if not once:
        followed.sync()
    followed.change_schema(lambda update: update.add_column("c", StringType()))
    followed.append({"k": 3, "c": "n", "d": "m"} if how == "renamed" else {"k": 3, "c": "n"})
    followed.sync()
    more = ("d = 'a'", "d IS NULL") if how == "renamed" else ()
    assert [row["c"] for row in followed.check("c = 'a'", "c = 'n'", *more)] == ["a", "b", "n"]


def test_a_renamed_column_takes_no_file_again(tmp_path: Path) -> None:
    followed = bare(tmp_path)
    parts = followed.table.snapshot.parts()["part_id"].to_pylist()
    followed.change_schema(lambda update: update.rename_column("c", "d"))
    followed.append({"k": 3, "d": "c"})
    followed.sync()
    rows = {row["k"]: row["d"] for row in followed.table.scan("d IS NOT NULL").to_arrow().to_pylist()}
    assert rows == {1: "a", 2: "b", 3: "c"}
    assert set(parts) < set(followed.table.snapshot.parts()["part_id"].to_pylist())


def test_a_new_column_of_a_new_name_takes_no_bare_file_again(tmp_path: Path) -> None:
    followed = bare(tmp_path)
    parts = followed.table.snapshot.parts()["part_id"].to_pylist()
    followed.change_schema(lambda update: update.add_column("d", StringType()))
    followed.append({"k": 3, "c": "c", "d": "d"})
    followed.sync()
    followed.check("d = 'd'", "c = 'a'")
    assert set(parts) < set(followed.table.snapshot.parts()["part_id"].to_pylist())


def test_a_table_of_bare_and_other_files_has_bare_ones(tmp_path: Path) -> None:
    """Files of the same columns, with and without ids, are not taken for one kind."""
    source = bare_source(tmp_path, WRONG)
    source.append(pa.Table.from_pylist([{"k": 3, "c": "c"}], source.schema().as_arrow()))
    followed = Followed(tmp_path, source)
    followed.map_names(RIGHT)
    followed.sync()
    assert [row["c"] for row in followed.check("c = 'a'", "c = 'c'")] == ["a", "b", "c"]


@pytest.mark.parametrize("mapping", [{1: ["k"], 2: ["x"]}, {1: ["k"]}])
def test_a_column_comes_back_under_another_mapping(tmp_path: Path, mapping: dict[int, list[str]]) -> None:
    followed = bare(tmp_path, RIGHT)
    followed.change_schema(lambda update: update.delete_column("c"))
    followed.sync()
    followed.map_names(mapping)
    followed.set_schema(0)
    followed.sync()
    fresh = followed.adopt("fresh", follow=False)
    for text in ("c IS NULL", "c = 'a'", "c IS NOT NULL"):
        assert followed.table.scan(text).count() == fresh.scan(text).count(), text


def test_a_name_that_a_dropped_column_was_mapped_to_comes_to_mean_another(tmp_path: Path) -> None:
    followed = Followed(tmp_path, bare_source(tmp_path, RIGHT, column="d"))
    followed.change_schema(lambda update: update.delete_column("d"))
    followed.map_names({1: ["k"]})
    followed.sync()
    followed.change_schema(lambda update: update.add_column("e", StringType()))
    followed.map_names({1: ["k"], 3: ["c"]})
    followed.sync()
    followed.check("e = 'a'", "e IS NULL")
