"""Statistics of a Delta log as columns of a manifest: only what the protocol vouches for.

Delta cuts texts, truncates times to milliseconds and their zones' offsets to minutes, may have decimals as doubles, and
says nothing about NaN. Where a writer could have meant two things, the bound is widened to hold under both, or left
out. Bounds never say that they occur. Counts of NULLs of arrays and maps are left out: deltalake wrote those of their
elements.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from tamis.bridges.sources.delta_schema import Place
from tamis.bridges.sources.struct_fields import StructFields
from tamis.bridges.sources.text_bounds import above_cut_text
from tamis.core.stats.statistics_columns import bound_name, count_name, has_bounds
from tamis.core.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGRAL,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Array,
    DataType,
    Map,
    String,
    Struct,
)
from tamis.core.types import Decimal as DecimalType
from tamis.core.types.arrow import to_arrow_type

_LOW, _HIGH, _NULLS = "minValues", "maxValues", "nullCount"
_MILLISECOND = 999
"""What truncation to milliseconds may have taken away, in microseconds."""

_OFFSET_SECONDS = 59 * 10**6
"""What truncation of a zone's offset to minutes may have moved an instant by, in microseconds."""
_WHOLE_OFFSETS = 94_694_400 * 10**6
"""1973-01-01 as microseconds since 1970: since 1972, all zones have offsets of whole minutes."""

_EXACT_DIGITS = 15
"""Decimals of as many digits are distinguished by doubles, even by ones that are a few units off."""
_LOST_SHARE = 2.0**-48
"""More than the share of a number by which a few operations on doubles are off."""

_AT_ONCE = 2**16
"""Documents that are parsed together."""


def file_statistics(files: pa.Table, places: Sequence[Place]) -> dict[str, pa.Array]:
    """Return ``rows`` and the statistics columns of ``files`` (columns ``stats``, ``deletionVector``)."""
    leaves = [p for p in places if not isinstance(p.field.type, Struct | Array | Map)]
    texts = _array(files["stats"])
    slices = [texts.slice(at, _AT_ONCE) for at in range(0, max(len(texts), 1), _AT_ONCE)]
    parsed = StructFields(pa.concat_arrays([_parsed_json(each, leaves) for each in slices]))
    typed = StructFields(_array(files["stats_parsed"])) if "stats_parsed" in files.column_names else None

    def leaf(*path: str) -> pa.Array:
        found = parsed.leaf(path)
        other = None if typed is None else typed.leaf(path)
        return found if other is None else _either(found, other, len(files))

    rows = _counted(leaf("numRecords"), len(files))
    out: dict[str, pa.Array] = {"rows": rows}
    wide = _array(files["deletionVector"]).is_valid()
    tight = leaf("tightBounds")
    if tight is not None:
        wide = pc.or_(wide, pc.fill_null(pc.equal(tight, False), False))
    for place in leaves:
        out |= _column(place, leaf, rows, wide)
    return out


def _column(place: Place, leaf: Callable[..., pa.Array | None], rows: pa.Array, wide: pa.Array) -> dict[str, pa.Array]:
    out: dict[str, pa.Array] = {}
    data_type, identifier = place.field.type, place.field.id
    nulls = _counted(leaf(_NULLS, *place.physical), len(rows))
    # counts of NULLs beyond the rows, or of rows that are deleted meanwhile, say nothing
    vouched = pc.or_(pc.equal(nulls, 0), pc.or_(pc.equal(nulls, rows), pc.invert(wide)))
    fits = pc.and_(vouched, pc.fill_null(pc.less_equal(nulls, rows), True))
    out[count_name(identifier, "nulls")] = pc.if_else(pc.fill_null(fits, False), nulls, pa.scalar(None, pa.int64()))
    if not _compared(data_type):
        return out
    lo, hi = (_bound(leaf(side, *place.physical), place, side, len(rows)) for side in (_LOW, _HIGH))
    out[bound_name(identifier, data_type, "lo")] = lo
    out[bound_name(identifier, data_type, "hi")] = hi
    return out


