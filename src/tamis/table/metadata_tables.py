"""Metadata tables in Arrow: history, snapshots, segments, parts (with readable bounds), columns, schemas.

The same tables serve Python, the command line and Spark's ``lake.db.t.parts``. They read metadata only.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.pruning import ColumnEvidence
from tamis.core.schema import schema_changes
from tamis.core.stats import TableEvidence
from tamis.core.stats.statistics_columns import DROPPED, EXCESS
from tamis.core.types import Array, Field, Map, Schema, Struct
from tamis.core.types.arrow import to_arrow_type
from tamis.engine.operations.layout.clustering_quality import Clustering
from tamis.engine.operations.layout.compaction_candidates import overlap_figures
from tamis.engine.operations.layout.index_operations import list_indexes
from tamis.errors import NotFound
from tamis.storage.commit_log import Snapshot, history, ordered_now
from tamis.storage.object_store import Store
from tamis.table.constraint_table import constraint_rows
from tamis.table.source_listing import source_lines, source_rows
from tamis.table.table_definition import PENDING

_UTC = pa.timestamp("us", tz="UTC")


def table(store: Store, snapshot: Snapshot, name: str) -> pa.Table:
    """Return the metadata table ``name``.

    Raises ``NotFound`` (``METADATA_NOT_FOUND``) listing the valid names.
    """
    if name not in TABLES:
        raise NotFound(
            f"There is no metadata table {name!r}.",
            code="METADATA_NOT_FOUND",
            name=str(name),
            remedy=f"There are: {', '.join(TABLES)}.",
        )
    return TABLES[name](store, snapshot)


def parts(_: Store, snapshot: Snapshot) -> pa.Table:
    """One row per live part, in reading order, with ``statistics.<column>.{lo, hi, nulls, nans}``."""
    leaves = _leaves(snapshot)
    found = snapshot.parts(None, frozenset(i for ids, _, _ in leaves for i in ids))
    out = found.select(["part_id", "path", "format", "schema_id", "rows", "bytes", "run_id"])
    out = out.append_column("ordered", ordered_now(snapshot.head, found))
    segment_ids = snapshot.segments["segment_id"].combine_chunks().take(found["segment"].combine_chunks())
    out = out.add_column(1, "segment_id", segment_ids)
    out = out.set_column(out.column_names.index("rows"), "rows", pc.subtract(found["rows"], found["deleted"]))
    out = out.append_column("deleted_rows", found["deleted"])
    out = out.append_column("blocks", pc.list_value_length(found["blocks"]))
    return _with_statistics(out, found, snapshot, leaves)


def segments(_: Store, snapshot: Snapshot) -> pa.Table:
    """One row per live segment, oldest first, with the union of its parts' statistics."""
    leaves = _leaves(snapshot)
    found = snapshot.segment_evidence(frozenset(i for ids, _, _ in leaves for i in ids))
    own = snapshot.segments
    out = own.select(["segment_id", "version"]).append_column("timestamp", own["timestamp_micros"].cast(_UTC))
    for name in ("parts", "rows", "bytes", "schema_id"):
        out = out.append_column(name, own[name])
    return _with_statistics(out, found, snapshot, leaves)


def columns(_: Store, snapshot: Snapshot) -> pa.Table:
    """One row per column and nested field of the current schema, with table-wide bounds as text."""
    leaves = _leaves(snapshot)
    evidence = TableEvidence(
        snapshot.segment_evidence(frozenset(i for ids, _, _ in leaves for i in ids)),
        {s.schema_id: s for s in snapshot.head.schemas},
    )
    bounds = {ids: _bounds(evidence.column(ids)) for ids, _, _ in leaves}
    rows = []
    for ids, names, f in _walk(snapshot.head.schema):
        found = bounds.get(ids, (None, None, None, None))
        column = (f.id, ".".join(names), str(f.type), f.nullable, f.comment, *found, f.computed_as)
        rows.append(dict(zip(_COLUMNS.names, column, strict=True)))
    return pa.Table.from_pylist(rows, schema=_COLUMNS)


def schemas(_: Store, snapshot: Snapshot) -> pa.Table:
    """One row per schema in the table's history."""
    known = snapshot.head.schemas
    live = _parts_by_schema(snapshot)
    rows = [
        {
            "schema_id": s.schema_id,
            "current": s is known[-1],
            "columns": str(s).replace("\n", ", "),
            "json": json.dumps(s.to_json()),
            "changes": list(schema_changes(known[at - 1] if at else None, s)),
            "parts": live.get(s.schema_id, 0),
        }
        for at, s in enumerate(known)
    ]
    fields = [("schema_id", pa.int32()), ("current", pa.bool_()), ("columns", pa.string()), ("json", pa.string())]
    fields += [("changes", pa.list_(pa.string())), ("parts", pa.int64())]
    return pa.Table.from_pylist(rows, schema=pa.schema(fields))


