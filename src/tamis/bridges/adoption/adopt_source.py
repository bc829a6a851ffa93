"""Adoption by reference: the files of a source become the parts of a new table, in its first commit.

Invariant: nothing of the source is written or deleted, and no data byte is copied. If anything does not fit, nothing
is written at all. A file that was written while the source was looked at is found before the commit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow.compute as pc

from tamis.bridges.adoption.external_manifest import external_parts
from tamis.bridges.adoption.reused_names import EXTRA_NAMES, added_names
from tamis.bridges.adoption.source_sync import POSITION, SOURCE_VERSION
from tamis.bridges.sources.iceberg_columns import known_names
from tamis.bridges.sources.source_footers import check_unchanged
from tamis.bridges.sources.source_kinds import DELTA, ICEBERG
from tamis.bridges.sources.source_table import SourceTable
from tamis.core.types import Schema
from tamis.errors import InvalidInput
from tamis.storage.commit_log import Head, Operation, Snapshot, Source, create
from tamis.storage.commit_log.deletion_vectors import read_bitmap
from tamis.storage.commit_log.features import DELETION_VECTORS, EXTERNAL_PARTS
from tamis.storage.files.parquet.foreign_part import source_store
from tamis.storage.object_store import Store
from tamis.world import new_id


@dataclass(frozen=True, slots=True)
class Adoption:
    """What an adoption takes from a source."""

    kind: str
    source: str
    source_version: str | None
    files: int
    rows: int
    deleted_rows: int
    bytes: int
    columns: tuple[str, ...] = field(repr=False)
    version: int | None = None
    """The version that it made; None: it was only planned."""

    def as_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "source": self.source,
            "source_version": self.source_version,
            "files": self.files,
            "rows": self.rows,
            "deleted_rows": self.deleted_rows,
            "bytes": self.bytes,
            "columns": list(self.columns),
            "version": self.version,
        }


def source_of(table: SourceTable) -> Source:
    """Return the entry of the head for a source that is adopted for the first time."""
    version = {} if table.version is None else {SOURCE_VERSION: table.version}
    properties = {**version, **table.properties}
    return Source(new_id(), table.kind, table.root, dict(table.column_names), table.by_field_id, properties)


def check_places(store: Store, source: Store) -> None:
    """Raise ``InvalidInput`` (``OVERLAPPING_PLACES``) if the table lies in the source or the source in the table."""
    mine, theirs = (f"{one.url.rstrip('/')}/" for one in (store, source))
    if mine.startswith(theirs) or theirs.startswith(mine):
        raise InvalidInput(
            f"The table {store.url} and the source {source.url} lie in each other.",
            code="OVERLAPPING_PLACES",
            name=store.url,
            remedy="Choose a path for the table beside the source: nothing is ever written into a source.",
        )


def adopt_by_reference(
    store: Store,
    table: SourceTable,
    make_head: Callable[[Schema], Head],
    *,
    dry_run: bool = False,
) -> tuple[Snapshot | None, Adoption]:
    """Create the table of ``store`` over the files of ``table``; ``make_head`` makes a head of its schema.

    Returns None instead of the snapshot if ``dry_run``. Raises ``AlreadyExists`` if there is a table,
    ``InvalidInput`` and ``CorruptData`` naming what does not fit; then nothing was written.
    """
    source = source_of(table)
    place = source_store(store, source)
    check_places(store, place)
    head = make_head(table.schema)
    schema = head.schema
    assert schema is not None
    found = external_parts(place, table, source, schema)
    if POSITION in source.properties and table.kind == DELTA and found.extra_names:
        extra = added_names((), found.extra_names)
        source = replace(source, properties={**source.properties, EXTRA_NAMES: extra})
    if POSITION in source.properties and table.kind == ICEBERG:
        names = known_names({}, found.bare_names, table, all_read=True)
        source = replace(source, properties={**source.properties, **names})
    deleted = sum(len(read_bitmap(vector, part_id)) for part_id, vector in found.deletions.items())
    adoption = Adoption(
        table.kind,
        table.root,
        table.version,
        len(found.manifest),
        (pc.sum(found.manifest["rows"]).as_py() or 0) - deleted,
        deleted,
        pc.sum(found.manifest["bytes"]).as_py() or 0,
        tuple(f"{f.name}: {f.type}" for f in schema),
    )
    if dry_run:
        return None, adoption
    check_unchanged(place, found.entries)
    features = (*head.reader_features, EXTERNAL_PARTS, *((DELETION_VECTORS,) if found.deletions else ()))
    head = replace(
        head,
        sources=(source,),
        reader_features=tuple(dict.fromkeys(features)),
        highest_column_id=max(head.highest_column_id, table.highest_column_id),
    )
    parameters = {"source": table.root, "kind": table.kind, "source_version": table.version}
    counts = {"rows_inserted": adoption.rows, "parts_added": adoption.files, "bytes_written": 0}
    made = create(store, head, Operation("adopt", parameters, counts), add=[found.manifest], deletions=found.deletions)
    return made, replace(adoption, version=made.version)
