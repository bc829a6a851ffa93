"""The table of these tests: five loads, a unique shuffled key, few groups, NULLs; and the check that an index changes no row."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

import tamis
from tamis.engine.part_reader import ReadCounters, read_part
from tamis.engine.scan import Report
from tamis.storage.commit_log import Operation, Proposal, commit
from tamis.world import World, use

SEGMENTS, ROWS = 5, 2_000
OFF = {"tamis.index.use": "off", "tamis.read.lazy": "off"}


class FailingBuilds(World):
    """A world in which builds fail: of all indexes, or of one."""

    def __init__(self, name: str | None = None) -> None:
        self._told = "fail" if name is None else f"fail:{name}"

    def environment(self) -> dict[str, str]:
        return {"TAMIS_INDEX_BUILD": self._told, "TAMIS_AUDIT": "raise"}


@contextmanager
def failing(name: str | None = None) -> Iterator[None]:
    with use(FailingBuilds(name)):
        yield


def rows_of(segment: int, rows: int = ROWS, segments: int = SEGMENTS) -> pa.Table:
    """The rows of one load: ``k`` unique over all loads, each load's range as wide as the table's."""
    key = np.random.default_rng(7).permutation(rows * segments)[segment * rows : (segment + 1) * rows].astype(np.int64)
    return pa.table(
        {
            "k": key,
            "g": key % 10,
            "n": pa.array([None if x % 50 == 0 else int(x % 7) for x in key.tolist()], pa.int64()),
            "s": pa.array([f"ab{x:06d}" if x % 3 else f"cd{x:06d}" for x in key.tolist()]),
            "f": pa.array([[float("nan"), -0.0, 0.0, float(x)][x % 4] for x in key.tolist()]),
            "o": pa.array([{"a": x} if x % 9 else None for x in key.tolist()], pa.struct([("a", pa.int64())])),
            "w": np.random.default_rng(segment).random(rows),
        }
    )


def empty_table(path: Path, **more: Any) -> tamis.Table:
    return tamis.create(path, rows_of(0, 1).schema, **more)


def table_a(path: Path, *indexes: tuple[str, Any], segments: int = SEGMENTS, **more: Any) -> tamis.Table:
    """Loads first, then indexes: index segments of all loads together."""
    table = empty_table(path, **more)
    for segment in range(segments):
        table.append(rows_of(segment))
    for name, columns in indexes:
        table.create_index(name, columns)
    return table


def ids(table: tamis.Table) -> list[str]:
    return [str(i) for i in table.metadata("segments")["segment_id"].to_pylist()]


def key_in(segment: int, at: int = 5) -> int:
    """A key that only this load has, and that is not the least or greatest of any."""
    return int(rows_of(segment)["k"][at].as_py())


def same(table: tamis.Table, row_filter: str | None, columns: Any = ("*",), **scan: Any) -> Report:
    """The report of a scan that gave the rows that a scan without index gives."""
    options = scan.pop("options", {})
    plain = table.scan(row_filter, columns, options={**options, **OFF}, **scan).to_arrow()
    asked = table.scan(row_filter, columns, options=options, **scan)
    found = asked.to_arrow()
    order = [
        (name, "ascending") for name in found.column_names if not pa.types.is_nested(found.schema.field(name).type)
    ]
    assert found.sort_by(order).to_pydict().__repr__() == plain.sort_by(order).to_pydict().__repr__()
    if not scan.get("limit"):
        assert found.to_pydict().__repr__() == plain.to_pydict().__repr__(), "another order"
        assert table.scan(row_filter, columns, options=options, **scan).count() == len(plain)
    assert asked.report is not None
    if len(found):
        assert asked.report.bytes["read"] > 0
    return asked.report


def used(report: Report) -> dict[str, tuple[int, int]]:
    """By index: segments that it answered for, and that it could not."""
    return {entry.name: (entry.segments, entry.missing) for entry in report.indexes}


def info(table: tamis.Table, name: str = "ik") -> Any:
    return next(i for i in table.indexes() if i.name == name)


def delete(table: tamis.Table, row_filter: str) -> int:
    """Deletes rows by deletion vectors; how many."""
    made = table.scan(row_filter).plan_read()
    spec = replace(made.spec, schema=replace(made.spec.schema, fields=()), positions=True)
    gone: dict[str, bytes] = {}
    count = 0
    for ref in made.parts:
        rows = [int(p) for batch in read_part(ref, spec, ReadCounters()) for p in batch.column(0).to_pylist()]
        if rows:
            gone[ref.part_id], count = BitMap(rows).serialize(), count + len(rows)
    if gone:
        commit(table.store, Proposal(operation=Operation("delete"), read_version=made.report.version, delete_rows=gone))
    return count


def missing(table: tamis.Table, name: str = "ik") -> list[int]:
    """Which loads are missing, by number."""
    every = ids(table)
    return sorted(every.index(segment) for segment in info(table, name).missing)
