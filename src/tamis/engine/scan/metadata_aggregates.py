"""Aggregates from metadata: answer COUNT, MIN, MAX and GROUP BY for parts whose statistics are exact.

Invariant: a part is answered only if all its rows match and its counts and bounds are exact for its *live*
rows. A bound that was cut or trimmed, or that may be either zero, is not exact; neither is a bound of a part
with deleted rows, unless all its rows have the same value. All other parts are read.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.pruning.evidence import ColumnEvidence
from tamis.core.stats import TableEvidence
from tamis.core.stats.statistics_columns import has_bounds
from tamis.core.types import Field, Schema
from tamis.core.types.arrow import to_arrow_type
from tamis.engine.scan.column_selection import find_fields, names_of
from tamis.engine.scan.partial_aggregates import Aggregation, Measure, fold_partials
from tamis.engine.scan.scan_plan import PartRefs, Plan
from tamis.errors import InvalidInput

Bools = np.ndarray[Any, np.dtype[np.bool_]]

_MEASURE = re.compile(r"\s*(count|min|max)\s*\(\s*(.*?)\s*\)\s*", re.IGNORECASE)


def parse_aggregation(measures: Any, group_by: Any, schema: Schema) -> Aggregation:
    """Parse measures such as ``("count(*)", "max(ts)")`` by ``("site",)``.

    Raises ``InvalidInput`` (``BAD_AGGREGATE``), ``NotFound`` (``COLUMN_NOT_FOUND``).
    """
    groups = tuple(_field(schema, name) for name in names_of(group_by, "group_by"))
    found = tuple(_measure(schema, said) for said in names_of(measures, "measures"))
    if not found and not groups:
        raise _bad("measures", "Nothing is asked for")
    return Aggregation(found, groups)


def _measure(schema: Schema, said: Any) -> Measure:
    match = _MEASURE.fullmatch(said) if isinstance(said, str) else None
    if match is None:
        raise _bad(str(said), f"{said!r} is none of count, min and max")
    function, name = match[1].lower(), match[2]
    if name == "*" and function == "count":
        return Measure("count", None)
    field = (
        find_fields(schema, name)[0]
        if function == "count" and len(find_fields(schema, name)) == 1
        else _field(schema, name)
    )
    return Measure(function, field)


def _field(schema: Schema, name: Any) -> Field:
    path = find_fields(schema, name)
    if len(path) > 1 or not has_bounds(path[0].type):
        raise _bad(
            str(name),
            f"{name!r} is {path[-1].type}{' within a struct' * (len(path) > 1)}: it cannot be compared or grouped here",
        )
    return path[0]


def _bad(name: str, what: str) -> InvalidInput:
    remedy = (
        'Ask for "count(*)", "count(column)", "min(column)" or "max(column)" of top-level columns; '
        "or aggregate the rows that come."
    )
    return InvalidInput(f"{what}.", code="BAD_AGGREGATE", name=name, remedy=remedy)


def answer_from_metadata(made: Plan, aggregation: Aggregation, schemas: Mapping[int, Schema]) -> tuple[Plan, pa.Table]:
    """Answer ``aggregation`` from metadata where possible.

    Returns the plan without the answered parts, reading only the columns needed, and the partial aggregates
    of the answered parts.
    """
    known, table = np.zeros(len(made.parts), dtype=np.bool_), fold_partials(aggregation, [])
    if made.options.scan_aggregates and len(made.parts):
        try:
            known, table = _answered(aggregation, made.parts, schemas)
        except pa.ArrowException as error:  # a statistics problem never fails a query
            warnings.warn(f"Statistics could not answer, parts are read: {error}", RuntimeWarning, stacklevel=2)
    counted = made.parts.where(known)
    rows = int(counted.live_rows.sum())
    made.report.record_answered(parts=len(counted), rows=rows)
    made.report.blocks["total"] -= counted.blocks
    made.report.bytes["skipped"] += counted.bytes
    spec = replace(made.spec, schema=aggregation.columns)
    return replace(made, parts=made.parts.where(~known), spec=spec), table


def _answered(aggregation: Aggregation, parts: PartRefs, schemas: Mapping[int, Schema]) -> tuple[Bools, pa.Table]:
    """Return a mask of the parts that metadata answers, and their partial aggregates."""
    evidence = TableEvidence(parts.table, schemas)
    live = parts.live_rows
    intact = live == parts.column("rows")
    known = parts.all_match.copy()
    columns: list[pa.Array] = []
    for field in aggregation.groups:
        share = _Share.of(field, evidence, live, intact)
        known &= share.constant | share.all_null
        columns.append(share.low)
    for measure in aggregation.measures:
        values, exact = _share(measure, evidence, live, intact)
        known &= exact
        columns.append(values)
    rows = pa.Table.from_arrays(columns, schema=aggregation.schema).filter(pa.array(known & (live > 0)))
    return known, fold_partials(aggregation, [rows])


def _share(measure: Measure, evidence: TableEvidence, live: Any, intact: Bools) -> tuple[pa.Array, Bools]:
    """Return a measure's value per part, and a mask of where it is exact."""
    if measure.field is None:
        return pa.array(live), np.ones(len(live), dtype=np.bool_)
    share = _Share.of(measure.field, evidence, live, intact)
    match measure.function:
        case "count":
            return pa.array(np.where(share.all_null, 0, live - share.nulls)), share.countable
        case "min":
            return share.low, share.all_null | share.constant | (share.low_exact & intact)
    return share.high, share.all_null | share.constant | (share.high_exact & intact)


