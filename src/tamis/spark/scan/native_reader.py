"""When Spark's own Parquet reader may replace ours, and the schema to request from it.

Invariant: it returns the same rows. It resolves columns by the ids in the files, so renamed columns are
allowed. A part is not allowed if its schema has another type for a selected column, lacks a selected
column that has a default, or gives its name to another selected column of another type.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow.compute as pc

from tamis.core.types import (
    BINARY_COLLATION,
    NULL,
    VARIANT,
    Array,
    DataType,
    DayTimeInterval,
    Field,
    Map,
    Schema,
    String,
    Struct,
    Time,
)
from tamis.cost_model import COSTS
from tamis.engine.part_reader import evidence_of, expected_share
from tamis.engine.scan import Plan
from tamis.engine.scan.column_widths import read_share
from tamis.spark.jvm_bridge.spark_types import to_spark
from tamis.spark.scan.parquet_filter import hints_cover_filter

FIELD_ID = "parquet.field.id"
MOST_KEPT = COSTS.native_kept_share
"""Share of the remaining parts' rows from which on Spark's reader is faster.

Spark's reader returns all rows and leaves the filter to Spark.
"""


def obstacle(plan: Plan, selected: Schema, *, filtered: bool) -> str | None:
    """Reason not to use Spark's reader, as a sentence, or None."""
    wish = plan.options.read_lazy
    if wish not in {"auto", "native"}:
        return f"tamis.read.lazy is {wish}"
    if wish == "auto" and filtered:
        return "there is a filter"
    if plan.spec.positions:
        return "positions are asked for"
    if len(plan.audit):
        return "skipped parts are audited"
    if "://" in plan.spec.url:
        return "the table is not on a local disk"
    if set(plan.parts.table["format"].unique().to_pylist()) - {"parquet"}:
        return "not all parts are Parquet"
    if "source" in plan.parts.table.column_names and plan.parts.table["source"].null_count < len(plan.parts):
        return "some parts are files of a source, which other writers made"
    if pc.sum(plan.parts.table["deleted"]).as_py():
        return "some parts have deleted rows"
    if "candidates" in plan.parts.table.column_names or plan.shared:
        return "an index says which rows to read"
    if not selected.fields:
        return "no column is asked for: rows are counted without opening a part"
    schemas = remaining_schemas(plan)
    taken = next((f for s in schemas if s is not None and (f := _reused_name(selected.fields, s.fields))), None)
    if taken is not None:
        return f"another column was called {taken.name!r} in older parts"
    return next((why for f in selected.fields for s in schemas if (why := _column(f, s))), None)


def every_row_matches(plan: Plan) -> bool:
    """Whether statistics prove the filter true for every row of every remaining part."""
    return bool(plan.parts.all_match.all())


def residual_reason(plan: Plan, selected: Schema, schema: Schema, *, filtered: bool, owned: bool) -> str | None:
    """Reason to leave the residual filter to Spark, or None. ``owned``: Spark does not test the filter."""
    if not filtered:
        return "there is no filter"
    if len(plan.parts) and every_row_matches(plan):
        return "the filter is true of every row"
    if owned:
        return None
    if lazy_reader_saves_little(plan, selected, schema):  # first: it costs a tenth of the other
        return "little is read, Spark tests the filter"
    return "the filter keeps many rows, Spark tests them" if keeps_many_rows(plan) else None


def has_repeated(schema: Schema) -> bool:
    """Whether a column contains arrays or maps at any depth.

    Spark's reader must not skip pages of such schemas.

    Page headers have no checksum. Spark's reader notices a wrong number of values in one, except if it skips
    pages of repeated columns: it then returns other arrays (docs/design/0017).
    """
    return any(_repeated(f.type) for f in schema)


def _repeated(data_type: DataType) -> bool:
    return isinstance(data_type, Array | Map) or any(_repeated(f.type) for f in data_type.children)


def keeps_many_rows(plan: Plan) -> bool:
    """Whether the filter is likely to keep at least ``MOST_KEPT`` of the rows.

    Treats unknown selectivity as 0.
    """
    parts, rows = plan.parts, plan.parts.live_rows
    try:
        guess = expected_share(plan.spec.conjuncts, evidence_of(parts.table, plan.spec.part_schemas))
    except Exception:  # noqa: BLE001  # a statistics problem never fails a query
        guess = None
    kept = np.maximum(parts.all_match, 0.0 if guess is None else guess)
    return not plan.proofs and bool((kept * rows).sum() >= MOST_KEPT * max(int(rows.sum()), 1))


