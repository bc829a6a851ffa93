"""Row change tasks on executors: new rows become parts, positions of old rows become one bitmap per part."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from tamis.engine.part_writer import WriteSpec, write_parts
from tamis.spark.executors.read_task import PART, POSITION
from tamis.spark.executors.write_task import from_ipc, to_ipc

DELETE, UPDATE, INSERT, REINSERT = 1, 2, 3, 4
"""Spark's codes of row changes (its ``RowDeltaUtils``)."""

OPERATION = "__row_operation"
RESULT = "outcome binary"


@dataclass(slots=True)
class Changes:
    """The outcome of row changes: written parts (manifest rows), removed rows by part, and counts by kind."""

    manifests: list[bytes] = field(default_factory=list)
    gone: dict[str, bytes] = field(default_factory=dict)
    deleted: int = 0
    updated: int = 0
    inserted: int = 0
    doubled: bool = False
    """Whether a row was removed twice."""

    def merge(self, others: list[Changes]) -> Changes:
        """Merge ``others`` into this one and return it."""
        gone: dict[str, Any] = {}
        for one in (self, *others):
            for part, rows in one.gone.items():
                new = BitMap.deserialize(rows)
                self.doubled |= part in gone and not gone[part].isdisjoint(new)
                gone[part] = gone.get(part, BitMap()) | new
        for one in others:
            self.manifests += one.manifests
            self.deleted, self.updated, self.inserted = (
                self.deleted + one.deleted,
                self.updated + one.updated,
                self.inserted + one.inserted,
            )
            self.doubled |= one.doubled
        self.gone = {part: bytes(rows.serialize()) for part, rows in gone.items()}
        return self

    @property
    def tables(self) -> list[pa.Table]:
        return [from_ipc(m) for m in self.manifests]


def change(batches: Iterator[pa.RecordBatch], spec: WriteSpec) -> Iterator[pa.RecordBatch]:
    """Run one partition of row changes, for ``mapInArrow``.

    Operation, part id and position are columns found by name; the others are the table's columns in order.
    """
    found = _Positions()

    def rows() -> Iterator[pa.RecordBatch]:
        for batch in batches:
            at = {name: batch.schema.names.index(name) for name in (OPERATION, PART, POSITION)}
            new = found.take(*(batch.column(at[name]) for name in (OPERATION, PART, POSITION)))
            if new.any():
                data = [column for place, column in enumerate(batch.columns) if place not in at.values()]
                yield pa.RecordBatch.from_arrays(data, names=list(spec.schema.names)).filter(pa.array(new))

    manifests = [to_ipc(manifest) for manifest in write_parts(rows(), spec)]
    outcome = found.changes(manifests)
    yield pa.record_batch([pa.array([pickle.dumps(outcome)], pa.binary())], ["outcome"])


class _Positions:
    """Collects the positions of removed rows, as bitmaps."""

    def __init__(self) -> None:
        self._gone: dict[str, Any] = {}
        self._counts = np.zeros(6, dtype=np.int64)
        self._doubled = False

    def take(self, operations: pa.Array, parts: pa.Array, positions: pa.Array) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Collect removed positions; return a mask of the rows to write."""
        kind = operations.to_numpy(zero_copy_only=False).astype(np.int64)
        self._counts += np.bincount(kind, minlength=6)[:6]
        goes = (kind == DELETE) | (kind == UPDATE)
        codes = parts.filter(pa.array(goes)).dictionary_encode()
        at = positions.filter(pa.array(goes)).to_numpy(zero_copy_only=False).astype(np.uint32)
        for code, part in enumerate(codes.dictionary.to_pylist()):
            chosen = at[pc.equal(codes.indices, code).to_numpy(zero_copy_only=False)]
            rows = BitMap(chosen)
            known = self._gone.setdefault(part, BitMap())
            self._doubled |= len(rows) < len(chosen) or not known.isdisjoint(rows)
            known |= rows
        written: np.ndarray[Any, np.dtype[np.bool_]] = (kind == UPDATE) | (kind == INSERT) | (kind == REINSERT)
        return written

    def changes(self, manifests: list[bytes]) -> Changes:
        deleted, updated, inserted, again = (int(self._counts[k]) for k in (DELETE, UPDATE, INSERT, REINSERT))
        gone = {part: bytes(rows.serialize()) for part, rows in self._gone.items()}
        return Changes(manifests, gone, deleted - again, updated + again, inserted, self._doubled)
