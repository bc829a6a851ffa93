"""Only a synchronization changes the rows of a table that follows a source, and upkeep is allowed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

import tamis
from tests.bridges.foreign_tables import contents, sorted_rows
from tests.bridges.source_histories import DELTA, delta_rows, followed_delta, rows

WRITES: Mapping[str, Callable[[tamis.Table], object]] = {
    "append": lambda table: table.append(rows(0)),
    "append of another schema": lambda table: table.append(pa.table({"new": [1]}), merge_schema=True),
    "overwrite": lambda table: table.overwrite(rows(0)),
    "overwrite some": lambda table: table.overwrite(rows(0, 1), "k = 0"),
    "delete": lambda table: table.delete("k = 1"),
    "delete all": lambda table: table.delete("true"),
    "update": lambda table: table.update({"s": "'x'"}, "k = 1"),
    "upsert": lambda table: table.upsert(rows(0), on=["k"]),
    "merge": lambda table: table.merge(rows(0), "target.k = source.k").when_matched_delete().execute(),
    "compact": lambda table: table.compact(),
    "restore": lambda table: table.restore(0),
    "add a column": lambda table: table.alter().add_column("z", "INT").commit(),
    "rename": lambda table: table.alter().rename_column("s", "t").commit(),
    "constraint": lambda table: table.alter().add_check("c", "k >= 0").commit(),
}


@pytest.mark.push_cases(5)
@pytest.mark.parametrize("name", WRITES)
def test_only_a_synchronization_changes_the_rows(tmp_path: Path, name: str) -> None:
    source, table = followed_delta(tmp_path)
    DELTA["append"](source)
    table.sync()
    before = contents(tmp_path)
    with pytest.raises(tamis.errors.InvalidInput, match=r"FOLLOWING_TABLE|has no version 0"):
        WRITES[name](tamis.open(tmp_path / "t"))
    assert sorted_rows(tamis.open(tmp_path / "t").scan().to_arrow()) == delta_rows(source)
    assert {k: v for k, v in contents(tmp_path).items() if "_log" in k} == {
        k: v for k, v in before.items() if "_log" in k
    }


def test_upkeep_is_allowed(tmp_path: Path) -> None:
    source, table = followed_delta(tmp_path)
    table.create_index("by_k", ["k"])
    DELTA["delete"](source)
    table.sync()
    table.repair_index("by_k")
    table.alter().set_properties({"owner": "me"}).commit()
    table.vacuum(dry_run=False)
    DELTA["append"](source)
    table.sync()
    assert sorted_rows(table.scan().to_arrow()) == delta_rows(source)
    assert table.scan("k = 105").to_arrow()["s"].to_pylist() == ["é105"]
    assert table.verify().ok


def test_a_table_that_follows_nothing(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path / "source", rows(0))
    table = tamis.adopt(tmp_path / "source", tmp_path / "t")
    assert isinstance(table, tamis.Table)
    with pytest.raises(tamis.errors.InvalidInput, match="NOT_FOLLOWING"):
        table.sync()
    table.append(rows(30))
    table.delete("k = 31")
    assert len(table.scan().to_arrow()) == 19


@pytest.mark.parametrize(
    ("options", "match"),
    [({"version": 0}, "from its newest version"), ({"zoned": "UTC"}, "no option 'zoned'")],
)
def test_options_of_a_source_are_checked(tmp_path: Path, options: dict[str, Any], match: str) -> None:
    deltalake.write_deltalake(tmp_path / "source", rows(0))
    with pytest.raises(tamis.errors.InvalidInput, match=match):
        tamis.adopt(tmp_path / "source", tmp_path / "t", follow=True, source_options=options)
    assert not (tmp_path / "t").exists()