LEAST_SAVED = COSTS.native_saved_share
"""Minimum share of the bytes that late materialization must save.

Below it Spark's reader is faster, as it skips as much if it takes the whole filter as hints.
"""


def lazy_reader_saves_little(plan: Plan, selected: Schema, schema: Schema) -> bool:
    """Whether a lazy reader in a Python worker would save too little.

    True if at most ``tamis.read.native_bytes`` are read. Also true if hints express the whole filter, and
    laziness saves no more than that many bytes or less than ``LEAST_SAVED``.
    """
    limit = plan.options.read_native_bytes
    if plan.proofs or not limit:
        return False
    whole = read_share(selected, plan.spec.conjuncts, schema, lazy=False)
    saved = whole - read_share(selected, plan.spec.conjuncts, schema, lazy=True)
    if plan.parts.bytes * whole <= limit:
        return True
    return (
        (plan.parts.bytes * saved <= limit or saved < LEAST_SAVED * whole)
        and plan.options.stats_filter  # else there are no hints
        and hints_cover_filter(plan.spec.conjuncts, remaining_schemas(plan))
    )


def remaining_schemas(plan: Plan) -> list[Schema | None]:
    """The schemas of the remaining parts; None for an unknown schema."""
    return [plan.spec.part_schemas.get(i) for i in plan.parts.table["schema_id"].unique().to_pylist()]


def _column(wanted: Field, written: Schema | None) -> str | None:
    if not _readable(wanted.type):
        return f"column {wanted.name!r} has type {wanted.type}"
    found = written.by_id.get(wanted.id) if written is not None else None
    if found is None:
        return (
            None
            if wanted.initial_default is None and written is not None
            else f"column {wanted.name!r} has a default in older parts"
        )
    return None if _same(found.type, wanted.type) else f"column {wanted.name!r} has changed its type"


def _reused_name(wanted: Sequence[Field], written: Sequence[Field]) -> Field | None:
    """The first wanted field, at any depth, whose name belongs to another wanted field, of another type, in a part.

    Spark's reader finds fields by their ids, but takes the types to convert them to by their names.
    """
    there, asked = {f.id: f for f in written}, {f.id for f in wanted}
    named = {f.name.lower(): f for f in written if f.id in asked}
    for f in wanted:
        other = named.get(f.name.lower(), f)
        if other.id != f.id and other.type != f.type:
            return f
        inner = _reused_name(f.type.children, there[f.id].type.children) if f.id in there else None
        if inner is not None:
            return inner
    return None


def _readable(data_type: DataType) -> bool:
    """Whether both readers are certain to agree on the type."""
    if isinstance(data_type, String):
        return data_type.collation == BINARY_COLLATION
    if data_type in {VARIANT, NULL} or isinstance(data_type, Time | DayTimeInterval):
        return False
    return all(_readable(f.type) for f in data_type.children)


def _same(written: DataType, wanted: DataType) -> bool:
    """Whether the types are equal, or ``written`` is a struct with all ``wanted`` fields. Ignores names."""
    if isinstance(written, String) and isinstance(wanted, String):
        return True
    if isinstance(written, Struct) and isinstance(wanted, Struct):
        there = {f.id: f.type for f in written.fields}
        return all(f.id in there and _same(there[f.id], f.type) for f in wanted.fields)
    if not written.children and not wanted.children:
        return written == wanted
    pairs = zip(written.children, wanted.children, strict=True) if type(written) is type(wanted) else ()
    return type(written) is type(wanted) and all(a.id == b.id and _same(a.type, b.type) for a, b in pairs)


def requested_schema(selected: Schema) -> str:
    """The schema to request from Spark's reader: JSON with column ids in the metadata, without defaults."""
    struct = json.loads(to_spark(selected))
    _identify(struct, selected.as_struct())
    return json.dumps(struct)


def _identify(spark: Any, ours: DataType) -> None:
    if not isinstance(spark, dict):
        return
    if isinstance(ours, Struct):
        for column, f in zip(spark["fields"], ours.fields, strict=True):
            column["metadata"] = {k: v for k, v in column["metadata"].items() if not k.endswith("_DEFAULT")} | {
                FIELD_ID: f.id
            }
            if isinstance(f.type, String):
                column["type"] = "string"
            _identify(column["type"], f.type)
        return
    for key, inner in zip(
        [k for k in ("elementType", "keyType", "valueType") if k in spark], ours.children, strict=True
    ):
        if isinstance(inner.type, String):
            spark[key] = "string"
        _identify(spark[key], inner.type)
