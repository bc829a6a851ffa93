"""Statistics columns of manifest rows as evidence, for pieces written under any schema.

Invariant: bounds are matched by column id and type, never by name. A column newer than a piece is known: NULL
throughout, or its initial default. Contradictory counts, or bounds where there can be no value, make the
piece unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property, reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.expr.arrow_values import Mask
from tamis.core.expr.generated_columns import GeneratedColumn, generated_columns
from tamis.core.expr.json_codec.json_path import Steps
from tamis.core.expr.tree import Column
from tamis.core.pruning.evidence import ColumnEvidence, DocumentEvidence
from tamis.core.stats.columns.bounds import cut_high, cut_low
from tamis.core.stats.columns.clustering_tuples import Edges, order_edges
from tamis.core.stats.columns.value_sets import is_listable
from tamis.core.stats.json_paths.path_evidence import PathTable
from tamis.core.stats.place_tables import PlaceTables, placed_names
from tamis.core.stats.statistics_columns import has_bounds
from tamis.core.stats.statistics_decoding import Decoder
from tamis.core.types import DOUBLE, FLOAT, INTEGER, VARIANT, Array, DataType, Field, Map, Schema
from tamis.core.types.arrow import to_arrow_type
from tamis.core.types.char_values import char_length, padded_high
from tamis.core.types.defaults import initial_scalar
from tamis.core.types.utf8_texts import spark_lengths
from tamis.errors import TamisError

MOST_PLACED = 256
"""Places of which evidence is kept for later filters."""


class TableEvidence:
    """Evidence over the rows of ``table``: ``rows``, optionally ``schema_id``, and statistics columns.

    Decoded statistics are cached, because a table never changes; callers must not modify what is returned.
    """

    def __init__(self, table: pa.Table, schema: Schema | Mapping[int, Schema], paths: PathTable | None = None) -> None:
        self._table, self._paths = table, paths
        self._schemas = {schema.schema_id: schema} if isinstance(schema, Schema) else dict(schema)
        self._decoder = Decoder(table)
        self._pieces = (
            _schema_ids(table) if not isinstance(schema, Schema) or "schema_id" in table.column_names else None
        )
        self._placed: dict[tuple[tuple[int, ...], str], ColumnEvidence | None] = {}
        self._known: dict[tuple[int, ...], ColumnEvidence | None] = {}
        self._edges: dict[tuple[int, ...], Edges | None] = {}
        self._trimmed: dict[int, pa.BooleanArray] = {}
        self._listed: dict[tuple[int, ...], pa.ListArray | None] = {}
        self._generated: list[tuple[GeneratedColumn, Mask]] | None = None
        self.specs: dict[Any, Any] = {}
        """Cache of the specs that the interpreter derived from columns."""

    def __len__(self) -> int:
        return len(self._decoder)

    def rows(self) -> pa.Int64Array:
        """Physical rows per piece; NULL where the manifest does not say."""
        return self._decoder.rows()

    def column(self, ids: tuple[int, ...]) -> ColumnEvidence | None:
        """Return the evidence in the column's type in the newest schema that contains it."""
        if ids not in self._known:
            self._known[ids] = self._column(ids)
        return self._known[ids]

    def trimmed(self, ids: tuple[int, ...]) -> pa.BooleanArray:
        """Return where the column's bounds were dropped for lack of space."""
        if ids[-1] not in self._trimmed:
            self._trimmed[ids[-1]] = self._decoder.no_room(ids[-1])
        return self._trimmed[ids[-1]]

    def document(self, ids: tuple[int, ...], steps: Steps) -> DocumentEvidence | None:
        """Return the evidence of a path in a column's JSON documents, or None."""
        if self._paths is None:
            return None
        path = self._path(ids)
        return self._paths.at(ids[-1], steps, self.rows(), variant=path is None or path[-1].type == VARIANT)

    def edges(self, ids: tuple[int, ...]) -> Edges | None:
        """Return the column's values in the pieces' first and last clustering tuples, in its newest type.

        Returns None if no piece has them.
        """
        if ids not in self._edges:
            path = self._path(ids)
            self._edges[ids] = None if path is None else order_edges(self._table, ids[-1], path[-1].type)
        return self._edges[ids]

    def elements(self, ids: tuple[int, ...]) -> ColumnEvidence | None:
        """Return the evidence of an array's elements, a map's keys or values, or a field below them."""
        return self.column(ids)

    def place(self, ids: tuple[int, ...], place: str) -> ColumnEvidence | None:
        """Return the evidence of an array's elements at a position, or of a map's values under a key, or None.

        ``ids`` lead to the element or value, or to a field of structs in it. Of an array, ``count`` is the number of
        elements at the position; a map that lacks the key counts as one with a NULL. The count is NULL where nothing
        is known of the place.
        """
        placed = self._placed  # threads share it
        try:
            return placed[ids, place]
        except KeyError:
            found = self._place(ids, place)
        if len(placed) >= MOST_PLACED:  # filters may name any number of keys
            placed = self._placed = {}
        placed[ids, place] = found
        return found

    def places(self, ids: tuple[int, ...]) -> list[str]:
        """Return the positions or keys of the element or value at the end of ``ids`` that pieces list."""
        return self._place_tables(ids[-1]).candidates()[0]

    def _place_tables(self, column_id: int) -> PlaceTables:
        return PlaceTables(self._table, column_id, self._place_names.get(column_id, ()))

    @cached_property
    def _place_names(self) -> dict[int, list[str]]:
        return placed_names(self._table)

    def _place(self, ids: tuple[int, ...], place: str) -> ColumnEvidence | None:
        path = self._path(ids)
        held = [at for at, field in enumerate(path or ()) if isinstance(field.type, Array | Map)]
        if path is None or len(held) != 1 or held[0] == len(path) - 1:
            return None
        found = self._place_tables(ids[-1]).at(place)
        if found is None:
            return None
        stored = self._stored(path[-1], Decoder(found), repeated=True)
        container = self.column(ids[: held[0] + 1]) if isinstance(path[held[0]].type, Map) else None
        if container is not None:
            missing = pc.subtract(pc.subtract(container.count, container.nulls), stored.count)
            missing = pc.if_else(pc.fill_null(pc.less(missing, 0), True), pa.scalar(None, pa.int64()), missing)
            count, nulls = (pc.add(some, missing) for some in (stored.count, stored.nulls))
            stored = replace(stored, count=count, nulls=nulls)
        return _consistent(stored)

    def sizes(self, ids: tuple[int, ...]) -> ColumnEvidence | None:
        """Return the sizes of an array or map, stored as integer bounds under its own id."""
        container, path = self.column(ids), self._path(ids)
        if container is None or path is None or any(isinstance(above.type, Array | Map) for above in path[:-1]):
            return None
        b = self._decoder.bounds(ids[-1], INTEGER)
        nothing = pa.array([0] * len(self), pa.int64())
        return _consistent(
            ColumnEvidence(INTEGER, container.count, b.lo, b.hi, b.lo_exact, b.hi_exact, container.nulls, nothing)
        )

    def generated(self) -> list[tuple[GeneratedColumn, Mask]]:
        """Return the generated columns, each with the pieces that were written under a schema that has it.

        Other pieces show NULL, or a default, for the column. One that was dropped is left out if what it reads has
        another type since: its expression is that of the old type.
        """
        if self._generated is not None:
            return self._generated
        found: dict[int, tuple[GeneratedColumn, Mask]] = {}
        written_under = set(self._schemas) if self._pieces is None else set(pc.unique(self._pieces).to_pylist())
        for schema_id in sorted(written_under & self._schemas.keys(), reverse=True):
            schema = self._schemas[schema_id]
            for generated in generated_columns(schema):
                known, mask = found.get(generated.field.id, (generated, np.zeros(len(self), np.bool_)))
                written = self._written_under(schema).to_numpy(zero_copy_only=False)
                found[generated.field.id] = known, mask | written
        self._generated = [(g, mask) for g, mask in found.values() if self._has_types(g.column, *g.sources)]
        return self._generated

    def _has_types(self, *columns: Column) -> bool:
        """Return whether the columns have the types of their evidence."""
        paths = ((column, self._path(column.ids)) for column in columns)
        return all(path is not None and path[-1].type == column.type for column, path in paths)

    def values(self, ids: tuple[int, ...]) -> pa.ListArray | None:
        """Return the value set of a column, a list per piece, NULL where unknown; None if unknown everywhere.

        A set with a value that the column cannot hold is not trusted.
        """
        if ids not in self._listed:
            self._listed[ids] = self._values(ids)
        return self._listed[ids]

    def _values(self, ids: tuple[int, ...]) -> pa.ListArray | None:
        path, column = self._path(ids), self.column(ids)
        if (
            path is None
            or column is None
            or any(isinstance(above.type, Array | Map) for above in path[:-1])
            or not is_listable(path[-1].type)
        ):
            return None
        found = self._decoder.values(ids[-1], path[-1].type)
        for schema in self._schemas.values():
            if ids[-1] not in schema.by_id:
                found = pc.if_else(self._written_under(schema), pa.scalar(None, found.type), found)
        return None if found.null_count == len(found) else _believed(found, column)

    def _column(self, ids: tuple[int, ...]) -> ColumnEvidence | None:
        path = self._path(ids)
        if path is None:
            return None
        field, repeated = path[-1], any(isinstance(above.type, Array | Map) for above in path[:-1])
        stored = self._stored(field, self._decoder, repeated=repeated)
        if not repeated:
            for schema in self._schemas.values():
                if field.id not in schema.by_id:
                    stored = _where(self._written_under(schema), self._absent(path, schema), stored)
        return _consistent(stored)

    def _path(self, ids: tuple[int, ...]) -> list[Field] | None:
        for schema_id in sorted(self._schemas, reverse=True):
            schema = self._schemas[schema_id]
            if schema.paths.get(ids[-1]) == ids:
                return [schema.by_id[i] for i in ids]
        return None

    def _stored(self, field: Field, decoder: Decoder, *, repeated: bool) -> ColumnEvidence:
        count = decoder.count(field.id, "count") if repeated else decoder.rows()
        floating = field.type in (FLOAT, DOUBLE)
        nans = (
            decoder.count(field.id, "nans")
            if floating
            else pc.if_else(count.is_valid(), 0, pa.scalar(None, pa.int64()))
        )
        nulls = decoder.count(field.id, "nulls")
        if not has_bounds(field.type):
            nothing, unsure = pa.nulls(len(self), to_arrow_type(field.type)), pa.nulls(len(self), pa.bool_())
            return ColumnEvidence(field.type, count, nothing, nothing, unsure, unsure, nulls, nans)
        b = decoder.bounds(field.id, field.type)
        found = ColumnEvidence(field.type, count, b.lo, b.hi, b.lo_exact, b.hi_exact, nulls, nans)
        length = char_length(field.type)
        return found if length is None else _of_padded(found, length)

    def _written_under(self, schema: Schema) -> pa.BooleanArray:
        if self._pieces is None:
            return pa.repeat(pa.scalar(True), len(self))
        return pc.fill_null(pc.equal(self._pieces, schema.schema_id), False)

    def _absent(self, path: list[Field], schema: Schema) -> ColumnEvidence:
        """Return the evidence for pieces written under ``schema``, which lacks the column."""
        rows, leaf = self.rows(), path[-1]
        top = next(f for f in path if f.id not in schema.by_id)
        if top.initial_default is None:
            return self._constant(leaf.type, rows, pa.scalar(None, to_arrow_type(leaf.type)), rows)
        try:
            value = initial_scalar(leaf) if top is leaf else None
        except TamisError:
            value = None
        if value is None or not has_bounds(leaf.type):
            return _unknown(leaf.type, rows)
        above = path[-2] if len(path) > 1 else None
        nulls = pc.subtract(rows, rows) if above is None else self._decoder.count(above.id, "nulls")
        return self._constant(leaf.type, rows, value, nulls)

    def _constant(self, data_type: DataType, rows: pa.Array, value: pa.Scalar, nulls: pa.Array) -> ColumnEvidence:
        is_nan = data_type in (FLOAT, DOUBLE) and value.is_valid and value.as_py() != value.as_py()
        bound = pa.scalar(None, value.type) if is_nan else value
        any_value = pc.greater(rows, nulls)

        def where_any(what: pa.Scalar) -> pa.Array:
            return pc.if_else(any_value, what, pa.scalar(None, what.type))

        (low, low_exact), (high, high_exact) = (
            cut(bound) if has_bounds(data_type) else (bound, False) for cut in (cut_low, cut_high)
        )
        lo, hi = (pa.nulls(len(rows), end.type) if not end.is_valid else where_any(end) for end in (low, high))
        nans = pc.subtract(rows, nulls) if is_nan else pc.subtract(rows, rows)
        return ColumnEvidence(
            data_type, rows, lo, hi, where_any(pa.scalar(low_exact)), where_any(pa.scalar(high_exact)), nulls, nans
        )


