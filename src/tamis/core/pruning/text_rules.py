"""Rules for text functions, from the common prefix of all texts between two bounds and the bytes after it.

Invariant: in byte order, every text between two texts begins with their common prefix. A function that works
from the left (LOWER, SPLIT_PART, CONCAT, REPLACE) therefore has a known prefix too, and one that only cuts
off an end (TRIM) gives nothing above its argument. Single values are left to the kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.expr.arrow_values import (
    Datum,
    Evaluated,
    Mask,
    Numbers,
    full_length,
    null_mask,
    row_count,
    stored_numbers,
)
from tamis.core.expr.evaluate import apply_function
from tamis.core.expr.functions.cast.cast_kernels import LIMITS
from tamis.core.expr.tree import Call, Expr, Literal
from tamis.core.pruning.monotone_rules import monotone_bounds
from tamis.core.pruning.value_spec import Abstract, Spec, choose_where, meet_specs, one_value, spec_of, surely_true

Ends = tuple[Datum, Datum]
_WIDTH = 64
"""Bytes of a bound that are compared."""
_CHUNK = 65_536
_CHARACTERS = pa.StringArray.from_buffers(
    128, pa.py_buffer(np.arange(129, dtype=np.int32)), pa.py_buffer(bytes(range(128)))
)
"""The ASCII characters, built from a buffer because Arrow imports pandas to convert a list."""
_CASES = {
    name: np.array([ord(change(chr(c))) for c in range(128)])
    for name, change in {"lower": str.lower, "upper": str.upper}.items()
}


class _Run(Protocol):
    def __call__(self, expr: Expr) -> Abstract: ...


def transfer_text(run: _Run, call: Call) -> Abstract:
    """Bound ``call`` by the rule of its function, combined with the result for single values."""
    args = [spec_of(run(a)) for a in call.args]
    out = monotone_bounds(call, args)
    a = args[0]
    n = row_count([b for arg in args for b in (arg.lo, arg.hi)])
    if call.function == "split_part":
        return split_piece(a, out, _constant(call, 1), _constant(call, 2))[0]
    lo, hi = _RULES[call.function](call, args, (full_length(a.lo, n), full_length(a.hi, n)))
    return _within(out, lo, hi, all(isinstance(b, pa.Scalar) for arg in args for b in (arg.lo, arg.hi)))


def _within(out: Spec, lo: Any, hi: Any, alone: bool) -> Spec:
    """Return ``out`` with narrower bounds.

    ``alone`` means that ``lo`` and ``hi`` hold one value that applies to all pieces.
    """
    lo, hi = (lo[0], hi[0]) if alone else (lo, hi)
    return replace(meet_specs(out, replace(out, lo=lo, hi=hi)), value=out.value)


def _bytes(x: Any) -> Numbers:
    """Return the first bytes of each text, padded with -1; NULL counts as empty."""
    x = x.fill_null("")
    offsets = np.frombuffer(x.buffers()[1], np.int32)[x.offset : x.offset + len(x) + 1].astype(np.int64)
    data = np.frombuffer(x.buffers()[2] or b"\0", np.uint8) if offsets[-1] else np.zeros(1, np.uint8)
    at = offsets[:-1, None] + np.arange(_WIDTH)
    return np.where(at < offsets[1:, None], data.astype(np.int16)[np.minimum(at, len(data) - 1)], np.int16(-1))


def common_prefix(lo: Any, hi: Any) -> tuple[Any, Numbers, Numbers]:
    """Return the common prefix of all texts between the bounds, and the next byte of each bound.

    The prefix is NULL where a bound is unknown; the byte is -1 where the bound ends.
    """
    parts = [_common_prefix(lo.slice(k, _CHUNK), hi.slice(k, _CHUNK)) for k in range(0, max(len(lo), 1), _CHUNK)]
    beginnings = pa.chunked_array([p[0] for p in parts], pa.string()).combine_chunks()
    return beginnings, np.concatenate([p[1] for p in parts]), np.concatenate([p[2] for p in parts])


def _common_prefix(lo: Any, hi: Any) -> tuple[Any, Numbers, Numbers]:
    a, b = (np.pad(_bytes(x), ((0, 0), (0, 1)), constant_values=-2) for x in (lo, hi))
    same = (a == b) & (a >= 0)
    length = np.argmin(same, axis=1)
    row = np.arange(len(a))
    for _ in range(3):  # never split a character
        inside = (
            (length > 0) & (((a[row, length] & 0xC0) == 0x80) | ((b[row, length] & 0xC0) == 0x80)) & (length < _WIDTH)
        )
        inside |= (length > 0) & (length == _WIDTH)
        length = np.where(inside, length - 1, length)
    kept = np.arange(a.shape[1]) < length[:, None]
    offsets = np.concatenate([[0], np.cumsum(length)]).astype(np.int32)
    found = pa.StringArray.from_buffers(len(a), pa.py_buffer(offsets), pa.py_buffer(a[kept].astype(np.uint8)))
    unknown = pc.or_(lo.is_null(), hi.is_null())
    return pc.if_else(unknown, pa.scalar(None, pa.string()), found), a[row, length], b[row, length]


def text_above(prefix: Any) -> Any:
    """Return a text greater than all texts that begin with ``prefix``.

    The result is NULL if ``prefix`` is empty or does not end in ASCII.
    """
    last = pc.utf8_slice_codeunits(prefix, -1)
    after = _CHARACTERS.slice(1).take(pc.index_in(last, _CHARACTERS.slice(0, 127)))
    return pc.binary_join_element_wise(pc.utf8_slice_codeunits(prefix, 0, -1), after, "")


def _cased(call: Call, args: list[Spec], ends: Ends) -> Ends:  # noqa: ARG001
    """Bound LOWER and UPPER by the converted prefix and the extremes of the character after it.

    Only ASCII prefixes are used, whose letters change one by one.
    """
    prefix, first, last = common_prefix(*ends)
    ascii_ = np.asarray(pc.string_is_ascii(prefix).fill_null(False).to_numpy(zero_copy_only=False))
    plain = pc.if_else(pa.array(ascii_), prefix, pa.scalar(None, pa.string()))
    changed = apply_function(call, [Evaluated(plain)]).values
    least, most = _extremes(call.function)
    follows = ascii_ & (first >= 0) & (first < 126) & (last >= 0) & (last < 126)
    a, b = np.where(follows, first, 0), np.where(follows, last, 0)
    lo = pc.binary_join_element_wise(changed, _CHARACTERS.take(pa.array(least[a, b])), "")
    hi = pc.binary_join_element_wise(changed, _CHARACTERS.take(pa.array(most[a, b] + 1)), "")
    return choose_where(follows, lo, changed), choose_where(follows, hi, text_above(changed))


@cache
def _extremes(name: str) -> tuple[Numbers, Numbers]:
    """Return, for each range of characters, the least and the greatest converted character."""
    table, run = _CASES[name], np.arange(128)
    inside = (run[:, None, None] <= run) & (run <= run[None, :, None])
    return np.where(inside, table, 127).min(axis=2), np.where(inside, table, 0).max(axis=2)


def _constant(call: Call, at: int) -> Any:
    argument = call.args[at]
    assert isinstance(argument, Literal)
    return argument.value


def _before(text: Any, greatest: str) -> Any:
    """Return the text up to its first character that is not above ``greatest``."""
    return pc.replace_substring_regex(text, f"(?s)[\\x{{0}}-\\x{{{ord(greatest):x}}}].*", "")


def _trimmed(call: Call, args: list[Spec], ends: Ends) -> Ends:  # noqa: ARG001
    """Bound TRIM, LTRIM and RTRIM.

    The result is at most the text, and at least its prefix of characters above all those that are cut.
    Nothing is cut off the front where all texts begin above them.
    """
    lo, hi = ends
    taken = _constant(call, 1)
    kept = _before(lo, max(taken)) if taken else lo
    if call.function != "rtrim":
        starts = pc.greater(pc.utf8_length(kept), 0)
        kept, hi = (
            pc.if_else(starts, x, pa.scalar(None, pa.string())) for x in (kept if call.function == "trim" else lo, hi)
        )
    return kept, hi


def split_piece(source: Spec, out: Spec, separator: str, number: int) -> tuple[Spec, Mask]:
    """Bound the ``number``-th piece (from 1) between separators, and return where all texts have so many.

    The bounds are exact where the common prefix holds the piece and the separator after it. Otherwise the
    text after the preceding separators begins with the piece, so the piece is at most that text, and at least
    its prefix of characters above the first character of the separator.
    """
    n = row_count([source.lo, source.hi])
    lo, hi = full_length(source.lo, n), full_length(source.hi, n)
    prefix, _, _ = common_prefix(lo, hi)
    there: Mask = np.ones(n, bool)
    mark = _literally(separator)
    for _ in range(number - 1):
        there = there & surely_true(pc.match_substring(prefix, separator))
        lo, hi, prefix = (
            pc.replace_substring_regex(x, "(?s)\\A.*?" + mark, "", max_replacements=1) for x in (lo, hi, prefix)
        )
    whole = surely_true(pc.match_substring(prefix, separator))
    exact = pc.replace_substring_regex(prefix, f"(?s){mark}.*", "")
    nothing = pa.nulls(n, pa.string())
    lo = choose_where(there, choose_where(whole, exact, _before(lo, separator[0])), nothing)
    hi = choose_where(there, choose_where(whole, exact, hi), nothing)
    alone = all(isinstance(b, pa.Scalar) for b in (source.lo, source.hi))
    return _within(out, lo, hi, alone), there.reshape(()) if alone else there


def _literally(text: str) -> str:
    """Return a regular expression that matches exactly this text."""
    return "".join(f"\\x{{{ord(c):x}}}" for c in text)


def _replaced(call: Call, args: list[Spec], ends: Ends) -> Ends:
    """Bound REPLACE by the replaced prefix, unless an occurrence may cross the end of the prefix."""
    wanted = _constant(call, 1)
    prefix, _, _ = common_prefix(*ends)
    across: Mask = np.zeros(len(prefix), bool)
    for size in range(1, len(wanted)):
        across |= surely_true(pc.ends_with(prefix, wanted[:size]))
    made = apply_function(call, [Evaluated(prefix), *(Evaluated(a.lo) for a in args[1:])]).values
    made = choose_where(~across, made, pa.nulls(len(prefix), pa.string()))
    return made, text_above(made)


def _concatenated(_call: Call, args: list[Spec], ends: Ends) -> Ends:
    """Bound CONCAT by the parts before the first varying one and that part's prefix."""
    n = len(ends[0])
    lo = hi = pa.repeat("", n)
    open_ = np.ones(n, bool)
    for number, a in enumerate(args):
        low, high = full_length(a.lo, n), full_length(a.hi, n)
        single = np.broadcast_to(one_value(a), (n,))
        if number == len(args) - 1:
            grown = pc.binary_join_element_wise(hi, high, "")
        else:
            prefix, _, _ = common_prefix(low, high)
            grown = choose_where(
                np.asarray(single),
                pc.binary_join_element_wise(hi, high, ""),
                text_above(pc.binary_join_element_wise(hi, prefix, "")),
            )
        lo = choose_where(open_, pc.binary_join_element_wise(lo, low.fill_null(""), ""), lo)
        hi = choose_where(open_, grown, hi)
        open_ = open_ & single
    return lo, hi


