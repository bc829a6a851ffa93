"""What happens to Delta and Iceberg tables, by their own writers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
from pyiceberg.types import LongType

import tamis
from tests.bridges.foreign_tables import sorted_rows


def rows(start: int, count: int = 10) -> pa.Table:
    ids = list(range(start, start + count))
    return pa.table({"k": ids, "p": [f"p{i % 3}" for i in ids], "s": [f"é{i}" for i in ids]})


def followed_delta(folder: Path) -> tuple[Path, tamis.Table]:
    """Two appends, and a table that follows them."""
    source = folder / "source"
    for start in (0, 10):
        deltalake.write_deltalake(source, rows(start), mode="append")
    table = tamis.adopt(source, folder / "t", follow=True)
    assert isinstance(table, tamis.Table)
    return source, table


def merged(folder: Path) -> None:
    table = deltalake.DeltaTable(folder)
    merge = table.merge(rows(5, 10), "t.k = s.k", source_alias="s", target_alias="t")
    merge.when_matched_update({"s": "'merged'"}).when_not_matched_insert_all().execute()


DELTA: Mapping[str, Callable[[Path], object]] = {
    "append": lambda folder: deltalake.write_deltalake(folder, rows(100), mode="append", schema_mode="merge"),
    "delete": lambda folder: deltalake.DeltaTable(folder).delete("k % 4 = 1"),
    "delete a partition": lambda folder: deltalake.DeltaTable(folder).delete("p = 'p1'"),
    "update": lambda folder: deltalake.DeltaTable(folder).update({"s": "'u'"}, predicate="k % 5 = 0"),
    "merge": merged,
    "compact": lambda folder: deltalake.DeltaTable(folder).optimize.compact(),
    "overwrite": lambda folder: deltalake.write_deltalake(folder, rows(50), mode="overwrite", schema_mode="overwrite"),
    "restore": lambda folder: deltalake.DeltaTable(folder).restore(0),
    "checkpoint": lambda folder: deltalake.DeltaTable(folder).create_checkpoint(),
    "add a column": lambda folder: deltalake.write_deltalake(
        folder, rows(200, 3).append_column("more", pa.array([1.5, None, 2.5])), mode="append", schema_mode="merge"
    ),
    "comment": lambda folder: deltalake.DeltaTable(folder).alter.set_table_description("told"),
}


def _appended_merging(table: Any) -> None:
    """Append, and copy the entries of older manifests into a new one."""
    properties = {"commit.manifest-merge.enabled": "true", "commit.manifest.min-count-to-merge": "2"}
    with table.transaction() as change:
        change.set_properties(properties)
    table.append(iceberg_rows(table, 300))
    with table.transaction() as change:
        change.remove_properties(*properties)


def _upserted(table: Any) -> None:
    with contextlib.suppress(ValueError):  # PyIceberg cannot where files lack a column
        table.upsert(iceberg_rows(table, 5), join_cols=["k"])


ICEBERG: Mapping[str, Callable[[Any], object]] = {
    "append": lambda table: table.append(iceberg_rows(table, 100)),
    "append and merge manifests": _appended_merging,
    "delete": lambda table: table.delete("k >= 5 and k < 12"),
    "overwrite": lambda table: table.overwrite(iceberg_rows(table, 50)),
    "upsert": _upserted,
    "add a column": lambda table: _changed(table, lambda u: u.add_column(f"c{len(u._schema.fields)}", LongType())),
    "rename": lambda table: _changed(
        table, lambda u: u.rename_column(name := u._schema.find_field(3).name, f"{name}x")
    ),
    "expire nothing": lambda table: table.transaction().set_properties({"a": "b"}).commit_transaction(),
}


def _changed(table: Any, change: Callable[[Any], object]) -> None:
    with table.update_schema() as update:
        change(update)


def iceberg_rows(table: Any, start: int) -> pa.Table:
    found = rows(start)
    name = table.schema().find_field(3).name
    columns = {"k": found["k"], "p": found["p"], name: found["s"]}
    own = table.schema().as_arrow()
    return pa.table([columns.get(f.name, pa.nulls(len(found), f.type)) for f in own], names=[f.name for f in own]).cast(
        own
    )


def table_of_commits(folder: Path, versions: int) -> None:
    for at in range(versions):
        deltalake.write_deltalake(folder, pa.table({"v": [at], "s": [f"t{at}"]}), mode="append")


def delta_rows(folder: Path, version: int | None = None) -> list[str]:
    return sorted_rows(deltalake.DeltaTable(folder, version=version).to_pyarrow_table())
