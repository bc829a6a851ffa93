"""Java's regular expressions as far as Python's are equivalent: RLIKE, REGEXP_EXTRACT, REGEXP_REPLACE.

Invariant: a pattern is accepted only if every token of it is known to mean the same in both. Line ends are
Java's: ``.`` matches none of five characters, and ``$`` also matches before a final line end.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pyarrow as pa

from tamis.core.expr.arrow_values import Datum, Evaluated, full_length
from tamis.core.expr.calls import make_call
from tamis.core.expr.functions.text.text_kernels import constant_count, constant_text
from tamis.core.expr.functions.text.text_order import as_text
from tamis.core.expr.registry import Function, Signature, declare_function, declare_overload
from tamis.core.expr.tree import Call, Expr, Literal, Mode
from tamis.core.types import BOOLEAN, INTEGER, STRING, DataType
from tamis.core.types.arrow import to_arrow_type

_TOKEN = re.compile(
    r"(?P<plain>[A-Za-z0-9 _:;,@%!'\"/<>=~#&-])|(?P<escaped>\\[.\-/_:@$^*+?()\[\]{}|\\])|(?P<class>\\[dws])|(?P<any>\.)"
    r"|(?P<set>\[\^?(?:\\[dws.\-/\[\]]|[A-Za-z0-9]-[A-Za-z0-9]|[A-Za-z0-9_ .:;,@%!'/=~#])+-?\])"
    r"|(?P<open>\((?:\?:)?)|(?P<close>\))|(?P<or>\|)|(?P<start>\^)|(?P<end>\$)|(?P<many>(?:[*+?]|\{\d{1,3}(?:,\d{0,3})?\})\??)"
)
_ENDS = "\n\r\u0085\u2028\u2029"
_ANY = f"[^{_ENDS}]"
_AT_END = "(?=(?:\\r\\n|(?<!\\r)\\n|[\\r\u0085\u2028\u2029])?\\Z)"
_LONGEST = 200


def pattern_of(text: str | None) -> re.Pattern[str] | None:
    """Compile Java's pattern ``text``; None if any part is not known to be equivalent."""
    if text is None or len(text) > _LONGEST:
        return None
    out, at, before = "", 0, ""
    opened: list[int] = []
    group = ""
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            return None
        kind = str(match.lastgroup)
        if kind == "many" and (
            before in {"", "many", "open", "or", "start", "end"} or (before == "close" and _matches_nothing(group))
        ):
            return None
        if kind == "open":
            opened.append(len(out))
        elif kind == "close" and opened:
            group = out[opened.pop() :] + ")"
        out += _ANY if kind == "any" else _AT_END if kind == "end" else match[0]
        at, before = match.end(), kind
    try:
        return re.compile(out, re.ASCII)
    except (re.error, OverflowError):
        return None


def _matches_nothing(group: str) -> bool:
    """Return whether a group can match empty text, after which repetitions differ between engines."""
    try:
        return re.compile(group, re.ASCII).fullmatch("") is not None
    except (re.error, OverflowError):
        return True


def _text_and_pattern(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> tuple[Expr, re.Pattern[str]] | None:
    found = pattern_of(constant_text(args[1])) if len(args) > 1 else None
    text = as_text(args[0], mode, zone) if found is not None else None
    return (text, found) if text is not None and found is not None else None


def _searched(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Signature | None:
    found = _text_and_pattern(args, mode, zone) if len(args) == 2 else None
    return None if found is None else Signature((found[0], args[1]), BOOLEAN)


def _extracted(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Signature | None:
    """Resolve REGEXP_EXTRACT; the group is a constant, by default 1."""
    group = args[2] if len(args) == 3 else Literal(INTEGER, 1)
    found, number = _text_and_pattern(args, mode, zone), constant_count(group)
    if len(args) not in (2, 3) or found is None or number is None or not 0 <= number <= found[1].groups:
        return None
    return Signature((found[0], args[1], Literal(INTEGER, number)), STRING)


def _replaced(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Signature | None:
    """Resolve REGEXP_REPLACE by a text without group references."""
    found = _text_and_pattern(args, mode, zone) if len(args) == 3 else None
    new = constant_text(args[2]) if len(args) == 3 else None
    if found is None or new is None or "$" in new or "\\" in new or found[1].match("") is not None:
        return None  # empty matches are counted differently
    return Signature((found[0], *args[1:]), STRING)


def _pattern(call_: Call) -> re.Pattern[str]:
    found = pattern_of(constant_text(call_.args[1]))
    assert found is not None
    return found


def _by_value(change: Callable[[str], object], x: Datum, data_type: DataType) -> Evaluated:
    """Evaluate each distinct text once."""
    encoded = full_length(x, 1).dictionary_encode()
    made = pa.array([change(v) for v in encoded.dictionary.to_pylist()], to_arrow_type(data_type))
    return Evaluated(made.take(encoded.indices))


def _search(call_: Call, args: list[Datum]) -> Evaluated:
    found = _pattern(call_)
    return _by_value(lambda v: found.search(v) is not None, args[0], BOOLEAN)


def _extract(call_: Call, args: list[Datum]) -> Evaluated:
    """Return the group of the first match; empty if there is none, or the group did not participate."""
    found, group = _pattern(call_), call_.args[2]
    assert isinstance(group, Literal)
    number = group.value
    return _by_value(lambda v: ((m := found.search(v)) is not None and m[number]) or "", args[0], STRING)


def _replace(call_: Call, args: list[Datum]) -> Evaluated:
    found, new = _pattern(call_), constant_text(call_.args[2])
    return _by_value(lambda v: found.sub(lambda _: new or "", v), args[0], STRING)


declare_function(
    Function("matches", _searched, _search, note="other patterns than a few plain texts: single values only")
)
declare_function(
    Function(
        "regexp_extract",
        _extracted,
        _extract,
        sql=("regexp_extract",),
        catalyst=("RegExpExtract",),
        note="single values only",
    )
)
declare_function(
    Function(
        "regexp_replace",
        _replaced,
        _replace,
        sql=("regexp_replace",),
        catalyst=("RegExpReplace",),
        note="single values only",
    )
)


@declare_overload("regexp_replace")
def _from_the_start(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Expr | None:
    """Accept the start position that Catalyst passes, if it is the first character (the default)."""
    start = args[3] if len(args) == 4 else None
    return (
        make_call("regexp_replace", *args[:3], mode=mode, zone=zone)
        if isinstance(start, Literal) and start.value == 1
        else None
    )
