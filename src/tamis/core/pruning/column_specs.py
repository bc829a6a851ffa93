"""Converts evidence to specs; this module alone decides which statistics to trust.

Statistics that are missing, inverted, contradictory, undecodable or of another type are unknown. Stored
values never cause an exception here.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.expr.arrow_values import Datum, Mask
from tamis.core.expr.coerce import is_numeric
from tamis.core.expr.functions.cast.casts import is_lossless_cast
from tamis.core.expr.tree import Column
from tamis.core.pruning.evidence import ColumnEvidence, Evidence
from tamis.core.pruning.value_spec import NO, Spec, choose_spec, choose_where, surely_below, surely_true, unknown_spec
from tamis.core.types import BINARY_COLLATION, DOUBLE, FLOAT, INTEGER, VARIANT, DataType, String
from tamis.core.types.arrow import to_arrow_type


def column_spec(column: Column, evidence: Evidence) -> tuple[Spec, bool]:
    """Return the column's spec in each piece and whether anything was known; reading a column never fails.

    The result is cached in the evidence (``specs``), because every query needs it.
    """
    try:
        spec = _known(column, evidence)
    except Exception:  # noqa: BLE001  (statistics that cannot be read are unknown)
        spec = None
    return (_never_fails(unknown_spec(column.type)), False) if spec is None else (spec, True)


def _known(column: Column, evidence: Evidence) -> Spec | None:
    remembered = getattr(evidence, "specs", {})
    spec: Spec | None = remembered.get((column.ids, column.type))
    if spec is None and (found := evidence.column(column.ids)) is not None:
        spec = remembered[column.ids, column.type] = _lasting(_read(column.type, found, len(evidence), evidence.rows()))
    return spec


def element_spec(data_type: DataType, ids: tuple[int, ...], evidence: Evidence) -> tuple[Spec, bool]:
    """Return the spec of an array's elements (a map's keys, values) in each piece.

    A piece without elements has no value and no NULL.
    """
    top = _never_fails(unknown_spec(data_type))
    try:
        ask = getattr(evidence, "elements", None)
        found = ask(ids) if ask is not None else None
        if found is None:
            return top, False
        spec = _read(data_type, found, len(evidence), None)
        count, has_count = _whole(found.count, len(evidence))
        some = ~(has_count & (count == 0))
        return Spec(data_type, spec.lo, spec.hi, spec.value & some, spec.null & some, NO, spec.nan & some), True
    except Exception:  # noqa: BLE001  (as above)
        return top, False


def place_spec(
    data_type: DataType, ids: tuple[int, ...], place: str, rest: Spec, evidence: Evidence
) -> tuple[Spec, bool]:
    """Return the spec of an array's elements at a position, or a map's values under a key, and whether any is known.

    It is ``rest``, the spec by all elements or values, where nothing is known of the place, or where its bounds lie
    outside of theirs, so that one of the two is wrong.
    """
    try:
        ask = getattr(evidence, "place", None)
        found = ask(ids, place) if ask is not None else None
        if found is None:
            return rest, False
        one = _read(data_type, found, len(evidence), None)
        count, has_count = _whole(found.count, len(evidence))
        some = ~(has_count & (count == 0))
        trusted = np.broadcast_to(
            has_count & ~surely_below(one.lo, rest.lo) & ~surely_below(rest.hi, one.hi), (len(evidence),)
        )
        lo, hi = (pc.coalesce(a, b) for a, b in ((one.lo, rest.lo), (one.hi, rest.hi)))
        spec = Spec(data_type, lo, hi, one.value & some, one.null & some, NO, one.nan & some)
        return choose_spec(trusted, spec, rest), bool(trusted.any())
    except Exception:  # noqa: BLE001  (as above)
        return rest, False


def size_spec(column: Column, evidence: Evidence) -> tuple[Spec, bool]:
    """Return the spec of the sizes of an array or map; they are never negative."""
    zero = pa.scalar(0, pa.int32())
    top = replace(_never_fails(unknown_spec(INTEGER)), lo=zero)
    try:
        ask = getattr(evidence, "sizes", None)
        found = ask(column.ids) if ask is not None else None
        if found is None:
            return top, False
        spec = _read(INTEGER, found, len(evidence), evidence.rows())
        return replace(spec, lo=pc.coalesce(spec.lo, zero)), True
    except Exception:  # noqa: BLE001  (as above)
        return top, False


def _lasting(spec: Spec) -> Spec:
    """Make the spec's masks read-only, so that it can be cached."""
    for mask in (spec.value, spec.null, spec.nan):
        mask.setflags(write=False)
    return spec


