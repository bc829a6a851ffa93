"""Text functions known only for single values, and those that rewrite to others (RIGHT, OVERLAY)."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.expr.arrow_values import Datum, Evaluated, full_length
from tamis.core.expr.calls import make_call
from tamis.core.expr.functions.text.text_order import REPLACEMENT, as_text
from tamis.core.expr.registry import Function, Signature, declare_function, declare_sugar
from tamis.core.expr.tree import Call, Expr, Literal, Mode
from tamis.core.types import BINARY, INTEGER, INTEGRAL, STRING, Array, DataType, Field
from tamis.core.types.arrow import to_arrow_type

_MOST = 10_000
"""Longest text that a constant may request."""


def constant_text(arg: Expr) -> str | None:
    return arg.value if isinstance(arg, Literal) and isinstance(arg.value, str) else None


def constant_count(arg: Expr) -> int | None:
    return (
        int(arg.value)
        if isinstance(arg, Literal) and arg.type in INTEGRAL and arg.value is not None and abs(arg.value) <= _MOST
        else None
    )


def _with_constants(result: DataType, *kinds: str) -> Callable[[tuple[Expr, ...], Mode, str | None], Signature | None]:
    """Resolve one text followed by constants of these kinds: ``text`` or ``count``."""

    def resolve(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Signature | None:
        if len(args) != 1 + len(kinds) or args[0].type == BINARY or (text := as_text(args[0], mode, zone)) is None:
            return None
        read = {"text": constant_text, "count": constant_count}
        return (
            Signature((text, *args[1:]), result)
            if all(read[k](a) is not None for k, a in zip(kinds, args[1:], strict=True))
            else None
        )

    return resolve


def _text(call_: Call, at: int) -> str:
    value = constant_text(call_.args[at])
    assert value is not None
    return value


def _count(call_: Call, at: int) -> int:
    value = constant_count(call_.args[at])
    assert value is not None
    return value


def _replace(call_: Call, args: list[Datum]) -> Evaluated:
    wanted, other = _text(call_, 1), _text(call_, 2)
    return Evaluated(pc.replace_substring(args[0], wanted, other) if wanted else args[0])


def _reverse(_call: Call, args: list[Datum]) -> Evaluated:
    return Evaluated(pc.utf8_reverse(args[0]))


def _repeat(call_: Call, args: list[Datum]) -> Evaluated:
    return Evaluated(pc.binary_repeat(args[0], max(0, _count(call_, 1))))


def _instr(call_: Call, args: list[Datum]) -> Evaluated:
    wanted = _text(call_, 1)
    return Evaluated(
        pa.array([None if v is None else v.find(wanted) + 1 for v in full_length(args[0], 1).to_pylist()], pa.int32())
    )


def _padded(call_: Call, args: list[Datum]) -> Evaluated:
    """Pad to exactly that many characters, cutting what is longer."""
    width = max(0, _count(call_, 1))
    pad = pc.utf8_lpad if call_.function == "lpad" else pc.utf8_rpad
    x = full_length(args[0], 1)
    return Evaluated(
        pc.utf8_slice_codeunits(pad(x, width, _text(call_, 2)), 0, width) if width else pc.if_else(x.is_valid(), "", x)
    )


def _one_character(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Signature | None:
    args = args if len(args) != 2 else (*args, Literal(STRING, " "))
    return (
        _with_constants(STRING, "count", "text")(args, mode, zone)
        if len(args) == 3 and len(constant_text(args[2]) or "") == 1
        else None
    )


_sql: tuple[str, ...]
for _name, _resolve, _kernel, _sql, _catalyst in (
    ("replace", _with_constants(STRING, "text", "text"), _replace, ("replace",), ("StringReplace",)),
    ("reverse", _with_constants(STRING), _reverse, ("reverse",), ("Reverse",)),
    ("repeat", _with_constants(STRING, "count"), _repeat, ("repeat",), ("StringRepeat",)),
    ("instr", _with_constants(INTEGER, "text"), _instr, ("instr",), ("StringInstr",)),
    ("lpad", _one_character, _padded, ("lpad",), ("StringLPad",)),
    ("rpad", _one_character, _padded, ("rpad",), ("StringRPad",)),
):
    declare_function(
        Function(
            _name,
            _resolve,
            _kernel,
            sql=_sql,
            catalyst=_catalyst,
            limits=lambda c: (0, None) if c.type == INTEGER else None,
            rule="text" if _name == "replace" else None,
            note="by the beginning that all texts of the part share" if _name == "replace" else "single values only",
        )
    )


def _size_resolve(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Signature | None:
    text = (
        args[0]
        if len(args) == 1 and args[0].type == BINARY
        else as_text(args[0], mode, zone)
        if len(args) == 1
        else None
    )
    return Signature((text,), INTEGER) if text is not None else None


def _size(call_: Call, args: list[Datum]) -> Evaluated:
    return Evaluated(
        pc.multiply(pc.binary_length(args[0]), pa.scalar(8 if call_.function == "bit_length" else 1, pa.int32()))
    )


for _name, _catalyst in (("bit_length", ("BitLength",)), ("octet_length", ("OctetLength",))):
    declare_function(
        Function(_name, _size_resolve, _size, sql=(_name,), catalyst=_catalyst, limits=lambda _: (0, None))
    )


def _split_resolve(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Signature | None:
    """Resolve SPLIT by a regular expression that is plain text, into all pieces."""
    every = len(args) == 2 or (len(args) == 3 and (constant_count(args[2]) or 0) < 0)
    found = plain_regex(constant_text(args[1])) if every else None
    text = as_text(args[0], mode, zone) if found else None
    return (
        Signature((text, Literal(STRING, found)), Array(Field("element", STRING, nullable=False)))
        if text is not None
        else None
    )


def _split(call_: Call, args: list[Datum]) -> Evaluated:
    return Evaluated(pc.split_pattern(full_length(args[0], 1), _text(call_, 1)).cast(to_arrow_type(call_.type)))


declare_function(
    Function(
        "split",
        _split_resolve,
        _split,
        sql=("split",),
        catalyst=("StringSplit",),
        rule="split",
        note="an element of it: by the beginning that all texts of the part share",
    )
)


def _part_resolve(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Signature | None:
    number = constant_count(args[2]) if len(args) == 3 else None
    text = as_text(args[0], mode, zone) if number and number > 0 and constant_text(args[1]) else None
    return Signature((text, *args[1:]), STRING) if text is not None else None


def _part(call_: Call, args: list[Datum]) -> Evaluated:
    """Return the n-th piece; empty if there are fewer."""
    separator, number = _text(call_, 1), _count(call_, 2)
    pieces = (
        None if v is None else v.split(separator)[number - 1 : number] for v in full_length(args[0], 1).to_pylist()
    )
    return Evaluated(pa.array([None if p is None else "".join(p) for p in pieces], pa.string()))


declare_function(
    Function(
        "split_part",
        _part_resolve,
        _part,
        sql=("split_part",),
        rule="text",
        note="by the beginning that all texts of the part share",
    )
)
_META = set("\\^$.|?*+()[]{}")


def plain_regex(pattern: str | None) -> str | None:
    """Return the text of a regular expression without operators, or None."""
    found = alternatives(pattern or "")
    return found[0] if found is not None and len(found) == 1 and found[0] else None


def alternatives(pattern: str) -> list[str] | None:
    """Return the few texts matched by a regular expression, or None if it is not that simple.

    Supported are plain characters and short classes (``web-0[1-3]``).
    """
    out, at = [""], 0
    while at < len(pattern):
        char = pattern[at]
        if char == "\\" and at + 1 < len(pattern) and pattern[at + 1] in _META | {"-", "/"}:
            options, at = pattern[at + 1], at + 2
        elif char == "[":
            end = pattern.find("]", at)
            listed = _listed(pattern[at + 1 : end]) if end > at + 1 else None
            if listed is None:
                return None
            options, at = listed, end + 1
        elif char in _META or not char.isprintable() or not char.isascii():
            return None
        else:
            options, at = char, at + 1
        out = [o + c for o in out for c in options]
        if len(out) > _MOST_ALTERNATIVES:
            return None
    return out


_MOST_ALTERNATIVES = 16


def _listed(inside: str) -> str | None:
    """Return the characters of a class of ASCII letters, digits and ranges of them."""
    out, at = "", 0
    while at < len(inside):
        stop = inside[at + 2] if inside[at + 1 : at + 2] == "-" and at + 2 < len(inside) else inside[at]
        if not (
            inside[at].isascii() and inside[at].isalnum() and stop.isascii() and stop.isalnum() and inside[at] <= stop
        ):
            return None
        out += "".join(chr(c) for c in range(ord(inside[at]), ord(stop) + 1))
        at += 3 if inside[at + 1 : at + 2] == "-" and at + 2 < len(inside) else 1
    return out or None


@declare_sugar("rlike", "regexp", "regexp_like", catalyst=("RLike",))
def _rlike(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Expr | None:
    """Rewrite RLIKE to a search for a few plain texts, at the start or anywhere, if possible."""
    pattern = constant_text(args[1]) if len(args) == 2 else None
    if pattern is None or (text := as_text(args[0], mode, zone)) is None:
        return None
    first = pattern.startswith("^")
    found = alternatives(pattern[1:] if first else pattern)
    if found is None or REPLACEMENT in pattern:
        return make_call("matches", text, args[1], mode=mode, zone=zone)
    tests = tuple(
        make_call("starts_with" if first else "contains", text, Literal(STRING, o), mode=mode, zone=zone) for o in found
    )
    return make_call("or", *tests) if len(tests) > 1 else tests[0]


@declare_sugar("right")
def _right(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Expr | None:
    count = constant_count(args[1]) if len(args) == 2 else None
    if count is None or as_text(args[0], mode, zone) is None:
        return None
    if count <= 0:
        return make_call("substring", args[0], Literal(INTEGER, 1), Literal(INTEGER, 0), mode=mode, zone=zone)
    return make_call("substring", args[0], Literal(INTEGER, -count), mode=mode, zone=zone)


@declare_sugar("overlay")
def _overlay(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Expr | None:
    """Rewrite OVERLAY: the text before the position, the new text, and the text after it."""
    new, place = (constant_text(args[1]), constant_count(args[2])) if len(args) in (3, 4) else (None, None)
    taken = constant_count(args[3]) if len(args) == 4 else -1
    if new is None or place is None or place < 1 or taken is None or as_text(args[0], mode, zone) is None:
        return None
    after = place + (taken if taken >= 0 else len(new))
    before = make_call("substring", args[0], Literal(INTEGER, 1), Literal(INTEGER, place - 1), mode=mode, zone=zone)
    return make_call(
        "concat",
        before,
        args[1],
        make_call("substring", args[0], Literal(INTEGER, after), mode=mode, zone=zone),
        mode=mode,
        zone=zone,
    )


@declare_sugar("locate", "position", "charindex")
def _locate(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Expr | None:
    return make_call("instr", args[1], args[0], mode=mode, zone=zone) if len(args) == 2 else None


@declare_sugar("zeroifnull")
def _zero_if_null(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Expr | None:
    return make_call("coalesce", args[0], Literal(INTEGER, 0), mode=mode, zone=zone) if len(args) == 1 else None


@declare_sugar("nullifzero")
def _null_if_zero(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Expr | None:
    return make_call("nullif", args[0], Literal(INTEGER, 0), mode=mode, zone=zone) if len(args) == 1 else None