def _compared(data_type: DataType) -> bool:
    """Return whether the log has bounds of the type that can be read."""
    plain = (*INTEGRAL, FLOAT, DOUBLE, BOOLEAN, DATE, TIMESTAMP, TIMESTAMP_NTZ)
    return has_bounds(data_type) and (data_type in plain or isinstance(data_type, String | DecimalType))


def _bound(raw: pa.Array | None, place: Place, side: str, rows: int) -> pa.Array:
    data_type = place.field.type
    arrow = to_arrow_type(data_type)
    if raw is None:
        return pa.nulls(rows, arrow)
    found = _cast(raw, arrow)
    if isinstance(data_type, String):
        return above_cut_text(found) if side == _HIGH else found
    if data_type in (FLOAT, DOUBLE):
        return _number(found, place, side)
    if data_type in (TIMESTAMP, TIMESTAMP_NTZ):
        return _moment(found, side, zoned=data_type == TIMESTAMP)
    if isinstance(data_type, DecimalType) and data_type.precision > _EXACT_DIGITS:
        return _rounded(found, data_type, side)
    return found


def _rounded(found: pa.Array, kind: DecimalType, side: str) -> pa.Array:
    """Widen by what a double may have lost of a decimal: delta-rs computes bounds of decimals with doubles."""
    near = pc.abs(found.cast(pa.float64()))
    lost = pc.add(pc.multiply(near, _LOST_SHARE), 10.0**-kind.scale)
    room = pc.less(pc.add(near, pc.multiply(lost, 2.0)), 10.0 ** (kind.precision - kind.scale))
    none, wide = pa.scalar(None, pa.float64()), pa.decimal256(75, kind.scale)
    change = pc.if_else(room, lost, none).cast(wide)
    moved = (pc.add if side == _HIGH else pc.subtract)(found.cast(wide), change)
    return moved.cast(found.type)


def _number(found: pa.Array, place: Place, side: str) -> pa.Array:
    found = pc.if_else(pc.fill_null(pc.is_nan(found), False), pa.scalar(None, found.type), found)
    if place.was_float and place.field.type == DOUBLE:
        # the text of a FLOAT, read as a DOUBLE, is another number than the value, read as a DOUBLE
        short = found.cast(pa.float32(), safe=False).cast(pa.float64())
        return (pc.max_element_wise if side == _HIGH else pc.min_element_wise)(found, short)
    return found


def _moment(found: pa.Array, side: str, *, zoned: bool) -> pa.Array:
    """Widen by the millisecond that truncation took; before 1970, some writers truncate towards it.

    ``zoned``: also by what truncation of an offset to minutes moved an old instant by, in either direction.
    """
    micros = found.cast(pa.int64())
    moved = pc.if_else(pc.less(micros, _WHOLE_OFFSETS), _OFFSET_SECONDS if zoned else 0, 0)
    upper = side == _HIGH
    cut = _MILLISECOND if upper else pc.if_else(pc.less_equal(micros, 0), _MILLISECOND, 0)
    widest = _MILLISECOND + _OFFSET_SECONDS
    room = pc.less(micros, 2**63 - 1 - widest) if upper else pc.greater(micros, -(2**63) + widest)
    inside = pc.if_else(room, micros, pa.scalar(None, pa.int64()))
    return (pc.add if upper else pc.subtract)(inside, pc.add(moved, cut)).cast(found.type)


def _cast(raw: pa.Array, arrow: pa.DataType) -> pa.Array:
    """Cast to the column's type; NULL, which means unknown, where a value does not fit."""
    try:
        return raw.cast(arrow)
    except pa.ArrowException:
        pass
    distinct = raw.dictionary_encode()
    values = pa.concat_arrays([_cast_one(v, arrow) for v in distinct.dictionary] or [pa.nulls(0, arrow)])
    return values.take(distinct.indices)


def _cast_one(value: pa.Scalar, arrow: pa.DataType) -> pa.Array:
    try:
        return pa.array([value.as_py()], value.type).cast(arrow)
    except pa.ArrowException:
        return pa.nulls(1, arrow)


def _counted(raw: pa.Array | None, rows: int) -> pa.Array:
    if raw is None:
        return pa.nulls(rows, pa.int64())
    found = _cast(raw, pa.int64())
    return pc.if_else(pc.fill_null(pc.less(found, 0), True), pa.scalar(None, pa.int64()), found)


