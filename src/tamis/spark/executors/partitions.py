"""Cuts a plan's parts into Spark partitions and packs them into one byte array for ``Partitions.java``.

Invariant: tasks, and parts within a task, are ordered by (segment, part), so that a scan without a shuffle
returns rows in that order.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.cost_model import COSTS
from tamis.engine.part_reader import split_windows
from tamis.engine.scan import PartRefs, Plan
from tamis.engine.scan.scan_options import size_of
from tamis.spark.executors.read_task import Task
from tamis.spark.jvm_bridge.wire_format import JAVA_INT, JAVA_LONGS
from tamis.storage.files import PartRef


@dataclass(frozen=True, slots=True)
class Sizes:
    """The session's settings for partition sizes, in bytes, and its number of concurrent tasks."""

    largest: int
    opening: int
    """Cost of opening a file, in bytes read."""
    parallelism: int
    steady: bool = False
    """Whether the rows of a task must not depend on the columns and the reader, as for samples of one DataFrame."""

    @staticmethod
    def of(settings: Mapping[str, str], *, steady: bool = False) -> Sizes:
        return Sizes(
            max(size_of(settings["spark.sql.files.maxPartitionBytes"]), 1),
            max(size_of(settings["spark.sql.files.openCostInBytes"]), 1),
            max(int(settings["parallelism"]), 1),
            steady,
        )


