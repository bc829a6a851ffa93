"""The union of the statistics of several pieces, as stored for a segment in the log.

Invariant: the union admits every value that any of its rows admits. A bound is known only if it is known for
every row that may hold values; a row of only NULLs and NaNs does not affect bounds.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.stats.columns import value_sets
from tamis.core.stats.place_tables import PlaceTables, placed_name, placed_names
from tamis.core.stats.statistics_columns import (
    COUNTS,
    HI_EXACT,
    LISTED,
    LO_EXACT,
    PLACES,
    VALUES,
    bound_name,
    count_name,
)
from tamis.core.stats.statistics_decoding import Decoder, reads_as
from tamis.core.types import DataType
from tamis.core.types.arrow import orderable_array, to_arrow_type


def union_statistics(table: pa.Table) -> pa.Table:
    """Return one row of statistics columns for all rows of a manifest (with its column ``rows``)."""
    decoder = Decoder(table)
    columns = {name: array for column_id in decoder.ids() for name, array in _column(decoder, column_id)}
    columns |= {name: array for item in placed_names(table).items() for name, array in _placed(table, *item)}
    return pa.table(columns) if columns else pa.table({"_": [None]}).select([])


def _column(decoder: Decoder, column_id: int) -> Iterator[tuple[str, pa.Array]]:
    kinds = decoder.kinds(column_id)
    count = decoder.count(column_id, "count") if "count" in kinds else decoder.rows()
    empty = pc.equal(decoder.count(column_id, "nulls"), count)
    if "nans" in kinds:
        missing = pc.add(decoder.count(column_id, "nulls"), decoder.count(column_id, "nans"))
        empty = pc.or_kleene(empty, pc.equal(missing, count))
    target = _widest(decoder.types(column_id))
    if target is not None:
        bounds = decoder.bounds(column_id, target)
        low, low_exact = _outermost(bounds.lo, bounds.lo_exact, empty, "min")
        high, high_exact = _outermost(bounds.hi, bounds.hi_exact, empty, "max")
        yield bound_name(column_id, target, "lo"), low
        yield bound_name(column_id, target, "hi"), high
        yield count_name(column_id, "exact"), pa.array([LO_EXACT * low_exact + HI_EXACT * high_exact], COUNTS["exact"])
    target = _widest(decoder.value_types(column_id))
    if target is not None:
        found, kind_ = value_sets.union(decoder.values(column_id, target), empty), pa.list_(to_arrow_type(target))
        yield (
            bound_name(column_id, target, VALUES),
            pa.array([found], kind_) if found is not None else pa.nulls(1, kind_),
        )
    for kind in ("nulls", "nans", "count"):
        if kind in kinds:
            yield count_name(column_id, kind), _total(decoder.count(column_id, kind))


def _widest(types: list[DataType]) -> DataType | None:
    """Return the type that all others read as, or None."""
    return next((t for t in types if all(reads_as(other, t) for other in types)), None)


def _outermost(bound: pa.Array, exact: pa.BooleanArray, empty: pa.BooleanArray, which: str) -> tuple[pa.Array, bool]:
    """Return the least lower or greatest upper bound as an array of one, and whether it occurs."""
    unknown = pc.and_(bound.is_null(), pc.invert(pc.fill_null(empty, False)))
    if pc.any(unknown).as_py() or not len(bound):
        return pa.nulls(1, bound.type), False
    best = pc.min_max(orderable_array(bound))[which]
    best = best if best.type == bound.type else best.cast(bound.type)
    occurs = pc.any(pc.and_(pc.fill_null(pc.equal(bound, best), False), pc.fill_null(exact, False))).as_py()
    return pa.array([best], bound.type), bool(occurs)


def _total(counts: pa.Int64Array) -> pa.Array:
    return pa.array([None if counts.null_count else pc.sum(counts, min_count=0).as_py()], pa.int64())


def _placed(table: pa.Table, column_id: int, names: list[str]) -> Iterator[tuple[str, pa.Array]]:
    """Yield the union of the statistics of single positions and keys: of the places that are known in all pieces."""
    if table.num_rows == 1:
        yield from ((name, table.column(name).combine_chunks()) for name in names)
        return
    found: dict[str, dict[str, pa.Array]] = {}
    tables = PlaceTables(table, column_id, names)
    places, listed = tables.candidates()
    for place in places:
        piece = tables.at(place)
        if piece is not None and not piece[count_name(column_id, "count")].null_count:
            found[place] = dict(_column(Decoder(piece), column_id))
    yield count_name(column_id, PLACES), _listed(list(found), pa.string())
    yield count_name(column_id, LISTED), pa.array([listed and len(found) == len(places)])
    for name in next(iter(found.values()), {}):
        of_each = [columns.get(name) for columns in found.values()]
        if all(array is not None for array in of_each):
            values = pa.concat_arrays(of_each)
            yield placed_name(name), _listed(values, values.type)


def _listed(values: pa.Array | list[str], kind: pa.DataType) -> pa.ListArray:
    """Return a column of one list."""
    return pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), pa.array(values, kind))
