"""Statistics of foreign Parquet files: what their footers vouch for, everything else is unknown.

Invariant: every value that is neither NULL nor NaN lies within the bounds, whoever wrote the file. So bounds count only
where the specification and the writer's version define their order: not for INT96, unsigned numbers, half floats and
fixed binaries; for texts, binaries and decimals in binaries only of writers that are known to order them as Spark
does; not where a bound is NaN, and a bound of zero is of the sign that includes the other. No footer counts NaNs.
Numbers of NULLs count but where the writer is known to get them wrong (``foreign_writers``).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from decimal import Context
from decimal import Decimal as PyDecimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.expr.arrow_values import Mask
from tamis.core.stats.statistics_columns import BOUNDS, bound_name, count_name, has_bounds
from tamis.core.types import TIMESTAMP, Array, DataType, Map, Schema
from tamis.core.types.arrow import to_arrow_type
from tamis.storage.files.parquet.footer import Footer
from tamis.storage.files.parquet.foreign_columns import ForeignLayout
from tamis.storage.files.parquet.foreign_writers import NullCounts, orders_decimals, orders_texts, trusted_null_counts
from tamis.storage.files.parquet.legacy_calendar import CUTOVER, SAME_TIMES, LegacyCalendar


@dataclass(frozen=True, slots=True)
class BoundedLeaf:
    """A leaf of a file that may have statistics: its place, the column, and the type in the file."""

    at: int
    column_id: int
    data_type: DataType
    stored: pa.DataType
    vouched: bool
    """Whether the bounds in the footer are to be believed."""
    legacy: bool
    """Whether values may be of the old calendar."""
    counts: NullCounts = NullCounts.ALL
    """Which numbers of NULLs in the footer are to be believed."""
    hides: bool = False
    """Whether the library may hide bounds that are not believed: those of bytes in the order of signed ones."""
    never_filled: bool = False
    """Whether the source's metadata may repeat bounds in a wrong order without a sign of it in the footer."""

    def may_be_filled(self, bounded: Mask, described: Mask) -> Mask:
        """Return for which files the bounds in a source's metadata may be used.

        The files have bounds for none or all of their row groups with values (``bounded``), and some statistics or none
        (``described``). Bounds that were rejected for their values must not come back from the metadata. Bounds that
        were rejected because the file's writer orders a type wrongly may: the metadata's writer may order it right.
        """
        if self.vouched:
            return ~bounded
        if self.never_filled:
            return np.zeros_like(bounded)
        return bounded | ~described if self.hides else np.ones_like(bounded)


class Raw(NamedTuple):
    """What the footer says of a leaf in a row group; None: unknown."""

    low: Any
    """The lower bound as the footer has it."""
    high: Any
    nulls: int | None
    rows: int
    """The number of values with NULLs."""
    described: bool
    """Whether the footer has statistics of the leaf, believed or not."""
    bounded: bool
    """Whether these have bounds, believed or not."""


def bounded_leaves(
    footer: Footer, layout: ForeignLayout, schema: Schema, calendar: LegacyCalendar, ids: Collection[int] | None = None
) -> list[BoundedLeaf]:
    """Return the leaves of columns ``ids`` (None: all) that are plain: not below lists or maps."""
    writer = footer.created_by or ""
    found = []
    for at, path in enumerate(layout.leaves):
        field = schema.by_id.get(path[-1])
        if field is None or (ids is not None and field.id not in ids) or not has_bounds(field.type):
            continue
        if any(i not in schema.by_id or isinstance(schema.by_id[i].type, Array | Map) for i in path[:-1]):
            continue
        stored = layout.fields[at].type
        stored = stored.value_type if pa.types.is_dictionary(stored) else stored
        physical = footer.schema.column(at).physical_type
        rebased = pa.types.is_date(stored) or (pa.types.is_timestamp(stored) and field.type == TIMESTAMP)
        vouched = _vouched(stored, physical, writer)
        counts = trusted_null_counts(writer, texts=physical == "BYTE_ARRAY" and _is_bytes(stored), nested=len(path) > 1)
        hides = not vouched and physical in {"BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"}
        legacy = rebased and calendar.dates
        never = hides and _may_misorder(stored, physical, writer)
        found.append(BoundedLeaf(at, field.id, field.type, stored, vouched, legacy, counts, hides, never))
    return found


def _vouched(stored: pa.DataType, physical: str, writer: str) -> bool:
    """Return whether the bounds of this type have a defined order that the writer kept."""
    if physical in {"INT32", "INT64"}:
        whole = pa.types.is_signed_integer(stored) or pa.types.is_decimal(stored) or pa.types.is_date32(stored)
        timed = pa.types.is_timestamp(stored) or pa.types.is_time(stored)
        return bool(whole or (timed and stored.unit in {"s", "ms", "us"}))
    if physical in {"FLOAT", "DOUBLE", "BOOLEAN"}:
        return bool(pa.types.is_floating(stored) or pa.types.is_boolean(stored))
    if pa.types.is_decimal(stored):
        return orders_decimals(writer)
    return physical == "BYTE_ARRAY" and _is_bytes(stored) and orders_texts(writer)


def _may_misorder(stored: pa.DataType, physical: str, writer: str) -> bool:
    """Return whether bounds of bytes may be wrong without a sign: by early parquet-mr, whose statistics the library
    hides, by early Arrow, and of decimals of different lengths.
    """
    early = not writer or writer.startswith(("parquet-mr version 1.", "parquet-cpp"))
    return (early and not orders_texts(writer)) or (physical == "BYTE_ARRAY" and pa.types.is_decimal(stored))


