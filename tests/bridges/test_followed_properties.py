"""Properties that name columns follow them when a synchronization renames the columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tamis
from tests.bridges import iceberg_tables as ice

ROWS = pa.table({"k": [1, 2, 3], "a": ["x", "y", None], "b": ["p", None, "q"]})


class Followed:
    """An Iceberg table in a catalog, and the table that follows it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.source: Any = ice.catalog(folder).create_table("n.t", ROWS.schema)
        self.source.append(ROWS)
        self._properties = {"catalog.type": "sql", "catalog.uri": f"sqlite:///{folder}/catalog.db"}
        options = {"catalog": "local", "catalog.warehouse": f"file://{folder}/warehouse", **self._properties}
        tamis.adopt("n.t", folder / "t", follow=True, source_options=options)

    @property
    def table(self) -> tamis.Table:
        return tamis.open(self.folder / "t")

    def rename(self, **names: str) -> None:
        """Rename columns of the source, all in one change, and synchronize."""
        with self.source.update_schema(allow_incompatible_changes=True) as update:
            for old, new in names.items():
                update.rename_column(old, new)
        self.source.refresh()
        self.table.sync(source_options=self._properties)


@pytest.fixture
def followed(tmp_path: Path) -> Followed:
    found = Followed(tmp_path)
    found.table.alter().set_properties({"tamis.stats.keep": "b", "tamis.write.shred": "a"}).commit()
    return found


def kept_names(table: tamis.Table) -> tuple[str | None, str | None]:
    properties = table.snapshot.head.properties
    return properties.get("tamis.stats.keep"), properties.get("tamis.write.shred")


def test_a_renamed_column_keeps_its_properties(followed: Followed) -> None:
    followed.rename(b="c")
    assert kept_names(followed.table) == ("c", "a")
    scan = followed.table.scan("c = 'zz'")
    assert scan.count() == 0
    assert scan.report is not None
    assert scan.report.parts.kept == 0


def test_a_name_that_moves_to_another_column_does_not_take_the_property(followed: Followed) -> None:
    followed.rename(b="c")
    followed.rename(a="b")
    assert kept_names(followed.table) == ("c", "b")
    assert followed.table.scan("b = 'x'").to_arrow().to_pylist() == [{"k": 1, "b": "x", "c": "p"}]
