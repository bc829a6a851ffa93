"""Synthetic tables for the tests of state: a head, and manifests with statistics, without any data files."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

import numpy as np
import pyarrow as pa

from tamis.core.types import LONG, STRING, Field, Schema
from tamis.storage.commit_log import Head, Operation, Proposal, Snapshot, commit, create
from tamis.storage.object_store import Store, open_store
from tamis.storage.object_store.object_cache import CACHE
from tamis.world import new_id

SCHEMA = Schema((Field("ts", LONG, True, 1), Field("name", STRING, True, 2)), 0)
HEAD = Head("", schemas=(SCHEMA,), highest_column_id=2)


def manifest(
    parts: int = 1,
    *,
    low: int = 0,
    step: int = 10,
    rows: int = 100,
    schema_id: int = 0,
    ids: Sequence[str] | None = None,
) -> pa.Table:
    """``parts`` parts of ``rows`` rows; part i holds ts in [low + i·step, low + (i + 1)·step − 1]."""
    names = list(ids) if ids is not None else [new_id() for _ in range(parts)]
    at = low + step * np.arange(parts, dtype=np.int64)
    return pa.table(
        {
            "part_id": pa.array(names, pa.string()),
            "path": pa.array([f"data/{name}.parquet" for name in names], pa.string()),
            "format": pa.array(["parquet"] * parts, pa.string()),
            "schema_id": pa.array([schema_id] * parts, pa.int32()),
            "rows": pa.array([rows] * parts, pa.int64()),
            "bytes": pa.array([rows * 8] * parts, pa.int64()),
            "checksum": pa.array([None] * parts, pa.int64()),
            "footer_checksum": pa.array([None] * parts, pa.int64()),
            "run_id": pa.array(["run"] * parts, pa.string()),
            "ordered": pa.array([True] * parts, pa.bool_()),
            "blocks": pa.array([[rows]] * parts, pa.list_(pa.int32())),
            "1|long|lo": pa.array(at),
            "1|long|hi": pa.array(at + step - 1),
            "1|nulls": pa.array([0] * parts, pa.int64()),
            "1|count": pa.array([rows] * parts, pa.int64()),
            "1|exact": pa.array([3] * parts, pa.uint8()),
            "2|string|lo": pa.array(["a"] * parts, pa.string()),
            "2|string|hi": pa.array(["z"] * parts, pa.string()),
            "2|nulls": pa.array([0] * parts, pa.int64()),
            "2|count": pa.array([rows] * parts, pa.int64()),
        }
    )


_names = count()


def new_table(store: Store, head: Head = HEAD) -> Snapshot:
    return create(store, head, Operation("create"))


def append(store: Store, snapshot: Snapshot, *manifests: pa.Table, operation_id: str = "") -> Snapshot:
    """A blind append of these manifests (of one part, where none is given)."""
    add = manifests or (manifest(low=10 * snapshot.version),)
    return commit(
        store, Proposal(Operation("append"), snapshot.version, blind_append=True, add=add, operation_id=operation_id)
    )


def part_ids(snapshot: Snapshot) -> list[str]:
    return snapshot.parts()["part_id"].to_pylist()


def forget() -> None:
    """As a new process would start: nothing remembered."""
    CACHE.clear()


def copy(store: Store) -> Store:
    """A memory store of its own with the same objects."""
    twin = memory()
    for entry in store.list():
        twin.put(entry.path, store.get(entry.path))
    return twin


def memory() -> Store:
    """An empty store that nobody else has."""
    return open_store(f"memory://test-{next(_names)}")  # not new_id: it comes again in a seeded world
