"""Cutting a plan's parts into Spark's partitions, and packing them into the one byte array that Java makes the objects from.

Law: tasks in order, and parts within a task, keep the order (segment, part), so that a scan without a shuffle gives rows in that order.
"""

from __future__ import annotations

import pickle
import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.files import PartRef
from tamis.scan import PartRefs, Plan
from tamis.spark.worker import Task

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
            _bytes(settings["spark.sql.files.maxPartitionBytes"]),
            _bytes(settings["spark.sql.files.openCostInBytes"]),
            max(int(settings["parallelism"]), 1),
        )


def _bytes(text: str) -> int:
    return max(int(text.lower().rstrip("b")), 1)


class Cut:
    """A plan's parts, audited ones among them, cut into tasks. Parts become objects only when tasks are asked for."""

    def __init__(self, plan: Plan, sizes: Sizes) -> None:
        self._parts = _ordered(plan)
        self._audited = frozenset(plan.audit.table["part_id"].to_pylist()) if len(plan.audit) else frozenset()
        self._groups = grouped(self._parts.column("bytes"), sizes)

    def __len__(self) -> int:
        """The number of tasks."""
        return len(self._groups)

    def tasks(self) -> list[Task]:
        refs = list(self._parts)
        return [self._task(i, refs[start:end]) for i, (start, end) in enumerate(self._groups)]

    def _task(self, index: int, refs: list[PartRef]) -> Task:
        return Task(index, tuple(refs), frozenset(r.part_id for r in refs if r.part_id in self._audited))


def _ordered(plan: Plan) -> PartRefs:
    if not len(plan.audit):
        return plan.parts
    table = pa.concat_tables([plan.parts.table, plan.audit.table])
    both = PartRefs(table, np.concatenate([plan.parts.all_match, plan.audit.all_match]))
    return both.take(pc.sort_indices(table, [("segment", "ascending"), ("part", "ascending")]).to_numpy())


def grouped(weights: np.ndarray[Any, np.dtype[np.int64]], sizes: Sizes) -> list[tuple[int, int]]:
    """Runs ``(start, end)`` of files of these bytes: as large as Spark allows, small enough that all cores have work."""
    if not len(weights):
        return []
    ends = np.cumsum(weights + sizes.opening)
    target = min(sizes.largest, max(sizes.opening, int(ends[-1]) // sizes.parallelism))
    bins = (ends - weights // 2) // max(target, 1)
    cuts = [0, *(np.flatnonzero(np.diff(bins)) + 1).tolist(), len(weights)]
    return list(pairwise(cuts))


def pack(tasks: list[Task]) -> bytes:
    """The tasks as ``Partitions.python`` reads them."""
    payloads = [pickle.dumps(task, pickle.HIGHEST_PROTOCOL) for task in tasks]
    return b"".join([_INT.pack(len(payloads)), *(piece for p in payloads for piece in (_INT.pack(len(p)), p))])


def pack_files(tasks: list[Task], url: Callable[[str], str]) -> bytes:
    """The tasks' files as ``Partitions.files`` reads them; ``url`` makes a part's path a URL."""
    out = [_INT.pack(len(tasks))]
    for task in tasks:
        out.append(_INT.pack(len(task.refs)))
        out.extend(_files(task.refs, url))
    return b"".join(out)


def _files(refs: Iterable[PartRef], url: Callable[[str], str]) -> Iterable[bytes]:
    for ref in refs:
        name = url(ref.path).encode()
        yield _INT.pack(len(name)) + name + _LONG.pack(ref.bytes)


def local_url(root: str) -> Callable[[str], str]:
    """Makes paths under the local folder ``root`` file URLs."""
    base = Path(root).as_uri()
    return lambda path: f"{base}/{path}"  # names of parts are made by us: nothing in them needs quoting
