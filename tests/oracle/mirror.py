"""The rows of a table in memory. Statements are applied to them without the table's own reader, statistics or deletes; expressions are Tamis's, which other tests compare with Spark's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import tamis
from tamis.core.expr import conjuncts_of, filter_mask, parse_predicate, parse_value
from tamis.core.expr.java_doubles import LEFT_TO_SPARK
from tamis.core.types import Schema
from tamis.core.types.arrow import to_arrow_schema, to_arrow_type
from tamis.core.types.char_values import char_length
from tamis.engine.operations.rows.merge_plan import (
    BY_SOURCE,
    MATCHED,
    NOT_MATCHED,
    Clause,
    MergeClause,
    MergePlan,
    merge_plan,
)
from tamis.engine.operations.rows.store_assignment import assigned_value, computed_values
from tamis.engine.scan import Options
from tests.oracle import history as h
from tests.oracle.kinds import KINDS, embedded_array

KIND = {"matched": MATCHED, "not_matched": NOT_MATCHED, "by_source": BY_SOURCE}
Arrays = dict[int, pa.Array]


ONLY_SPARK = "ONLY_SPARK"
"""The code of a filter that cannot be computed here on some row: an index may show that the row does not matter."""


class Refused(Exception):
    """The statement must fail."""


def staged(values: Mapping[str, list[Any]], columns: h.Columns) -> pa.Table:
    return pa.table(
        {name: _fitted(columns[name], embedded_array(columns[name], found)) for name, found in values.items()}
    )


def _fitted(kind: str, array: pa.Array) -> pa.Array:
    return _padded(array, 5 if kind == "char" else None)


class Mirror:
    """``states``: the rows after each step, with the columns' names."""

    def __init__(self) -> None:
        self.rows = pa.table({})
        self.schema = Schema(())
        self.generated: dict[str, str] = {}
        self.states: list[pa.Table] = []

    # --- expressions ---

    def arrays(self, rows: pa.Table | None = None) -> Arrays:
        rows = self.rows if rows is None else rows
        return {f.id: _one(rows[f.name]) for f in self.schema}

    def true(self, predicate: str, rows: pa.Table | None = None, zone: str = "UTC", *, ansi: bool = True) -> Any:
        """Of which rows ``predicate`` is true. Raises ``Refused`` where it fails on one, and ``InvalidInput`` where it cannot be said here."""
        rows = self.rows if rows is None else rows
        asked = conjuncts_of(parse_predicate(predicate, self.schema, zone=zone, ansi=ansi))
        return _mask(asked, self.arrays(rows), rows.num_rows)

    # --- statements ---

    def take(self, step: h.Step, columns: h.Columns) -> None:
        """Does what ``step`` says to rows of ``columns``. Raises ``Refused`` where the step must fail."""
        if isinstance(step, h.Create):
            self.generated = step.generated
        self._take(step, columns)
        if isinstance(step, h.Append | h.Overwrite | h.Update | h.Merge):
            self._generate()
        self.states.append(self.rows)

    def under(self, schema: Schema) -> None:
        """The table's schema from now on: columns keep their values, widened where their type is another."""
        arrow = to_arrow_schema(schema)
        arrays = [
            _cast(self.rows[f.name], f.type)
            if f.name in self.rows.column_names
            else pa.nulls(self.rows.num_rows, f.type)
            for f in arrow
        ]
        self.rows, self.schema = pa.Table.from_arrays(arrays, schema=arrow), schema

    def _take(self, step: h.Step, columns: h.Columns) -> None:
        match step:
            case h.Adopt(values=values, deleted=deleted):
                rows = staged(values, columns)
                self.rows = rows.filter(pc.invert(pc.is_in(rows["k"], value_set=pa.array(deleted, pa.int64()))))
            case h.Append(values):
                self._add(staged(values, columns))
            case h.Delete(predicate):
                self.rows = self.rows.filter(pa.array(~self.true(predicate)))
            case h.Overwrite(values, predicate):
                self.rows = self.rows.filter(pa.array(~self.true(predicate)))
                self._add(staged(values, columns))
            case h.Update(sets, predicate):
                self._update(sets, self.true(predicate))
            case h.Merge():
                self._merge(step, staged(step.values, columns))
            case h.Rename(name, to):
                self.rows = self.rows.rename_columns([to if n == name else n for n in self.rows.column_names])
            case h.Drop(name):
                self.rows = self.rows.drop_columns([name])
                self.generated = {c: text for c, text in self.generated.items() if c != name}
            case h.Add(name, kind, default):
                self.rows = self.rows.append_column(name, _constant(default, kind, self.rows.num_rows))
            case h.Restore(at):
                self.rows = self.states[at]

    def _generate(self) -> None:
        """Compute generated columns anew."""
        arrays = self.arrays()
        for name, text in self.generated.items():
            (f,) = self.schema.find(name)
            value = assigned_value(parse_value(text, self.schema, zone="UTC", ansi=True), f, "UTC")
            made = _cast(_computed(value, arrays, self.rows.num_rows, f), self.rows.schema.field(name).type)
            self.rows = self.rows.set_column(self.rows.column_names.index(name), name, made)

    def _add(self, new: pa.Table) -> None:
        target = self.rows.schema
        self.rows = pa.concat_tables(
            [self.rows, pa.Table.from_arrays([_cast(new[f.name], f.type) for f in target], schema=target)]
        )

    def _update(self, sets: Mapping[str, str], where: Any) -> None:
        old, place = self.arrays(self.rows.filter(pa.array(where))), pa.array(np.flatnonzero(where))
        new = dict(old)
        for name, text in sets.items():
            for f in self.schema.find(name):
                value = assigned_value(parse_value(text, self.schema, zone="UTC", ansi=True), f, "UTC")
                new[f.id] = _computed(value, old, len(place), f)
        kept = self.rows.filter(pa.array(~where))
        self.rows = pa.concat_tables([kept, self._table(new)])

    def _table(self, arrays: Mapping[int, Any]) -> pa.Table:
        """Rows of these columns; CHAR values are padded, as what is stored is."""
        arrow = to_arrow_schema(self.schema)
        made = [_cast(arrays[f.id], arrow.field(f.name).type) for f in self.schema]
        made = [_padded(array, char_length(f.type)) for array, f in zip(made, self.schema, strict=True)]
        return pa.Table.from_arrays(made, schema=arrow)

    def _merge(self, step: h.Merge, source: pa.Table) -> None:
        """Pairs of equal ``k`` that fulfil the rest of the condition; of the clauses of a kind the first whose condition is true takes a row."""
        asked = [MergeClause(KIND[c.when], _action(c), c.condition, c.sets) for c in step.clauses]
        plan = merge_plan(
            self.schema, source.schema, step.on, asked, self.schema.highest_id(), Options.resolve(None, None, {})
        )
        of_source: Arrays = {f.id: _cast(source[f.name], to_arrow_type(f.type)) for f in plan.source}
        mine = self.arrays()
        t, s = _pairs(self.rows["k"].to_pylist(), source["k"].to_pylist())
        keep = _mask((*plan.narrowing, *plan.rest), _both(mine, t, of_source, s), len(t))
        t, s = t[keep], s[keep]
        if plan.unique and len(set(t.tolist())) < len(t):
            raise Refused
        unmatched, unused = _others(t, self.rows.num_rows), _others(s, source.num_rows)
        first = np.unique(t, return_index=True)[1] if len(t) else np.empty(0, np.int64)
        t, s = t[first], s[first]
        left: list[pa.Table] = []
        gone = np.zeros(self.rows.num_rows, np.bool_)
        for kind, arrays, places in (
            (MATCHED, _both(mine, t, of_source, s), t),
            (BY_SOURCE, _some(mine, unmatched), unmatched),
            (NOT_MATCHED, _some(of_source, unused), unused),
        ):
            for clause, chosen in _chosen(plan, kind, arrays, len(places)):
                if kind != NOT_MATCHED:
                    gone[places[chosen]] = True
                if clause.action != "delete":
                    left.append(self._made(clause, _some(arrays, chosen), len(chosen)))
        self.rows = pa.concat_tables([self.rows.filter(pa.array(~gone)), *left])

    def _made(self, clause: Clause, arrays: Arrays, length: int) -> pa.Table:
        """New rows: values of the clause, else the target's, else NULL."""
        made = {}
        for f in self.schema:
            if f.id in clause.values:
                made[f.id] = _computed(clause.values[f.id], arrays, length, f)
            else:
                made[f.id] = arrays.get(f.id, pa.nulls(length, to_arrow_type(f.type)))
        return self._table(made)


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def _cast(array: Any, kind: pa.DataType) -> Any:
    array = _one(array) if isinstance(array, pa.ChunkedArray) else array
    return array if array.type == kind else array.cast(kind)


