"""What a table's state is made of. Plain values; storing and loading them is ``log``, ``manifest`` and ``rollup``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tamis.core.schema import Dropped
from tamis.core.types import Schema

PART_COLUMNS = (
    "part_id",  # string: made at write, never reused
    "path",  # string: relative to the table's root
    "format",  # string: parquet | vortex | orc
    "schema_id",  # int32: the schema it was written under; fields in the file are resolved by it and by column ids
    "rows",  # int64: physical rows
    "bytes",  # int64: size of the file
    "checksum",  # int64: CRC-32 of the whole file, NULL where unknown
    "footer_checksum",  # int64: CRC-32 of what a reader opens the file by (of Parquet: footer, its length, the magic), NULL where unknown
    "run_id",  # string: parts sorted together share it
    "ordered",  # bool: rows are in the table's clustering order
    "blocks",  # list<int32>: rows of each block, in order
)
"""The columns of a manifest that every part has; statistics follow (see ``tamis.core.stats.statistics_columns``)."""


@dataclass(frozen=True, slots=True)
class IndexPath:
    """A path into JSON documents as an indexed column: the ``id`` of its values in index parts, the path in Spark's words, and their type as JSON."""

    id: int
    path: str
    type: str


@dataclass(frozen=True, slots=True)
class IndexDefinition:
    """A secondary index as a table's head knows it: what it is about, not what is built of it (that is in the log, segment by segment)."""

    index_id: str
    """Made at creation; an index of the same name made later is another one."""
    name: str
    columns: tuple[tuple[int, ...], ...]
    """Id paths, the leading column first; one into documents ends with the id of its ``IndexPath``, which no column has."""
    build: str = "with_write"
    """``with_write | deferred``."""
    created_version: int = 0
    """The version from which it was created: segments that stood there already are older than it."""
    created_micros: int = 0
    paths: tuple[IndexPath, ...] = ()

    @property
    def by_path(self) -> dict[int, IndexPath]:
        """Paths by id."""
        return {path.id: path for path in self.paths}


@dataclass(frozen=True, slots=True)
class Head:
    """What is true of the table as a whole at a version. Written whole by the commit that changes it; other commits point to that commit."""

    table_id: str
    name: str = ""
    schemas: tuple[Schema, ...] = ()
    highest_column_id: int = 0
    cluster_by: tuple[tuple[int, ...], ...] = ()
    """Clustering columns as id paths."""
    format: str = "parquet"
    properties: dict[str, str] = field(default_factory=dict)
    comment: str | None = None
    reader_features: tuple[str, ...] = ()
    """Features that whoever reads must know, by name; an unknown one is refused."""
    writer_features: tuple[str, ...] = ()
    created_micros: int = 0
    indexes: tuple[IndexDefinition, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    """Fields that the table once had: with the current schema, the migration type of all its schemas."""
    ordered_since: int = 0
    """Parts of earlier schemas are not in the clustering order of today, whatever they say of themselves."""

    @property
    def schema(self) -> Schema | None:
        """The current schema, or None for a table that has none yet."""
        return self.schemas[-1] if self.schemas else None


@dataclass(frozen=True, slots=True)
class ReadSet:
    """What an operation read, so that conflicts can be found: nothing (a blind append), or rows by filter."""

    filter: str | None = None
    """Spark SQL text over current names; None: the whole table."""
    columns: tuple[tuple[int, ...], ...] | None = None
    """Id paths; None: all."""
    zone: str = "UTC"
    """The session time zone under which ``filter`` was meant."""
    ansi: bool = True
    """Whether it was meant under ANSI rules."""


@dataclass(frozen=True, slots=True)
class Operation:
    """What a commit says about itself; shown by ``history()``."""

    name: str
    """``create | append | overwrite | replace | schema | properties | delete | …``"""
    parameters: dict[str, Any] = field(default_factory=dict)
    metrics: dict[str, int] = field(default_factory=dict)
    stream: tuple[str, int] | None = None
    """(query id, epoch) of a streaming write."""
