"""Cutting a plan's parts into Spark's partitions, and packing them into the one byte array that Java makes the objects from.

Law: tasks in order, and parts within a task, keep the order (segment, part), so that a scan without a shuffle gives rows in that order.
"""

from __future__ import annotations

import math
import pickle
import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.engine.part_reader import windows
from tamis.engine.scan import PartRefs, Plan
from tamis.engine.scan.scan_options import size_of
from tamis.spark.executors.read_task import Task
from tamis.storage.files import PartRef

_INT = struct.Struct(">i")
_LONG = struct.Struct(">q")


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large Spark wants its partitions: settings of the session, in bytes, and the number of tasks that run at once."""

    largest: int
    opening: int
    """What opening a file is worth in bytes read."""
    parallelism: int

    @staticmethod
    def of(settings: Mapping[str, str]) -> Sizes:
        return Sizes(
            max(size_of(settings["spark.sql.files.maxPartitionBytes"]), 1),
            max(size_of(settings["spark.sql.files.openCostInBytes"]), 1),
            max(int(settings["parallelism"]), 1),
        )


class Cut:
    """A plan's parts, audited ones among them, cut into tasks. Parts become objects only when tasks are asked for."""

    def __init__(self, plan: Plan, sizes: Sizes, *, share: float = 1.0, divisible: bool = False, anywhere: bool = False) -> None:
        """``share``: how much of each part is going to be read, about. ``divisible``: a part larger than a task should be may go to several, by blocks. ``anywhere``: so may any
        part, by bytes, for Spark's own reader: it reads the row groups whose middle lies in its range."""
        self.sizes = sizes
        self._parts = _ordered(plan)
        self._proofs, self._shared = plan.proofs, plan.shared
        weights = (self._parts.weights * share).astype(np.int64)
        self._ends = self._even(weights) if anywhere else []
        self._groups = [] if anywhere else grouped(weights, sizes)
        self._pieces = [1] * len(self._groups)
        if divisible and not plan.shared and len(weights) and (plan.spec.schema.fields or plan.spec.conjuncts):
            target = task_bytes(weights, sizes)
            self._pieces = [self._divided(start, end, int(weights[start]), target) for start, end in self._groups]

    def _divided(self, start: int, end: int, size: int, target: int) -> int:
        """Into how many tasks a group goes: more than one only where it is one large part, about which nothing is proved."""
        if (
            end - start > 1
            or size < 2 * target
            or self._parts.all_match[start]
            or self._parts.table["part_id"][start].as_py() in self._proofs
        ):
            return 1
        return len(windows(self._parts[start], size // target))

    def _even(self, weights: np.ndarray[Any, np.dtype[np.int64]]) -> list[float]:
        """Where tasks end, each with as many bytes: 2.25 is a quarter of the third part. Not within a part of one row group, nor near the end of one."""
        blocks = pc.fill_null(pc.list_value_length(self._parts.table["blocks"]), 0).to_numpy()
        cuts = even(weights, self.sizes, max(int(blocks.sum()), 1))
        whole = np.round(cuts)
        near = np.where(blocks[cuts.astype(np.int64)] > 1, NEAR, 0.5)
        moved = np.where(np.abs(cuts - whole) <= near, whole, cuts)
        inner = sorted(set(moved.tolist()) - {0.0, float(len(weights))})
        return [*inner, float(len(weights))] if len(weights) else []

    def __len__(self) -> int:
        """The number of tasks, at most."""
        return sum(self._pieces) + len(self._ends)

    def tasks(self) -> list[Task]:
        refs = list(self._parts)
        if self._ends:
            return [self._range(i, refs, a, z) for i, (a, z) in enumerate(pairwise([0.0, *self._ends]))]
        runs = [
            [part] if pieces > 1 else refs[start:end]
            for (start, end), pieces in zip(self._groups, self._pieces, strict=True)
            for part in (windows(refs[start], pieces) if pieces > 1 else [None])
        ]
        return [self._task(i, [r for r in run if r is not None]) for i, run in enumerate(runs)]

    def _range(self, index: int, refs: list[PartRef], start: float, end: float) -> Task:
        first, last = int(start), math.ceil(end) - 1
        return Task(index, tuple(refs[first : last + 1]), span=(start - first, end - last))

    def _task(self, index: int, refs: list[PartRef]) -> Task:
        proofs = {r.part_id: self._proofs[r.part_id] for r in refs if r.part_id in self._proofs}
        mine = [r.part_id for r in refs]
        return Task(index, tuple(refs), proofs, tuple(one.of(mine) for one in self._shared))


def _ordered(plan: Plan) -> PartRefs:
    if not len(plan.audit):
        return plan.parts
    table = pa.concat_tables([plan.parts.table, plan.audit.table])
    both = PartRefs(table, np.concatenate([plan.parts.all_match, plan.audit.all_match]))
    return both.take(pc.sort_indices(table, [("segment", "ascending"), ("part", "ascending")]).to_numpy())


def task_bytes(weights: np.ndarray[Any, np.dtype[np.int64]], sizes: Sizes) -> int:
    """How many bytes a task should read, opening costs among them."""
    return max(min(sizes.largest, max(sizes.opening, int((weights + sizes.opening).sum()) // sizes.parallelism)), 1)


def grouped(weights: np.ndarray[Any, np.dtype[np.int64]], sizes: Sizes) -> list[tuple[int, int]]:
    """Runs ``(start, end)`` of files of these bytes: as large as Spark allows, small enough that all cores have work."""
    if not len(weights):
        return []
    ends = np.cumsum(weights + sizes.opening)
    bins = (ends - weights // 2) // task_bytes(weights, sizes)
    cuts = [0, *(np.flatnonzero(np.diff(bins)) + 1).tolist(), len(weights)]
    return list(pairwise(cuts))


NEAR = 0.1
"""Of a part: as little of it is no task of its own."""


def even(weights: np.ndarray[Any, np.dtype[np.int64]], sizes: Sizes, most: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Where to cut the line of these files so that each task has as many bytes, in files from its beginning; as many tasks as there is work for, and ``most``."""
    if not len(weights):
        return np.zeros(0)
    ends = np.cumsum(weights + sizes.opening)
    count = max(min(int(ends[-1]) // task_bytes(weights, sizes), most), 1)
    cuts = np.arange(1, count) * (float(ends[-1]) / count)
    at = np.searchsorted(ends, cuts, side="right")
    places: np.ndarray[Any, np.dtype[np.float64]] = at + 1 - (ends[at] - cuts) / (weights + sizes.opening)[at]
    return places


def pack(tasks: list[Task]) -> bytes:
    """The tasks as ``Partitions.python`` reads them."""
    payloads = [pickle.dumps(task, pickle.HIGHEST_PROTOCOL) for task in tasks]
    return b"".join([_INT.pack(len(payloads)), *(piece for p in payloads for piece in (_INT.pack(len(p)), p))])


def pack_files(tasks: list[Task], url: Callable[[str], str]) -> bytes:
    """The tasks' files as ``Partitions.files`` reads them; ``url`` makes a part's path a URL."""
    out = [_INT.pack(len(tasks))]
    for task in tasks:
        out.append(_INT.pack(len(task.refs)))
        out.extend(_files(task, url))
    return b"".join(out)


def _files(task: Task, url: Callable[[str], str]) -> Iterable[bytes]:
    """Of each file its URL, its size, and the bytes of it that the task has: from where one task ends the next begins, by the same rounding."""
    last = len(task.refs) - 1
    for at, ref in enumerate(task.refs):
        name = url(ref.path).encode()
        start = 0 if at else int(ref.bytes * task.span[0])
        end = int(ref.bytes * task.span[1]) if at == last else ref.bytes
        yield _INT.pack(len(name)) + name + _LONG.pack(ref.bytes) + _LONG.pack(start) + _LONG.pack(end - start)


def local_url(root: str) -> Callable[[str], str]:
    """Makes paths under the local folder ``root`` file URLs."""
    base = Path(root).as_uri()
    return lambda path: f"{base}/{quote(path)}"
