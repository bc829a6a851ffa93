"""The concrete interpreter: an expression over Arrow columns, whole batches at a time, as Spark would compute it.

Data never raises: a row for which Spark would raise is marked in ``Evaluated.failed``. The caller
decides whether the row is reached at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.expr import registry
from tamis.core.expr.arrow_values import (
    Datum,
    Evaluated,
    Mask,
    full_length,
    is_true,
    literal_scalar,
    none_of,
    null_mask,
    null_where,
    plain_value,
    row_count,
)
from tamis.core.expr.calls import make_call
from tamis.core.expr.functions.cast.cast_text import of_today
from tamis.core.expr.functions.datetime.clock_columns import now_as
from tamis.core.expr.functions.nested.element_kernels import any_of, member_positions, member_ranges
from tamis.core.expr.malformed_texts import MALFORMED_TEXT, malformed_rows, null_in_rows
from tamis.core.expr.tree import Call, Column, Element, Expr, Literal, Literals, Mode, Moving, Opaque, column_paths
from tamis.core.expr.unsupported_rows import is_approximate, is_supported, refusal_error
from tamis.core.types import STRING, TIMESTAMP, Array, DataType
from tamis.core.types.arrow import FIELD_ID, to_arrow_type
from tamis.core.types.dictionary_arrays import plain_array
from tamis.errors import InvalidInput
from tamis.world import world

Batch = Mapping[int, Any]
"""Arrow columns by the id of their top-level column."""


def evaluate(expr: Expr, batch: Batch, length: int, *, now_micros: int | None = None) -> Evaluated:
    """Return the values of ``expr`` for ``length`` rows, and the rows on which it fails.

    ``now_micros`` is the instant of the query. Raises ``InvalidInput`` (``UNKNOWN_FUNCTION``) for an expression
    that is not ``is_supported``.
    """
    out = _Run(batch, now_micros).eval(expr)
    failed = None if out.failed is None else np.array(np.broadcast_to(out.failed, (length,)))
    return Evaluated(full_length(out.values, length), failed, out.error)


Connect = Callable[[Call, Batch], Evaluated | None]
"""Evaluates an AND or OR in another way than on all rows; None: it does not."""


def evaluate_any(expr: Expr, batch: Batch, *, now_micros: int | None, connect: Connect) -> Evaluated:
    """Like ``evaluate``, but constants stay scalars; ``connect`` evaluates each AND and OR over whole rows."""
    return _Run(batch, now_micros, connect=connect).eval(expr)


def filter_mask(
    conjuncts: Sequence[Expr], batch: Batch, length: int, *, now_micros: int | None = None
) -> tuple[Mask, Mask, str | None]:
    """Return the rows for which every conjunct is true, the rows that fail, and the first error's message.

    Conjuncts run in the order given; false or NULL stops the later ones for that row, so a row fails only if it is
    reached.
    """
    run = _Run(batch, now_micros)
    live, failed, error = np.ones(length, bool), none_of(length), None
    for conjunct in conjuncts:
        if not live.any():
            break
        out = run.eval(conjunct)
        if out.failed is not None:
            now = live & out.failed
            if now.any():
                failed, error, live = failed | now, error or out.error, live & ~now
        live = live & is_true(out.values)
    return live, failed, error


@dataclass(slots=True)
class _Run:
    """One evaluation over one batch."""

    batch: Batch
    now_micros: int | None
    elements: Mapping[tuple[int, ...], Datum] = field(default_factory=dict)
    """Elements at hand, by the ids of the array's element."""
    connect: Connect | None = None

    def eval(self, expr: Expr) -> Evaluated:
        match expr:
            case Literal(data_type, value):
                return Evaluated(literal_scalar(value, data_type))
            case Column():
                return Evaluated(read_column(self.batch, expr))
            case Call() if expr.function in {"exists", "forall"}:
                return self._tested(expr)
            case Element():
                return Evaluated(_inside(self.elements, expr))
            case Call() if expr.function in {"and", "or"} and self.connect is not None:
                return self.connect(expr, self.batch) or apply_function(expr, [self.eval(a) for a in expr.args])
            case Call() if not is_approximate(expr):
                return apply_function(expr, [self.eval(a) for a in expr.args])
            case Literals():
                return Evaluated(pa.scalar(None, to_arrow_type(expr.type)))
            case Moving():
                return Evaluated(
                    query_instant(expr, self.now_micros if self.now_micros is not None else world().now_micros())
                )
        raise refusal_error(expr)

    def _tested(self, call: Call) -> Evaluated:
        """Test the elements of an array: all elements of all rows at once, with other columns repeated."""
        source, body = call.args
        array = self.eval(source)
        assert isinstance(source, Column)
        assert isinstance(source.type, Array)
        x = array.values
        owner, member = member_positions(*member_ranges(x))
        rows_ = pa.array(owner)
        batch = {ids[0]: _whole(self.batch[ids[0]]).take(rows_) for ids in column_paths(body)}
        elements = {**self.elements, (*source.ids, source.type.element.id): x.values.take(pa.array(member))}
        out = any_of(_Run(batch, self.now_micros, elements).eval(body), owner, len(x), exists=call.function == "exists")
        return Evaluated(null_where(out.values, null_mask(x)), out.failed, out.error)


def _whole(array: Any) -> Any:
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _inside(elements: Mapping[tuple[int, ...], Datum], element: Element) -> Datum:
    """Return the current elements, or a struct field of them."""
    depth = next(n for n in range(len(element.ids), 0, -1) if element.ids[:n] in elements)
    array = elements[element.ids[:depth]]
    for identifier in element.ids[depth:]:
        array = pc.struct_field(array, [_child(array.type, identifier, element.name.rpartition(".")[2])])
    return array


