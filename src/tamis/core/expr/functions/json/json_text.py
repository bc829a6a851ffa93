"""JSON as text: GET_JSON_OBJECT and FROM_JSON(…).field, which never fail: missing or invalid JSON is NULL."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.core.expr.arrow_values import Datum, Evaluated, any_set, full_length, none_of, row_count
from tamis.core.expr.coerce import is_text
from tamis.core.expr.java_doubles import LEFT_TO_SPARK, Unsure
from tamis.core.expr.json_codec.jackson_reader import (
    Malformed,
    Pairs,
    Truncated,
    compact_json,
    get_json_text,
    loose_document,
    values_of,
)
from tamis.core.expr.json_codec.json_path import Steps, steps_of, text_of
from tamis.core.expr.registry import Function, Signature, declare_function
from tamis.core.expr.tree import Call, Column, Expr, Literal, Mode
from tamis.core.types import BOOLEAN, BYTE, DOUBLE, FLOAT, INTEGER, LONG, SHORT, STRING, DataType, Struct
from tamis.core.types.arrow import to_arrow_type


def path_of(args: tuple[Expr, ...], *, double_quotes: bool = True) -> Steps | None:
    """Return the steps in the second argument, a constant; None if they are not supported (see ``steps_of``)."""
    if len(args) < 2 or not isinstance(args[1], Literal) or not isinstance(args[1].value, str):
        return None
    return steps_of(args[1].value, double_quotes)


def known_steps(call: Expr) -> Steps:
    """Return the steps of a resolved call."""
    steps = path_of(call.children)
    assert steps is not None
    return steps


def asked_path(call: Expr) -> tuple[tuple[int, ...], str, DataType, str] | None:
    """Return the (column, path, type, function) of a step into a column's document, else None.

    Equivalent calls give the same result.
    """
    if not isinstance(call, Call) or call.function not in {"get_json_object", "variant_get"} or len(call.args) != 2:
        return None
    column, path = call.args
    if not isinstance(column, Column) or not isinstance(path, Literal) or not isinstance(path.value, str):
        return None
    steps = steps_of(path.value)
    said = None if steps is None else text_of(steps)
    return None if said is None else (column.ids, said, call.type, call.function)


def _get(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Signature | None:  # noqa: ARG001
    fits = len(args) == 2 and is_text(args[0].type) and path_of(args, double_quotes=False) is not None
    return Signature(args, STRING) if fits else None


def _get_json_object(call: Call, args: list[Datum]) -> Evaluated:
    steps = known_steps(call)
    return _each(args, STRING, lambda text: get_json_text(text, steps))


def _each(args: list[Datum], data_type: DataType, read: Callable[[str], Any]) -> Evaluated:
    """Read one document at a time, with a native parser; bytes that are not UTF-8 are not JSON."""
    texts = full_length(args[0], row_count(args))
    out, left = [], none_of(len(texts))
    for row, text in enumerate(map(_text, texts.cast(pa.binary()).to_pylist())):
        try:
            out.append(None if text is None else _storable(read(text)))
        except (Unsure, RecursionError):  # Python's nesting limit is lower than Spark's
            out.append(None)
            left[row] = True
    return Evaluated(pa.array(out, to_arrow_type(data_type)), any_set(left), LEFT_TO_SPARK if left.any() else None)


def _text(data: bytes | None) -> str | None:
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError:
        return None


def _storable(value: Any) -> Any:
    """Replace an unpaired surrogate by a question mark, as in Java."""
    return value if not isinstance(value, str) or value.isascii() else value.encode("utf-8", "replace").decode()


declare_function(
    Function(
        "get_json_object", _get, _get_json_object, sql=("get_json_object",), catalyst=("GetJsonObject",), rule="json",
        note="what is known of the path, kind by kind; also below a cast to a number",
    )
)  # fmt: skip


_INTEGRAL = {BYTE: 8, SHORT: 16, INTEGER: 32, LONG: 64}
_NAMED = {
    "NaN": math.nan,
    **dict.fromkeys(("Infinity", "+Infinity", "+INF"), math.inf),
    **dict.fromkeys(("-Infinity", "-INF"), -math.inf),
}
"""Texts that FROM_JSON reads as numbers; INF without a sign is none of them."""


def field_type(data_type: DataType) -> bool:
    """Return whether FROM_JSON is computed here for a field of this type."""
    return data_type in _INTEGRAL or data_type in {FLOAT, DOUBLE, BOOLEAN, STRING}


def from_json(text: Expr, steps: Steps, data_type: DataType) -> Expr | None:
    """Build the field at ``steps`` of ``FROM_JSON(text, …)``; None if it is not computed here.

    A struct's value is only a step to its fields.
    """
    path = text_of(steps)
    fits = path is not None and is_text(text.type) and (field_type(data_type) or isinstance(data_type, Struct))
    return Call(data_type, "from_json", (text, Literal(STRING, path))) if fits else None


def _never(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Signature | None:  # noqa: ARG001
    """Reject: only the front ends build these calls, with ``from_json``, because they know the schema."""
    return None


def _from_json(call: Call, args: list[Datum]) -> Evaluated:
    steps, read = [str(step) for step in known_steps(call)], _converter(call.type)

    def field(text: str) -> Any:
        try:
            value = _converted(loose_document(text), steps, read)
        except Truncated:
            return None
        except Malformed:
            if _may_be_kept(text, steps, call.type):
                raise Unsure from None
            return None
        return None if value is _UNFIT else value

    return _each(args, call.type, field)


def _may_be_kept(text: str, steps: Sequence[str], data_type: DataType) -> bool:
    """Return whether Spark may keep this field of a malformed document.

    Where it meets an error within an object or a list that is the value of a field, it keeps the fields of the struct
    around it, and goes on behind the error; at the end of the text, it keeps none. Of the fields of a document, it
    reads only the one that is asked for, which has an earlier value if its key is there twice.
    """
    if not text.lstrip(" \t\r\n").startswith("{"):
        return False
    times = 2 if "\\" in text else sum(text.count(quote + steps[0] + quote) for quote in "\"'")
    return times > 0 if len(steps) > 1 else (data_type == STRING and times > 1)


_UNFIT = object()
"""A value that Spark cannot convert to the type of its field."""


def _converted(value: Any, steps: Sequence[str], read: Callable[[Any], Any]) -> Any:
    """Return the field at ``steps`` of a JSON value; ``_UNFIT`` if the value does not fit there.

    Spark converts the values of duplicate keys one after the other. The last one that fits counts: one that does not
    fit leaves the field as it is.
    """
    if value is None:
        return None
    if not steps:
        found = read(value)
        return _UNFIT if found is None else found
    if not isinstance(value, dict | Pairs):
        return _UNFIT
    fits = (_converted(one, steps[1:], read) for one in values_of(value, steps[0]))
    return next((found for found in fits if found is not _UNFIT), None)


def _converter(data_type: DataType) -> Callable[[Any], Any]:
    """Return the conversion of a JSON value by FROM_JSON, which gives None if the value does not fit."""
    if data_type == STRING:
        return lambda v: v if isinstance(v, str) else compact_json(v)
    if data_type == BOOLEAN:
        return lambda v: v if isinstance(v, bool) else None
    if data_type in (FLOAT, DOUBLE):
        return _floating if data_type == DOUBLE else _single
    if data_type == BYTE:  # Jackson takes a byte without its sign, too
        return lambda v: (v + 128) % 256 - 128 if _is_whole(v) and -128 <= v <= 255 else None
    half = 1 << (_INTEGRAL[data_type] - 1)  # type: ignore[index]
    return lambda v: v if _is_whole(v) and -half <= v < half else None


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _floating(value: Any) -> float | None:
    if isinstance(value, str):
        return _NAMED.get(value)
    if not _is_whole(value):
        return value if isinstance(value, float) else None
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _single(value: Any) -> float | None:
    """Return a FLOAT, which Spark rounds from all digits. Raises ``Unsure`` where the nearest double does not tell."""
    if isinstance(value, int) and not isinstance(value, bool):
        return float(pa.scalar(str(value)).cast(pa.float32()).as_py())
    number = _floating(value)
    if number is None or not math.isfinite(number):
        return number
    with np.errstate(over="ignore"):
        near = np.float32(number)
        other = np.nextafter(near, np.float32(math.copysign(math.inf, number - float(near))))
    if number != float(near) and number - float(near) == float(other) - number:
        raise Unsure
    return float(near)


declare_function(
    Function(
        "from_json", _never, _from_json, sql=("from_json",), rule="json",
        note="fields that are text, booleans, integers, floats or doubles; kind by kind",
    )
)  # fmt: skip
