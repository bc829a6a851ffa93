"""Statistics computed the plain way, from rows: the simplest implementation, as the reference for whoever decides by them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.core.pruning import ColumnEvidence
from tamis.core.stats.columns.value_sets import is_listable
from tamis.core.types import DataType, Schema, String, Struct
from tamis.core.types.arrow import to_arrow_type

Row = dict[str, Any]


def storage(value: Any) -> Any:
    """A value as it sorts: −0.0 as 0.0."""
    return 0.0 if isinstance(value, float) and value == 0 else value


def is_nan(value: Any) -> bool:
    return isinstance(value, float) and value != value


@dataclass
class RowsEvidence:
    """Evidence over pieces of rows (Arrow tables in schema order). ``widen`` loosens bounds, ``drop`` says which statistics are missing."""

    schema: Schema
    pieces: list[pa.Table]
    drop: frozenset[str] = frozenset()
    widen: int = 0
    seed: int = 0
    listed: bool = False
    """Whether the few values of columns are known."""
    rng: Any = field(init=False)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)

    def __len__(self) -> int:
        return len(self.pieces)

    def rows(self) -> Any:
        return pa.array([p.num_rows for p in self.pieces], pa.int64())

    def column(self, ids: tuple[int, ...]) -> ColumnEvidence | None:
        path = [self.schema.by_id[i].name for i in ids]
        data_type = self.schema.by_id[ids[-1]].type
        if isinstance(data_type, Struct):
            return None
        stats = [self._of(data_type, piece, path) for piece in self.pieces]
        arrow = to_arrow_type(data_type)

        def whole(key: str) -> Any:
            return pa.array([None if key in self.drop else s[key] for s in stats], pa.int64())

        def bound(key: str) -> Any:
            return pa.array([None if "bounds" in self.drop or key in self.drop else s[key] for s in stats], arrow)

        exact = pa.array([False] * len(stats))
        return ColumnEvidence(
            data_type, whole("count"), bound("lo"), bound("hi"), exact, exact, whole("nulls"), whole("nans")
        )

    def values(self, ids: tuple[int, ...]) -> Any:
        """Sets of values, where the type has them and they are few."""
        path, data_type = [self.schema.by_id[i].name for i in ids], self.schema.by_id[ids[-1]].type
        if not self.listed or not is_listable(data_type):
            return None
        sets = [sorted({v for v in stored(piece, path) if v is not None}) for piece in self.pieces]
        return pa.array([found if 0 < len(found) <= 8 else None for found in sets], pa.list_(to_arrow_type(data_type)))

    def _of(self, data_type: DataType, piece: pa.Table, path: list[str]) -> dict[str, Any]:
        values = stored(piece, path)
        present = [v for v in values if v is not None]
        numbers = [v for v in present if not is_nan(v)]
        key = (lambda v: v.encode()) if isinstance(data_type, String) else None
        lo, hi = (min(numbers, key=key), max(numbers, key=key)) if numbers else (None, None)
        if lo is not None and self.widen:
            lo, hi = self._widened(lo, hi)
        return {
            "count": len(values),
            "nulls": len(values) - len(present),
            "nans": len(present) - len(numbers),
            "lo": lo,
            "hi": hi,
        }

    def _widened(self, lo: Any, hi: Any) -> tuple[Any, Any]:
        if isinstance(lo, bool):
            return False, True
        if isinstance(lo, str):
            return lo[: self.widen], hi + "z" * self.widen
        if isinstance(lo, bytes):
            return lo[: self.widen], hi + b"\x00" * self.widen
        if isinstance(lo, int):
            span = int(self.rng.integers(0, 10**self.widen))
            return (
                (lo - span, hi + span)
                if lo > -(2**31) + 10**7 and hi < 2**31 - 10**7 and not (lo >= -128 and hi < 128)
                else (lo, hi)
            )
        return lo, hi


def stored(piece: pa.Table, path: list[str]) -> list[Any]:
    """Values along a path as plain comparable ones: instants, dates, intervals as integers."""
    column = piece.column(path[0]).combine_chunks()
    for name in path[1:]:
        column = pa.compute.struct_field(column, name)
    if pa.types.is_timestamp(column.type) or pa.types.is_duration(column.type) or pa.types.is_time64(column.type):
        column = column.view(pa.int64())
    elif pa.types.is_date32(column.type):
        column = column.view(pa.int32())
    return column.to_pylist()
