"""Filters for dates that are no TIMESTAMP_NTZ: its microseconds end in the year 294,247, days in 5,881,580."""

from __future__ import annotations

from tamis.core.expr.bound_column import column_by_ids
from tamis.core.expr.calls import make_call
from tamis.core.expr.tree import Element, Expr, Literal
from tamis.core.types import DATE, TIMESTAMP_NTZ, Array, Map, Schema
from tamis.core.types.identifiers import dotted_path

MOST_DAYS = (2**63 - 1) // (86_400 * 1_000_000)
"""A date is a TIMESTAMP_NTZ if it is at most this many days before or after 1970."""


def unfit_dates(before: Schema, after: Schema) -> list[Expr]:
    """Return a filter over ``before`` for each DATE that is a TIMESTAMP_NTZ in ``after``.

    It is true for all rows with a date that does not fit. Of dates in maps, and in arrays within arrays, it is true
    for every row that has a map or an array there.
    """
    return [
        _filter(before, ids)
        for ids, f in before.walk()
        if f.type == DATE and (now := after.by_id.get(f.id)) is not None and now.type == TIMESTAMP_NTZ
    ]


def _filter(schema: Schema, ids: tuple[int, ...]) -> Expr:
    repeated = [at for at, i in enumerate(ids) if isinstance(schema.by_id[i].type, Array | Map)]
    if not repeated:
        return _outside(column_by_ids(schema, ids))
    column = column_by_ids(schema, ids[: repeated[0] + 1])
    if len(repeated) > 1 or isinstance(column.type, Map):
        return make_call("is_not_null", column)
    names = ("x", *(schema.by_id[i].name for i in ids[repeated[0] + 2 :]))
    return make_call("exists", column, _outside(Element(DATE, ids, dotted_path(names))))


def _outside(date: Expr) -> Expr:
    first, last = (Literal(DATE, days) for days in (-MOST_DAYS, MOST_DAYS))
    return make_call("or", make_call("lt", date, first), make_call("gt", date, last))