def _never_fails(spec: Spec) -> Spec:
    return Spec(spec.type, spec.lo, spec.hi, spec.value, spec.null, NO, spec.nan)


def _read(data_type: DataType, found: ColumnEvidence, length: int, rows: Datum) -> Spec:
    null, value, nan = _counts(data_type, found, length, rows)
    lo, hi = _bounds(data_type, found, length)
    return Spec(data_type, lo, hi, value, null, NO, nan)


def _counts(data_type: DataType, found: ColumnEvidence, length: int, rows: Datum) -> tuple[Mask, Mask, Mask]:
    """Return where NULL, values and NaN are possible.

    Counts that contradict each other or the number of rows are unknown.
    """
    count, nulls, nans = (_whole(x, length) for x in (found.count, found.nulls, found.nans))
    (all_, has_all), (nulls_, has_nulls) = count, nulls
    physical, has_rows = _whole(rows, length)
    sane = has_all & has_nulls & (nulls_ >= 0) & (nulls_ <= all_)
    if found.count is not rows:
        sane &= ~has_rows | (physical == all_)
    null: Mask = ~(sane & (nulls_ == 0))
    if data_type not in (FLOAT, DOUBLE):
        return null, ~(sane & (nulls_ == all_)), NO
    nans_, has_nans = nans
    counted = sane & has_nans & (nans_ >= 0) & (nans_ <= all_ - nulls_)
    only_null = sane & (nulls_ == all_)
    return null, ~(only_null | (counted & (nulls_ + nans_ == all_))), ~(only_null | (counted & (nans_ == 0)))


def _whole(array: Datum, length: int) -> tuple[Mask, Mask]:
    """Return counts and where they are known."""
    if array is None or len(array) != length or not pa.types.is_integer(array.type):
        return np.zeros(length, np.int64), np.zeros(length, bool)
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    whole = array.cast(pa.int64(), safe=False)
    if not whole.null_count:
        return np.asarray(whole.to_numpy()), np.ones((), bool)
    return np.asarray(whole.fill_null(0).to_numpy(zero_copy_only=False)), np.asarray(
        array.is_valid().to_numpy(zero_copy_only=False)
    )


def _bounds(data_type: DataType, found: ColumnEvidence, length: int) -> tuple[Datum, Datum]:
    """Return the bounds in the column's type; unknown on both sides where inverted or NaN."""
    nothing = pa.scalar(None, to_arrow_type(data_type))
    if (
        data_type.children
        or data_type == VARIANT
        or (isinstance(data_type, String) and data_type.collation != BINARY_COLLATION)
    ):
        return nothing, nothing
    lo, hi = _bound(data_type, found, found.lo, length), _bound(data_type, found, found.hi, length)
    bad = surely_below(hi, lo)
    if data_type in (FLOAT, DOUBLE):
        bad = bad | surely_true(pc.is_nan(lo)) | surely_true(pc.is_nan(hi))
    if bad.any():
        lo, hi = choose_where(bad, nothing, lo), choose_where(bad, nothing, hi)
    return lo, hi


def _bound(data_type: DataType, found: ColumnEvidence, bound: Datum, length: int) -> Datum:
    """Return a bound of the column's type, or of a type that widens to it without loss.

    The latter occurs if the column was widened later; any other type is unknown.
    """
    nothing = pa.scalar(None, to_arrow_type(data_type))
    if bound is None or len(bound) != length:
        return nothing
    if isinstance(bound, pa.ChunkedArray):
        bound = bound.combine_chunks()
    target = to_arrow_type(data_type)
    same = found.type == data_type or (
        isinstance(found.type, String) and isinstance(data_type, String) and _plain(found.type)
    )
    if same and bound.type == target:
        return bound
    if bound.type == to_arrow_type(found.type) and widens(found.type, data_type):
        return bound.cast(target)
    return nothing


def _plain(data_type: String) -> bool:
    return data_type.collation == BINARY_COLLATION


def widens(old: DataType, new: DataType) -> bool:
    """Return whether a column of type ``old`` may have been widened to ``new``.

    The types must be equal, or both numeric with a lossless widening.
    """
    if not (is_numeric(old) and is_numeric(new)) or (old not in (FLOAT, DOUBLE) and new in (FLOAT, DOUBLE)):
        return old == new
    return is_lossless_cast(old, new)
