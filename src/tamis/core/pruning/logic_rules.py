"""Rules for predicates, logic and branches; each admits at least the function's possible results.

Arguments are evaluated lazily if the function may skip them: an argument that is not reached cannot fail.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.expr import registry
from tamis.core.expr.arrow_values import Mask, has_value, literal_scalar
from tamis.core.expr.functions.datetime.calendar import FAR_YEAR
from tamis.core.expr.tree import Call, Expr, Literal
from tamis.core.pruning import approximate_rules, bit_rules, json_rules, membership_rules, nested_rules, text_rules
from tamis.core.pruning.bound_comparison import compare_bounds, null_safe
from tamis.core.pruning.cast_rules import cast_rule
from tamis.core.pruning.json_number_text import equal_to_text
from tamis.core.pruning.monotone_rules import monotone_bounds
from tamis.core.pruning.time_zone_rules import (
    from_unixtime,
    local_rule,
    moved_zone,
    timestamp_add,
    timestamp_add_months,
)
from tamis.core.pruning.value_spec import (
    NO,
    Abstract,
    Spec,
    Truth,
    at_most,
    choose_where,
    constant_spec,
    extreme_bound,
    join_any,
    join_specs,
    piece_intersection,
    piece_union,
    restrict_pieces,
    spec_of,
    surely_below,
    truth_of,
)
from tamis.core.types import BOOLEAN


class Interpret(Protocol):
    """The interpreter as used by rules."""

    def __call__(self, expr: Expr) -> Abstract: ...


Rule = Callable[[Any, Call], Abstract]


def _specs(run: Interpret, call: Call) -> list[Spec]:
    return [spec_of(run(a)) for a in call.args]


def as_truth(abstract: Abstract) -> Truth:
    """Return the four possible outcomes of a predicate."""
    return abstract if isinstance(abstract, Truth) else truth_of(abstract)


def _compare(run: Interpret, call: Call) -> Abstract:
    found = _with_constant_text(run, call, partial(compare_bounds, "eq")) if call.function in {"eq", "ne"} else None
    if found is not None:
        return found if call.function == "eq" else _not_truth(found)
    a, b = _specs(run, call)
    return compare_bounds(call.function, a, b)


def _null_safe(run: Interpret, call: Call) -> Abstract:
    found = _with_constant_text(run, call, null_safe)
    if found is not None:
        return found
    a, b = _specs(run, call)
    return null_safe(a, b)


def _with_constant_text(run: Interpret, call: Call, equal: Callable[..., Truth]) -> Truth | None:
    """Bound the equality of a constant text and a text that may be the digits of numbers; None for others."""
    for arg, other in (call.args, call.args[::-1]):
        if isinstance(other, Literal) and isinstance(other.value, str):
            found = equal_to_text(run, arg, [other.value], partial(equal, b=spec_of(run(other))))
            if found is not None:
                return found
    return None


def _and(run: Interpret, call: Call) -> Abstract:
    """Combine arguments left to right.

    Only false stops, so an argument is evaluated where those before it may be true or NULL.
    """
    out: Truth | None = None
    for arg in call.args:
        now = as_truth(run(arg))
        if out is None:
            out = now
            continue
        on = out.true | out.null
        out = Truth(
            out.true & now.true,
            out.false | (on & now.false),
            (out.null & (now.true | now.null)) | (out.true & now.null),
            out.fail | (on & now.fail),
        )
    assert out is not None
    return out


def _not_truth(t: Truth) -> Truth:
    return Truth(t.false, t.true, t.null, t.fail)


def _not(run: Interpret, call: Call) -> Abstract:
    return _not_truth(as_truth(run(call.args[0])))


def _or(run: Interpret, call: Call) -> Abstract:
    """Apply De Morgan's law, which also preserves the order of evaluation."""

    def negated(expr: Expr) -> Abstract:
        return _not_truth(as_truth(run(expr)))

    return _not_truth(as_truth(_and(negated, call)))