def _either(one: pa.Array | None, other: pa.Array, rows: int) -> pa.Array:
    if one is None or one.null_count == rows:
        return other
    if one.type == other.type:
        return pc.coalesce(one, other)
    if pa.types.is_string(one.type):  # dates and times are text in JSON
        return pc.coalesce(_cast(one, other.type), other)
    return pc.coalesce(one, _cast(other, one.type))


def _array(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)


_COLUMNS = {_LOW: True, _HIGH: True, _NULLS: False}
"""Whether the object holds values; else it holds counts."""


def _parsed_json(texts: pa.Array, places: Sequence[Place]) -> pa.Array:
    """Return the documents as structs; NULL where there is none."""
    wanted = [("numRecords", pa.int64()), ("tightBounds", pa.bool_())]
    wanted += [(key, _tree(places, values)) for key, values in _COLUMNS.items()]
    schema = pa.schema([(name, kind) for name, kind in wanted if kind != pa.struct([])])
    if not len(texts):
        return pa.nulls(0, pa.struct(list(schema)))
    present = pc.utf8_trim_whitespace(pc.replace_substring_regex(pc.fill_null(texts, ""), r"[\r\n]+", " "))
    lines = pc.if_else(pc.equal(present, ""), "{}", present)
    whole = pa.ListArray.from_arrays(pa.array([0, len(lines)], pa.int32()), lines)
    data = pc.binary_join(whole, "\n")[0].as_buffer()
    options = pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    blocks = pj.ReadOptions(block_size=min(max(data.size + 1, 2**16), 2**31 - 2**16))
    try:
        table = pj.read_json(pa.BufferReader(data), read_options=blocks, parse_options=options)
        if len(table) != len(texts):
            raise ValueError("documents are not one a line")
        return pa.concat_arrays(table.select(schema.names).to_struct_array().chunks)
    except (pa.ArrowException, ValueError):  # NaN is text among numbers: Python is more tolerant, and slower
        return _parsed_one_by_one(lines.to_pylist(), schema)


def _tree(places: Sequence[Place], values: bool) -> pa.DataType:
    """Return the struct in which the log has a statistic of all places."""
    root: dict[str, Any] = {}
    for place in places:
        if values and not _compared(place.field.type):
            continue
        node = root
        for name in place.physical[:-1]:
            node = node.setdefault(name, {})
        node[place.physical[-1]] = _raw_type(place.field.type) if values else pa.int64()

    def struct(node: dict[str, Any]) -> pa.DataType:
        return pa.struct([(name, struct(v) if isinstance(v, dict) else v) for name, v in node.items()])

    return struct(root)


def _raw_type(data_type: DataType) -> pa.DataType:
    """Return how JSON has a value of the type."""
    if data_type in INTEGRAL:
        return pa.int64()
    if data_type in (FLOAT, DOUBLE, BOOLEAN) or isinstance(data_type, DecimalType):
        return to_arrow_type(data_type)
    return pa.string()


def _parsed_one_by_one(texts: Sequence[str], schema: pa.Schema) -> pa.Array:
    """Parse documents of which some are odd; a value that does not fit is unknown, and so is a document."""
    kind = pa.struct(list(schema))
    return pa.array([_fitting(_document(text), kind) for text in texts], kind)


def _document(text: str) -> Any:
    try:
        return json.loads(text, parse_float=str)
    except (ValueError, RecursionError):
        return {}


def _fitting(value: Any, kind: pa.DataType) -> Any:
    """Return the value if it fits the type, else None."""
    if pa.types.is_struct(kind):
        return {f.name: _fitting(value.get(f.name), f.type) for f in kind} if isinstance(value, dict) else None
    if isinstance(value, bool) != pa.types.is_boolean(kind) or value is None:
        return None
    if isinstance(value, str) and any(0xD800 <= ord(c) <= 0xDFFF for c in value):
        return None
    try:
        if pa.types.is_string(kind) or pa.types.is_boolean(kind):
            return value if isinstance(value, str | bool) else None
        return pa.scalar(str(value)).cast(kind).as_py()
    except pa.ArrowException:
        return None
