"""Rules of functions that convert between instants and local times.

Neither direction is monotone (autumn repeats an hour, spring skips one), so bounds are mapped through the
zone's envelopes. Between local times everything is computed as in UTC.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.expr import registry
from tamis.core.expr.arrow_values import Datum, Mask, Numbers, build_array, literal_scalar, null_mask, stored_numbers
from tamis.core.expr.functions.datetime.calendar import named_zone
from tamis.core.expr.functions.datetime.clock_columns import add_months
from tamis.core.expr.functions.datetime.instants import split_interval
from tamis.core.expr.functions.datetime.pattern_fields import sorted_prefix
from tamis.core.expr.registry import Partial
from tamis.core.expr.time_zones import DAY, Zone, zone_named
from tamis.core.expr.tree import Call, Literal
from tamis.core.pruning.monotone_rules import monotone_bounds
from tamis.core.pruning.value_spec import Spec, choose_spec, choose_where, no_bound, one_value, piece_intersection
from tamis.core.types import STRING, TIMESTAMP, DayTimeInterval

_FAR = 2**62
_HOURS = 26 * 3_600_000_000
"""Microseconds; more than any two offsets of a zone differ."""


def local_rule(call: Call, args: list[Spec]) -> Spec:
    """Bound a function of local times: map instants to the local envelope, apply it in UTC, and map back.

    The last step applies if the result is an instant. Single values are computed exactly.
    """
    z = zone_named(call.zone or "UTC")
    if z.fixed == 0 or not (call.type == TIMESTAMP or any(a.type == TIMESTAMP for a in args)):
        return monotone_bounds(call, args)
    local = [to_local(a, z) if a.type == TIMESTAMP else a for a in args]
    out = monotone_bounds(replace(call, zone="UTC"), local)
    if call.type == TIMESTAMP:
        out = to_instants(out, z)
    if registry.function_entry(call.function).partial(call) is Partial.OUTSIDE:
        out = _may_overflow(out)
    return _exactly(call, args, out)


def _exactly(call: Call, args: list[Spec], out: Spec) -> Spec:
    """Use the kernel's own result where every argument is a single value."""
    exact = piece_intersection([one_value(a) for a in args])
    if not (exact & ~(one_value(out) & ~out.fail)).any():  # the envelope already found that value
        return out
    return choose_spec(exact, monotone_bounds(call, args), out)


def to_local(a: Spec, z: Zone) -> Spec:
    """Return bounds of the local times, represented as instants in UTC."""
    return replace(a, lo=_mapped(a.lo, z.local_low), hi=_mapped(a.hi, z.local_high))


def to_instants(a: Spec, z: Zone) -> Spec:
    """Return bounds of the instants of local times."""
    return replace(a, lo=_mapped(a.lo, z.instants_low), hi=_mapped(a.hi, z.instants_high))


def _mapped(bound: Datum, function: Any) -> Datum:
    """Map a bound through an envelope; unknown where the numbers are so large that they may overflow."""
    one = isinstance(bound, pa.Scalar)
    array = pa.repeat(bound, 1) if one else bound
    values, null = stored_numbers(array), null_mask(array)
    if len(values) and values.min() >= -_FAR and values.max() <= _FAR:
        out = build_array(function(values), null, array.type)
    else:
        far: Mask = (values > _FAR) | (values < -_FAR)
        far = far if null is None else far | null
        out = build_array(function(np.where(far, 0, values)), far if far.any() else None, array.type)
    return out[0] if one else out


def timestamp_add(call: Call, args: list[Spec]) -> Spec:
    """Bound the addition of an interval: days on the local calendar, then elapsed time.

    A constant interval is split as Spark splits it; other intervals get 26 hours of slack.
    """
    z = zone_named(call.zone or "UTC")
    if call.type != TIMESTAMP or z.fixed is not None:
        return monotone_bounds(call, args)
    plain = replace(call, zone="UTC")
    interval = args[1]
    if isinstance(interval.lo, pa.Scalar) and interval.lo.is_valid and bool(one_value(interval)):
        days, rest = split_interval(stored_numbers(interval.lo))
        shifted = to_instants(monotone_bounds(plain, [to_local(args[0], z), _interval(int(days), interval)]), z)
        out = monotone_bounds(plain, [shifted, _interval(int(rest), interval)]) if rest else shifted
    else:
        out = monotone_bounds(plain, args)
        out = replace(out, lo=_mapped(out.lo, lambda x: x - _HOURS), hi=_mapped(out.hi, lambda x: x + _HOURS))
    return _exactly(call, args, _may_overflow(out))


def moved_zone(call: Call, args: list[Spec]) -> Spec:
    """Bound ``from_utc_timestamp``, its inverse, and their sequence: they use named zones, not the session's.

    They fail, in every mode, where the result is beyond 64 bits.
    """
    if call.function == "convert_timezone":
        source, target = (named_zone(a) for a in call.args[:2])
        assert source is not None
        assert target is not None
        return _exactly(call, args, _may_overflow(to_local(to_instants(args[2], source), target)))
    z = named_zone(call.args[1])
    assert z is not None
    out = to_local(args[0], z) if call.function == "from_utc_timestamp" else to_instants(args[0], z)
    return _exactly(call, args, _may_overflow(replace(out, null=args[0].null | args[1].null)))