def _something(abstract: Abstract) -> Mask:
    """Return where a value (including NaN) is possible."""
    if isinstance(abstract, Truth):
        return abstract.true | abstract.false
    return abstract.value | abstract.nan


def _is_null(run: Interpret, call: Call) -> Abstract:
    a = run(call.args[0])
    null, there = a.null, _something(a)
    return Truth(null, there, NO, a.fail) if call.function == "is_null" else Truth(there, null, NO, a.fail)


def _is_nan(run: Interpret, call: Call) -> Abstract:
    a = spec_of(run(call.args[0]))
    return Truth(a.nan, a.value | a.null, NO, a.fail)


def _coalesce(run: Interpret, call: Call) -> Abstract:
    """Combine arguments left to right; each is evaluated where all before it may be NULL."""
    out: Abstract | None = None
    for arg in call.args:
        if out is None:
            out = run(arg)
            continue
        open_ = out.null
        if not open_.any():
            break
        now = restrict_pieces(run(arg), open_)
        out = join_any(_without_null(out), now)
    assert out is not None
    return out


def _without_null(abstract: Abstract) -> Abstract:
    if isinstance(abstract, Truth):
        return Truth(abstract.true, abstract.false, NO, abstract.fail)
    return Spec(abstract.type, abstract.lo, abstract.hi, abstract.value, NO, abstract.fail, abstract.nan)


def _case(run: Interpret, call: Call) -> Abstract:
    """Join the branches that can be reached.

    A condition is evaluated unless one before it is always true.
    """
    on: Mask = np.ones((), bool)
    out: Abstract | None = None
    failing: Mask = NO
    for condition, value in zip(call.args[:-1:2], call.args[1::2], strict=True):
        test = as_truth(run(condition))
        failing = failing | (on & test.fail)
        out = _also(out, run(value), on & test.true)
        on = on & (test.false | test.null)
    out = _also(out, run(call.args[-1]), on)
    if isinstance(out, Truth):
        return Truth(out.true, out.false, out.null, out.fail | failing)
    return Spec(out.type, out.lo, out.hi, out.value, out.null, out.fail | failing, out.nan)


def _also(out: Abstract | None, now: Abstract, mask: Mask) -> Abstract:
    now = restrict_pieces(now, mask)
    return now if out is None else join_any(out, now)


def _extreme(run: Interpret, call: Call) -> Abstract:
    """Bound GREATEST and LEAST, which skip NULLs.

    A bound that would hold only if every argument had a value falls back to those of the others.
    """
    args = _specs(run, call)
    greatest = call.function == "greatest"
    null = piece_intersection([a.null for a in args])
    fail = piece_union([a.fail for a in args])
    nan = piece_union([a.nan for a in args])
    value = piece_union([a.value for a in args])
    lo, hi = _hull(args)
    present = [a.value & ~a.null & ~a.nan for a in args]
    for a, there in zip(
        args, present, strict=True
    ):  # an argument that always has a value bounds the result on one side
        if greatest:
            better = there & (~has_value(lo) | surely_below(lo, a.lo))
            lo = choose_where(better & has_value(a.lo), a.lo, lo)
        else:
            better = there & (~has_value(hi) | surely_below(a.hi, hi))
            hi = choose_where(better & has_value(a.hi), a.hi, hi)
    return Spec(call.type, lo, hi, value, null, fail, nan)


def _hull(args: list[Spec]) -> tuple[Any, Any]:
    """Return bounds of all values that the arguments may have."""
    out = args[0]
    for a in args[1:]:
        lo, hi = extreme_bound([out.lo, a.lo], True), extreme_bound([out.hi, a.hi], False)
        lo, hi = (
            choose_where(~a.value, out.lo, choose_where(~out.value, a.lo, lo)),
            choose_where(~a.value, out.hi, choose_where(~out.value, a.hi, hi)),
        )
        out = Spec(out.type, lo, hi, out.value | a.value, out.null, out.fail, out.nan)
    return out.lo, out.hi


