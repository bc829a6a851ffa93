"""Formats VARIANT values as JSON text, as a cast to STRING shows objects, arrays and numbers."""

from __future__ import annotations

import decimal
import math
from dataclasses import dataclass
from typing import Any

from tamis.core.expr.arrow_values import Mask, none_of
from tamis.core.expr.java_doubles import Unsure
from tamis.core.expr.json_codec import variant_columns as v
from tamis.core.expr.json_codec.jackson_reader import DEEPEST, Malformed, java_double, quoted_json
from tamis.core.expr.json_codec.variant_bytes import Bytes

_DEEPEST_HERE = 300
"""Nesting levels that fit in Python's stack."""


def number(value: decimal.Decimal | float) -> str:
    """Format a decimal without trailing zeros, or a double, as a cast does."""
    if isinstance(value, float):
        text = java_double(value)
        return text.strip('"')
    text = format(value, "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in {"-0", ""} else text


def texts(found: v.Nodes) -> tuple[list[str | None], Mask]:
    """Return each value as JSON, and a mask of those left to Spark.

    The text is None for a value that is damaged.
    """
    out, left = list[str | None](), none_of(len(found))
    for row, (at, shape) in enumerate(zip(found.at.tolist(), found.shape.tolist(), strict=True)):
        try:
            out.append(_safe(found, at, shape))
        except Unsure:
            out.append(None)
            left[row] = True
    return out, left


def _safe(found: v.Nodes, at: int, shape: int) -> str | None:
    try:
        return _text(_Walk(found.data, len(found.data)), at, found.names[shape], 0)
    except RecursionError:
        raise Unsure from None
    except (Malformed, IndexError, UnicodeDecodeError, KeyError):
        return None


@dataclass(slots=True)
class _Walk:
    """A walk through one value: the bytes of its column, and how many of them may still be met.

    Each value has bytes of its own. Where elements share theirs, a text could have any length: it is left to Spark.
    """

    data: Bytes
    left: int

    def charge(self, size: int) -> None:
        self.left -= size
        if self.left < 0:
            raise Unsure


def _text(walk: _Walk, at: int, names: tuple[str, ...], depth: int) -> str:
    data = walk.data
    walk.charge(1)
    header = int(data[at])
    kind = v.kind_of(header)
    if kind in _WORDS:
        return _WORDS[kind]
    if kind == v.LONG:
        return str(_int(data, at + 1, {3: 1, 4: 2, 5: 4, 6: 8}[header >> 2], signed=True))
    if kind == v.DOUBLE:
        value = float(data[at + 1 : at + 9].view("<f8")[0])
        return java_double(value) if math.isfinite(value) else f'"{number(value)}"'
    if kind == v.DECIMAL:
        unscaled = _int(data, at + 2, {8: 4, 9: 8, 10: 16}[header >> 2], signed=True)
        return number(decimal.Decimal(unscaled).scaleb(-int(data[at + 1]), decimal.Context(prec=60)))
    if kind == v.STRING:
        start, length = (at + 1, header >> 2) if header & 3 == 1 else (at + 5, _int(data, at + 1, 4))
        walk.charge(length)
        return _quoted(data[start : start + length].tobytes().decode())
    if depth > DEEPEST:
        raise Malformed("depth")
    if kind not in {v.OBJECT, v.ARRAY} or depth > _DEEPEST_HERE:
        raise Unsure  # Spark has a text for dates, times, floats and binary inside of objects
    return _nested(walk, at, names, kind == v.OBJECT, depth)


_WORDS = {v.NULL: "null", v.TRUE: "true", v.FALSE: "false"}


def _nested(walk: _Walk, at: int, names: tuple[str, ...], is_object: bool, depth: int) -> str:
    data = walk.data
    header = int(data[at]) >> 2
    offset_size = (header & 3) + 1
    id_size = ((header >> 2) & 3) + 1 if is_object else 0
    wide = 4 if (header >> 4 if is_object else header >> 2) & 1 else 1
    count = _int(data, at + 1, wide)
    walk.charge(count * (id_size + offset_size))
    ids = at + 1 + wide
    keys = [_int(data, ids + i * id_size, id_size) for i in range(count)] if is_object else []
    if len(set(keys)) < len(keys):
        raise Unsure
    offsets = ids + count * id_size
    first = offsets + (count + 1) * offset_size
    parts = []
    for i in range(count):
        item = _text(walk, first + _int(data, offsets + i * offset_size, offset_size), names, depth + 1)
        parts.append(f"{_quoted(names[keys[i]])}:{item}" if is_object else item)
    return "{" + ",".join(parts) + "}" if is_object else "[" + ",".join(parts) + "]"


def _quoted(text: str) -> str:
    return (
        "".join(c if ord(c) > 0xFFFF else quoted_json(c)[1:-1] for c in text).join('""')
        if any(ord(c) > 0xFFFF for c in text)
        else quoted_json(text)
    )


def _int(data: Bytes, at: int, size: int, *, signed: bool = False) -> int:
    piece: Any = data[at : at + size].tobytes()
    if len(piece) < size:
        raise Malformed("end")
    return int.from_bytes(piece, "little", signed=signed)