_INDEXES = pa.schema(
    [
        *[("name", pa.string()), ("columns", pa.list_(pa.string())), ("build", pa.string())],
        *[("covered", pa.list_(pa.string())), ("missing", pa.map_(pa.string(), pa.string()))],
        *[(name, pa.int64()) for name in ("rows", "bytes", "parts", "index_segments")],
        *[("created_at", _UTC), ("last_build", _UTC)],
    ]
)


def indexes(snapshot: Snapshot) -> pa.Table:
    """One row per index: columns, size, covered segments, and missing segments with the reason."""
    rows = [
        e.as_dict() | {"missing": list(e.missing.items()), "created_at": e.created_micros, "last_build": e.built_micros}
        for e in list_indexes(snapshot)
    ]
    return pa.Table.from_pylist(rows, schema=_INDEXES)


def _parts_by_schema(snapshot: Snapshot) -> dict[int, int]:
    """Count the live parts per schema id; reads the part table only for segments with mixed schemas."""
    segments_ = snapshot.segments
    mixed = segments_["schema_id"].is_null().to_numpy()
    same = segments_.select(["schema_id", "parts"]).filter(segments_["schema_id"].is_valid())
    found: Counter[int] = Counter()
    for schema_id, count in zip(same["schema_id"].to_pylist(), same["parts"].to_pylist(), strict=True):
        found[schema_id] += count
    if mixed.any():
        found.update(
            i for i in snapshot.table("parts", ("schema_id",), mixed)["schema_id"].to_pylist() if i is not None
        )
    return dict(found)


def detail(store: Store, snapshot: Snapshot) -> pa.Table:
    """One row about the whole table, with the column names of Delta's DESCRIBE DETAIL where they fit."""
    head, segments_ = snapshot.head, snapshot.segments
    totals = {name: int(pc.sum(segments_[name]).as_py() or 0) for name in ("parts", "rows", "bytes")}
    row = {
        "format": "tamis",
        "id": head.table_id,
        "name": head.name,
        "description": head.comment,
        "location": store.url,
        "created_at": head.created_micros,
        "last_modified": snapshot.timestamp_micros,
        "version": snapshot.version,
        "schema_id": head.schema.schema_id if head.schema else None,
        "oldest_schema_id": min(_parts_by_schema(snapshot), default=None),
        "clustering_columns": clustering_names(snapshot),
        "clustering": [{**_figures(c), "picture": c.picture()} for c in overlap_figures(snapshot)],
        "data_format": head.format,
        "num_segments": len(segments_),
        "num_parts": totals["parts"],
        "num_rows": totals["rows"],
        "size_in_bytes": totals["bytes"],
        **_trimmed_statistics(snapshot),
        "properties": [(k, v) for k, v in head.properties.items() if k != PENDING],
        "constraints": [f"{row['name']}: {row['definition']}" for row in constraint_rows(snapshot).to_pylist()],
        "sources": source_lines(snapshot),
        "reader_features": list(head.reader_features),
        "writer_features": list(head.writer_features),
    }
    return pa.Table.from_pylist([row], schema=_DETAIL)


def _trimmed_statistics(snapshot: Snapshot) -> dict[str, int]:
    """Return how many statistics were dropped, and the bytes of kept ones beyond the budget, over all parts."""
    table = snapshot.table("parts", ("part_id", DROPPED, EXCESS))
    return {
        name: int(pc.sum(table[name]).as_py() or 0) if name in table.column_names else 0 for name in (DROPPED, EXCESS)
    }


def clustering_names(snapshot: Snapshot) -> list[str]:
    """Return the current names of the clustering columns."""
    head = snapshot.head
    if head.schema is None:
        return list(json.loads(head.properties.get(PENDING, "[]")))
    known = head.schema.by_id
    return [".".join(known[i].name if i in known else f"#{i}" for i in ids) for ids in head.cluster_by]


def _figures(c: Clustering) -> dict[str, object]:
    return {name: getattr(c, name) for name in ("column", "average_overlap", "average_depth", "max_depth")}


TABLES: dict[str, Callable[[Store, Snapshot], pa.Table]] = {
    "history": lambda store, snapshot: history(store, until=snapshot.commit),
    "snapshots": lambda store, snapshot: history(store, until=snapshot.commit),
    "segments": segments,
    "parts": parts,
    "columns": columns,
    "schemas": schemas,
    "indexes": lambda _, snapshot: indexes(snapshot),
    "constraints": lambda _, snapshot: constraint_rows(snapshot),
    "sources": lambda _, snapshot: source_rows(snapshot),
}