@dataclass(frozen=True, slots=True)
class _Share:
    """Exact statistics of one column, per part; unknown entries are marked inexact."""

    low: pa.Array
    high: pa.Array
    low_exact: Bools
    high_exact: Bools
    constant: Bools
    """All rows have the value ``low``."""
    all_null: Bools
    nulls: np.ndarray[Any, np.dtype[np.int64]]
    countable: Bools
    """Whether the NULL count of the live rows is known: ``nulls``, or all of them."""

    @staticmethod
    def of(field: Field, evidence: TableEvidence, live: Any, intact: Bools) -> _Share:
        found = evidence.column((field.id,))
        arrow, nothing = to_arrow_type(field.type), np.zeros(len(live), dtype=np.bool_)
        if found is None or found.type != field.type:
            none = pa.nulls(len(live), arrow)
            return _Share(none, none, nothing, nothing, nothing, nothing, nothing.astype(np.int64), nothing)
        no_null, all_null = _true(pc.equal(found.nulls, 0)), _true(pc.equal(found.nulls, found.count))
        no_nan = _true(pc.equal(found.nans, 0))
        nulls = pc.fill_null(found.nulls, 0).to_numpy(zero_copy_only=False)
        countable = np.asarray(found.nulls.is_valid()) & (intact | no_null | all_null)
        if not has_bounds(field.type):
            none = pa.nulls(len(live), arrow)
            return _Share(none, none, nothing, nothing, nothing, all_null, nulls, countable)
        low_exact = _true(pc.and_(found.lo.is_valid(), found.lo_exact))
        high_exact = _true(pc.and_(found.hi.is_valid(), found.hi_exact)) & no_nan
        constant = low_exact & high_exact & no_null & _same(found)
        low, high = (pc.if_else(pa.array(all_null), pa.scalar(None, arrow), bound) for bound in (found.lo, found.hi))
        return _Share(low, high, low_exact, high_exact, constant, all_null, nulls, countable)


def _true(mask: Any) -> Bools:
    found: Bools = np.asarray(pc.fill_null(mask, False))
    return found


def _same(found: ColumnEvidence) -> Bools:
    return _true(pc.equal(found.lo, found.hi))
