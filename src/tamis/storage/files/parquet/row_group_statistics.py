"""Converts row-group statistics to statistics columns, so that the rules for parts also prune blocks."""

from __future__ import annotations

import json
from collections.abc import Collection
from decimal import Context
from decimal import Decimal as PyDecimal
from typing import Any

import pyarrow as pa

from tamis.core.stats.statistics_columns import BOUNDS, bound_name, count_name, has_bounds
from tamis.core.types import BINARY, Array, DataType, Decimal, Map, Schema, String
from tamis.core.types.arrow import to_arrow_type
from tamis.storage.files.parquet.column_layout import Layout
from tamis.storage.files.parquet.footer import Footer

NANS = "tamis.nans"
"""Footer note: NaN counts of each floating column in the whole file, as JSON by column id.

Parquet's statistics ignore NaNs and do not count them.
"""


def block_statistics(footer: Footer, layout: Layout, schema: Schema, ids: Collection[int]) -> pa.Table:
    """Return one row of statistics per block, as far as the file has them.

    Only plain leaves outside lists and maps have any.
    """
    groups = [footer.row_group(i) for i in range(footer.num_row_groups)]
    columns: dict[str, pa.Array] = {"rows": pa.array([g.num_rows for g in groups], pa.int64())}
    clean = _without_nans(footer)
    for at, path in enumerate(layout.leaves):
        field = schema.by_id.get(path[-1])
        if (
            field is None
            or field.id not in ids
            or any(isinstance(schema.by_id[i].type, Array | Map) for i in path[:-1])
        ):
            continue
        if not has_bounds(field.type):
            continue
        found = [g.column(at).statistics for g in groups]
        columns[count_name(field.id, "nulls")] = pa.array(
            [s.null_count if s is not None and s.has_null_count else None for s in found], pa.int64()
        )
        if field.id in clean:
            columns[count_name(field.id, "nans")] = pa.array([0] * len(groups), pa.int64())
        for kind in BOUNDS:
            columns[bound_name(field.id, field.type, kind)] = _bounds(found, kind, field.type)
    return pa.table(columns)


def _without_nans(footer: Footer) -> set[int]:
    try:
        noted = json.loads((footer.metadata or {}).get(NANS.encode(), b"{}"))
        return {int(column_id) for column_id, count in noted.items() if count == 0}
    except (ValueError, AttributeError):
        return set()


def _bounds(found: list[Any], kind: str, data_type: DataType) -> pa.Array:
    """Return one bound of all blocks in the column's Arrow type; unknown if missing or not representable."""
    raw = [(s.min_raw if kind == "lo" else s.max_raw) if s is not None and s.has_min_max else None for s in found]
    arrow = to_arrow_type(data_type)
    try:
        if isinstance(data_type, Decimal):
            return pa.array([None if v is None else _decimal(v, data_type) for v in raw], arrow)
        if isinstance(data_type, String) or data_type == BINARY:
            return pa.array([v.encode() if isinstance(v, str) else v for v in raw], pa.binary()).cast(arrow)
        if pa.types.is_temporal(arrow):
            return pa.array(raw, pa.int32() if arrow.bit_width == 32 else pa.int64()).view(arrow)
        return pa.array(raw, arrow)
    except (pa.ArrowException, ValueError, TypeError, AttributeError):
        return pa.nulls(len(found), arrow)


def _decimal(value: int | bytes, data_type: Decimal) -> Any:
    unscaled = value if isinstance(value, int) else int.from_bytes(value, "big", signed=True)
    return PyDecimal(unscaled).scaleb(-data_type.scale, Context(prec=40))
