"""Text: prefixes, LIKE and simple functions. The order is that of the UTF-8 bytes."""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.expr.arrow_values import Datum, Evaluated, Mask, full_length, is_true, null_where, row_count
from tamis.core.expr.calls import make_call
from tamis.core.expr.coerce import implicit_cast, is_instant, is_numeric, is_text
from tamis.core.expr.java_doubles import LEFT_TO_SPARK, is_left_to_spark
from tamis.core.expr.registry import Bounds, Claim, Function, Signature, declare_function, declare_sugar
from tamis.core.expr.tree import Call, Expr, Literal, Mode
from tamis.core.types import BINARY, BOOLEAN, INTEGER, STRING, DataType

Resolve = Callable[[tuple[Expr, ...], Mode, str | None], Signature | None]


def next_text(prefix: str) -> str | None:
    """Return the least text, in UTF-8 byte order, above all texts that begin with ``prefix``, or None.

    The last character that has a successor is incremented and the rest dropped. U+D7FF is followed by U+E000,
    because surrogates are not valid text.
    """
    for at in range(len(prefix) - 1, -1, -1):
        point = ord(prefix[at])
        if point < sys.maxunicode:
            return prefix[:at] + chr(0xE000 if point == 0xD7FF else point + 1)
    return None


def as_text(arg: Expr, mode: Mode, zone: str | None) -> Expr | None:
    """Return ``arg`` as text if Spark casts it implicitly, else None."""
    if is_text(arg.type):
        return arg
    if is_numeric(arg.type) or is_instant(arg.type) or arg.type == BOOLEAN or isinstance(arg, Literal):
        out = implicit_cast(arg, STRING, mode, zone)
        return out if out.type == STRING else None
    return None