class Cut:
    """A plan's parts, including audited ones, cut into tasks. Part objects are made only in ``tasks``."""

    def __init__(
        self, plan: Plan, sizes: Sizes, *, share: float = 1.0, divisible: bool = False, anywhere: bool = False
    ) -> None:
        """Cut the parts of ``plan``.

        ``share``: approximate share of each part's bytes that will be read. ``divisible``: a part larger than
        a task may be split into several tasks by blocks. ``anywhere``: any part may be split by bytes, for
        Spark's own reader, which reads the row groups whose midpoint lies in its range.
        """
        if sizes.steady:
            share, divisible, anywhere = 1.0, False, False
        self.sizes = sizes
        self._parts = _ordered(plan)
        self._proofs, self._shared = plan.proofs, plan.shared
        weights = (self._parts.weights * share).astype(np.int64)
        self._ends = self._equal_ends(weights) if anywhere else []
        self._groups = [] if anywhere else group_files(weights, sizes)
        self._pieces = [1] * len(self._groups)
        if divisible and not plan.shared and len(weights) and (plan.spec.schema.fields or plan.spec.conjuncts):
            target = task_bytes(weights, sizes)
            self._pieces = [self._task_count(start, end, int(weights[start]), target) for start, end in self._groups]

    def _task_count(self, start: int, end: int, size: int, target: int) -> int:
        """Number of tasks for a group: above 1 only for a single large part without proofs."""
        if (
            end - start > 1
            or size < 2 * target
            or self._parts.all_match[start]
            or self._parts.table["part_id"][start].as_py() in self._proofs
        ):
            return 1
        return len(split_windows(self._parts[start], size // target))

    def _equal_ends(self, weights: np.ndarray[Any, np.dtype[np.int64]]) -> list[float]:
        """The ends of tasks of equal bytes, counted in parts: 2.25 is a quarter into the third part.

        An end within ``NEAR`` of a part's edge is moved to the edge. A part of one row group is never split.
        """
        blocks = pc.fill_null(pc.list_value_length(self._parts.table["blocks"]), 0).to_numpy()
        cuts = equal_cuts(weights, self.sizes, max(int(blocks.sum()), 1))
        whole = np.round(cuts)
        near = np.where(blocks[cuts.astype(np.int64)] > 1, NEAR, 0.5)
        moved = np.where(np.abs(cuts - whole) <= near, whole, cuts)
        inner = sorted(set(moved.tolist()) - {0.0, float(len(weights))})
        return [*inner, float(len(weights))] if len(weights) else []

    def __len__(self) -> int:
        """The maximum number of tasks."""
        return sum(self._pieces) + len(self._ends)

    def tasks(self) -> list[Task]:
        refs = list(self._parts)
        if self._ends:
            return [self._range(i, refs, a, z) for i, (a, z) in enumerate(pairwise([0.0, *self._ends]))]
        runs = [
            [part] if pieces > 1 else refs[start:end]
            for (start, end), pieces in zip(self._groups, self._pieces, strict=True)
            for part in (split_windows(refs[start], pieces) if pieces > 1 else [None])
        ]
        return [self._task(i, [r for r in run if r is not None]) for i, run in enumerate(runs)]

    def _range(self, index: int, refs: list[PartRef], start: float, end: float) -> Task:
        first, last = int(start), math.ceil(end) - 1
        return Task(index, tuple(refs[first : last + 1]), span=(start - first, end - last))

    def _task(self, index: int, refs: list[PartRef]) -> Task:
        proofs = {r.part_id: self._proofs[r.part_id] for r in refs if r.part_id in self._proofs}
        mine = [r.part_id for r in refs]
        return Task(index, tuple(refs), proofs, tuple(one.for_parts(mine) for one in self._shared))


def _ordered(plan: Plan) -> PartRefs:
    if not len(plan.audit):
        return plan.parts
    table = pa.concat_tables([plan.parts.table, plan.audit.table])
    both = PartRefs(table, np.concatenate([plan.parts.all_match, plan.audit.all_match]))
    return both.take(pc.sort_indices(table, [("segment", "ascending"), ("part", "ascending")]).to_numpy())


def task_bytes(weights: np.ndarray[Any, np.dtype[np.int64]], sizes: Sizes) -> int:
    """Target bytes per task, including the cost of opening files."""
    return max(min(sizes.largest, max(sizes.opening, int((weights + sizes.opening).sum()) // sizes.parallelism)), 1)


def group_files(weights: np.ndarray[Any, np.dtype[np.int64]], sizes: Sizes) -> list[tuple[int, int]]:
    """Runs ``(start, end)`` of files, as large as Spark allows but small enough that all cores have work."""
    if not len(weights):
        return []
    ends = np.cumsum(weights + sizes.opening)
    bins = (ends - weights // 2) // task_bytes(weights, sizes)
    cuts = [0, *(np.flatnonzero(np.diff(bins)) + 1).tolist(), len(weights)]
    return list(pairwise(cuts))


NEAR = COSTS.task_remainder_share
"""Share of a part that is too little for a task of its own."""


def equal_cuts(
    weights: np.ndarray[Any, np.dtype[np.int64]], sizes: Sizes, most: int
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Positions at which to cut the sequence of files into tasks of equal bytes, in files from the beginning.

    Makes as many tasks as there is work for, at most ``most``.
    """
    if not len(weights):
        return np.zeros(0)
    ends = np.cumsum(weights + sizes.opening)
    count = max(min(int(ends[-1]) // task_bytes(weights, sizes), most), 1)
    cuts = np.arange(1, count) * (float(ends[-1]) / count)
    at = np.searchsorted(ends, cuts, side="right")
    places: np.ndarray[Any, np.dtype[np.float64]] = at + 1 - (ends[at] - cuts) / (weights + sizes.opening)[at]
    return places


def pack_tasks(tasks: Iterable[object]) -> bytes:
    """Pack the tasks for ``Partitions.python``."""
    payloads = [pickle.dumps(task, pickle.HIGHEST_PROTOCOL) for task in tasks]
    return b"".join([JAVA_INT.pack(len(payloads)), *(piece for p in payloads for piece in (JAVA_INT.pack(len(p)), p))])


def pack_files(tasks: list[Task], url: Callable[[str], str]) -> bytes:
    """Pack the tasks' files for ``Partitions.files``; ``url`` turns a part's path into a URL."""
    out = [JAVA_INT.pack(len(tasks))]
    for task in tasks:
        out.append(JAVA_INT.pack(len(task.refs)))
        out.extend(_files(task, url))
    return b"".join(out)


def _files(task: Task, url: Callable[[str], str]) -> Iterable[bytes]:
    """URL, size and byte range of each file of a task.

    The next task's range begins exactly where this one ends, because both round the same way.
    """
    last = len(task.refs) - 1
    for at, ref in enumerate(task.refs):
        name = url(ref.path).encode()
        start = 0 if at else int(ref.bytes * task.span[0])
        end = int(ref.bytes * task.span[1]) if at == last else ref.bytes
        yield JAVA_INT.pack(len(name)) + name + JAVA_LONGS.pack(ref.bytes, start, end - start)


def local_url(root: str) -> Callable[[str], str]:
    """Return a function that turns paths under the local folder ``root`` into file URLs."""
    base = Path(root).as_uri()
    return lambda path: f"{base}/{quote(path)}"
