"""Work on wide tables grows with their columns, not with the square.

Calls of this thread are counted, and no time is taken. Work that Arrow does within a call is not seen.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import deltalake
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tamis
from tamis.engine.part_reader import ReadCounters, read_part
from tamis.engine.scan.scan import Scan
from tamis.table.duckdb_source import DuckDbDataset

NARROW, WIDE = 100, 400
MOST = 6.0
"""Times as many calls for four times as many columns; the square would be 16 times."""


def rows(width: int, kind: str) -> pa.Table:
    columns = [pa.array(np.arange(3) + at) for at in range(width)]
    names = [f"c{at}" for at in range(width)]
    if kind == "flat":
        return pa.table(columns, names=names)
    struct = pa.StructArray.from_arrays(columns, names=names)
    if kind == "list":
        struct = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), struct)
    return pa.table({"k": np.arange(3), "s": struct})


@contextmanager
def counted_calls() -> Iterator[list[int]]:
    """Count the calls of this thread into the list's one entry."""
    calls = [0]

    def count(_frame: Any, event: str, _argument: Any) -> None:
        if event in {"call", "c_call"}:
            calls[0] += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        yield calls
    finally:
        sys.setprofile(before)


def scanned(scan: Scan) -> int:
    """Read all parts in this thread."""
    made = scan.plan_read()
    return sum(len(b) for ref in made.parts for b in read_part(ref, made.spec, ReadCounters()))


def filtered(table: tamis.Table, text: str, lazy: str) -> int:
    return scanned(table.scan(text, options={"tamis.read.lazy": lazy}))


COLUMN = {"flat": "c1", "struct": "s.c1", "list": "s[0].c1"}
WORK: dict[str, Callable[[tamis.Table, Path, pa.Table, str], Any]] = {
    "append": lambda t, _, data, __: t.append(data),
    "open": lambda t, *_: tamis.open(t.path).schema,
    "read": lambda t, *_: scanned(t.scan()),
    "filter": lambda t, _, __, kind: filtered(t, f"{COLUMN[kind]} > 1", "on"),
    "filter eagerly": lambda t, _, __, kind: filtered(t, f"{COLUMN[kind]} > 1", "off"),
    "merge schema": lambda t, _, data, __: t.append(data.append_column("new", [[1, 2, 3]]), merge_schema=True),
    "rename": lambda t, _, data, __: t.alter().rename_column(data.column_names[0], "renamed").commit(),
    "overwrite": lambda t, _, data, kind: t.overwrite(data, f"{COLUMN[kind]} > 0"),
    "metadata": lambda t, *_: [t.metadata(name) for name in ("parts", "segments", "columns", "schemas")],
    "export": lambda t, *_: [t.export("delta"), t.export("iceberg")],
    "update": lambda t, _, data, kind: t.update({data.column_names[0]: None}, f"{COLUMN[kind]} > 1"),
    "delete": lambda t, _, __, kind: t.delete(f"{COLUMN[kind]} > 1"),
    "compact": lambda t, _, data, __: [t.append(data), t.compact()],
    "changes": lambda t, _, data, __: t.changes(0).to_arrow(),
    "top": lambda t, *_: t.scan(order_by=["k DESC"] if "k" in t.schema.names else ["c0 DESC"], limit=1).to_arrow(),
    "count": lambda t, _, __, kind: t.scan(f"{COLUMN[kind]} > 1").count(),
    "verify": lambda t, *_: t.verify(),
    "index": lambda t, _, data, __: t.create_index("i", [data.column_names[0]]),
    "upsert": lambda t, _, data, __: t.upsert(data, [data.column_names[0]]),
    "restore": lambda t, _, data, __: [t.append(data), t.restore(1)],
    "duckdb": lambda t, *_: DuckDbDataset(t.scan()).scanner(),
    "adopt": lambda _, folder, data, __: adopted(folder, data),
    "adopt Delta": lambda _, folder, data, __: adopted_delta(folder, data),
}


def adopted(folder: Path, data: pa.Table) -> None:
    (folder / "files").mkdir()
    pq.write_table(data, folder / "files" / "a.parquet")
    table = tamis.adopt(folder / "files", folder / "adopted")
    assert isinstance(table, tamis.Table)
    table.analyze()
    assert scanned(table.scan()) == len(data)


def adopted_delta(folder: Path, data: pa.Table) -> None:
    deltalake.write_deltalake(str(folder / "delta"), data)
    tamis.adopt(folder / "delta", folder / "adopted delta", follow=True)


def calls_of(name: str, kind: str, width: int, folder: Path) -> int:
    data = rows(width, kind)
    table = tamis.create(folder / "table", data.schema)
    table.append(data)
    with counted_calls() as calls:
        WORK[name](table, folder, data, kind)
    return calls[0]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["flat", "struct", "list"])
@pytest.mark.parametrize("name", list(WORK))
@pytest.mark.push_cases(16)
def test_work_grows_with_columns(name: str, kind: str, tmp_path: Path) -> None:
    calls_of(name, kind, 2, tmp_path / "first")  # what is imported and remembered
    narrow, wide = (calls_of(name, kind, width, tmp_path / str(width)) for width in (NARROW, WIDE))
    assert wide < MOST * narrow, (narrow, wide, wide / narrow)