def _of_padded(e: ColumnEvidence, length: int) -> ColumnEvidence:
    """Return the bounds of CHAR values as they are read; in files of other writers they need not be padded."""
    lo_exact, hi_exact = (
        pc.and_(exact, pc.greater_equal(spark_lengths(bound), length))
        for bound, exact in ((e.lo, e.lo_exact), (e.hi, e.hi_exact))
    )
    return replace(e, hi=padded_high(e.hi, length), lo_exact=lo_exact, hi_exact=hi_exact)


def _believed(sets: pa.ListArray, column: ColumnEvidence) -> pa.ListArray:
    """Drop the sets that have a value outside the bounds, or a CHAR value without padding."""
    owner, members = pc.list_parent_indices(sets), sets.flatten()
    outside = pc.or_(
        pc.fill_null(pc.less(members, column.lo.take(owner)), False),
        pc.fill_null(pc.greater(members, column.hi.take(owner)), False),
    )
    length = char_length(column.type)
    if length is not None:  # collected before readers padded what another writer had not
        outside = pc.or_(outside, pc.fill_null(pc.less(spark_lengths(members), length), False))
    wrong = np.zeros(len(sets), np.bool_)
    wrong[np.asarray(owner.filter(outside))] = True
    return pc.if_else(pa.array(wrong), pa.scalar(None, sets.type), sets) if wrong.any() else sets


