"""Reads a snapshot of an Iceberg table as files for an adoption."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, time
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyroaring import BitMap

from tamis.bridges.sources.foreign_paths import Root
from tamis.bridges.sources.iceberg_bounds import decoded_bounds
from tamis.bridges.sources.iceberg_deletes import position_deletes, refuse_format
from tamis.bridges.sources.iceberg_equality import KeyColumns, equality_deletes
from tamis.bridges.sources.iceberg_manifests import Entries, read_entries
from tamis.bridges.sources.iceberg_metadata import IcebergMetadata, IcebergOptions, metadata_damaged, read_metadata
from tamis.bridges.sources.iceberg_schema import iceberg_schema, identity_columns, mapped_names
from tamis.bridges.sources.source_table import FILES, SourceTable
from tamis.core.stats.statistics_columns import bound_name, count_name, has_bounds
from tamis.core.types import DOUBLE, FLOAT, NULL, Array, DataType, Field, Map, Schema, Struct
from tamis.core.types.arrow import to_arrow_type
from tamis.core.types.defaults import initial_json
from tamis.errors import InvalidInput, TamisError
from tamis.storage.commit_log.deletion_vectors import serialize_vector
from tamis.storage.object_store.parallel_requests import gather_requests

_FIELD_ID = b"PARQUET:field_id"


def read_iceberg(
    source: str,
    options: IcebergOptions | None = None,
    *,
    snapshot: int | None = None,
    ref: str | None = None,
) -> SourceTable:
    """Return a snapshot of the Iceberg table that ``source`` names: the current one, that with an id, or of a ref.

    ``source`` is a folder with a version hint, a metadata file, or a table's name in ``options.catalog``; ``ref`` is
    a branch or a tag. Raises ``NotFound``, ``CorruptData`` and ``InvalidInput`` as the modules that it consists of do.
    """
    metadata = read_metadata(source, options or IcebergOptions()).seen_at(snapshot, ref)
    return snapshot_source(metadata, metadata.snapshot(snapshot, ref))


def snapshot_source(metadata: IcebergMetadata, snapshot: Mapping[str, Any] | None) -> SourceTable:
    """Return a snapshot as a source in the current schema; without one, a table without rows."""
    schema = iceberg_schema(metadata.schema(), metadata.location)
    data, deletes = (Entries(), Entries()) if snapshot is None else read_entries(metadata.root, snapshot)
    return _source(metadata, snapshot, schema, data, deletes)


def entries_source(metadata: IcebergMetadata, snapshot: Mapping[str, Any] | None, data: Entries) -> SourceTable:
    """Return some data files of a snapshot, for which no deletes hold, as a source in the current schema."""
    schema = iceberg_schema(metadata.schema(), metadata.location)
    return _source(metadata, snapshot, schema, data, Entries())


def _source(
    metadata: IcebergMetadata, snapshot: Mapping[str, Any] | None, schema: Schema, data: Entries, deletes: Entries
) -> SourceTable:
    root, content = metadata.root, metadata.content
    for file in data.files:
        if file["file_format"].upper() != "PARQUET":
            raise refuse_format(file)
    names = mapped_names(content.get("properties") or {}, metadata.location)
    constants = _Constants(metadata, schema, data)
    columns = KeyColumns(root, _fields_of(metadata, schema), names, constants.scalars)
    rows = position_deletes(root, data, deletes)
    for place, found in equality_deletes(columns, data, deletes, _global_specs(metadata)).items():
        rows[place] = rows.get(place, BitMap()) | found
    files = _files(root, data, rows, constants.texts())
    return SourceTable(
        "iceberg",
        root.store.url,
        schema,
        pa.table({**files, **_statistics(data, schema)}),
        version=None if snapshot is None else str(snapshot["snapshot-id"]),
        timestamp_micros=None if snapshot is None else int(snapshot["timestamp-ms"]) * 1000,
        column_names=_file_names(root, data, names, schema),
        by_field_id=True,
        renamed=None if names else _renamed(metadata, schema),
        name_mapping=names,
        properties={"table_id": content.get("table-uuid"), "metadata": metadata.location},
        highest_column_id=int(content.get("last-column-id") or 0),
    )


def _files(root: Root, data: Entries, rows: Mapping[int, Any], constants: pa.Array) -> dict[str, pa.Array]:
    counts = [file["record_count"] for file in data.files]
    paths = pa.array([file["file_path"] for file in data.files], pa.string())
    if len(pc.unique(paths)) < len(paths):
        raise metadata_damaged(root.store.url, "a data file is listed twice")
    for place, bitmap in rows.items():
        if len(bitmap) and bitmap.max() >= counts[place]:
            raise metadata_damaged(
                data.files[place]["file_path"], f"row {bitmap.max()} of {counts[place]} rows is deleted"
            )
    gone = [serialize_vector(rows[place]) if len(rows.get(place, ())) else None for place in range(len(counts))]
    found = {
        "path": root.resolve_all(paths, encoded=False),
        "bytes": pa.array([file["file_size_in_bytes"] for file in data.files], pa.int64()),
        "rows": pa.array(counts, pa.int64()),
        "etag": pa.nulls(len(counts), pa.string()),
        "modified_micros": pa.nulls(len(counts), pa.int64()),
        "constants": constants,
        "deletion": pa.array(gone, pa.binary()),
    }
    assert list(found) == FILES.names
    return found


def _statistics(data: Entries, schema: Schema) -> dict[str, pa.Array]:
    """Return the statistics columns: counts and bounds of what is not in lists and maps."""
    leaves = list(_leaves(schema.fields))
    ids = [f.id for f in leaves]
    counts, nulls, nans, lows, highs = (
        _by_column(data.files, key, ids)
        for key in ("value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")
    )
    rows = pa.array([file["record_count"] for file in data.files], pa.int64())
    none = pa.scalar(None, pa.int64())
    out: dict[str, pa.Array] = {}
    for f in leaves:
        # a count of values that is not that of rows counts something else
        whole = pc.fill_null(pc.equal(pa.array(counts[f.id], pa.int64()), rows), False)
        for kind, values in (("nulls", nulls[f.id]), ("nans", nans[f.id])):
            if kind == "nulls" or f.type in (FLOAT, DOUBLE):
                found = pa.array(values, pa.int64())
                fits = pc.fill_null(pc.and_(pc.greater_equal(found, 0), pc.less_equal(found, rows)), False)
                out[count_name(f.id, kind)] = pc.if_else(pc.and_(whole, fits), found, none)
        if has_bounds(f.type):
            out |= _bounds(f, lows[f.id], highs[f.id], nans[f.id])
    return out


def _bounds(f: Field, lows: Sequence[Any], highs: Sequence[Any], nans: Sequence[int | None]) -> dict[str, pa.Array]:
    out = {}
    for kind, raw in (("lo", lows), ("hi", highs)):
        if (found := decoded_bounds(raw, f.type)) is not None:
            if f.type in (FLOAT, DOUBLE):
                # who did not count NaN may have taken the bounds from a footer whose writer NaN misled
                counted = pa.array([n is not None for n in nans], pa.bool_())
                found = pc.if_else(counted, found, pa.scalar(None, found.type))
            out[bound_name(f.id, f.type, kind)] = found
    return out


def _by_column(files: Sequence[Mapping[str, Any]], key: str, ids: Sequence[int]) -> dict[int, list[Any]]:
    out: dict[int, list[Any]] = {i: [None] * len(files) for i in ids}
    for at, file in enumerate(files):
        for pair in file.get(key) or ():
            if (column := out.get(pair["key"])) is not None:
                column[at] = pair["value"]
    return out


def _leaves(fields: Sequence[Field]) -> list[Field]:
    """Return the fields with values of their own that are not in lists and maps."""
    out: list[Field] = []
    for f in fields:
        if isinstance(f.type, Struct):
            out += _leaves(f.type.fields)
        elif not isinstance(f.type, Array | Map) and f.type != NULL:
            out.append(f)
    return out


class _Constants:
    """The values of columns by which files are partitioned as they are."""

    def __init__(self, metadata: IcebergMetadata, schema: Schema, data: Entries) -> None:
        self._data = data
        self._columns = {spec: identity_columns(fields, schema) for spec, fields in metadata.specs().items()}

    def scalars(self, place: int) -> dict[int, Any]:
        """Return the values in a data file by column id."""
        partition = self._data.partitions[place]
        return {f.id: _scalar(partition.get(i), f.type) for i, f in self._columns.get(self._data.specs[place], ())}

    def texts(self) -> pa.Array:
        """Return the constants of all files as JSON."""
        known: dict[Any, str | None] = {}
        out = []
        for place in range(len(self._data.files)):
            key = self._data.partition_key(place)
            if key not in known:
                defaults = {str(i): initial_json(v) for i, v in self.scalars(place).items()}
                known[key] = json.dumps(defaults) if defaults else None
            out.append(known[key])
        return pa.array(out, pa.string())


def _scalar(value: Any, data_type: DataType) -> pa.Scalar:
    kind = to_arrow_type(data_type)
    if value is not None and pa.types.is_timestamp(kind) and hasattr(value, "tzinfo") and kind.tz is None:
        value = value.replace(tzinfo=None)
    if isinstance(value, date) and not isinstance(value, datetime) and pa.types.is_timestamp(kind):
        value = datetime.combine(value, time())  # a date that was promoted
    try:
        return pa.scalar(value, kind)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise metadata_damaged("A partition value", f"{value!r} is no {data_type}: {error}") from error


def _global_specs(metadata: IcebergMetadata) -> frozenset[int]:
    return frozenset(i for i, fields in metadata.specs().items() if all(f["transform"] == "void" for f in fields))


def _fields_of(metadata: IcebergMetadata, schema: Schema) -> Callable[[int], Field | None]:
    """Return what finds a column by its id: in ``schema``, else in the newest schema that had it."""

    @cache
    def found(identifier: int) -> Field | None:
        if identifier in schema.by_id:
            return schema.by_id[identifier] if len(schema.paths[identifier]) == 1 else None
        for value in reversed(metadata.content.get("schemas") or ()):
            for f in value["fields"]:
                if f["id"] == identifier:
                    one = {**value, "fields": [f]}
                    return iceberg_schema(one, metadata.location).fields[0]
        return None

    return found


def _file_names(root: Root, data: Entries, names: Mapping[int, tuple[str, ...]], schema: Schema) -> dict[int, str]:
    """Return the names of columns in files without ids, where they are not the schema's own.

    A column that the name mapping leaves out has the name "" there: such files do not hold it.

    Raises ``InvalidInput`` (``ICEBERG_NAME_MAPPING``) if a file has no ids, and a column may have several names.
    """
    absent = {f.id: "" for f in _named(schema.fields) if not names.get(f.id)} if names else {}
    names = {i: known for i, known in names.items() if i in schema.by_id}
    several = sorted(i for i, known in names.items() if len(known) > 1)
    if several:
        bare = [file["file_path"] for file in data.files]
        ids = gather_requests(root.store, lambda name: _has_ids(root, name), bare)
        if without := next((name for name, has in zip(bare, ids, strict=True) if not has), None):
            raise InvalidInput(
                f"{without} has no field ids, and its table's name mapping has several names "
                f"for the column {schema.path_text(schema.by_id[several[0]])!r}.",
                code="ICEBERG_NAME_MAPPING",
                name=without,
                remedy="Rewrite the file there (rewrite_data_files), then adopt the table.",
            )
        return absent
    return absent | {i: known[0] for i, known in names.items() if known and known[0] != schema.by_id[i].name}


def _renamed(metadata: IcebergMetadata, schema: Schema) -> str | None:
    """Return a column of the schema that had another name, or whose name another column had; None: there is none."""
    known = {i: (path[-2] if len(path) > 1 else None, schema.by_id[i].name) for i, path in schema.paths.items()}
    ids = {place: i for i, place in known.items()}
    for value in metadata.content.get("schemas") or ():
        for i, place in _places(value, None):
            other = ids.get(place, i)
            if known.get(i, place) != place or other != i:
                return schema.path_text(schema.by_id[i if i in known else other])
    return None


def _places(kind: Any, above: int | None) -> Iterator[tuple[int, tuple[int | None, str]]]:
    """Yield the id of each field of a type in Iceberg's JSON, with the id of what it is in, and its name."""
    if not isinstance(kind, dict):
        return
    for f in kind.get("fields") or ():
        yield f["id"], (above, f["name"])
        yield from _places(f["type"], f["id"])
    for part in ("element", "key", "value"):
        if part in kind:
            yield from _places(kind[part], kind[f"{part}-id"])


def _named(fields: Sequence[Field], named: bool = True) -> Iterator[Field]:
    """Yield the columns and the fields of structs, at any depth; elements, keys and values have no names."""
    for f in fields:
        if named:
            yield f
        yield from _named(f.type.children, isinstance(f.type, Struct))


def _has_ids(root: Root, name: str) -> bool:
    store, path = root.opened(root.resolve(name, encoded=False))
    try:
        with pq.ParquetFile(pa.PythonFile(store.reader(path), mode="r")) as opened:
            return any(_FIELD_ID in (f.metadata or {}) for f in opened.schema_arrow)
    except TamisError:
        raise
    except (pa.ArrowException, OSError) as error:
        raise metadata_damaged(name, error) from error
