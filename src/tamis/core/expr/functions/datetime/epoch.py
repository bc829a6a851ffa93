"""Seconds, milliseconds, microseconds and days since the epoch, and the query's own instant."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tamis.core.expr.arrow_values import Datum, Evaluated
from tamis.core.expr.calls import make_call
from tamis.core.expr.coerce import implicit_cast, is_instant
from tamis.core.expr.functions.datetime.time_units import build_checked, build_typed, int64_numbers
from tamis.core.expr.registry import (
    Claim,
    Function,
    Partial,
    Signature,
    declare_function,
    declare_overload,
    declare_sugar,
)
from tamis.core.expr.time_zones import SECOND
from tamis.core.expr.tree import Call, Expr, Mode, Moving
from tamis.core.types import DATE, INTEGER, INTEGRAL, LONG, TIMESTAMP, TIMESTAMP_NTZ, DataType

Builder = Callable[[tuple[Expr, ...], Mode, str | None], Expr | None]
_PER = {"unix_seconds": SECOND, "unix_millis": 1_000, "unix_micros": 1, "unix_timestamp": SECOND}
_TO = {"timestamp_seconds": SECOND, "timestamp_millis": 1_000, "timestamp_micros": 1}


def _instant_or_local(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Signature | None:
    """Take a local time as it is: Spark counts from the epoch as if it were of UTC."""
    if len(args) != 1 or not is_instant(args[0].type):
        return None
    return Signature(args if args[0].type == TIMESTAMP_NTZ else (implicit_cast(args[0], TIMESTAMP, mode, zone),), LONG)


def _since(call_: Call, args: list[Datum]) -> Evaluated:
    """Round down, except ``unix_timestamp``, which rounds towards the epoch."""
    values, unit = int64_numbers(args[0]), _PER[call_.function]
    whole = values // unit
    if call_.function == "unix_timestamp":
        whole = whole + ((whole < 0) & (whole * unit != values))
    return Evaluated(build_typed(whole, args, LONG))


for _name, _sql, _catalyst in (
    ("unix_seconds", ("unix_seconds",), ("UnixSeconds",)),
    ("unix_millis", ("unix_millis",), ("UnixMillis",)),
    ("unix_micros", ("unix_micros",), ("UnixMicros",)),
    ("unix_timestamp", ("unix_timestamp", "to_unix_timestamp"), ("UnixTimestamp", "ToUnixTimestamp")),
):
    declare_function(
        Function(_name, _instant_or_local, _since, sql=_sql, catalyst=_catalyst, claims=lambda _: (Claim.UP,))
    )


def _count(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Signature | None:
    if len(args) != 1 or args[0].type not in INTEGRAL:
        return None
    return Signature((implicit_cast(args[0], LONG, mode, zone),), TIMESTAMP)


def _at(call_: Call, args: list[Datum]) -> Evaluated:
    unit, values = _TO[call_.function], int64_numbers(args[0])
    top = np.iinfo(np.int64).max // unit
    bad = (values > top) | (values < -top) if unit > 1 else np.zeros((), bool)
    return build_checked(np.where(bad, 0, values) * unit, bad, args, TIMESTAMP)


for _name, _catalyst in (
    ("timestamp_seconds", ("SecondsToTimestamp",)),
    ("timestamp_millis", ("MillisToTimestamp",)),
    ("timestamp_micros", ("MicrosToTimestamp",)),
):
    declare_function(
        Function(
            _name,
            _count,
            _at,
            sql=(_name,),
            catalyst=_catalyst,
            claims=lambda _: (Claim.UP,),
            partial=lambda _: Partial.OUTSIDE,
        )
    )


def _days(source: DataType, target: DataType) -> Callable[[tuple[Expr, ...], Mode, str | None], Signature | None]:
    def resolve(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Signature | None:
        if len(args) != 1 or not (
            is_instant(args[0].type) if source == DATE else args[0].type in INTEGRAL and args[0].type != LONG
        ):
            return None
        return Signature((implicit_cast(args[0], source, mode, zone),), target)

    return resolve


def _same_days(call_: Call, args: list[Datum]) -> Evaluated:
    return Evaluated(build_typed(int64_numbers(args[0]), args, call_.type))


for _name, _catalyst, _source, _target in (
    ("unix_date", ("UnixDate",), DATE, INTEGER),
    ("date_from_unix_date", ("DateFromUnixDate",), INTEGER, DATE),
):
    declare_function(
        Function(
            _name, _days(_source, _target), _same_days, sql=(_name,), catalyst=_catalyst, claims=lambda _: (Claim.UP,)
        )
    )


def _now(name: str, data_type: DataType) -> Builder:
    def build(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Expr | None:  # noqa: ARG001
        return None if args else Moving(data_type, name, None if data_type == TIMESTAMP else zone or "UTC")

    return build


@declare_overload("unix_timestamp")
def _seconds_now(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Expr | None:
    """Rewrite ``unix_timestamp()`` to that of the query's instant."""
    return None if args else make_call("unix_timestamp", Moving(TIMESTAMP, "current_timestamp"), mode=mode, zone=zone)


declare_sugar("current_timestamp", "now", catalyst=("CurrentTimestamp", "Now"))(_now("current_timestamp", TIMESTAMP))
declare_sugar("current_date", "curdate", catalyst=("CurrentDate",))(_now("current_date", DATE))
declare_sugar("localtimestamp", catalyst=("LocalTimestamp",))(_now("localtimestamp", TIMESTAMP_NTZ))