def _is_bytes(stored: pa.DataType) -> bool:
    texts = pa.types.is_string(stored) or pa.types.is_large_string(stored)
    return bool(texts or pa.types.is_binary(stored) or pa.types.is_large_binary(stored))


def raw_statistics(footer: Footer, leaves: Sequence[BoundedLeaf]) -> list[list[Raw]]:
    """Return, for each leaf, what the footer says of it in each row group."""
    groups = [footer.row_group(i) for i in range(footer.num_row_groups)]
    return [[_raw(group, leaf) for group in groups] for leaf in leaves]


def _raw(group: Any, leaf: BoundedLeaf) -> Raw:
    chunk = group.column(leaf.at)
    said, rows = chunk.statistics if chunk.is_stats_set else None, group.num_rows
    if said is None:
        return Raw(None, None, None, rows, described=False, bounded=False)
    counted = said.has_null_count and 0 <= said.null_count <= rows and leaf.counts.include(said.null_count)
    nulls = said.null_count if counted else None
    bounded = bool(said.has_min_max)
    low, high = (said.min_raw, said.max_raw) if bounded and leaf.vouched else (None, None)
    return Raw(low, high, nulls, rows, described=True, bounded=bounded)


@dataclass(frozen=True, slots=True)
class Bounds:
    """Statistics of one column, one value each per row group."""

    low: pa.Array
    high: pa.Array
    nulls: pa.Array
    rows: pa.Array

    @property
    def empty(self) -> pa.Array:
        """Where all values are NULL."""
        return pc.fill_null(pc.equal(self.nulls, self.rows), False)


def bounds_of(raw: Sequence[Raw], leaf: BoundedLeaf) -> Bounds:
    """Turn raw statistics into the column's type; a pair of bounds that makes no sense is unknown."""
    target = to_arrow_type(leaf.data_type)
    low, high = (_typed(values, leaf, target) for values in ([one.low for one in raw], [one.high for one in raw]))
    senseless = pc.or_(low.is_null(), high.is_null())
    if pa.types.is_floating(target):
        senseless = pc.or_kleene(senseless, pc.or_kleene(pc.is_nan(low), pc.is_nan(high)))
    senseless = pc.or_kleene(senseless, pc.greater(low, high)) if not pa.types.is_duration(target) else senseless
    if leaf.legacy:
        senseless = pc.or_kleene(senseless, _of_old_calendar(low))
    sound = pc.invert(pc.fill_null(senseless, True))
    none = pa.scalar(None, target)
    low, high = pc.if_else(sound, low, none), pc.if_else(sound, high, none)
    if pa.types.is_floating(target):
        low = pc.if_else(pc.equal(low, 0.0), pa.scalar(-0.0, target), low)
        high = pc.if_else(pc.equal(high, 0.0), pa.scalar(0.0, target), high)
    nulls = pa.array([one.nulls for one in raw], pa.int64())
    return Bounds(low, high, nulls, pa.array([one.rows for one in raw], pa.int64()))


def _of_old_calendar(low: pa.Array) -> pa.Array:
    if pa.types.is_date(low.type):
        return pc.less(low.cast(pa.int32()), CUTOVER)
    return pc.less(low.cast(pa.int64()), SAME_TIMES)


def _typed(raw: list[Any], leaf: BoundedLeaf, target: pa.DataType) -> pa.Array:
    """Convert raw bounds to the column's type as its values are converted; NULL: unknown."""
    if all(value is None for value in raw):
        return pa.nulls(len(raw), target)
    try:
        stored = _stored(raw, leaf.stored)
        if pa.types.is_string(target) and pa.types.is_binary(stored.type):
            return _texts(stored)
        return stored.cast(target)
    except (pa.ArrowException, ValueError, TypeError, ArithmeticError, AttributeError):
        return pa.nulls(len(raw), target)


def _stored(raw: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_decimal(kind):
        whole = [v if v is None or isinstance(v, int) else int.from_bytes(v, "big", signed=True) for v in raw]
        scaled = [None if v is None else PyDecimal(v).scaleb(-kind.scale, Context(prec=76)) for v in whole]
        return pa.array(scaled, kind)
    if pa.types.is_temporal(kind):
        return pa.array(raw, pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)
    if _is_bytes(kind):
        return pa.array([v.encode() if isinstance(v, str) else v for v in raw], pa.binary())
    return pa.array(raw, kind)


def _texts(values: pa.Array) -> pa.Array:
    """Return bounds of texts; one that was cut within a character is unknown."""
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([_text(value) for value in values.to_pylist()], pa.string())


def _text(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


def group_statistics(
    footer: Footer, layout: ForeignLayout, schema: Schema, calendar: LegacyCalendar, ids: Collection[int]
) -> pa.Table:
    """Return one row of statistics per row group, as ``PartFile.statistics`` does."""
    rows = np.array([footer.row_group(i).num_rows for i in range(footer.num_row_groups)], dtype=np.int64)
    columns: dict[str, pa.Array] = {"rows": pa.array(rows)}
    leaves = bounded_leaves(footer, layout, schema, calendar, ids)
    for leaf, raw in zip(leaves, raw_statistics(footer, leaves), strict=True):
        found = bounds_of(raw, leaf)
        columns[count_name(leaf.column_id, "nulls")] = found.nulls
        for kind, bound in zip(BOUNDS, (found.low, found.high), strict=True):
            columns[bound_name(leaf.column_id, leaf.data_type, kind)] = bound
    return pa.table(columns)
