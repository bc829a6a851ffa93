"""Statistics of parts as Delta's JSON, computed for all parts at once.

A bound is written only if it is one for every reader. Readers may take bounds for values that occur, so a bound that is
not exact is left out, except of texts and times, which Delta itself cuts. Of numbers with NaN, or with an unknown
number of NaN, no bound is written: Spark's largest number is NaN. Dates and times before the year 1000 or after 9999
have no text that all readers understand.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.stats.statistics_decoding import Bounds, Decoder
from tamis.core.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Array,
    DataType,
    Field,
    Map,
    Schema,
    String,
    Struct,
)

_FIRST, _LAST = datetime(1000, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)


def plain_json(value: Any) -> str:
    """Return a value as compact JSON without escaped characters.

    Most readers of Delta parse JSON by a library that takes some pairs of escaped surrogates for other characters.
    """
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def statistics_json(parts: pa.Table, schema: Schema, physical: Mapping[int, str]) -> pa.StringArray:
    """Return the ``stats`` of each part, as JSON text."""
    decoder = Decoder(parts)
    lows: list[pa.Array] = []
    highs: list[pa.Array] = []
    nulls: list[pa.Array] = []
    for field in schema:
        if isinstance(field.type, Struct | Array | Map):
            continue
        key = plain_json(physical[field.id]) + ":"
        nulls.append(_entry(key, decoder.count(field.id, "nulls").cast(pa.string())))
        if field.type in (BINARY, BOOLEAN):
            continue
        lo, hi = _bounds(decoder, field)
        lows.append(_entry(key, lo))
        highs.append(_entry(key, hi))
    wide = pc.if_else(parts["deletion"].combine_chunks().is_valid(), ',"tightBounds":false', "")
    return pc.binary_join_element_wise(
        '{"numRecords":',
        parts["rows"].combine_chunks().cast(pa.string()),
        ',"minValues":{',
        _joined(lows, len(parts)),
        '},"maxValues":{',
        _joined(highs, len(parts)),
        '},"nullCount":{',
        _joined(nulls, len(parts)),
        "}",
        wide,
        "}",
        "",
    )


def _bounds(decoder: Decoder, field: Field) -> tuple[pa.Array, pa.Array]:
    """Return the texts of a column's bounds; NULL where none may be written."""
    found = decoder.bounds(field.id, field.type)
    cut = isinstance(field.type, String) or field.type in (TIMESTAMP, TIMESTAMP_NTZ)
    lo = found.lo if cut else _where(found.lo, found.lo_exact)
    hi = found.hi if cut else _where(found.hi, found.hi_exact)
    if field.type in (FLOAT, DOUBLE):
        clean = pc.equal(decoder.count(field.id, "nans"), 0)
        lo, hi = _where(lo, clean), _where(hi, clean)
    both = Bounds(lo, hi, found.lo_exact, found.hi_exact)
    return _texts(both.lo, field.type, up=False), _texts(both.hi, field.type, up=True)


def _texts(values: pa.Array, data_type: DataType, *, up: bool) -> pa.Array:
    """Return values as JSON texts; ``up`` rounds times up to milliseconds."""
    if isinstance(data_type, String):
        return pa.array([None if v is None else plain_json(v) for v in values.to_pylist()], pa.string())
    if data_type in (FLOAT, DOUBLE):
        wide = values.cast(pa.float64())  # the decimal digits of a float are no exact bound for who reads doubles
        return _where(wide, pc.is_finite(wide)).cast(pa.string())
    if data_type == DATE:
        return _quoted(_where(values, _in_range(values)), "%Y-%m-%d")
    if data_type in (TIMESTAMP, TIMESTAMP_NTZ):
        plain = values.cast(pa.timestamp("us"))  # in UTC
        plain = _where(plain, _in_range(plain))
        rounded = pc.ceil_temporal(plain, unit="millisecond") if up else pc.floor_temporal(plain, unit="millisecond")
        zone = "Z" if data_type == TIMESTAMP else ""
        return _quoted(rounded.cast(pa.timestamp("ms")), "%Y-%m-%dT%H:%M:%S", zone)
    return values.cast(pa.string())


def _in_range(values: pa.Array) -> pa.Array:
    """Return whether dates or times have years of four digits. Dates are compared as such: not all fit in a time."""
    first, last = (pa.scalar(at.replace(tzinfo=None), pa.timestamp("us")).cast(values.type) for at in (_FIRST, _LAST))
    return pc.and_(pc.greater_equal(values, first), pc.less(values, last))


def _quoted(values: pa.Array, form: str, zone: str = "") -> pa.Array:
    return pc.binary_join_element_wise('"', pc.strftime(values, format=form), f'{zone}"', "")


def _where(values: pa.Array, mask: pa.Array) -> pa.Array:
    """Return the values where ``mask`` is true; elsewhere, and where it is unknown, NULL."""
    return pc.if_else(pc.fill_null(mask, False), values, pa.scalar(None, values.type))


def _entry(key: str, texts: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(key, texts, "")


def _joined(entries: list[pa.Array], length: int) -> pa.Array:
    """Join entries by commas, without those that are NULL."""
    if not entries:
        return pa.array([""] * length, pa.string())
    # where all are NULL, Arrow's own way to skip NULLs gives no row
    texts = [pc.coalesce(pc.binary_join_element_wise(",", entry, ""), "") for entry in entries]
    return pc.utf8_slice_codeunits(pc.binary_join_element_wise(*texts, ""), 1)
