"""Arrays and maps: size, access by index or key, and tests of elements. No function here makes an array."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.expr.arrow_values import (
    Datum,
    Evaluated,
    Mask,
    any_set,
    full_length,
    is_true,
    mode_outcome,
    null_mask,
    row_count,
)
from tamis.core.expr.calls import make_call
from tamis.core.expr.coerce import common_type, has_order, implicit_cast
from tamis.core.expr.functions.logic.comparisons import compare_values
from tamis.core.expr.functions.nested.element_kernels import any_of, member_positions, member_ranges
from tamis.core.expr.functions.nested.nested_fields import nested_field, path_of
from tamis.core.expr.registry import (
    Claim,
    Function,
    Partial,
    Signature,
    declare_function,
    declare_overload,
    declare_sugar,
)
from tamis.core.expr.tree import Call, Expr, Literal, Mode
from tamis.core.types import BOOLEAN, INTEGER, INTEGRAL, LONG, Array, DataType, Map, Struct


def _sizable(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Signature | None:  # noqa: ARG001
    return Signature(args, INTEGER) if len(args) == 1 and isinstance(args[0].type, Array | Map) else None


def _size(call_: Call, args: list[Datum]) -> Evaluated:  # noqa: ARG001
    x = full_length(args[0], 1)
    return Evaluated(pa.array(member_ranges(x)[1].astype(np.int32), mask=null_mask(x)))


declare_function(
    Function(
        "array_size",
        _sizable,
        _size,
        sql=("array_size",),
        rule="size",
        note="by the least and greatest size of the part",
    )
)


@declare_sugar("size", "cardinality")
def size(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Expr | None:
    """Build SIZE; in LEGACY mode the size of NULL is -1."""
    if _sizable(args, mode, zone) is None:
        return None
    plain = make_call("array_size", *args)
    return make_call("coalesce", plain, Literal(INTEGER, -1)) if mode is Mode.LEGACY else plain


def _element_resolve(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Signature | None:
    if len(args) != 2 or not isinstance(args[0].type, Array) or args[1].type not in INTEGRAL or args[1].type == LONG:
        return None
    element = args[0].type.element.type
    return (
        Signature((args[0], implicit_cast(args[1], INTEGER, mode, zone)), element)
        if has_order(element) or isinstance(element, Struct)
        else None
    )


def _element(call_: Call, args: list[Datum]) -> Evaluated:
    """Return an element: ``array[i]`` counts from 0, ``element_at`` from 1, or from the end if negative."""
    n = row_count(args)
    x, index = full_length(args[0], n), full_length(args[1], n)
    starts, sizes = member_ranges(x)
    at = np.asarray(index.fill_null(0).to_numpy(zero_copy_only=False)).astype(np.int64)
    zero: Mask = np.zeros(n, bool)
    if call_.function == "element_at":
        zero = at == 0
        at = np.where(at < 0, sizes + at, at - 1)
    there = (at >= 0) & (at < sizes) & ~zero
    null = _any_null(x, index)
    taken = x.values.take(pa.array(np.where(there, starts + at, 0), mask=~(there & ~null)))
    bad = ~there & ~null
    taken = nested_field(taken, _inner(call_), path_of(call_))
    out = mode_outcome(taken, bad, call_.mode, "[INVALID_ARRAY_INDEX] The array has no element there.")
    if call_.mode is not Mode.ANSI and any_set(zero & ~null) is not None:  # fails in every mode
        return Evaluated(out.values, zero & ~null, "[INVALID_INDEX_OF_ZERO] The index 0 is invalid.")
    return out


def _inner(call_: Call) -> DataType:
    """Return the type of an element or value."""
    kind = call_.args[0].type
    assert isinstance(kind, Array | Map)
    return kind.element.type if isinstance(kind, Array) else kind.value.type


def _any_null(*arrays: Datum) -> Mask:
    out: Mask = np.zeros((), bool)
    for array in arrays:
        mask = null_mask(array)
        out = out if mask is None else out | mask
    return out


def _may_be_zero(call_: Call) -> bool:
    index = call_.args[1]
    return call_.function == "element_at" and not (isinstance(index, Literal) and index.value)


for _name, _catalyst in (("element", ("GetArrayItem",)), ("element_at", ("ElementAt",))):
    declare_function(
        Function(
            _name,
            _element_resolve,
            _element,
            sql=(_name,) if _name == "element_at" else (),
            catalyst=_catalyst,
            rule="element",
            partial=lambda _: Partial.ANYWHERE,
            raises=_may_be_zero,
            moded=lambda _args, _type: True,
            lenient=True,
            note="by the statistics of the position, else of all elements",
        )
    )


@declare_sugar("get")
def _get(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Expr | None:  # noqa: ARG001
    """Build ``array[i]`` that gives NULL if there is no such element."""
    return make_call("element", *args, mode=Mode.TRY, zone=zone) if len(args) == 2 else None


def _key_resolve(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Signature | None:
    if len(args) != 2 or not isinstance(args[0].type, Map):
        return None
    key, value = args[0].type.key.type, args[0].type.value.type
    if (
        not (has_order(key) and (has_order(value) or isinstance(value, Struct)))
        or common_type(key, args[1].type) != key
    ):
        return None
    return Signature((args[0], implicit_cast(args[1], key, mode, zone)), value)


def _value_of(call_: Call, args: list[Datum]) -> Evaluated:
    """Return the value under a key; NULL if the map does not contain it."""
    n = row_count(args)
    x = full_length(args[0], n)
    equal, owner, member = _equal(x, x.keys, args[1])
    hit = np.asarray(is_true(equal))
    at = np.full(n, -1, np.int64)
    at[owner[hit][::-1]] = member[hit][::-1]
    return Evaluated(
        nested_field(x.items.take(pa.array(np.maximum(at, 0), mask=at < 0)), _inner(call_), path_of(call_))
    )


declare_function(
    Function(
        "map_value",
        _key_resolve,
        _value_of,
        catalyst=("GetMapValue",),
        rule="map_value",
        note="by the statistics of the key, else of all keys and values",
    )
)


@declare_overload("element_at")
def _of_map(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Expr | None:
    return (
        make_call("map_value", *args, mode=mode, zone=zone)
        if len(args) == 2 and isinstance(args[0].type, Map)
        else None
    )


def _equal(x: Datum, values: Datum, wanted: Datum) -> tuple[Datum, np.ndarray, np.ndarray]:
    """Compare the members of each row of ``x`` with the row's wanted value.

    ``values`` holds the members of all rows. Also returns ``members``.
    """
    owner, member = member_positions(*member_ranges(x))
    wanted = wanted if isinstance(wanted, pa.Scalar) else wanted.take(pa.array(owner))
    return full_length(compare_values("eq", values.take(pa.array(member)), wanted), len(owner)), owner, member


def _contained(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Signature | None:
    if len(args) != 2 or not isinstance(args[0].type, Array):
        return None
    element = args[0].type.element.type
    if not has_order(element) or common_type(element, args[1].type) != element:
        return None
    return Signature((args[0], implicit_cast(args[1], element, mode, zone)), BOOLEAN)


def _contains(call_: Call, args: list[Datum]) -> Evaluated:  # noqa: ARG001
    n = row_count(args)
    x, value = full_length(args[0], n), args[1]
    equal, owner, _ = _equal(x, x.values, value)
    out = any_of(Evaluated(equal), owner, n, exists=True)
    null = _any_null(x, full_length(value, n))
    return Evaluated(pc.if_else(pa.array(np.broadcast_to(null, (n,))), pa.scalar(None, pa.bool_()), out.values))


declare_function(
    Function(
        "array_contains",
        _contained,
        _contains,
        sql=("array_contains",),
        catalyst=("ArrayContains",),
        rule="array_contains",
    )
)


def _tested(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Signature | None:  # noqa: ARG001
    """Resolve an array and a test in which ``Element`` is an element of it."""
    fits = len(args) == 2 and isinstance(args[0].type, Array) and args[1].type == BOOLEAN
    return Signature(args, BOOLEAN) if fits else None


for _name, _catalyst in (("exists", ("ArrayExists",)), ("forall", ("ArrayForAll",))):
    declare_function(
        Function(
            _name,
            _tested,
            claims=lambda _: (Claim.FIXED, Claim.FIXED),
            sql=(_name,),
            catalyst=_catalyst,
            rule="elements",
            note="the test over the statistics of the elements",
        )
    )
