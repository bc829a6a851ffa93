"""Converts row-group statistics: to statistics columns, by which blocks are pruned as parts are, and to extremes."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from decimal import Context
from decimal import Decimal as PyDecimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tamis.core.stats.columns.tally import Extremes
from tamis.core.stats.statistics_columns import BOUNDS, bound_name, count_name, has_bounds
from tamis.core.types import BINARY, Array, DataType, Decimal, Field, Map, Schema, String
from tamis.core.types.arrow import to_arrow_type
from tamis.storage.files.parquet.column_layout import Layout

NANS = "tamis.nans"
"""Footer note: NaN counts of each floating column in the whole file, as JSON by column id.

Parquet's statistics ignore NaNs and do not count them.
"""


def block_statistics(footer: pq.FileMetaData, layout: Layout, schema: Schema, ids: Collection[int]) -> pa.Table:
    """Return one row of statistics per block, as far as the file has them.

    Only plain leaves outside lists and maps have any.
    """
    groups = [footer.row_group(i) for i in range(footer.num_row_groups)]
    columns: dict[str, pa.Array] = {"rows": pa.array([g.num_rows for g in groups], pa.int64())}
    clean = _without_nans(footer)
    for at, field in plain_leaves(layout, schema):
        if field.id not in ids:
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


def plain_leaves(layout: Layout, schema: Schema) -> Iterator[tuple[int, Field]]:
    """Yield the position and field of each leaf that has bounds and is outside lists and maps."""
    for at, path in enumerate(layout.leaves):
        field = schema.by_id.get(path[-1])
        if field is None or any(isinstance(schema.by_id[i].type, Array | Map) for i in path[:-1]):
            continue
        if has_bounds(field.type):
            yield at, field


def extremes_of(footer: pq.FileMetaData, leaves: Mapping[int, Field]) -> Extremes:
    """Return the least and greatest value of ``leaves``, given by position, in each row group.

    Texts may be no UTF-8. A zero may have either sign.
    """
    groups = [footer.row_group(i) for i in range(footer.num_row_groups)]
    found = {}
    for at, field in leaves.items():
        statistics = [g.column(at).statistics for g in groups]
        found[field.id] = (
            _decoded(_raw(statistics, "lo"), field.type),
            _decoded(_raw(statistics, "hi"), field.type),
        )
    return found


def _without_nans(footer: pq.FileMetaData) -> set[int]:
    try:
        noted = json.loads((footer.metadata or {}).get(NANS.encode(), b"{}"))
        return {int(column_id) for column_id, count in noted.items() if count == 0}
    except (ValueError, AttributeError):
        return set()


def _bounds(found: list[Any], kind: str, data_type: DataType) -> pa.Array:
    """Return one bound of all blocks in the column's Arrow type; unknown if missing or not representable."""
    try:
        values = _decoded(_raw(found, kind), data_type)
        values.validate(full=True)
    except (pa.ArrowException, ValueError, TypeError, AttributeError):
        return pa.nulls(len(found), to_arrow_type(data_type))
    return values


def _raw(found: list[Any], kind: str) -> list[Any]:
    """Return one extreme of each block as Parquet stores it; None where it is missing."""
    return [(s.min_raw if kind == "lo" else s.max_raw) if s is not None and s.has_min_max else None for s in found]


def _decoded(raw: list[Any], data_type: DataType) -> pa.Array:
    """Return stored values in the column's Arrow type, without checking texts.

    Raises ``ArrowException``, ``ValueError``, ``TypeError`` or ``AttributeError`` for what is not of the type.
    """
    arrow = to_arrow_type(data_type)
    if isinstance(data_type, Decimal):
        return pa.array([None if v is None else _decimal(v, data_type) for v in raw], arrow)
    if isinstance(data_type, String) or data_type == BINARY:
        return pa.array([v.encode() if isinstance(v, str) else v for v in raw], pa.binary()).view(arrow)
    if pa.types.is_temporal(arrow):
        return pa.array(raw, pa.int32() if arrow.bit_width == 32 else pa.int64()).view(arrow)
    return pa.array(raw, arrow)


def _decimal(value: int | bytes, data_type: Decimal) -> Any:
    unscaled = value if isinstance(value, int) else int.from_bytes(value, "big", signed=True)
    return PyDecimal(unscaled).scaleb(-data_type.scale, Context(prec=40))
