"""Properties that name columns follow them when a synchronization renames the columns."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import tamis
from tests.bridges.followed_iceberg_tables import Followed, made

ROWS = pa.table({"k": [1, 2, 3], "a": ["x", "y", None], "b": ["p", None, "q"]})


@pytest.fixture
def followed(tmp_path: Path) -> Followed:
    found = Followed(tmp_path, made(tmp_path, ROWS))
    found.table.alter().set_properties({"tamis.stats.keep": "b", "tamis.write.shred": "a"}).commit()
    return found


def rename(followed: Followed, old: str, new: str) -> None:
    followed.change_schema(lambda update: update.rename_column(old, new))
    followed.sync()


def kept_names(table: tamis.Table) -> tuple[str | None, str | None]:
    properties = table.snapshot.head.properties
    return properties.get("tamis.stats.keep"), properties.get("tamis.write.shred")


def test_a_renamed_column_keeps_its_properties(followed: Followed) -> None:
    rename(followed, "b", "c")
    assert kept_names(followed.table) == ("c", "a")
    scan = followed.table.scan("c = 'zz'")
    assert scan.count() == 0
    assert scan.report is not None
    assert scan.report.parts.kept == 0


def test_a_name_that_moves_to_another_column_does_not_take_the_property(followed: Followed) -> None:
    rename(followed, "b", "c")
    rename(followed, "a", "b")
    assert kept_names(followed.table) == ("c", "b")
    assert followed.table.scan("b = 'x'").to_arrow().to_pylist() == [{"k": 1, "b": "x", "c": "p"}]
