"""Tables for the tests of upkeep: small parts of a few rows, and what they hold."""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np
import pyarrow as pa

import tamis
from tamis.storage.commit_log import Operation, Proposal, commit
from tamis.storage.commit_log.deletion_vectors import read_bitmap, row_ordinals, serialize_vector

_names = count()
SCHEMA = pa.schema([("ts", pa.int64()), ("user", pa.int64()), ("name", pa.string())])


def table(cluster_by: tuple[str, ...] = (), **properties: Any) -> tamis.Table:
    """An empty table in memory."""
    return tamis.create(
        f"memory://tending-{next(_names)}",
        SCHEMA,
        cluster_by=cluster_by,
        properties={f"tamis.{k.replace('__', '.')}": v for k, v in properties.items()},
    )


def rows(start: int, size: int = 50, seed: int = 0) -> pa.Table:
    """``size`` rows of rising ts from ``start``, users anywhere."""
    dice = np.random.default_rng(start + seed)
    ts = np.arange(start, start + size)
    return pa.table({"ts": ts, "user": dice.integers(0, 1_000, size), "name": [f"n{i % 7}" for i in ts]}, schema=SCHEMA)


def filled(appends: int, cluster_by: tuple[str, ...] = (), size: int = 50, **properties: Any) -> tamis.Table:
    made = table(cluster_by, **properties)
    for i in range(appends):
        made.append(rows(i * size, size))
    return made


def held(of: tamis.Table, **scan: Any) -> list[tuple[Any, ...]]:
    """The rows, in an order of their own."""
    return sorted((tuple(row.values()) for row in of.scan(**scan).to_arrow().to_pylist()), key=repr)


def parts(of: tamis.Table) -> list[dict[str, Any]]:
    return of.refresh().metadata("parts").to_pylist()


def delete_rows(of: tamis.Table, every: int) -> int:
    """Deletes each ``every``-th live row by vectors; how many."""
    parts = of.refresh().snapshot.parts(None)
    rows = {p["part_id"]: np.arange(0, p["rows"], every) for p in parts.select(["part_id", "rows"]).to_pylist()}
    known = {
        p["part_id"]: read_bitmap(p["deletion"])
        for p in parts.select(["part_id", "deletion"]).to_pylist()
        if p["deletion"]
    }
    chosen = {i: np.setdiff1d(found, row_ordinals(known[i])) if i in known else found for i, found in rows.items()}
    given = {i: serialize_vector(found) for i, found in chosen.items() if len(found)}
    commit(of.store, Proposal(Operation("delete"), of.version, delete_rows=given))
    of.refresh()
    return sum(map(len, chosen.values()))
