"""COUNT, MIN, MAX and GROUP BY over Arrow batches, as mergeable partial aggregates.

Invariants: ``fold_partials`` is associative: folding the results of folding subsets gives the result of folding
everything. Semantics are Spark's: NULLs do not count, NaN is above every number, −0.0 and 0.0 are one group.
Without groups the result has one row, even for no input rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.types import LONG, DataType, Field, Schema
from tamis.core.types.arrow import to_arrow_type
from tamis.core.types.float_values import with_one_zero
from tamis.sizes import SIZES

HELD_ROWS, HELD_BYTES = SIZES.group_held_rows, SIZES.group_held_bytes
"""Rows and bytes of groups that are collected before they are folded."""


@dataclass(frozen=True, slots=True)
class Measure:
    """``count``, ``min`` or ``max`` of a column; ``count`` of None counts rows."""

    function: str
    field: Field | None


@dataclass(frozen=True, slots=True)
class Aggregation:
    """The requested measures per combination of the ``groups`` columns. Picklable."""

    measures: tuple[Measure, ...]
    groups: tuple[Field, ...] = ()

    @property
    def columns(self) -> Schema:
        """The input columns needed, without duplicates."""
        named = (*self.groups, *(m.field for m in self.measures if m.field is not None))
        return Schema(tuple({f.id: f for f in named}.values()))

    @property
    def output(self) -> Schema:
        """The output of ``fold_partials`` as logical columns: ``g0`` …, then ``m0`` …"""
        groups = [Field(f"g{at}", f.type) for at, f in enumerate(self.groups)]
        return Schema((*groups, *(Field(f"m{at}", _type(m)) for at, m in enumerate(self.measures))))

    @property
    def schema(self) -> pa.Schema:
        """The output of ``fold_partials`` as an Arrow schema."""
        return pa.schema([(f.name, to_arrow_type(f.type)) for f in self.output])

    def of_rows(self, batch: pa.RecordBatch) -> pa.Table:
        """Convert rows that have ``columns`` to one partial aggregate per row."""
        names = self.columns.names
        groups = [batch.column(names.index(f.name)) for f in self.groups]
        values = [self._alone(m, batch, names) for m in self.measures]
        return pa.Table.from_arrays([*groups, *values], schema=self.schema)

    def _alone(self, measure: Measure, batch: pa.RecordBatch, names: Sequence[str]) -> pa.Array:
        if measure.field is None:
            return pa.repeat(pa.scalar(1, pa.int64()), len(batch))
        values = batch.column(names.index(measure.field.name))
        return values.is_valid().cast(pa.int64()) if measure.function == "count" else values


def _type(measure: Measure) -> DataType:
    return LONG if measure.field is None or measure.function == "count" else measure.field.type


def fold_partials(aggregation: Aggregation, tables: Iterable[pa.Table]) -> pa.Table:
    """Merge partial aggregates to one row per group."""
    whole = pa.concat_tables([aggregation.schema.empty_table(), *tables])
    keys: dict[str, pa.Array] = {}
    asked: list[tuple[str, str]] = []
    for at in range(len(aggregation.groups)):
        keys[f"g{at}"] = with_one_zero(_one(whole[f"g{at}"]))
    for at, measure in enumerate(aggregation.measures):
        keys[f"m{at}"], how = _one(whole[f"m{at}"]), _how(measure)
        if pa.types.is_floating(keys[f"m{at}"].type):
            keys[f"m{at}"], keys[f"n{at}"] = _apart(keys[f"m{at}"])
            asked.append((f"n{at}", "max"))
        asked.append((f"m{at}", how))
    out = _aggregated(pa.table(keys) if keys else whole, [f"g{at}" for at in range(len(aggregation.groups))], asked)
    columns = [_back(out[f.name], f.type) for f in list(aggregation.schema)[: len(aggregation.groups)]]
    for at, measure in enumerate(aggregation.measures):
        values = _one(out[f"m{at}_{_how(measure)}"])
        if f"n{at}_max" in out.column_names:
            values = _together(values, _one(out[f"n{at}_max"]), measure.function)
        if _how(measure) == "sum":
            values = pc.fill_null(values, 0)
        columns.append(_back(values, to_arrow_type(_type(measure))))
    return pa.Table.from_arrays(columns, schema=aggregation.schema)


def aggregate_stream(aggregation: Aggregation, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Aggregate ``batches`` in bounded memory; with very many groups, a group may occur in several tables."""
    held: list[pa.Table] = []
    for batch in batches:
        held.append(fold_partials(aggregation, [aggregation.of_rows(batch)]))
        if _exceeds(held, HELD_ROWS, HELD_BYTES):
            held = [fold_partials(aggregation, held)]
            if _exceeds(held, HELD_ROWS // 2, HELD_BYTES // 2):
                yield held.pop()
    yield fold_partials(aggregation, held)


def _exceeds(tables: Sequence[pa.Table], most_rows: int, most_bytes: int) -> bool:
    rows = sum(len(table) for table in tables)
    return rows > most_rows or sum(table.nbytes for table in tables) > most_bytes


def _aggregated(table: pa.Table, groups: list[str], asked: list[tuple[str, str]]) -> pa.Table:
    if groups:
        return table.group_by(groups, use_threads=False).aggregate(asked)
    return table.group_by([], use_threads=False).aggregate(asked) if asked else table.slice(0, 0)


def _how(measure: Measure) -> str:
    return "sum" if measure.function == "count" else measure.function


def _one(column: pa.ChunkedArray) -> pa.Array:
    """Combine to one array of a type that supports comparison and grouping."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    array = array if isinstance(array, pa.Array) else pa.concat_arrays(array.chunks)
    return array.view(pa.int64()) if pa.types.is_duration(array.type) else array


def _back(column: pa.ChunkedArray | pa.Array, data_type: pa.DataType) -> pa.Array:
    array = _one(column)
    return array.view(data_type) if pa.types.is_duration(data_type) else array.cast(data_type)


def _apart(values: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Split floats into values without NaN, and a flag where NaN was."""
    nan = pc.fill_null(pc.is_nan(values), False)
    return pc.if_else(nan, pa.scalar(None, values.type), values), nan.cast(pa.int8())


def _together(values: pa.Array, nan: pa.Array, function: str) -> pa.Array:
    """Reinsert NaN as the greatest value: max if there was any, min if there was nothing else."""
    here = pc.fill_null(pc.equal(nan, 1), False)
    if function == "min":
        here = pc.and_(here, values.is_null())
    return pc.if_else(here, pa.scalar(float("nan"), values.type), values)
