"""Rules of IN, STARTSWITH and LIKE, which treat numbers in documents apart from texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from tamis.core.expr.arrow_values import Evaluated, Mask
from tamis.core.expr.evaluate import apply_function
from tamis.core.expr.functions.text.text_order import like_prefix, next_text
from tamis.core.expr.tree import Call, Expr, Literal, Literals
from tamis.core.pruning.bound_comparison import compare_bounds, list_membership
from tamis.core.pruning.json_number_text import begins_with_text, equal_to_text
from tamis.core.pruning.monotone_rules import monotone_bounds
from tamis.core.pruning.value_spec import (
    Abstract,
    Spec,
    Truth,
    at_most,
    one_value,
    piece_intersection,
    spec_of,
    surely_below,
    surely_true,
    truth_of,
)


def member_of_list(run: Any, call: Call) -> Abstract:
    texts = _constant_texts(call.args[1:])
    if texts is not None:
        given = [text for text in texts if text is not None]
        found = equal_to_text(
            run, call.args[0], given, lambda spec: _in_list(run, call, spec), null_listed=len(given) < len(texts)
        )
        if found is not None:
            return found
    return _in_list(run, call, spec_of(run(call.args[0])))


def _constant_texts(options: Sequence[Expr]) -> list[str | None] | None:
    """Return the texts of a list of text constants, in which NULL may be; None if it has anything else."""
    if len(options) == 1 and isinstance(options[0], Literals):
        array = options[0].array
        return array.to_pylist() if pa.types.is_string(array.type) else None
    texts = [option.value for option in options if isinstance(option, Literal) and isinstance(option.value, str)]
    return list(texts) if len(texts) == len(options) else None


def _in_list(run: Any, call: Call, a: Spec) -> Truth:
    if isinstance(call.args[1], Literals):
        return list_membership(a, call.args[1].array)
    out: Truth | None = None
    for option in call.args[1:]:
        now = compare_bounds("eq", a, spec_of(run(option)))
        if out is not None:  # OR: true stops
            on = out.false | out.null
            now = Truth(
                out.true | (on & now.true),
                out.false & now.false,
                (out.null & (now.false | now.null)) | (out.false & now.null),
                out.fail | (on & now.fail),
            )
        out = now
    assert out is not None
    return out


def _begins(a: Spec, prefix: str) -> tuple[Mask, Mask]:
    """Return where a value may begin with ``prefix``, and where every value does."""
    start, end = pa.scalar(prefix), next_text(prefix)
    may = ~surely_below(a.hi, start)
    all_ = at_most(start, a.lo)
    if end is not None:
        after = pa.scalar(end)
        may = may & ~at_most(after, a.lo)
        all_ = all_ & surely_below(a.hi, after)
    return a.value & may, all_


def starts_with(run: Any, call: Call) -> Abstract:
    pattern = call.args[1]
    if not (isinstance(pattern, Literal) and isinstance(pattern.value, str)):
        return truth_of(monotone_bounds(call, [spec_of(run(a)) for a in call.args]))
    prefix = pattern.value

    def begins(a: Spec) -> Truth:
        may, all_ = _begins(a, prefix)
        return Truth(may, a.value & ~all_, a.null, a.fail)

    found = begins_with_text(run, call.args[0], prefix, begins)
    return begins(spec_of(run(call.args[0]))) if found is None else found


def like_pattern(run: Any, call: Call) -> Abstract:
    """Bound LIKE by the text before the first wildcard.

    This is a prefix test, exact for ``prefix%``, and an equality if there is no wildcard.
    """
    pattern, escape = call.args[1], call.args[2]
    assert isinstance(pattern, Literal)
    assert isinstance(escape, Literal)
    found = like_prefix(pattern.value, escape.value)
    assert found is not None
    prefix, only = found

    def like(a: Spec) -> Truth:
        may, all_ = _begins(a, prefix)
        return Truth(may, a.value & ~(all_ & only), a.null, a.fail)

    number = begins_with_text(run, call.args[0], prefix, like)
    return _exactly(run, call, like(spec_of(run(call.args[0])))) if number is None else number


def _exactly(run: Any, call: Call, out: Truth) -> Truth:
    """Use the predicate's own result where every argument is a single value."""
    args = [spec_of(run(a)) for a in call.args]
    exact = piece_intersection([one_value(a) for a in args])
    if not exact.any():
        return out
    values = apply_function(call, [Evaluated(a.lo) for a in args]).values
    true = surely_true(values)
    return Truth(
        out.true & (~exact | true),
        out.false & (~exact | ~true),
        out.null,
        out.fail,
    )
