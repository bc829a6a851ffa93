"""Rules of functions whose results are known only up to a margin."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.expr.arrow_values import Datum, Numbers, build_array, literal_scalar, null_mask, stored_numbers
from tamis.core.expr.tree import Call, Mode
from tamis.core.pruning.monotone_rules import monotone_bounds
from tamis.core.pruning.value_spec import Spec, one_value, piece_intersection, piece_union, surely_below
from tamis.core.types import TIMESTAMP

_RELATIVE = 1e-12
"""Far more than libraries differ in a logarithm or a power, far less than any filter distinguishes."""
_MONTHS = 0.35
"""How far MONTHS_BETWEEN can decrease between two ordered dates, in months.

Last days of months of 28 and of 31 days count alike, the time of day is ignored if the days are equal (4/31
of a month, at both ends), and a zone may skip a day.
"""


def approximate_bounds(call: Call, args: list[Spec]) -> Spec:
    """Apply the monotone rule and move the bounds outward, also for single values.

    A call without a result is NULL in every mode.
    """
    out = monotone_bounds(replace(call, mode=Mode.TRY), args)
    return replace(out, lo=_moved(out.lo, -1), hi=_moved(out.hi, 1))


def _moved(bound: Datum, direction: int) -> Datum:
    return _shifted(bound, lambda values: values + direction * (np.abs(values) * _RELATIVE + np.finfo(np.float64).tiny))


def months_between(call: Call, args: list[Spec]) -> Spec:
    """Bound MONTHS_BETWEEN, which is nearly monotone in both instants.

    It fails for some times of the first day of 64 bits, not for all.
    """
    out = monotone_bounds(call, args)
    margin = np.where(piece_intersection([one_value(a) for a in args]), 0.0, _MONTHS)
    not_early = literal_scalar(-(2**62), TIMESTAMP)  # made here: at import, it would load pandas
    early = piece_union([a.value & ~surely_below(not_early, a.lo) for a in args[:2]])
    return replace(
        out,
        lo=_shifted(out.lo, lambda values: values - margin),
        hi=_shifted(out.hi, lambda values: values + margin),
        fail=out.fail | early,
    )


def _shifted(bound: Datum, change: Callable[[Numbers], Numbers]) -> Datum:
    array = pa.repeat(bound, 1) if isinstance(bound, pa.Scalar) else bound
    with np.errstate(all="ignore"):
        values = change(stored_numbers(array))
    null = null_mask(array)
    out = build_array(
        values, null if null is None or null.shape == values.shape else np.broadcast_to(null, values.shape), array.type
    )
    out = pc.if_else(pc.is_nan(out), pa.scalar(None, out.type), out)
    return out[0] if isinstance(bound, pa.Scalar) and len(out) == 1 else out