def _texts(count: int, result: DataType) -> Resolve:
    def resolve(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Signature | None:
        texts = [as_text(a, mode, zone) for a in args]
        if len(args) != count or any(t is None for t in texts):
            return None
        return Signature(tuple(t for t in texts if t is not None), result)

    return resolve


_SEARCH = {"starts_with": pc.starts_with, "ends_with": pc.ends_with, "contains": pc.match_substring}


def _search(call_: Call, args: list[Datum]) -> Evaluated:
    """Search by one kernel for a constant pattern, else row by row."""
    text, pattern = args
    find = _SEARCH[call_.function]
    if isinstance(pattern, pa.Scalar):
        if not pattern.is_valid:
            return Evaluated(pa.nulls(row_count(args), pa.bool_()))
        return Evaluated(full_length(find(text, pattern=pattern.as_py()), row_count(args)))
    test = {"starts_with": str.startswith, "ends_with": str.endswith, "contains": str.__contains__}[call_.function]
    n = row_count(args)
    pairs = zip(full_length(text, n).to_pylist(), full_length(pattern, n).to_pylist(), strict=True)
    return Evaluated(pa.array([None if t is None or p is None else bool(test(t, p)) for t, p in pairs], pa.bool_()))


_sql: tuple[str, ...]
_catalyst: tuple[str, ...]
for _name, _sql, _catalyst in (
    ("starts_with", ("startswith",), ("StartsWith",)),
    ("ends_with", ("endswith",), ("EndsWith",)),
    ("contains", ("contains",), ("Contains",)),
):
    declare_function(
        Function(
            _name,
            _texts(2, BOOLEAN),
            _search,
            sql=_sql,
            catalyst=_catalyst,
            rule="starts_with" if _name == "starts_with" else None,
        )
    )


def like_parts(pattern: str, escape: str = "\\") -> list[str | None] | None:
    """Split a LIKE pattern into literal characters, None for ``_`` and an empty text for ``%``.

    Returns None if an escape is invalid (Spark fails).
    """
    out: list[str | None] = []
    escaped = False
    for char in pattern:
        if escaped:
            if char not in ("_", "%", escape):
                return None
            out.append(char)
            escaped = False
        elif char == escape:
            escaped = True
        else:
            out.append(None if char == "_" else "" if char == "%" else char)
    return None if escaped else out


REPLACEMENT = "\ufffd"
"""The character that stands for malformed bytes in Java's texts, on which patterns are tested."""


def like_prefix(pattern: str, escape: str = "\\") -> tuple[str, bool] | None:
    """Return the literal prefix of a pattern, and whether the pattern is just ``prefix%``.

    The prefix ends before ``REPLACEMENT``, which Spark also finds in texts that are not UTF-8.
    """
    parts = like_parts(pattern, escape)
    if parts is None:
        return None
    end = next((i for i, p in enumerate(parts) if not p), len(parts))
    rest = parts[end:]
    prefix, mark, _ = "".join(p for p in parts[:end] if p).partition(REPLACEMENT)
    return prefix, not mark and bool(rest) and all(p == "" for p in rest)


def _like_resolve(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Signature | None:
    """Resolve LIKE with a constant pattern; the third argument is the escape character."""
    text = as_text(args[0], mode, zone) if len(args) in (2, 3) else None
    if text is None or not all(isinstance(a, Literal) and isinstance(a.value, str) for a in args[1:]):
        return None
    escape = args[2] if len(args) == 3 else Literal(STRING, "\\")
    assert isinstance(args[1], Literal)
    assert isinstance(escape, Literal)
    if len(escape.value) != 1 or like_parts(args[1].value, escape.value) is None:
        return None
    return Signature((text, args[1], escape), BOOLEAN)


def _like(call_: Call, args: list[Datum]) -> Evaluated:
    pattern, escape = call_.args[1], call_.args[2]
    assert isinstance(pattern, Literal)
    assert isinstance(escape, Literal)
    parts = like_parts(pattern.value, escape.value)
    assert parts is not None
    regex = "".join("." if p is None else ".*" if p == "" else re.escape(p) if not p.isspace() else p for p in parts)
    folded = "(?i)" if call_.function == "ilike" else ""
    return Evaluated(full_length(pc.match_substring_regex(args[0], f"(?s){folded}\\A{regex}\\z"), row_count(args)))


declare_function(
    Function(
        "like",
        _like_resolve,
        _like,
        sql=("like",),
        catalyst=("Like",),
        rule="like",
        note="by the part before the first wildcard",
    )
)


def _measure(call_: Call, args: list[Datum]) -> Evaluated:  # noqa: ARG001
    return Evaluated(pc.binary_length(args[0]) if pa.types.is_binary(args[0].type) else pc.utf8_length(args[0]))


def _measurable(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Signature | None:
    text = None if len(args) != 1 else args[0] if args[0].type == BINARY else as_text(args[0], mode, zone)
    return Signature((text,), INTEGER) if text is not None else None


declare_function(
    Function(
        "length",
        _measurable,
        _measure,
        sql=("length", "char_length", "character_length", "len"),
        catalyst=("Length",),
        limits=lambda _: (0, None),
    )
)
_SIMPLE = {"upper": (pc.ascii_upper, str.upper), "lower": (pc.ascii_lower, str.lower)}


def _cased(name: str, x: Datum) -> Datum:
    """Change case; beyond ASCII by Unicode's full mapping, as in Java and ICU.

    ``ß`` becomes ``SS`` and a final ``Σ`` becomes ``ς``; Arrow maps characters one by one.
    """
    plain, whole = _SIMPLE[name]
    texts = full_length(x, 1)
    if pc.all(pc.string_is_ascii(texts)).as_py() is not False:
        return plain(x)
    out = pa.array([None if v is None else whole(v) for v in texts.to_pylist()], pa.string())
    return out[0] if isinstance(x, pa.Scalar) else out


def _simple(call_: Call, args: list[Datum]) -> Evaluated:
    values = _cased(call_.function, args[0])
    left = _newer_letters(args[0]) if is_left_to_spark() else None
    return Evaluated(values) if left is None else Evaluated(null_where(values, left), left, LEFT_TO_SPARK)


def _newer_letters(x: Datum) -> Mask | None:
    """Return which texts have a letter that another release of Unicode may give a partner; None if none has.

    A pair of letters stays one in all later releases. A letter without a partner may get one, and so may a new one.
    """
    texts = full_length(x, 1)
    if pc.all(pc.string_is_ascii(texts)).as_py() is not False:
        return None
    held = texts.to_pylist()
    newer = {c for c in set("".join(v for v in held if v)) if _may_change(c)}
    return np.array([v is not None and not newer.isdisjoint(v) for v in held]) if newer else None


def _may_change(character: str) -> bool:
    kind = unicodedata.category(character)
    return kind == "Cn" or (kind in {"Ll", "Lu", "Lt"} and character.lower() == character == character.upper())


def _ascii(call_: Call, bounds: Bounds) -> Mask:  # noqa: ARG001
    """Return where no Unicode release can differ."""
    return np.asarray(is_true(pc.string_is_ascii(bounds[0][0])))


for _name, _sql, _catalyst in (("upper", ("upper", "ucase"), ("Upper",)), ("lower", ("lower", "lcase"), ("Lower",))):
    declare_function(
        Function(
            _name,
            _texts(1, STRING),
            _simple,
            sql=_sql,
            catalyst=_catalyst,
            reliable=_ascii,
            rule="text",
            note="by the beginning that all texts of the part share",
        )
    )


def _trimmable(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Signature | None:
    """Resolve the text, and the characters to remove (a constant; by default blanks)."""
    text = as_text(args[0], mode, zone) if len(args) in (1, 2) else None
    taken = args[1] if len(args) == 2 else Literal(STRING, " ")
    return (
        Signature((text, taken), STRING)
        if text is not None and isinstance(taken, Literal) and isinstance(taken.value, str)
        else None
    )


def _trimmed(call_: Call, args: list[Datum]) -> Evaluated:
    taken = call_.args[1]
    assert isinstance(taken, Literal)
    trim = {"trim": pc.utf8_trim, "ltrim": pc.utf8_ltrim, "rtrim": pc.utf8_rtrim}[call_.function]
    return Evaluated(trim(args[0], taken.value) if taken.value else args[0])


for _name, _sql, _catalyst in (
    ("trim", ("trim", "btrim"), ("StringTrim",)),
    ("ltrim", ("ltrim",), ("StringTrimLeft",)),
    ("rtrim", ("rtrim",), ("StringTrimRight",)),
):
    declare_function(
        Function(
            _name,
            _trimmable,
            _trimmed,
            sql=_sql,
            catalyst=_catalyst,
            rule="text",
            note="where texts do not begin with what is cut",
        )
    )


def _substring_resolve(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Signature | None:
    """Resolve SUBSTRING with a constant position and length."""
    text = as_text(args[0], mode, zone) if len(args) in (2, 3) and args[0].type != BINARY else None
    rest = args[1:] if len(args) == 3 else (*args[1:], Literal(INTEGER, 2**31 - 1))
    if text is None or not all(isinstance(a, Literal) and isinstance(a.value, int) for a in rest):
        return None
    return Signature((text, *rest), STRING)


def _substring(call_: Call, args: list[Datum]) -> Evaluated:
    position, length = call_.args[1], call_.args[2]
    assert isinstance(position, Literal)
    assert isinstance(length, Literal)
    start, count = position.value, length.value
    x = args[0]
    if count <= 0:
        return Evaluated(pc.if_else(pc.is_valid(x), pa.scalar(""), pa.scalar(None, pa.string())))
    if start >= 0:
        first = max(start - 1, 0)
        return Evaluated(pc.utf8_slice_codeunits(x, first, min(first + count, 2**31 - 1)))
    stop = start + count
    if stop >= 0:
        return Evaluated(pc.utf8_slice_codeunits(x, start))
    size = pc.utf8_length(x)
    short = pc.less(
        size, pa.scalar(-start)
    )  # the part before the text counts, as in Spark: substring('ab', -3, 2) = 'a'
    return Evaluated(pc.if_else(short, _from_before(x, start, count), pc.utf8_slice_codeunits(x, start, stop)))


def _from_before(x: Datum, start: int, count: int) -> Datum:
    return pa.array(
        [None if v is None else v[max(len(v) + start, 0) : max(len(v) + start + count, 0)] for v in x.to_pylist()],
        pa.string(),
    )


def _same_before(call_: Call, bounds: Bounds) -> Mask:
    """Return where SUBSTRING is monotone.

    The first n characters rise with the text; a later piece does if all texts are equal up to it.
    """
    position = call_.args[1]
    assert isinstance(position, Literal)
    if position.value in (0, 1):
        return np.ones((), bool)
    if position.value < 0:
        return np.zeros((), bool)
    lo, hi = (pc.utf8_slice_codeunits(b, 0, position.value - 1) for b in bounds[0])
    return np.asarray(
        is_true(pc.and_(pc.equal(lo, hi), pc.equal(pc.utf8_length(lo), pa.scalar(position.value - 1, pa.int32()))))
    )


declare_function(
    Function(
        "substring",
        _substring_resolve,
        _substring,
        sql=("substring", "substr"),
        catalyst=("Substring",),
        claims=lambda _: (Claim.UP, Claim.FIXED, Claim.FIXED),
        guard=_same_before,
        note="from the first character, or behind a beginning that all texts of the part share",
    )
)


@declare_sugar("left", catalyst=("Left",))
def _left(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Expr | None:
    return (
        make_call("substring", args[0], Literal(INTEGER, 1), args[1], mode=mode, zone=zone) if len(args) == 2 else None
    )


def _concat_resolve(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Signature | None:
    texts = [as_text(a, mode, zone) for a in args]
    if not args or any(t is None for t in texts):
        return None
    return Signature(tuple(t for t in texts if t is not None), STRING)


def _concat(call_: Call, args: list[Datum]) -> Evaluated:  # noqa: ARG001
    return Evaluated(full_length(pc.binary_join_element_wise(*args, "", null_handling="emit_null"), row_count(args)))


def _concat_claims(call_: Call) -> tuple[Claim, ...]:
    """Return the claims: constants before one final varying part keep the order.

    Text after a varying part may break it (``a`` < ``ab`` but ``a|z`` > ``ab|z``).
    """
    changing = [i for i, a in enumerate(call_.args) if not isinstance(a, Literal)]
    last = len(call_.args) - 1
    return tuple(Claim.UP if i == last and changing == [last] else Claim.FIXED for i in range(len(call_.args)))


declare_function(
    Function(
        "concat",
        _concat_resolve,
        _concat,
        sql=("concat", "||"),
        catalyst=("Concat",),
        claims=_concat_claims,
        rule="text",
        note="by how it begins; what follows a column that varies is not looked at",
    )
)