def _translated(call: Call, args: list[Spec], ends: Ends) -> Ends:
    """Bound TRANSLATE, which changes characters one by one, by the changed prefix."""
    prefix, _, _ = common_prefix(*ends)
    made = apply_function(call, [Evaluated(prefix), *(Evaluated(a.lo) for a in args[1:])]).values
    return made, text_above(made)


_RULES: dict[str, Callable[[Call, list[Spec], Ends], Ends]] = {
    "lower": _cased,
    "upper": _cased,
    "trim": _trimmed,
    "ltrim": _trimmed,
    "rtrim": _trimmed,
    "replace": _replaced,
    "translate": _translated,
    "concat": _concatenated,
}


def integer_text(call: Call, a: Spec) -> Spec:
    """Bound the cast of an integer to text.

    Numbers with equally many digits sort like their texts, negative ones in reverse. Between numbers of
    different lengths, ``10…0`` and ``9…9`` are also included.
    """
    out = monotone_bounds(call, [a])
    least, most = LIMITS[a.type]  # type: ignore[index]
    n = row_count([a.lo, a.hi])
    low, high = (_known(full_length(b, n), v) for b, v in ((a.lo, least), (a.hi, most)))
    bounded = (low >= 0) | ((high < 0) & (low > least))
    first, last = (
        np.where(low >= 0, low, np.abs(np.where(bounded, high, 0))),
        np.where(low >= 0, high, np.abs(np.where(bounded, low, 0))),
    )
    first, last = np.where(bounded, first, 0), np.where(bounded, last, 0)
    size, sizes = _digits(first), _digits(last)
    same = size == sizes
    down = np.where(same, first, np.minimum(10 ** np.minimum(size, 18), last))
    lo, hi = (pa.array(x).cast(pa.string()) for x in (first, last))
    lo = choose_where(same, lo, extreme_text(lo, pa.array(down).cast(pa.string()), True))
    nines = pa.array(10 ** np.minimum(sizes - 1, 18) - 1).cast(pa.string())
    hi = choose_where(same, hi, extreme_text(hi, nines, False))
    sign = choose_where(low < 0, pa.repeat("-", n), pa.repeat("", n))
    nothing = pa.nulls(n, pa.string())
    lo, hi = (choose_where(bounded, pc.binary_join_element_wise(sign, x, ""), nothing) for x in (lo, hi))
    return _within(out, lo, hi, isinstance(a.lo, pa.Scalar) and isinstance(a.hi, pa.Scalar))


def extreme_text(a: Any, b: Any, least: bool) -> Any:
    """Return the text that sorts first (or last)."""
    return pc.if_else(pc.less(a, b) if least else pc.greater(a, b), a, b)


def _known(bound: Any, otherwise: int) -> Numbers:
    mask = null_mask(bound)
    values = stored_numbers(bound).astype(np.int64)
    return values if mask is None else np.where(mask, otherwise, values)


def _digits(values: Numbers) -> Numbers:
    """Count decimal digits."""
    powers: Sequence[int] = [10**k for k in range(1, 19)]
    return 1 + np.searchsorted(np.array(powers, np.int64), values, side="right")
