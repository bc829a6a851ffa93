"""Tables that change in every way, and what foreign readers make of their exports."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

import tamis
from tamis.storage.commit_log import Operation, Proposal, commit

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("n", pa.int32()),
        ("s", pa.string()),
        ("f", pa.float64()),
        ("amount", pa.decimal128(10, 2)),
        ("day", pa.date32()),
        ("ts", pa.timestamp("us", "UTC")),
        ("flag", pa.bool_()),
        ("point", pa.struct([("x", pa.int32()), ("y", pa.string())])),
        ("items", pa.list_(pa.int32())),
        ("attributes", pa.map_(pa.string(), pa.int64())),
        ("raw", pa.binary()),
    ]
)
"""A column of each type that both formats have."""


def rows(*ids: int, n: int = 0) -> pa.Table:
    """Rows of ``SCHEMA`` with these ids; every seventh is NULL but for its id."""

    def row(i: int) -> dict[str, Any]:
        if i % 7 == 6:
            return {"id": i}
        return {
            "id": i,
            "n": n,
            "s": f"é'\"\\{i}",
            "f": float("nan") if i % 11 == 10 else i / 3,
            "amount": Decimal(i) / 4,
            "day": date(2020, 1, 1) + timedelta(days=i),
            "ts": datetime(2020, 1, 1, tzinfo=UTC) + timedelta(microseconds=i * 1_001),
            "flag": i % 2 == 0,
            "point": {"x": i, "y": f"y{i}"},
            "items": [i, None],
            "attributes": [("k", i)],
            "raw": bytes([i % 256]),
        }

    return pa.Table.from_pylist([row(i) for i in ids], schema=SCHEMA)


def made(path: Path | str, **more: Any) -> tamis.Table:
    """A table of two parts of ``SCHEMA``."""
    table = tamis.create(path, SCHEMA, **more)
    table.append(rows(*range(20)))
    table.append(rows(*range(20, 40)))
    return table


def append_parts(table: tamis.Table, first: int, count: int) -> None:
    """Append ``count`` parts of five rows in one commit, with ids from ``first``."""
    snapshot, store = table.refresh().snapshot, table.store
    assert snapshot.schema is not None
    added = []
    for at in range(count):
        other = tamis.create(f"{table.path}-{first + 5 * at}", table.schema)
        other.append(fitted(table, rows(*range(first + 5 * at, first + 5 * at + 5))))
        ids = [f.id for f in snapshot.schema]
        part = other.refresh().snapshot.parts(None, ids).drop_columns(["segment", "part", "deleted", "deletion"])
        store.put(part["path"][0].as_py(), other.store.get(part["path"][0].as_py()))
        added.append(part)
    proposal = Proposal(
        Operation("append"),
        read_version=snapshot.version,
        add=added,
        table_id=snapshot.head.table_id,
        blind_append=True,
    )
    commit(store, proposal)
    table.refresh()


def fitted(table: tamis.Table, data: pa.Table) -> pa.Table:
    """The columns of ``data`` that the table has by name and type, and NULL for its others."""
    own = table.schema
    columns = [
        data[f.name].cast(f.type) if f.name in data.column_names and not pa.types.is_nested(f.type) else None
        for f in own
    ]
    arrays = [pa.nulls(len(data), f.type) if c is None else c for c, f in zip(columns, own, strict=True)]
    return pa.table(arrays, schema=own)


def _append(table: tamis.Table) -> None:
    table.append(fitted(table, rows(*range(40, 50))))


def _merge(table: tamis.Table) -> None:
    table.upsert(fitted(table, rows(3, 45, 90, 91, n=9)), on=["id"])


def _index(table: tamis.Table) -> None:
    table.create_index("by_id", ["id"])


CHANGES: Mapping[str, Callable[[tamis.Table], object]] = {
    "append": _append,
    "delete": lambda table: table.delete("id % 3 = 1"),
    "delete again": lambda table: table.delete("id % 5 = 1"),
    "delete a whole part": lambda table: table.delete("id < 20"),
    "update": lambda table: table.update({"n": "n + 1"}, "id % 4 = 2"),
    "merge": _merge,
    "overwrite": lambda table: table.overwrite(fitted(table, rows(*range(60, 70)))),
    "restore": lambda table: table.restore(1),
    "compact": lambda table: table.compact(cluster_by=["id", "day"]),
    "create an index": _index,
    "add a column": lambda table: table.alter().add_column("more", "STRING").commit(),
    "drop a column": lambda table: table.alter().drop_column("flag").commit(),
    "comment": lambda table: table.alter().set_properties({"owner": "me"}).commit(),
}
"""Changes that leave every live file readable by names, and as the types that it has."""


def widen(table: tamis.Table) -> None:
    table.alter().widen("n", "BIGINT").commit()


RENAMES: Mapping[str, Callable[[tamis.Table], object]] = {
    "rename": lambda table: table.alter().rename_column("s", "text").commit(),
    "rename inside": lambda table: table.alter().rename_column("point.y", "name").commit(),
    "replace a column": lambda table: (
        table.alter().drop_column("s").commit(),
        table.alter().add_column("s", "STRING").commit(),
    ),
}
"""Changes after which files have columns under other names, or other columns under the same name."""


def values_of(data: pa.Table) -> list[str]:
    """The rows as text, columns by name, in an order of their own."""
    return sorted(repr(sorted((name, _plain(value)) for name, value in row.items())) for row in data.to_pylist())


def _plain(value: Any) -> Any:
    match value:
        case dict():
            return sorted((k, _plain(v)) for k, v in value.items())
        case list() | tuple():
            return [_plain(v) for v in value]
        case datetime():
            return value.replace(tzinfo=None).isoformat()
        case float():
            return "nan" if value != value else value
    return value


def expected(table: tamis.Table) -> list[str]:
    return values_of(tamis.open(table.path).scan().to_arrow())
