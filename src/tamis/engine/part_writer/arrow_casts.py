"""Lossless conversion of Arrow values to a table's types: allowed conversions and their errors.

Invariant: every value keeps its meaning in the column's type, or the whole batch is refused by name. Fields
match by name ignoring case, as in Spark.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.expr.functions.cast.cast_kernels import INTERVAL_UNITS
from tamis.core.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGRAL,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    Array,
    DataType,
    DayTimeInterval,
    Decimal,
    Field,
    Map,
    String,
    Struct,
    Time,
)
from tamis.core.types.arrow import to_arrow_field, to_arrow_type
from tamis.core.types.blank_values import blank_array, null_array, struct_array
from tamis.core.types.utf8_texts import is_malformed, malformed_flags, padded_texts, spark_length
from tamis.engine.part_writer.plain_arrays import to_plain
from tamis.errors import InvalidInput, SchemaMismatch
from tamis.storage.files.column_conversion import drop_unreferenced


def fit_array(array: pa.Array, target: Field, path: str) -> pa.Array:
    """Convert ``array`` to the type of ``target``; ``path`` is the displayed column name.

    Raises ``SchemaMismatch``, or ``InvalidInput`` for text that is too long.
    """
    array = to_plain(array)
    if pa.types.is_null(array.type):
        array = pa.nulls(len(array), to_arrow_type(target.type))
    if array.null_count and not target.nullable:
        raise null_in_required(path)
    match target.type:
        case Struct(fields):
            return _struct(array, fields, target.type, path)
        case Array(element):
            array = drop_unreferenced(_list(array, target.type, path))
            return _rebuild(array, target.type, fit_array(array.values, element, f"{path}.element"))
        case Map(key, value):
            _check(pa.types.is_map(array.type), array.type, target.type, path)
            array = drop_unreferenced(array)
            entries = [fit_array(array.keys, key, f"{path}.key"), fit_array(array.items, value, f"{path}.value")]
            return _rebuild(
                array,
                target.type,
                pa.StructArray.from_arrays(entries, fields=[to_arrow_field(key), to_arrow_field(value)]),
            )
    return _leaf(array, target.type, path)


def match_fields(source: list[str], fields: tuple[Field, ...], path: str = "") -> list[int | None]:
    """Return the index of each field in ``source``; None for an optional field that is missing.

    Raises ``SchemaMismatch`` for missing required, extra, or duplicate columns.
    """
    folded: dict[str, list[int]] = {}
    for at, name in enumerate(source):
        folded.setdefault(name.lower(), []).append(at)
    found: list[int | None] = []
    for f in fields:
        places = folded.get(f.name.lower(), [])
        exact = [at for at in places if source[at] == f.name]
        chosen = exact or places
        if len(chosen) > 1:
            raise _mismatch(
                f"Column {path}{f.name!r} is in the data {len(chosen)} times.",
                "DUPLICATE_COLUMN",
                f.name,
                "Give every column one name.",
            )
        if not chosen and not f.nullable and f.write_default is None and not f.computed:
            raise _mismatch(
                f"Column {path}{f.name!r} is required and is not in the data.",
                "MISSING_COLUMN",
                f.name,
                "Add it to the data.",
            )
        found.append(chosen[0] if chosen else None)
    extra = [name for at, name in enumerate(source) if at not in found]
    if extra:
        known = ", ".join(f.name for f in fields)
        raise _mismatch(
            f"Column {path}{extra[0]!r} of the data is not in the table.",
            "EXTRA_COLUMN",
            extra[0],
            f"Drop it, or add it to the table first. Columns are: {known}.",
        )
    return found


def null_in_required(path: str) -> SchemaMismatch:
    return _mismatch(
        f"Column {path!r} is NOT NULL and the data has NULL in it.",
        "NULL_IN_REQUIRED",
        path,
        "Fill it, or drop NOT NULL from the column.",
    )


def _mismatch(message: str, code: str, name: str, remedy: str) -> SchemaMismatch:
    return SchemaMismatch(message, code=code, name=name, remedy=remedy)


def _check(allowed: bool, source: pa.DataType, target: DataType, path: str) -> None:
    if not allowed:
        raise _mismatch(
            f"Column {path!r} is {target}, and {source} does not become that without loss.",
            "TYPE_MISMATCH",
            path,
            "Cast it in the data.",
        )


def _struct(array: pa.Array, fields: tuple[Field, ...], target: DataType, path: str) -> pa.Array:
    _check(pa.types.is_struct(array.type), array.type, target, path)
    places = match_fields([f.name for f in array.type], fields, f"{path}.")
    shown = array.flatten()  # fields of a NULL parent read as NULL and do not violate NOT NULL
    parents = array.is_valid() if array.null_count else None
    children = [
        null_array(to_arrow_type(f.type), len(array))
        if at is None
        else fit_array(_hide(shown[at], parents, f), f, f"{path}.{f.name}")
        for f, at in zip(fields, places, strict=True)
    ]
    targets = [to_arrow_field(f) for f in fields]
    if parents is None:
        return struct_array(children, targets, len(array))
    indices = pc.if_else(parents, pc.subtract(pc.cumulative_sum(parents.cast(pa.int64())), 1), 0)
    children = [
        c if f.nullable else c.take(indices) if len(c) else blank_array(c.type, len(array))
        for c, f in zip(children, fields, strict=True)
    ]
    return struct_array(children, targets, len(array), array.is_null())


def _hide(child: pa.Array, parents: pa.BooleanArray | None, f: Field) -> pa.Array:
    """Reduce a required field to the rows whose parent is not NULL."""
    return child if parents is None or f.nullable else child.filter(parents)


def _list(array: pa.Array, target: Array, path: str) -> pa.Array:
    kind = array.type
    if pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        array = array.cast(pa.list_(kind.value_field))
    _check(pa.types.is_list(array.type), kind, target, path)
    return array


def _rebuild(array: pa.Array, target: DataType, values: pa.Array) -> pa.Array:
    validity, offsets = array.buffers()[:2]
    return pa.Array.from_buffers(
        to_arrow_type(target), len(array), [validity, offsets], array.null_count, array.offset, children=[values]
    )


def _leaf(array: pa.Array, target: DataType, path: str) -> pa.Array:
    arrow = to_arrow_type(target)
    if target == VARIANT:
        return _variant(array, path)
    if array.type != arrow:
        _check(_may_become(array.type, target), array.type, target, path)
        try:
            if isinstance(target, Decimal) and pa.types.is_integer(array.type):
                array = array.cast(pa.decimal128(38, 0) if target.scale > 18 else pa.decimal128(38, target.scale))
            array = array.cast(arrow)
        except pa.ArrowException as error:
            raise _mismatch(
                f"Column {path!r} is {target}, and a value of the data does not fit: {error}.",
                "VALUE_MISMATCH",
                path,
                "Cast it in the data.",
            ) from error
    if isinstance(target, String) and target.length is not None:
        return _sized(array, target, target.length, path)
    if (unit := _unit_of(target)) > 1:
        _check_whole(array, target, unit, path)
    return array


def _unit_of(target: DataType) -> int:
    """Return how many microseconds a unit of the type's last place has; 1 for types without places."""
    if isinstance(target, Time):
        return int(10 ** (6 - target.precision))
    return INTERVAL_UNITS[target.end] if isinstance(target, DayTimeInterval) else 1