def _may_overflow(out: Spec) -> Spec:
    """Mark where times may be so near the ends of 64 bits that a zone's offset leaves them."""
    unknown = _missing(out.lo) | _missing(out.hi)
    return replace(out, fail=out.fail | (out.value & unknown))


def time_of_text(call: Call, args: list[Spec]) -> Spec:
    """Bound a conversion by a pattern.

    Where the pattern has letters between its fields, which texts may have in either case, only the fields before them
    bound it: ``2024-05-01T23`` sorts before ``2024-05-01t01``, but both are of that day.
    """
    out, (text, pattern) = local_rule(call, args), call.args
    prefix = sorted_prefix(str(pattern.value)) if isinstance(pattern, Literal) else None
    if prefix is None:
        return out
    begun = Call(call.type, call.function, (text, Literal(STRING, prefix.pattern)), call.mode, "UTC")
    ends = [pc.utf8_slice_codeunits(bound, 0, prefix.length) for bound in (args[0].lo, args[0].hi)]
    local = monotone_bounds(begun, [replace(args[0], lo=ends[0], hi=ends[1]), args[1]])
    days = to_instants(
        replace(local, hi=_mapped(local.hi, lambda x: x + prefix.micros - 1)), zone_named(call.zone or "UTC")
    )
    exact = one_value(args[0])
    return replace(out, lo=choose_where(exact, out.lo, days.lo), hi=choose_where(exact, out.hi, days.hi))


def from_unixtime(call: Call, args: list[Spec]) -> Spec:
    """Bound FROM_UNIXTIME as DATE_FORMAT of the instants, if the seconds are far from the ends of 64 bits."""
    entry = registry.function_entry(call.function)
    assert entry.reliable is not None
    near = entry.reliable(call, [(a.lo, a.hi) for a in args])
    at = Call(TIMESTAMP, "timestamp_seconds", call.args[:1])
    out = local_rule(
        Call(call.type, "date_format", (at, call.args[1]), zone=call.zone), [monotone_bounds(at, args[:1]), args[1]]
    )
    nothing = no_bound(call.type)
    return replace(
        out,
        lo=choose_where(near, out.lo, nothing),
        hi=choose_where(near, out.hi, nothing),
        null=args[0].null,
        fail=args[0].fail,
    )


def _interval(micros: int, like: Spec) -> Spec:
    value = literal_scalar(micros, DayTimeInterval())
    return replace(like, lo=value, hi=value)


def timestamp_add_months(call: Call, args: list[Spec]) -> Spec:
    """Bound the addition of months, which is monotone in whole days only.

    The day is limited to the month's last and the time of day stays (2024-01-30 23:00 and 2024-01-31 01:00).
    """
    z = zone_named(call.zone or "UTC")
    time, months = args
    at = to_local(time, z) if call.type == TIMESTAMP and z.fixed is None else time
    if z.fixed:
        at = replace(at, lo=_mapped(at.lo, z.local), hi=_mapped(at.hi, z.local))
    one = one_value(months)
    lo = _months(at.lo, months.lo, lambda day: day * DAY)
    hi = _months(at.hi, months.lo, lambda day: (day + 1) * DAY - 1)
    nothing = no_bound(call.type)
    out = replace(at, lo=choose_where(one, lo, nothing), hi=choose_where(one, hi, nothing))
    if call.type == TIMESTAMP:
        out = to_instants(out, z)
    missing = _missing(out.lo) | _missing(out.hi)
    out = replace(
        out,
        value=time.value & months.value,
        null=time.null | months.null,
        fail=time.fail | months.fail | (missing & time.value & months.value),
    )
    return _exactly(call, args, out)


def _months(bound: Datum, months: Datum, finish: Any) -> Datum:
    """Return the day of ``bound`` that many months later, completed by ``finish``; unknown if too far out."""
    one = isinstance(bound, pa.Scalar) and isinstance(months, pa.Scalar)
    array = pa.repeat(bound, 1) if isinstance(bound, pa.Scalar) else bound
    values, null = stored_numbers(array), null_mask(array)
    counts, no_count = stored_numbers(months).astype(np.int64), null_mask(months)
    far: Mask = (np.abs(values) > _FAR // 64) | (np.abs(counts) > 2**24)
    for mask in (null, no_count):
        far = far if mask is None else far | mask
    days: Numbers = add_months(np.where(far, 0, values) // DAY, np.where(far, 0, counts))
    out = build_array(np.asarray(finish(days)), far if far.any() else None, array.type)
    return out[0] if one and len(out) == 1 else out


def _missing(bound: Datum) -> Mask:
    mask = null_mask(bound)
    return np.zeros((), bool) if mask is None else mask