def _schema_ids(table: pa.Table) -> pa.Array:
    """Return the schema id of each piece; NULL where unknown."""
    at = table.schema.get_field_index("schema_id")
    if at < 0 or not pa.types.is_integer(table.schema.field(at).type):
        return pa.nulls(table.num_rows, pa.int32())
    return table.column(at).combine_chunks()


def _unknown(data_type: DataType, rows: pa.Array) -> ColumnEvidence:
    bound, flag, count = (pa.nulls(len(rows), t) for t in (to_arrow_type(data_type), pa.bool_(), pa.int64()))
    return ColumnEvidence(data_type, rows, bound, bound, flag, flag, count, count)


def _where(mask: pa.BooleanArray, new: ColumnEvidence, old: ColumnEvidence) -> ColumnEvidence:
    """Return ``new`` where the mask holds, else ``old``."""
    if not pc.any(mask).as_py():
        return old
    if pc.all(mask).as_py():
        return new

    def pick(name: str) -> pa.Array:
        return pc.if_else(mask, getattr(new, name), getattr(old, name))

    return ColumnEvidence(
        type=old.type,
        count=pick("count"),
        lo=_choose(mask, new.lo, old.lo),
        hi=_choose(mask, new.hi, old.hi),
        lo_exact=pick("lo_exact"),
        hi_exact=pick("hi_exact"),
        nulls=pick("nulls"),
        nans=pick("nans"),
    )


def _choose(mask: pa.BooleanArray, new: pa.Array, old: pa.Array) -> pa.Array:
    """Select like ``if_else``, which lacks kernels for nested types; those have no bounds."""
    return old if pa.types.is_nested(old.type) else pc.if_else(mask, new, old)


def _consistent(e: ColumnEvidence) -> ColumnEvidence:
    """Make contradictory pieces unknown: too many NULLs and NaNs, or bounds where there is no value."""
    missing = pc.add(e.nulls, e.nans)
    too_many = reduce(pc.or_, (pc.fill_null(pc.greater(part, e.count), False) for part in (missing, e.nulls, e.nans)))
    nothing_left = pc.or_(*(pc.fill_null(pc.equal(a, e.count), False) for a in (missing, e.nulls)))
    has_bound = pc.or_(e.lo.is_valid(), e.hi.is_valid())
    wrong = pc.or_(too_many, pc.and_(nothing_left, has_bound))
    if not pc.any(wrong).as_py():
        return e
    return _where(wrong, _unknown(e.type, e.count), e)
