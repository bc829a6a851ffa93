"""Steps into VARIANT and casts from it: ``v:a.b::int`` is one call, ``variant_get(v, '$.a.b', 'int')``.

A step that finds nothing gives NULL, and so does a cast of JSON's null. Any other value is cast like a value
of its own type; if that has no result, the cast fails (``try_``: NULL), in every mode of the session.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.expr.arrow_values import Datum, Evaluated, Mask, any_set, full_length, none_of, row_count
from tamis.core.expr.calls import make_call
from tamis.core.expr.coerce import is_instant, is_numeric, is_text
from tamis.core.expr.evaluate import evaluate
from tamis.core.expr.functions.json.json_text import known_steps, path_of
from tamis.core.expr.java_doubles import LEFT_TO_SPARK, Unsure, unsure_doubles
from tamis.core.expr.json_codec import variant_columns as v
from tamis.core.expr.json_codec import variant_text
from tamis.core.expr.json_codec.jackson_reader import Malformed
from tamis.core.expr.json_codec.json_path import Steps, text_of
from tamis.core.expr.json_codec.variant_encoding import encode_variant
from tamis.core.expr.json_codec.variant_extraction import cut_out
from tamis.core.expr.registry import Function, Partial, Signature, cast_from, declare_function, declare_sugar
from tamis.core.expr.tree import Call, Column, Expr, Literal, Mode, Opaque
from tamis.core.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    DataType,
    Decimal,
)
from tamis.core.types.arrow import to_arrow_type
from tamis.core.types.logical import type_from_json
from tamis.errors import InvalidInput

_NAMES = {
    "int": "integer", "bigint": "long", "smallint": "short", "tinyint": "byte", "real": "float",
    "dec": "decimal(10,0)", "numeric": "decimal(10,0)", "decimal": "decimal(10,0)",
}  # fmt: skip


def castable(data_type: DataType) -> bool:
    """Return whether casts of VARIANT to this type are computed here."""
    return is_numeric(data_type) or data_type in {BOOLEAN, STRING, BINARY, VARIANT, DATE, TIMESTAMP, TIMESTAMP_NTZ}


def get(value: Expr, steps: Steps, data_type: DataType, mode: Mode, zone: str | None) -> Expr | None:
    """Build ``value`` at ``steps`` as ``data_type``; None if it is not computed here.

    Nested steps become one path.
    """
    if isinstance(value, Call) and value.function == "variant_get" and value.type == VARIANT:
        value, steps = value.args[0], (*known_steps(value), *steps)
    path = text_of(steps)
    if path is None or value.type != VARIANT or not castable(data_type):
        return None
    mode = Mode.TRY if mode is Mode.TRY else Mode.ANSI
    zoned = zone or "UTC" if is_instant(data_type) or is_text(data_type) else None
    return Call(
        data_type, "variant_get", (value, Literal(STRING, path)), Mode.ANSI if data_type == VARIANT else mode, zoned
    )


@cast_from(VARIANT)
def cast(value: Expr, data_type: DataType, mode: Mode, zone: str | None) -> Expr | None:
    """Build a cast of VARIANT."""
    return value if data_type == VARIANT else get(value, (), data_type, mode, zone)


@declare_sugar("variant_get")
def _variant_get(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Expr | None:
    return _extract(args, mode, zone)


@declare_sugar("try_variant_get")
def _try_variant_get(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Expr | None:  # noqa: ARG001
    return _extract(args, Mode.TRY, zone)


def _extract(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Expr | None:
    steps = path_of(args)
    target = VARIANT if len(args) == 2 else _type(args[2]) if len(args) == 3 else None
    return None if steps is None or target is None else get(args[0], steps, target, mode, zone)


def _type(arg: Expr) -> DataType | None:
    """Return the type that the third argument names."""
    if not isinstance(arg, Literal) or not isinstance(arg.value, str):
        return None
    name = " ".join(arg.value.lower().split())
    try:
        return type_from_json(_NAMES.get(name, name.replace(", ", ",")))
    except InvalidInput:
        return None


def _never(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Signature | None:  # noqa: ARG001
    """Reject: only ``get`` builds these calls."""
    return None


def _kernel(call_: Call, args: list[Datum]) -> Evaluated:
    column = full_length(args[0], row_count(args))
    found = v.at_path(v.nodes(column), known_steps(call_))
    if call_.type == VARIANT:
        return Evaluated(cut_out(column, found))
    return _cast(call_, found)


def _cast(call_: Call, found: v.Nodes) -> Evaluated:
    """Cast each kind by the cast of its own type, and recombine the results."""
    kinds = found.kinds()
    bad, left, pieces, places = none_of(len(found)), none_of(len(found)), [], []
    for kind in np.unique(kinds).tolist():
        if kind in (v.MISSING, v.NULL):
            continue
        rows_ = np.flatnonzero(kinds == kind)
        values, bad[rows_], left[rows_] = _of_kind(call_, found.take(rows_), kind)
        pieces.append(values)
        places.append(rows_)
    arrow = to_arrow_type(call_.type)
    if not pieces:
        return Evaluated(pa.nulls(len(found), arrow))
    index = np.full(len(found), -1, np.int64)
    order = np.concatenate(places)
    index[order] = np.arange(len(order))
    out = pa.concat_arrays(pieces).take(pa.array(index, mask=index < 0))
    failed = left if call_.mode is Mode.TRY else bad | left
    error = f"[INVALID_VARIANT_CAST] A VARIANT cannot be cast to {call_.type}."
    return Evaluated(out, any_set(failed), _first_error(failed, left, error))


def _first_error(failed: Mask, left: Mask, error: str) -> str | None:
    """Return the message for the first row that fails: ``error``, or that the row is left to Spark."""
    if not failed.any():
        return None
    return LEFT_TO_SPARK if left[failed.argmax()] else error


_SOURCE: dict[int, tuple[DataType, Callable[[v.Nodes], Any]]] = {
    v.TRUE: (BOOLEAN, lambda n: pa.array(np.ones(len(n), bool))),
    v.FALSE: (BOOLEAN, lambda n: pa.array(np.zeros(len(n), bool))),
    v.LONG: (LONG, lambda n: pa.array(v.longs(n))),
    v.DOUBLE: (DOUBLE, lambda n: pa.array(v.fixed(n, "<f8"))),
    v.FLOAT: (FLOAT, lambda n: pa.array(v.fixed(n, "<f4"))),
    v.STRING: (STRING, v.texts),
    v.DATE: (DATE, lambda n: pa.array(v.fixed(n, "<i4")).view(pa.date32())),
    v.TIMESTAMP: (TIMESTAMP, lambda n: pa.array(v.fixed(n, "<i8")).view(to_arrow_type(TIMESTAMP))),
    v.TIMESTAMP_NTZ: (TIMESTAMP_NTZ, lambda n: pa.array(v.fixed(n, "<i8")).view(to_arrow_type(TIMESTAMP_NTZ))),
}


def _of_kind(call_: Call, found: v.Nodes, kind: int) -> tuple[Any, Mask, Mask]:
    """Cast values of one kind; return the values, where the cast fails, and where it is left to Spark."""
    if is_text(call_.type) and kind in (v.OBJECT, v.ARRAY, v.DOUBLE):
        texts, left = variant_text.texts(found)
        out = pa.array(texts, pa.string())
        out = pc.utf8_trim(out, '"') if kind == v.DOUBLE else out
        return out, np.asarray(out.is_null()), left
    if call_.type == BINARY and kind in (v.BINARY, v.STRING):
        return v.texts(found).cast(pa.binary()), none_of(len(found)), none_of(len(found))
    nothing = pa.nulls(len(found), to_arrow_type(call_.type))
    never = (kind == v.BINARY and not is_text(call_.type)) or (call_.type == BINARY and kind in (*_SOURCE, v.DECIMAL))
    if never or kind in (v.OBJECT, v.ARRAY):
        return nothing, ~none_of(len(found)), none_of(len(found))
    if kind not in (*_SOURCE, v.DECIMAL):  # the text of a binary, and kinds of later versions
        return nothing, none_of(len(found)), ~none_of(len(found))
    values, bad, left = _converted(call_, found, kind)
    if kind == v.DOUBLE and isinstance(call_.type, Decimal):
        left = left | unsure_doubles(v.fixed(found, "<f8"), call_.type.scale)
    return values, bad, left


def _converted(call_: Call, found: v.Nodes, kind: int) -> tuple[Any, Mask, Mask]:
    """Cast values by the cast of their own type."""
    if kind == v.DECIMAL:
        return _decimals(call_, v.decimals(found))
    if call_.type == TIMESTAMP and kind == v.LONG:
        return _seconds([seconds * 1_000_000 for seconds in v.longs(found).tolist()])
    if call_.type == TIMESTAMP and kind == v.DOUBLE:
        return _seconds([int(x * 1e6) if abs(x) < 1e13 else 2**63 for x in v.fixed(found, "<f8").tolist()])
    source, read = _SOURCE[kind]
    return _by_cast(call_, read(found), source)


def _seconds(micros: list[int]) -> tuple[Any, Mask, Mask]:
    """Return instants; one beyond 64 bits is invalid."""
    good = [m if -(2**63) <= m < 2**63 else None for m in micros]
    bad = np.array([m is None for m in good], bool)
    return pa.array(good, pa.int64()).view(to_arrow_type(TIMESTAMP)), bad, none_of(len(micros))


def _by_cast(call_: Call, values: Any, source: DataType) -> tuple[Any, Mask, Mask]:
    """Cast values of the type ``source``; a cast that is not computed here is left to Spark, unless it has none."""
    target, none = call_.type, none_of(len(values))
    if source == target:
        return values, none, none
    tree = make_call("cast", Column(source, (0,), "value"), mode=Mode.TRY, zone=call_.zone, type=target)
    if isinstance(tree, Opaque):
        nothing = pa.nulls(len(values), to_arrow_type(target))
        return (nothing, ~none, none) if _never_cast(source, target) else (nothing, none, ~none)
    out = evaluate(tree, {0: values}, len(values))
    left = none if out.failed is None else out.failed  # try_cast fails for nothing else
    return out.values, np.asarray(out.values.is_null()) & ~left, left


def _never_cast(source: DataType, target: DataType) -> bool:
    """Return whether Spark casts no value of ``source`` in a VARIANT to ``target``."""
    if source in (DATE, TIMESTAMP_NTZ):
        return is_numeric(target) or target == BOOLEAN
    if source == TIMESTAMP:
        return target == BOOLEAN
    return target in (DATE, TIMESTAMP_NTZ) or (source == BOOLEAN and target == TIMESTAMP)


def _decimals(call_: Call, values: list[Any]) -> tuple[Any, Mask, Mask]:
    """Cast decimals of any scale, grouped by scale as decimals of 38 digits."""
    none = none_of(len(values))
    if is_text(call_.type):
        return pa.array([variant_text.number(value) for value in values], pa.string()), none, none
    if call_.type in (DOUBLE, FLOAT):
        texts = pa.array([str(value) for value in values], pa.string())  # rounded once, from all digits
        return texts.cast(to_arrow_type(call_.type)), none, none
    if call_.type == TIMESTAMP:
        return _seconds([int(value.scaleb(6, v.EVERY_DIGIT)) for value in values])
    if call_.type == BOOLEAN:
        return pa.array([value != 0 for value in values]), none, none
    scales = np.array([-value.as_tuple().exponent for value in values])
    out: list[Any] = [None] * len(values)
    bad, left = none.copy(), none.copy()
    for scale in np.unique(scales).tolist():
        at = np.flatnonzero(scales == scale)
        source = Decimal(38, scale)
        numbers = pa.array([values[i] for i in at.tolist()], to_arrow_type(source))
        cast_, bad[at], left[at] = _by_cast(call_, numbers, source)
        for i, value in zip(at.tolist(), cast_, strict=True):
            out[i] = value
    return pa.array(out, to_arrow_type(call_.type)), bad, left


declare_function(
    Function(
        "variant_get", _never, _kernel,
        partial=lambda c: Partial.NEVER if c.type == VARIANT or c.mode is Mode.TRY else Partial.ANYWHERE,
        moded=lambda _a, t: t != VARIANT, rule="json",
        note="``v:a.b::type`` too; what is known of the path, kind by kind",
    )
)  # fmt: skip


def _null_resolve(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Signature | None:  # noqa: ARG001
    return Signature(args, BOOLEAN) if len(args) == 1 and args[0].type == VARIANT else None


def _is_variant_null(call_: Call, args: list[Datum]) -> Evaluated:  # noqa: ARG001
    return Evaluated(pa.array(v.nodes(full_length(args[0], row_count(args))).kinds() == v.NULL))


declare_function(
    Function(
        "is_variant_null",
        _null_resolve,
        _is_variant_null,
        sql=("is_variant_null",),
        rule="json",
        keeps_nulls=True,
        note="JSON's null, not SQL's",
    )
)


def _parse_resolve(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Signature | None:  # noqa: ARG001
    return Signature(args, VARIANT) if len(args) == 1 and is_text(args[0].type) else None


_MALFORMED = "[MALFORMED_RECORD_IN_PARSING] The text is not JSON that VARIANT can hold."


def _parse_json(call_: Call, args: list[Datum]) -> Evaluated:
    texts = full_length(args[0], row_count(args)).cast(pa.binary()).to_pylist()
    bad, left = none_of(len(texts)), none_of(len(texts))
    pairs: list[tuple[bytes, bytes] | None] = [None] * len(texts)
    for i, text in enumerate(texts):
        if text is not None:
            try:
                pairs[i] = encode_variant(text.decode())
            except (Malformed, UnicodeDecodeError):
                bad[i] = True
            except Unsure:
                left[i] = True
    parts = [pa.array([b"" if p is None else p[k] for p in pairs], pa.binary()) for k in (0, 1)]
    out = pa.StructArray.from_arrays(
        parts, fields=list(to_arrow_type(VARIANT)), mask=pa.array([p is None for p in pairs], pa.bool_())
    )
    failed = left if call_.mode is Mode.TRY else bad | left
    return Evaluated(out, any_set(failed), _first_error(failed, left, _MALFORMED))


declare_function(
    Function(
        "parse_json", _parse_resolve, _parse_json, sql=("parse_json",),
        partial=lambda c: Partial.NEVER if c.mode is Mode.TRY else Partial.ANYWHERE,
        moded=lambda _a, _t: True, rule="json", note="below a step or a cast: what is known of the path",
    )
)  # fmt: skip


@declare_sugar("try_parse_json")
def _try_parse_json(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Expr | None:  # noqa: ARG001
    return make_call("parse_json", *args, mode=Mode.TRY, zone=zone)