def _check_whole(array: pa.Array, target: DataType, unit: int, path: str) -> None:
    """Raise ``SchemaMismatch`` (``VALUE_MISMATCH``) for a time or an interval with parts that the type lacks."""
    micros = pc.fill_null(array.cast(to_arrow_type(target)).cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    if (places := np.flatnonzero(micros % unit)).size:
        value = array[int(places[0])]
        raise _mismatch(
            f"Column {path!r} is {target}, and the value {value} has smaller parts.",
            "VALUE_MISMATCH",
            path,
            "Cut it in the data.",
        )


def _may_become(source: pa.DataType, target: DataType) -> bool:
    """Whether ``source`` can convert to ``target``; the cast checks individual values."""
    for matches, takes in _TAKES:
        if matches(target):
            return any(take(source) for take in takes)
    return False


_kinds = pa.types
_TAKES: list[tuple[Callable[[DataType], bool], tuple[Callable[[pa.DataType], bool], ...]]] = [
    (lambda t: t in INTEGRAL, (_kinds.is_integer,)),
    (lambda t: t == FLOAT, (_kinds.is_integer, _kinds.is_float16, _kinds.is_float32)),
    (lambda t: t == DOUBLE, (_kinds.is_integer, _kinds.is_floating)),
    (lambda t: t == TIMESTAMP, (lambda s: _kinds.is_timestamp(s) and s.tz is not None,)),
    (lambda t: t == TIMESTAMP_NTZ, (lambda s: _kinds.is_timestamp(s) and s.tz is None,)),
    (lambda t: t == BINARY, (_kinds.is_binary, _kinds.is_large_binary, _kinds.is_fixed_size_binary)),
    (lambda t: isinstance(t, Decimal), (_kinds.is_integer, _kinds.is_decimal)),
    (lambda t: isinstance(t, String), (_kinds.is_string, _kinds.is_large_string)),
    (lambda t: isinstance(t, Time), (_kinds.is_time,)),
    (lambda t: isinstance(t, DayTimeInterval), (_kinds.is_duration,)),
    (lambda t: t == DATE, (_kinds.is_date,)),
    (lambda t: t == BOOLEAN, (_kinds.is_boolean,)),
]
"""The accepted Arrow types per logical type."""


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind))


