"""Whether a version can be described in another format; refused by name, before anything is written."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from tamis.bridges.export.export_parts import parts_of
from tamis.core.types import BINARY_COLLATION, NULL, VARIANT, DataType, DayTimeInterval, Field, Schema, String, Time
from tamis.errors import InvalidInput
from tamis.storage.commit_log import Snapshot
from tamis.storage.commit_log.features import DELETION_VECTORS, EXTERNAL_PARTS

REWRITE = (
    "Rewrite the older parts, by compact(cluster_by=[…]) with any two columns or by overwriting the table with its "
    "own rows, and export again."
)


@dataclass(frozen=True, slots=True)
class Target:
    """What a format can express."""

    title: str
    refused_types: Callable[[DataType], bool]
    widens: Callable[[DataType, DataType], bool]
    """Whether readers take a file's values of the first type as the second."""
    default: Callable[[Field], bool]
    """Whether it expresses the value that a column has in files older than it."""


def refused_everywhere(data_type: DataType) -> bool:
    """Return whether neither format has the type: intervals, VARIANT, void, texts with a collation."""
    if isinstance(data_type, String):
        return data_type.collation != BINARY_COLLATION
    return isinstance(data_type, DayTimeInterval) or data_type in (VARIANT, NULL)


def refused_by_delta(data_type: DataType) -> bool:
    return refused_everywhere(data_type) or isinstance(data_type, Time)


def check_exportable(snapshot: Snapshot, target: Target, added: pa.Table) -> tuple[Schema, list[Schema]]:
    """Return the current schema and those that live parts were written under.

    ``added`` are the parts that no earlier export has written. Raises ``InvalidInput`` naming what the format cannot
    express: a feature, a column, or a part.
    """
    schema = snapshot.schema
    if schema is None:
        raise InvalidInput(
            f"The table {snapshot.store.url} has no columns yet.",
            code="EXPORT_NO_SCHEMA",
            name=snapshot.store.url,
            remedy="Append rows, or create it with a schema.",
        )
    unknown = sorted(set(snapshot.head.reader_features) - {DELETION_VECTORS, EXTERNAL_PARTS})
    if unknown:
        raise InvalidInput(
            f"An export cannot express the feature {unknown[0]}.",
            code="EXPORT_FEATURE",
            name=unknown[0],
            remedy="Read the table by Tamis.",
        )
    _check_own_files(added)
    for field in _inner(schema):
        if target.refused_types(field.type):
            name = schema.path_text(field)
            raise InvalidInput(
                f"{target.title} has no type for column {name!r}, {field.type}.",
                code="EXPORT_TYPE",
                name=name,
                remedy="Drop the column, or copy the table with a cast of it.",
            )
    _check_formats(added)
    live = live_schemas(snapshot)
    for older in live:
        _check_older(schema, older, target)
    return schema, live


def export_notes(snapshot: Snapshot) -> tuple[str, ...]:
    """Return notes about what readers and writers of an exported table may miss: the table, constraints, how columns
    get their values."""
    url = snapshot.store.url
    fields = [field for _, field in snapshot.schema.walk()] if snapshot.schema else []
    return (
        *(
            f"Many readers do not find the folder {url}: {sign!r} in a URL has a meaning."
            for sign in "#?%"
            if sign in url
        ),
        *(f"The constraint {one.name!r} is not part of the export." for one in snapshot.head.constraints),
        *(
            f"Column {f.name!r} is exported with its values, but not how it is generated."
            for f in fields
            if f.generated
        ),
        *(f"Column {f.name!r} is exported with its values, but not how it is numbered." for f in fields if f.identity),
    )


def live_schemas(snapshot: Snapshot) -> list[Schema]:
    """Return the schemas that live parts were written under, oldest first."""
    segments = snapshot.segments
    mixed = segments.filter(segments["schema_id"].is_null())["segment_id"].to_pylist()
    found = set(pc.unique(segments["schema_id"]).drop_null().to_pylist())
    if mixed:
        found |= set(pc.unique(parts_of(snapshot, mixed)["schema_id"]).to_pylist())
    return [schema for schema in snapshot.head.schemas if schema.schema_id in found]


def dropped_columns(snapshot: Snapshot) -> tuple[str, ...]:
    """Return the dropped columns that live parts may still hold, without what is below them."""
    schema = snapshot.head.schema
    assert schema is not None
    found: dict[int, str] = {}
    for older in live_schemas(snapshot):
        for i, path in older.paths.items():
            if i not in schema.by_id and all(above in schema.by_id for above in path[:-1]):
                found[i] = older.path_text(older.by_id[i])
    return tuple(dict.fromkeys(found.values()))


def _inner(schema: Schema) -> Iterator[Field]:
    yield from (field for _, field in schema.walk())


def _check_own_files(added: pa.Table) -> None:
    if "source" not in added.column_names or added["source"].null_count == len(added):
        return
    part = added.filter(added["source"].is_valid())["path"][0].as_py()
    raise InvalidInput(
        f"The file {part} of a source is not in the table's folder, where an export could name it.",
        code="EXPORT_SOURCE",
        name=part,
        remedy="Read the source itself, or overwrite the table with its own rows and export it then.",
    )


def _check_formats(added: pa.Table) -> None:
    other = added.filter(pc.not_equal(added["format"], "parquet"))
    if len(other):
        raise InvalidInput(
            f"Part {other['part_id'][0]} is a file of {other['format'][0]}, which only Tamis reads: it ends in a seal.",
            code="EXPORT_FORMAT",
            name=other["part_id"][0].as_py(),
            remedy="Copy the rows into a table of Parquet files, and export that.",
        )


def _check_older(schema: Schema, older: Schema, target: Target) -> None:
    """Raise ``InvalidInput`` for a column whose values in parts of the schema ``older`` cannot be expressed."""
    for path, field in schema.walk():
        before = older.by_id.get(field.id)
        name = schema.path_text(field)
        if before is None:
            outer = path[:-1]
            if field.initial_default is not None and not target.default(field) and _known(older, outer):
                raise InvalidInput(
                    f"{target.title} does not express the default of column {name!r} in files that are older than it.",
                    code="EXPORT_DEFAULT",
                    name=name,
                    remedy=f"{REWRITE} Iceberg's version 3 has defaults, but for NaN, infinities and structs.",
                )
            continue
        if not field.type.children and not target.widens(before.type, field.type):
            raise InvalidInput(
                f"{target.title} does not read the values of column {name!r} that were written as {before.type} "
                f"as {field.type}.",
                code="EXPORT_WIDENING",
                name=name,
                remedy=REWRITE,
            )


def _known(older: Schema, outer: Collection[int]) -> bool:
    return all(column_id in older.by_id for column_id in outer)