def _padded(array: pa.Array, length: int | None) -> pa.Array:
    """Pad the values of a CHAR of this length."""
    if length is None:
        return array
    return pa.array([v if v is None else v.ljust(length) for v in array.to_pylist()], array.type)


def _action(clause: h.Clause) -> str:
    return "delete" if clause.sets is None else "insert" if clause.when == "not_matched" else "update"


def _constant(default: str | None, kind: str, rows: int) -> pa.Array:
    if default is None:
        return pa.nulls(rows, KINDS[kind].arrow)
    value = parse_value(default, Schema(()), zone="UTC", ansi=True)
    return _fitted(kind, computed_values(value, {}, rows, 0, "default").cast(KINDS[kind].arrow))


def _mask(conjuncts: Sequence[Any], arrays: Arrays, length: int) -> Any:
    keep, failed, error = filter_mask(conjuncts, arrays, length, now_micros=0)
    if failed.any():
        if error == LEFT_TO_SPARK:
            raise tamis.InvalidInput(error, code=ONLY_SPARK)
        raise Refused
    return keep


def _computed(value: Any, arrays: Arrays, length: int, f: Any) -> pa.Array:
    try:
        return computed_values(value, arrays, length, 0, f.name)
    except tamis.InvalidInput as error:
        raise Refused from error


def _pairs(target: list[Any], source: list[Any]) -> tuple[Any, Any]:
    places: dict[Any, list[int]] = {}
    for at, key in enumerate(source):
        if key is not None:
            places.setdefault(key, []).append(at)
    found = [(at, other) for at, key in enumerate(target) for other in places.get(key, ())]
    pairs = np.array(found, dtype=np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def _others(places: Any, count: int) -> Any:
    return np.setdiff1d(np.arange(count), places)


def _some(arrays: Arrays, places: Any) -> Arrays:
    return {i: array.take(pa.array(places, pa.int64())) for i, array in arrays.items()}


def _both(left: Arrays, t: Any, right: Arrays, s: Any) -> Arrays:
    return {**_some(left, t), **_some(right, s)}


def _chosen(plan: MergePlan, kind: str, arrays: Arrays, length: int) -> list[tuple[Clause, Any]]:
    found, left = [], np.arange(length)
    for clause in plan.clauses_of(kind):
        keep = _mask(clause.conditions, _some(arrays, left), len(left))
        found.append((clause, left[keep]))
        left = left[~keep]
    return [(clause, chosen) for clause, chosen in found if len(chosen)]