def apply_function(call: Call, args: list[Evaluated]) -> Evaluated:
    """Apply one function to evaluated arguments. Constant arguments give a constant."""
    values = [a.values for a in args]
    if args and all(isinstance(v, pa.Scalar) for v in values):
        out = _apply(call, [Evaluated(pa.repeat(a.values, 1), _row(a.failed), a.error) for a in args])
        failed = None if out.failed is None or not out.failed.any() else np.ones((), bool)
        return Evaluated(full_length(out.values, 1)[0], failed, out.error if failed is not None else None)
    return _apply(call, args)


def _row(mask: Mask | None) -> Mask | None:
    return None if mask is None else np.broadcast_to(mask, (1,))


def _apply(call: Call, args: list[Evaluated]) -> Evaluated:
    entry = registry.function_entry(call.function)
    if entry.combine is not None:
        return entry.combine(call, args)
    assert entry.kernel is not None
    failed, error = _reached(_in_order(call, args) if entry.backwards else args, entry.keeps_nulls)
    values = [a.values for a in args]
    malformed = malformed_rows(call, values)
    if malformed is None:
        out = entry.kernel(call, values)
    else:
        out = entry.kernel(call, [null_in_rows(v, malformed) for v in values])
        also = malformed if out.failed is None else malformed | out.failed
        out = Evaluated(out.values, also, out.error or MALFORMED_TEXT)
    if failed is None and out.failed is None:
        return out
    mine = out.failed if failed is None else failed if out.failed is None else failed | (out.failed & ~failed)
    return Evaluated(null_where(out.values, mine), mine, error or out.error)


def _in_order(call: Call, args: list[Evaluated]) -> list[Evaluated]:
    """Return the arguments of a division as Spark evaluates them: the divisor first.

    Outside ANSI mode, a divisor of zero stops the evaluation as NULL does.
    """
    dividend, divisor = args
    if call.mode is not Mode.ANSI and dividend.failed is not None:
        zero = is_true(pc.equal(divisor.values, pa.scalar(0, divisor.values.type)))
        divisor = replace(divisor, values=null_where(divisor.values, zero))
    return [divisor, dividend]


def _reached(args: list[Evaluated], keeps_nulls: bool) -> tuple[Mask | None, str | None]:
    """Combine failures of arguments from left to right: Spark stops evaluating at a NULL argument."""
    if all(a.failed is None for a in args):
        return None, None
    n = row_count([a.values for a in args])
    failed, shielded, error = none_of(n), none_of(n), None
    for arg in args:
        if arg.failed is not None:
            now = arg.failed & ~shielded
            failed, error = failed | now, error or (arg.error if now.any() else None)
        null = null_mask(arg.values)
        if null is not None and not keeps_nulls:
            shielded = shielded | (null & ~failed)
    return failed, error


def query_instant(expr: Moving, micros: int) -> Any:
    """Return the query's instant in the type of ``expr``; dates and local times use its zone."""
    return now_as(expr, micros)


def read_column(batch: Batch, column: Column) -> Datum:
    """Return a column of the batch or a struct field in it, NULL where a parent is NULL."""
    array = batch[column.ids[0]]
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    array = plain_array(array)
    names = column.path[1:]
    for depth, identifier in enumerate(column.ids[1:]):
        array = pc.struct_field(array, [_child(array.type, identifier, names[depth] if depth < len(names) else "")])
    target = to_arrow_type(column.type)
    if array.type != target and not pa.types.is_nested(array.type):
        array = array.cast(target)
    return array


def _child(struct: Any, identifier: int, name: str) -> int:
    """Return the position of a field, found by column id (in its metadata or as its name) or else by name."""
    wanted = str(identifier).encode()
    for index in range(struct.num_fields):
        if (struct.field(index).metadata or {}).get(FIELD_ID) == wanted:
            return index
    for candidate in (str(identifier), name):
        index = struct.get_field_index(candidate)
        if index >= 0:
            return int(index)
    raise InvalidInput(f"There is no field {name!r} ({identifier}) in {struct}.", code="COLUMN_NOT_FOUND", name=name)


def constant_value(expr: Expr) -> Literal | None:
    """Return the value of an expression without columns as a literal; None if it fails or depends on the query."""
    if any(
        isinstance(node, Column | Element | Moving | Opaque | Literals) or is_approximate(node) for node in expr.walk()
    ):
        return None
    if any(isinstance(node, Call) and _of_today(node) for node in expr.walk()):
        return None
    out = _Run({}, None).eval(expr)
    if out.failed is not None and bool(out.failed.any()):
        return None
    return Literal(expr.type, plain_value(full_length(out.values, 1)[0]))


def _of_today(call: Call) -> bool:
    """Whether a constant time of day is cast to a timestamp, which uses the date of the query."""
    text = call.args[0] if call.function == "cast" and call.type == TIMESTAMP else None
    return (
        isinstance(text, Literal) and isinstance(text.value, str) and bool(of_today(literal_scalar(text.value, STRING)))
    )


def cast_values(array: Any, source: DataType, target: DataType, mode: Mode, zone: str | None) -> Any:
    """Cast literal values to another type; None if a value has no equivalent."""
    column = Column(source, (0,), "list")
    expr = make_call("cast", column, mode=mode, zone=zone, type=target)
    if not is_supported(expr):
        return None
    out = evaluate(expr, {0: array}, len(array))
    return None if out.failed is not None and out.failed.any() else out.values
