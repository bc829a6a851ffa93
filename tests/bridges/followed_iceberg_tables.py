"""Iceberg tables in a catalog, with and without field ids in their files, and tables that follow them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.table.update import AssertTableUUID, SetCurrentSchemaUpdate

import tamis
from tests.bridges import iceberg_tables as ice

MAPPING = "schema.name-mapping.default"


class Followed:
    """An Iceberg table in a catalog, and the table that follows it."""

    def __init__(self, folder: Path, source: Any) -> None:
        self.folder, self.source = folder, source
        self.catalog = ice.catalog(folder)
        self._properties = {"catalog.type": "sql", "catalog.uri": f"sqlite:///{folder}/catalog.db"}
        self.adopt()

    def adopt(self, name: str = "t", *, follow: bool = True) -> tamis.Table:
        options = {"catalog": "local", "catalog.warehouse": f"file://{self.folder}/warehouse", **self._properties}
        found = tamis.adopt("n.t", self.folder / name, follow=follow, source_options=options)
        assert isinstance(found, tamis.Table)
        return found

    @property
    def table(self) -> tamis.Table:
        return tamis.open(self.folder / "t")

    def sync(self, **options: Any) -> int:
        return self.table.sync(source_options=self._properties, **options).commits

    def change_schema(self, change: Callable[[Any], object]) -> None:
        self.source.refresh()
        with self.source.update_schema(allow_incompatible_changes=True) as update:
            change(update)
        self.source.refresh()

    def set_schema(self, schema_id: int) -> None:
        """Make an older schema the current one, as undoing a drop does."""
        self.source.refresh()
        same = (AssertTableUUID(uuid=self.source.metadata.table_uuid),)
        self.catalog.commit_table(self.source, same, (SetCurrentSchemaUpdate(schema_id=schema_id),))
        self.source.refresh()

    def append(self, row: dict[str, Any]) -> None:
        self.source.refresh()
        self.source.append(pa.Table.from_pylist([row], self.source.schema().as_arrow()))
        self.source.refresh()

    def map_names(self, mapping: dict[int, list[str]]) -> None:
        with self.source.transaction() as change:
            change.set_properties({MAPPING: mapping_text(mapping)})
        self.source.refresh()

    def check(self, *filters: str) -> list[dict[str, Any]]:
        """Compare all rows, and those of the filters, with PyIceberg and with a table that is adopted anew."""
        expected = ordered(self.source.scan().to_arrow())
        assert ordered(self.table.scan().to_arrow()) == expected
        assert ordered(self.adopt("fresh", follow=False).scan().to_arrow()) == expected
        names = self.source.schema().column_names
        for text in (*filters, *(f"`{name}` IS NULL" for name in names if "." not in name)):
            fresh = tamis.open(self.folder / "fresh").scan(text).count()
            assert self.table.scan(text).count() == fresh, text
        assert not len(self.table.verify().problems)
        return expected


def ordered(rows: pa.Table) -> list[dict[str, Any]]:
    return sorted((dict(sorted(row.items())) for row in rows.to_pylist()), key=lambda row: row["k"])


def made(folder: Path, data: pa.Table, partition: str | None = None) -> Any:
    source = ice.catalog(folder).create_table("n.t", data.schema)
    if partition is not None:
        with source.update_spec() as spec:
            spec.add_identity(partition)
    source.append(data)
    return source


DATA = pa.table({"k": [1, 2], "c": ["a", "b"]})


def mapping_text(mapping: dict[int, list[str]]) -> str:
    return json.dumps([{"field-id": i, "names": names} for i, names in mapping.items()])


def bare_source(folder: Path, mapping: dict[int, list[str]] | None = None, column: str = "c") -> Any:
    """A table over a file without field ids, in which the column is ``c``; PyIceberg maps columns by their names."""
    source = ice.catalog(folder).create_table("n.t", pa.schema([("k", pa.int64()), (column, pa.string())]))
    place = folder / "warehouse" / "n" / "t" / "data" / "x.parquet"
    place.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(DATA.rename_columns(["k", column]), place)
    size = place.stat().st_size
    source.add_files([place.as_uri()])
    pq.write_table(DATA, place)
    assert place.stat().st_size == size, "the metadata says the size"
    if mapping is not None:
        with source.transaction() as change:
            change.set_properties({MAPPING: mapping_text(mapping)})
    return source


def bare(folder: Path, mapping: dict[int, list[str]] | None = None) -> Followed:
    return Followed(folder, bare_source(folder, mapping))


ABSENT = {1: ["k"]}
RIGHT = {1: ["k"], 2: ["c"]}
WRONG = {1: ["k"], 2: ["x"]}
