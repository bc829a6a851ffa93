"""Statistics of parts as Iceberg's metrics: counts and serialized bounds by column id, for all parts at once.

To many engines NaN is the largest number, as in Spark. But Iceberg's readers skip a file for ``x > 1`` by its upper
bound, though it holds NaN, and by a count of NaN that says there is nothing else. So neither is written then.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.stats.statistics_decoding import Bounds, Decoder
from tamis.core.types import (
    BOOLEAN,
    BYTE,
    DOUBLE,
    FLOAT,
    SHORT,
    Array,
    DataType,
    Decimal,
    Map,
    Schema,
    String,
    Struct,
)

Pairs = list[dict[str, Any]]
METRICS = ("value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")


def metrics_of(parts: pa.Table, schema: Schema) -> dict[str, list[Pairs]]:
    """Return each of ``METRICS`` for each part; what is not known exactly is left out."""
    decoder = Decoder(parts)
    found: dict[str, list[tuple[int, Sequence[Any]]]] = {name: [] for name in METRICS}
    rows = parts["rows"].to_pylist()
    for field in schema:
        if isinstance(field.type, Struct | Array | Map):
            continue
        found["value_counts"].append((field.id, rows))
        found["null_value_counts"].append((field.id, decoder.count(field.id, "nulls").to_pylist()))
        lo, hi = _served_bounds(decoder.bounds(field.id, field.type), field.type)
        if field.type in (FLOAT, DOUBLE):
            nans = decoder.count(field.id, "nans")
            some = pc.less(nans, decoder.rows())
            found["nan_value_counts"].append((field.id, pc.if_else(some, nans, None).to_pylist()))
            hi = pc.if_else(pc.fill_null(pc.equal(nans, 0), False), hi, pa.scalar(None, hi.type))
        found["lower_bounds"].append((field.id, serialize_values(lo, field.type)))
        found["upper_bounds"].append((field.id, serialize_values(hi, field.type)))
    return {name: _by_part(columns, len(parts)) for name, columns in found.items()}


def _served_bounds(bounds: Bounds, data_type: DataType) -> tuple[pa.Array, pa.Array]:
    """Return the bounds that a reader may take for values that occur.

    Iceberg's reader in Spark answers min and max by the bounds of all columns but texts, so others must be exact.
    """
    if isinstance(data_type, String):
        return bounds.lo, bounds.hi
    nothing = pa.scalar(None, bounds.lo.type)
    return pc.if_else(bounds.lo_exact, bounds.lo, nothing), pc.if_else(bounds.hi_exact, bounds.hi, nothing)


def serialize_values(values: pa.Array, data_type: DataType) -> list[bytes | None]:
    """Return values in Iceberg's binary form of single values."""
    if isinstance(data_type, Decimal):
        exact = Context(prec=40)
        unscaled = (None if v is None else v.scaleb(data_type.scale, exact) for v in values.to_pylist())
        return [None if v is None else _big_endian(int(v)) for v in unscaled]
    if data_type == BOOLEAN:
        return [None if v is None else b"\x01" if v else b"\x00" for v in values.to_pylist()]
    if data_type in (BYTE, SHORT):
        values = values.cast(pa.int32())
    if pa.types.is_string(values.type):
        return list(values.cast(pa.binary()).to_pylist())
    if pa.types.is_binary(values.type):
        return list(values.to_pylist())
    return list(values.view(pa.binary(values.type.bit_width // 8)).to_pylist())


def _big_endian(value: int) -> bytes:
    """Return a whole number in two's complement, in as few bytes as hold it."""
    return value.to_bytes((value if value >= 0 else ~value).bit_length() // 8 + 1, "big", signed=True)


def _by_part(columns: list[tuple[int, Sequence[Any]]], count: int) -> list[Pairs]:
    out: list[Pairs] = [[] for _ in range(count)]
    for column_id, values in columns:
        for pairs, value in zip(out, values, strict=True):
            if value is not None:
                pairs.append({"key": column_id, "value": value})
    return out
