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
from tamis.errors import InvalidInput, SchemaMismatch
from tamis.spark.executors.row_metadata import PART, POSITION
from tamis.spark.executors.write_task import WideRow, from_ipc, refusal_result, to_ipc

DELETE, UPDATE, INSERT, REINSERT = 1, 2, 3, 4
"""Spark's codes of row changes (its ``RowDeltaUtils``)."""

OPERATION = "__row_operation"
RESULT = "outcome binary"


Removed = dict[str, bytes]
"""Serialized bitmaps of rows by part."""


@dataclass(slots=True)
class Changes:
    """The outcome of row changes: written parts (manifest rows), removed rows by part, and counts by kind."""

    manifests: list[bytes] = field(default_factory=list)
    gone: Removed = field(default_factory=dict)
    """Rows that were deleted. Several rows of a source may delete the same row: Spark checks when they may not."""
    replaced: Removed = field(default_factory=dict)
    """Rows that were updated."""
    updated: int = 0
    inserted: int = 0
    reinserted: int = 0
    doubled: bool = False
    """Whether a row was updated twice, or updated and deleted."""

    @staticmethod
    def merged(outcomes: list[Changes]) -> Changes:
        """The outcome of several tasks."""
        gone: dict[str, Any] = {}
        replaced: dict[str, Any] = {}
        out = Changes()
        for one in outcomes:
            for part, rows in one.gone.items():
                gone[part] = gone.get(part, BitMap()) | BitMap.deserialize(rows)
            for part, rows in one.replaced.items():
                new = BitMap.deserialize(rows)
                out.doubled |= part in replaced and not replaced[part].isdisjoint(new)
                replaced[part] = replaced.get(part, BitMap()) | new
            out.manifests += one.manifests
            out.updated += one.updated
            out.inserted += one.inserted
            out.reinserted += one.reinserted
            out.doubled |= one.doubled
        out.doubled |= any(part in gone and not gone[part].isdisjoint(rows) for part, rows in replaced.items())
        out.gone, out.replaced = _serialized(gone), _serialized(replaced)
        return out

    @property
    def deleted(self) -> int:
        """Rows that were deleted and not inserted again."""
        return sum(len(BitMap.deserialize(rows)) for rows in self.gone.values()) - self.reinserted

    @property
    def removed(self) -> dict[str, Any]:
        """Bitmaps of all rows that go, by part."""
        found = {part: BitMap.deserialize(rows) for part, rows in self.gone.items()}
        for part, rows in self.replaced.items():
            found[part] = found.get(part, BitMap()) | BitMap.deserialize(rows)
        return found

    @property
    def tables(self) -> list[pa.Table]:
        return [from_ipc(m) for m in self.manifests]


def change(batches: Iterator[pa.RecordBatch], spec: WriteSpec) -> Iterator[pa.RecordBatch]:
    """Run one partition of row changes, for ``mapInArrow``.

    Operation, part id and position are columns found by name; the others are the table's columns in order. A row that
    is refused for its values does not fail the task, as in ``write_task.write_rows``.
    """
    found = _Positions()

    def rows() -> Iterator[pa.RecordBatch]:
        for batch in batches:
            at = {name: batch.schema.names.index(name) for name in (OPERATION, PART, POSITION)}
            new = found.take(*(batch.column(at[name]) for name in (OPERATION, PART, POSITION)))
            if new.any():
                data = [column for place, column in enumerate(batch.columns) if place not in at.values()]
                yield pa.RecordBatch.from_arrays(data, names=list(spec.schema.names)).filter(pa.array(new))

    manifests: list[bytes] = []
    outcomes: list[bytes] = []
    try:
        manifests.extend(to_ipc(manifest) for manifest in write_parts(rows(), spec))
    except (InvalidInput, SchemaMismatch, WideRow) as error:
        if not (spec.refuses or isinstance(error, WideRow)):
            raise
        outcomes.append(refusal_result(error))
    outcomes.append(pickle.dumps(found.changes(manifests)))  # also beside an error, whose files the driver discards
    yield pa.record_batch([pa.array(outcomes, pa.binary())], ["outcome"])


def _serialized(rows: dict[str, Any]) -> Removed:
    return {part: bytes(found.serialize()) for part, found in rows.items()}


class _Positions:
    """Collects the positions of removed rows, as bitmaps."""

    def __init__(self) -> None:
        self._gone: dict[str, Any] = {}
        self._replaced: dict[str, Any] = {}
        self._counts = np.zeros(6, dtype=np.int64)
        self._doubled = False

    def take(self, operations: pa.Array, parts: pa.Array, positions: pa.Array) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Collect removed positions; return a mask of the rows to write."""
        kind = operations.to_numpy(zero_copy_only=False).astype(np.int64)
        self._counts += np.bincount(kind, minlength=6)[:6]
        for code, known in ((DELETE, self._gone), (UPDATE, self._replaced)):
            chosen = pa.array(kind == code)
            rows = positions.filter(chosen).to_numpy(zero_copy_only=False).astype(np.uint32)
            self._doubled |= _collect(known, parts.filter(chosen), rows) and code == UPDATE
        written: np.ndarray[Any, np.dtype[np.bool_]] = (kind == UPDATE) | (kind == INSERT) | (kind == REINSERT)
        return written

    def changes(self, manifests: list[bytes]) -> Changes:
        updated, inserted, again = (int(self._counts[k]) for k in (UPDATE, INSERT, REINSERT))
        gone, replaced = _serialized(self._gone), _serialized(self._replaced)
        return Changes(manifests, gone, replaced, updated + again, inserted, again, self._doubled)


def _collect(known: dict[str, Any], parts: pa.Array, rows: np.ndarray[Any, np.dtype[np.uint32]]) -> bool:
    """Add rows to the bitmaps of their parts; return whether one was there before."""
    codes = parts.dictionary_encode()
    doubled = False
    for code, part in enumerate(codes.dictionary.to_pylist()):
        chosen = rows[pc.equal(codes.indices, code).to_numpy(zero_copy_only=False)]
        new = BitMap(chosen)
        before = known.setdefault(part, BitMap())
        doubled |= len(new) < len(chosen) or not before.isdisjoint(new)
        before |= new
    return doubled