def _variant(array: pa.Array, path: str) -> pa.Array:
    names = {f.name for f in array.type} if pa.types.is_struct(array.type) else set()
    _check(names == {"value", "metadata"}, array.type, VARIANT, path)
    arrow = to_arrow_type(VARIANT)
    held = [array.field(f.name) for f in arrow]
    for child in held:
        _check(_is_bytes(child.type), array.type, VARIANT, path)
        if child.null_count and pc.any(pc.and_not(child.is_null(), array.is_null())).as_py():
            raise null_in_required(path)
    children = [child.cast(pa.binary()).fill_null(b"") for child in held]
    return pa.StructArray.from_arrays(children, fields=list(arrow), mask=array.is_null() if array.null_count else None)


def _sized(array: pa.StringArray, target: String, length: int, path: str) -> pa.StringArray:
    """Pad CHAR to its length and trim excess blanks of CHAR and VARCHAR; any other excess is an error."""
    if is_malformed(array):
        apart = pa.array(malformed_flags(array))
        sound = _sized(pc.if_else(apart, pa.scalar(None, array.type), array), target, length, path)
        raw = array.filter(apart).cast(pa.binary(), safe=False).to_pylist()
        texts = pa.array([_trimmed(text, target, length, path) for text in raw], pa.binary())
        array = pc.replace_with_mask(sound, apart, texts.cast(array.type, safe=False))
    elif (pc.max(pc.utf8_length(array)).as_py() or 0) > length:
        rest = pc.utf8_rtrim(pc.utf8_slice_codeunits(array, length), " ")
        if pc.any(pc.greater(pc.binary_length(rest), 0)).as_py():
            raise _too_long(target, path)
        array = pc.utf8_slice_codeunits(array, 0, length)
    return padded_texts(array, length) if target.kind == "char" else array


def _trimmed(text: bytes, target: String, length: int, path: str) -> bytes:
    """Return a text that is not UTF-8 without excess blanks. Raises ``InvalidInput`` (``TOO_LONG``)."""
    while spark_length(text) > length:
        if not text.endswith(b" "):
            raise _too_long(target, path)
        text = text[:-1]
    return text


def _too_long(target: String, path: str) -> InvalidInput:
    return InvalidInput(
        f"Column {path!r} is {target}, and a value of the data is longer.",
        code="TOO_LONG",
        name=path,
        remedy="Shorten it, or make the column a STRING.",
    )
