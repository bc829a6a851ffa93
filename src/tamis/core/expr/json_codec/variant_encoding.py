"""Encodes JSON text in VARIANT's binary form like ``parse_json``.

Integers that fit are stored as integers, numbers without exponent of up to 38 digits as decimals, the rest as
doubles.
"""

from __future__ import annotations

import decimal
import json
import math
import struct
from typing import Any

from tamis.core.expr.java_doubles import Unsure, is_left_to_spark
from tamis.core.expr.json_codec.jackson_reader import LONGEST_NUMBER, STRICT, Malformed, beyond_limits, ends_word

_DIGITS = 38
_LARGEST = 16 * 2**20


class _Real(str):
    """A non-integer number, as written."""

    __slots__ = ()


_DECODER = json.JSONDecoder(
    object_pairs_hook=STRICT.object_pairs_hook, parse_constant=STRICT.parse_constant, parse_float=_Real
)


def encode_variant(text: str) -> tuple[bytes, bytes]:
    """Return (value, metadata) of the document at the start of the text; trailing text is ignored.

    Raises ``Malformed`` for what ``parse_json`` rejects, including duplicate keys, and ``Unsure`` for a
    document nested too deeply for Python or, if Spark decides, with an unpaired surrogate: Spark 4.3 rejects it,
    and Spark 4.1 reads a question mark.
    """
    start = len(text) - len(text.lstrip(" \t\r\n"))
    try:
        document, end = _DECODER.raw_decode(text, start)
        rest = text[end : end + 1]
        if not _may_follow(document, rest):
            raise Malformed(text[:40])
        if end - start > LONGEST_NUMBER and beyond_limits(text[start:end]):
            raise Malformed(text[:40])
        keys: dict[str, int] = {}
        value = _value(document, keys)
        names = [key.encode() for key in keys]
    except RecursionError:
        raise Unsure from None
    except UnicodeEncodeError:
        raise Unsure if is_left_to_spark() else Malformed(text[:40]) from None
    except (ValueError, OverflowError):
        raise Malformed(text[:40]) from None
    size = _width(max(sum(map(len, names)), len(names)))
    ends = [0]
    for name in names:
        ends.append(ends[-1] + len(name))
    metadata = (
        bytes([1 | (size - 1) << 6])
        + len(names).to_bytes(size, "little")
        + b"".join(e.to_bytes(size, "little") for e in ends)
        + b"".join(names)
    )
    if len(value) > _LARGEST:
        raise Malformed(text[:40])
    return value, metadata


def _may_follow(document: Any, rest: str) -> bool:
    """Return whether Jackson ends the document before ``rest``: a number needs a blank, a word another character."""
    if document is None or isinstance(document, bool):
        return ends_word(rest)
    if isinstance(document, _Real | int):
        return not rest.strip(" \t\r\n")
    return True


def _value(item: Any, keys: dict[str, int]) -> bytes:
    match item:
        case None:
            return b"\x00"
        case bool():
            return b"\x04" if item else b"\x08"
        case int():
            return _whole(item)
        case _Real():
            return _real(item)
        case str():
            data = item.encode()
            return (
                bytes([len(data) << 2 | 1]) + data
                if len(data) < 64
                else b"\x40" + len(data).to_bytes(4, "little") + data
            )
        case list():
            return _listed(0b11, [_value(child, keys) for child in item], [])
        case dict():
            for key in item:
                keys.setdefault(key, len(keys))
            ordered = _sorted_keys(item)
            return _listed(0b10, [_value(item[key], keys) for key in ordered], [keys[key] for key in ordered])
    raise Malformed(str(item))


def _sorted_keys(item: dict[str, Any]) -> list[str]:
    """Sort keys as Java compares them: by UTF-16 units, where a pair of surrogates is before U+E000 and later ones."""
    joined = "".join(item)
    return sorted(item, key=_utf16) if not joined.isascii() and max(joined) > "\uffff" else sorted(item)


def _utf16(key: str) -> bytes:
    return key.encode("utf-16-be")


def _listed(basic: int, children: list[bytes], ids: list[int]) -> bytes:
    """Encode an object (with ids) or an array."""
    offsets = [0]
    for child in children:
        offsets.append(offsets[-1] + len(child))
    size, large = _width(offsets[-1]), len(children) > 255
    count = len(children).to_bytes(4 if large else 1, "little")
    listed = b"".join(offset.to_bytes(size, "little") for offset in offsets)
    if basic == 0b11:
        return bytes([basic | (size - 1) << 2 | large << 4]) + count + listed + b"".join(children)
    id_size = _width(max(ids, default=0))
    header = bytes([basic | (size - 1) << 2 | (id_size - 1) << 4 | large << 6])
    return header + count + b"".join(i.to_bytes(id_size, "little") for i in ids) + listed + b"".join(children)


def _width(largest: int) -> int:
    return max(1, (largest.bit_length() + 7) // 8)


def _whole(item: int) -> bytes:
    for kind, width in ((3, 1), (4, 2), (5, 4), (6, 8)):
        if -(1 << (8 * width - 1)) <= item < 1 << (8 * width - 1):
            return bytes([kind << 2]) + item.to_bytes(width, "little", signed=True)
    try:
        return _decimal(decimal.Decimal(item)) or _double(float(item))
    except OverflowError:  # beyond a double: Java reads it as infinity
        return _double(math.inf if item > 0 else -math.inf)


def _real(text: str) -> bytes:
    plain = None if "e" in text or "E" in text else _decimal(decimal.Decimal(text))
    return plain or _double(float(text))


def _double(value: float) -> bytes:
    return b"\x1c" + struct.pack("<d", value)


def _decimal(value: decimal.Decimal) -> bytes | None:
    """Encode a decimal; None if 38 digits are not enough."""
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale, precision = max(0, -exponent), max(len(digits), -exponent)
    if precision > _DIGITS or scale > _DIGITS:
        return None
    unscaled = int("".join(map(str, digits))) * (-1 if sign else 1)
    for kind, width, most in ((8, 4, 9), (9, 8, 18), (10, 16, 38)):
        if precision <= most:
            return bytes([kind << 2, scale]) + unscaled.to_bytes(width, "little", signed=True)
    return None
