"""Rules for arrays and maps, from the statistics of their contents and sizes."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.expr.arrow_values import Mask
from tamis.core.expr.functions.logic.comparisons import compare_values
from tamis.core.expr.functions.nested import nested_fields as inside
from tamis.core.expr.tree import Call, Column, Expr, Literal, Mode
from tamis.core.pruning import text_rules
from tamis.core.pruning.bound_comparison import compare_bounds
from tamis.core.pruning.value_spec import (
    NO,
    UNKNOWN_TRUTH,
    YES,
    Abstract,
    Spec,
    Truth,
    at_most,
    choose_where,
    spec_of,
    surely_below,
    surely_true,
    truth_of,
    unknown_spec,
)
from tamis.core.types import BOOLEAN, Array, DataType, Map


class Inside(Protocol):
    """The interpreter as used by these rules."""

    def __call__(self, expr: Expr) -> Abstract: ...
    def column(self, column: Column) -> Spec: ...
    def inside(self, data_type: DataType, ids: tuple[int, ...], name: str) -> Spec: ...
    def place(self, column: Column, ids: tuple[int, ...], place: str, rest: Spec) -> Spec: ...
    def size(self, column: Column) -> Spec: ...


def _unknown(call: Call) -> Abstract:
    return UNKNOWN_TRUTH if call.type == BOOLEAN else unknown_spec(call.type)


def size(run: Inside, call: Call) -> Abstract:
    """Bound SIZE by the least and the greatest size in the piece."""
    source = _column_of(call.args[0])
    return _unknown(call) if source is None else run.size(source)


def _column_of(source: Expr) -> Column | None:
    """Return the column that has the same elements as the array, one to one, or None."""
    inner = source.args[0] if isinstance(source, Call) and source.function == "array_field" else source
    return inner if isinstance(inner, Column) else None


def _members(run: Inside, call: Call) -> tuple[Spec, Column, tuple[int, ...]] | None:
    """Return the spec of the elements that ``call`` reads, their column and the ids to them; None if unknown."""
    source = call.args[0]
    of_each = isinstance(source, Call) and source.function == "array_field"
    column, found = _column_of(source), inside.members(source if of_each and isinstance(source, Call) else call)
    if column is None or found is None or (of_each and inside.path_of(call)):
        return None
    kind, ids = found
    return run.inside(kind, ids, column.name), column, ids


def unknown_array(run: Inside, call: Call) -> Abstract:
    """Return an unknown array that is NULL where the source array is."""
    (source,) = call.args[:1]
    null = run.size(source).null if isinstance(source, Column) else YES
    return replace(unknown_spec(call.type), null=null, fail=NO)


def element(run: Inside, call: Call) -> Abstract:
    """Bound the access to an element; the result is NULL or fails where an array may be too short."""
    source, index = call.args[:2]
    if isinstance(source, Call) and source.function == "split":
        return _of_split(run, call, source, index)
    if (found := _members(run, call)) is None:
        return _unknown(call)
    one, column, ids = found
    sizes, at = run.size(column), spec_of(run(index))
    zero_based = call.function == "element"
    position = _position(index, zero_based)
    if position is not None:
        one = run.place(column, ids, str(position), one)
    reached = _reached(at, sizes, 0 if zero_based else 1)
    asked = sizes.value & (at.value | at.nan)
    lenient_zero = NO if zero_based else asked & ~(surely_below(at.hi, _integer(0)) | surely_below(_integer(0), at.lo))
    missing = asked & ~reached
    fail = at.fail | (missing if call.mode is Mode.ANSI else lenient_zero)
    null = sizes.null | at.null | (asked & one.null) | (NO if call.mode is Mode.ANSI else missing)
    out = Spec(call.type, one.lo, one.hi, asked & one.value, null, fail, asked & one.nan)
    return truth_of(out) if call.type == BOOLEAN else out


def split(run: Inside, call: Call) -> Abstract:
    """Return an unknown array that is NULL where the text is."""
    text = spec_of(run(call.args[0]))
    return replace(unknown_spec(call.type), null=text.null, fail=text.fail)


def _of_split(run: Inside, call: Call, source: Call, index: Expr) -> Abstract:
    """Bound one piece of a text between separators."""
    at, separator = (a.value if isinstance(a, Literal) else None for a in (index, source.args[1]))
    number = None if not isinstance(at, int) else at + 1 if call.function == "element" else at
    if number is None or not 1 <= number <= _MOST_PIECES:
        return _unknown(call)
    text = spec_of(run(source.args[0]))
    one = replace(unknown_spec(call.type), value=text.value, null=text.null, fail=text.fail)
    out, there = text_rules.split_piece(text, one, str(separator), number)
    missing = out.value & ~there
    return replace(out, fail=out.fail | missing) if call.mode is Mode.ANSI else replace(out, null=out.null | missing)


_MOST_PIECES = 16


def _position(index: Expr, zero_based: bool) -> int | None:
    """Return the position from 0 on that a constant index names; None if it counts from the end or is not constant."""
    at = index.value if isinstance(index, Literal) else None
    first = 0 if zero_based else 1
    return at - first if isinstance(at, int) and at >= first else None


def _integer(value: int) -> pa.Scalar:
    return pa.scalar(value, pa.int32())


def _reached(at: Spec, sizes: Spec, base: int) -> Mask:
    """Return where every array has an element at every index."""
    ahead = at_most(_integer(base), at.lo) & (surely_below(at.hi, sizes.lo) if base == 0 else at_most(at.hi, sizes.lo))
    if base == 0:
        return ahead
    one = surely_true(compare_values("eq", at.lo, at.hi)) & ~surely_true(pc.equal(at.lo, _integer(-(2**31))))
    behind = pc.negate(choose_where(one, at.lo, pa.scalar(None, pa.int32())))  # from the end
    return ahead | (one & surely_below(at.hi, _integer(0)) & at_most(behind, sizes.lo))


def map_value(run: Inside, call: Call) -> Abstract:
    """Bound a map lookup: a value where the key may be present, NULL where it may be absent."""
    source, wanted = call.args[:2]
    if not (isinstance(source, Column) and isinstance(source.type, Map)) or (found := _members(run, call)) is None:
        return _unknown(call)
    keys = run.inside(source.type.key.type, (*source.ids, source.type.key.id), source.name)
    values, _, ids = found
    whole, key = run.size(source), spec_of(run(wanted))
    hit = compare_bounds("eq", keys, key).true
    one = replace(values, value=hit & values.value, null=YES, nan=hit & values.nan)
    if isinstance(wanted, Literal) and isinstance(wanted.value, str):
        one = run.place(source, ids, wanted.value, one)
    value, nan = whole.value & one.value, whole.value & one.nan
    out = Spec(call.type, one.lo, one.hi, value, whole.null | (whole.value & one.null), key.fail, nan)
    return truth_of(out) if call.type == BOOLEAN else out


def array_contains(run: Inside, call: Call) -> Abstract:
    """Bound ARRAY_CONTAINS as an equality with any of the elements."""
    if (found := _members(run, call)) is None:
        return _unknown(call)
    (one, column, _), value = found, spec_of(run(call.args[1]))
    out = _folded(run.size(column), compare_bounds("eq", one, value))
    return Truth(out.true, out.false, out.null | value.null, value.fail)


def elements(run: Inside, call: Call) -> Abstract:
    """Bound EXISTS and FORALL by applying the test to the possible elements."""
    source, body = call.args
    if not (isinstance(source, Column) and isinstance(source.type, Array)):
        return _unknown(call)
    test = run(body)
    truth = test if isinstance(test, Truth) else truth_of(test)
    inner = source.type.element
    present = _any(run.inside(inner.type, (*source.ids, inner.id), source.name))
    there = Truth(*(m & present for m in (truth.true, truth.false, truth.null, truth.fail)))
    if call.function == "exists":
        return _folded(run.size(source), there)
    turned = _folded(run.size(source), Truth(there.false, there.true, there.null, there.fail))
    return Truth(turned.false, turned.true, turned.null, turned.fail)


def _any(one: Spec) -> Mask:
    """Return where an element may exist."""
    return one.value | one.null | one.nan


def _folded(sizes: Spec, test: Truth) -> Truth:
    """Combine ``test`` by OR over an array's elements.

    The result is false for an empty array, and false or NULL only where not every element is true.
    """
    never_empty = surely_true(compare_values("ge", sizes.lo, _integer(1)))
    there = sizes.value & ~surely_true(compare_values("eq", sizes.hi, _integer(0)))
    false = sizes.value & (~never_empty | test.false)
    return Truth(there & test.true, false, sizes.null | (there & test.null), there & test.fail)