def _monotone(run: Interpret, call: Call) -> Abstract:
    args = _specs(run, call)
    out = local_rule(call, args) if registry.function_entry(call.function).local else monotone_bounds(call, args)
    return truth_of(out) if call.type == BOOLEAN else out


def _cast(run: Interpret, call: Call) -> Abstract:
    text = call.args[0]
    if isinstance(text, Call) and text.function == "get_json_object":
        return json_rules.cast_of_text(run, call, text)
    return cast_rule(call, _specs(run, call))


def _make_date(run: Interpret, call: Call) -> Abstract:
    """Bound MAKE_DATE; years outside the range of Java's days fail in every mode."""
    args = _specs(run, call)
    out = monotone_bounds(call, args)
    near = pa.scalar(FAR_YEAR, pa.int32())
    inside = surely_below(args[0].hi, near) & surely_below(pc.negate(near), args[0].lo)
    return Spec(
        out.type,
        out.lo,
        out.hi,
        out.value,
        out.null,
        out.fail | (~inside & piece_intersection([a.value for a in args])),
        out.nan,
    )


def _abs(run: Interpret, call: Call) -> Abstract:
    """Bound ABS: decreasing below zero and increasing above, so each side is treated separately."""
    (a,) = _specs(run, call)
    zero = literal_scalar(0, a.type)
    under = replace(a, hi=pc.coalesce(extreme_bound([a.hi, zero], True), zero), value=a.value & ~at_most(zero, a.lo))
    over = replace(
        a, lo=pc.coalesce(extreme_bound([a.lo, zero], False), zero), value=a.value & ~surely_below(a.hi, zero)
    )
    return join_specs(monotone_bounds(call, [under]), monotone_bounds(call, [over]))


def _whole(run: Interpret, call: Call) -> Abstract:
    """Bound FLOOR and CEIL, which turn NaN into 0."""
    (a,) = _specs(run, call)
    out = monotone_bounds(call, [replace(a, nan=NO)])
    return (
        join_specs(out, replace(constant_spec(call.type, literal_scalar(0, call.type)), value=a.nan))
        if a.nan.any()
        else out
    )


RULES: dict[str, Rule] = {
    "whole": _whole,
    "abs": _abs,
    "compare": _compare,
    "null_safe_eq": _null_safe,
    "and": _and,
    "or": _or,
    "not": _not,
    "is_null": _is_null,
    "is_not_null": _is_null,
    "is_nan": _is_nan,
    "in": membership_rules.member_of_list,
    "starts_with": membership_rules.starts_with,
    "like": membership_rules.like_pattern,
    "coalesce": _coalesce,
    "case": _case,
    "text": text_rules.transfer_text,
    "bits": bit_rules.transfer_bits,
    "extreme": _extreme,
    "cast": _cast,
    "timestamp_of_text": json_rules.timestamp_of_text,
    "json": json_rules.transfer_json,
    "make_date": _make_date,
    "size": nested_rules.size,
    "unknown_array": nested_rules.unknown_array,
    "split": nested_rules.split,
    "element": nested_rules.element,
    "map_value": nested_rules.map_value,
    "array_contains": nested_rules.array_contains,
    "elements": nested_rules.elements,
    "approximate": lambda run, call: approximate_rules.approximate_bounds(call, _specs(run, call)),
    "months_between": lambda run, call: approximate_rules.months_between(call, _specs(run, call)),
    "utc": lambda run, call: moved_zone(call, _specs(run, call)),
    "from_unixtime": lambda run, call: from_unixtime(call, _specs(run, call)),
    "timestamp_add": lambda run, call: timestamp_add(call, _specs(run, call)),
    "timestamp_add_months": lambda run, call: timestamp_add_months(call, _specs(run, call)),
}
"""Rules by ``Function.rule``; functions without one use the monotone rule."""


def transfer_logic(run: Interpret, call: Call) -> Abstract:
    """Return the possible results of ``call``."""
    rule = registry.function_entry(call.function).rule
    return RULES[rule](run, call) if rule is not None else _monotone(run, call)