_COLUMNS = pa.schema(
    [
        *[
            ("column_id", pa.int32()),
            ("name", pa.string()),
            ("type", pa.string()),
            ("nullable", pa.bool_()),
            ("comment", pa.string()),
        ],
        *[("lo", pa.string()), ("hi", pa.string()), ("nulls", pa.int64()), ("nans", pa.int64())],
        ("computed", pa.string()),
    ]
)
_CLUSTERING = pa.struct(
    [
        ("column", pa.string()),
        *[(name, pa.float64()) for name in ("average_overlap", "average_depth")],
        *[("max_depth", pa.int64()), ("picture", pa.string())],
    ]
)
_DETAIL = pa.schema(
    [
        *[(name, pa.string()) for name in ("format", "id", "name", "description", "location")],
        *[
            ("created_at", _UTC),
            ("last_modified", _UTC),
            ("version", pa.int64()),
            ("schema_id", pa.int32()),
            ("oldest_schema_id", pa.int32()),
        ],
        *[
            ("clustering_columns", pa.list_(pa.string())),
            ("clustering", pa.list_(_CLUSTERING)),
            ("data_format", pa.string()),
        ],
        *[(name, pa.int64()) for name in ("num_segments", "num_parts", "num_rows", "size_in_bytes")],
        *[(name, pa.int64()) for name in (DROPPED, EXCESS)],
        ("properties", pa.map_(pa.string(), pa.string())),
        *[("constraints", pa.list_(pa.string())), ("sources", pa.list_(pa.string()))],
        *[("reader_features", pa.list_(pa.string())), ("writer_features", pa.list_(pa.string()))],
    ]
)

Leaf = tuple[tuple[int, ...], str, Field]


def _leaves(snapshot: Snapshot) -> list[Leaf]:
    """Return the columns and struct fields that can have bounds: id path, dotted name, field."""
    return [
        (ids, ".".join(names), f)
        for ids, names, f in _walk(snapshot.head.schema)
        if not isinstance(f.type, Struct | Array | Map)
    ]


def _walk(schema: Schema | None) -> Iterator[tuple[tuple[int, ...], tuple[str, ...], Field]]:
    """Yield columns and struct fields at any depth, parents first; not the insides of arrays and maps."""

    def below(
        ids: tuple[int, ...], names: tuple[str, ...], fields: tuple[Field, ...]
    ) -> Iterator[tuple[tuple[int, ...], tuple[str, ...], Field]]:
        for f in fields:
            yield (*ids, f.id), (*names, f.name), f
            if isinstance(f.type, Struct):
                yield from below((*ids, f.id), (*names, f.name), f.type.fields)

    yield from below((), (), schema.fields if schema else ())


def _with_statistics(out: pa.Table, found: pa.Table, snapshot: Snapshot, leaves: list[Leaf]) -> pa.Table:
    evidence = TableEvidence(found, {s.schema_id: s for s in snapshot.head.schemas})
    arrays, fields = [], []
    for ids, name, f in leaves:
        column = _readable(evidence.column(ids), f, len(found))
        arrays.append(column)
        fields.append(pa.field(name, column.type))
    if not arrays:
        return out
    return out.append_column("statistics", pa.StructArray.from_arrays(arrays, fields=fields))


def _readable(column: ColumnEvidence | None, f: Field, count: int) -> pa.StructArray:
    """Return bounds and counts as one struct per row of evidence, NULL where unknown."""
    kind = to_arrow_type(f.type)
    if pa.types.is_nested(kind) or pa.types.is_null(kind):
        kind = pa.string()  # no bounds, but the shape stays the same
    nothing = {
        "lo": pa.nulls(count, kind),
        "hi": pa.nulls(count, kind),
        "nulls": pa.nulls(count, pa.int64()),
        "nans": pa.nulls(count, pa.int64()),
    }
    if column is not None:
        for name, known in (("lo", column.lo), ("hi", column.hi), ("nulls", column.nulls), ("nans", column.nans)):
            if known.type == nothing[name].type:
                nothing[name] = known
    return pa.StructArray.from_arrays([_flat(a) for a in nothing.values()], names=list(nothing))


def _bounds(column: ColumnEvidence | None) -> tuple[str | None, str | None, int | None, int | None]:
    """Return the overall bounds as text, and the counts; None if unknown for any row of evidence."""
    if column is None:
        return None, None, None, None
    empty = pc.equal(pc.add(column.nulls, pc.fill_null(column.nans, 0)), column.count)
    known = not pc.any(pc.and_(pc.is_null(column.lo), pc.invert(pc.fill_null(empty, False)))).as_py()
    lo, hi = (
        (_extreme(pc.min, column.lo), _extreme(pc.max, column.hi))
        if known and _ordered(column.lo.type)
        else (None, None)
    )
    return _text(lo), _text(hi), _sum(column.nulls), _sum(column.nans)


def _ordered(kind: pa.DataType) -> bool:
    return not (pa.types.is_nested(kind) or pa.types.is_null(kind))


def _extreme(of: Callable[[pa.Array], pa.Scalar], bounds: pa.Array) -> pa.Scalar:
    """Apply min or max; durations go through int64 because Arrow has no order for them."""
    if not pa.types.is_duration(bounds.type):
        return of(bounds)
    return of(bounds.cast(pa.int64())).cast(bounds.type)


def _text(value: pa.Scalar | None) -> str | None:
    if value is None or not value.is_valid:
        return None
    try:
        known = value.as_py()
    except (OverflowError, ValueError):  # a year outside Python's date range
        return str(value.cast(pa.string()).as_py())
    return f"0x{known.hex()}" if isinstance(known, bytes) else str(known)


def _sum(counts: pa.Array) -> int | None:
    return None if counts.null_count or not len(counts) else int(pc.sum(counts).as_py())


def _flat(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
