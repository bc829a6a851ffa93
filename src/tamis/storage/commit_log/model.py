"""Plain values that make up a table's state; other modules store and load them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tamis.core.schema import Dropped
from tamis.core.types import Schema
from tamis.storage.commit_log.external_sources import Source
from tamis.storage.commit_log.table_constraints import Constraint

PART_COLUMNS = (
    "part_id",  # string: made at write, never reused
    "path",  # string: relative to the table's root
    "format",  # string: parquet | vortex | orc
    "schema_id",  # int32: the schema it was written under; fields in the file are resolved by it and by column ids
    "rows",  # int64: physical rows
    "bytes",  # int64: size of the file
    "checksum",  # int64: CRC-32 of the whole file, NULL if unknown
    # int64: CRC-32 of the bytes that open the file (Parquet: footer, its length, the magic), NULL if unknown
    "footer_checksum",
    "run_id",  # string: shared by parts that were sorted together
    "ordered",  # bool: rows are in the table's clustering order
    "blocks",  # list<int32>: rows of each block, in order
)
"""The manifest columns that every part has; statistics follow (``tamis.core.stats.statistics_columns``)."""

ANALYZED = "analyzed"
"""bool: the part's statistics were learned by reading it after it had become a part; may be absent."""


@dataclass(frozen=True, slots=True)
class IndexPath:
    """A path into JSON documents as an indexed column.

    ``id`` identifies its values in index parts, ``path`` is in Spark's syntax, and ``type`` is their type as
    JSON.
    """

    id: int
    path: str
    type: str


@dataclass(frozen=True, slots=True)
class IndexDefinition:
    """The definition of a secondary index in a table's head.

    Its built segments are not part of it: they are in the log.
    """

    index_id: str
    """Made at creation; an index created later under the same name has another id."""
    name: str
    columns: tuple[tuple[int, ...], ...]
    """Id paths, the leading column first.

    A path into documents ends with the id of its ``IndexPath``, which is the id of no column.
    """
    build: str = "with_write"
    """``with_write`` or ``deferred``."""
    created_version: int = 0
    """The version from which it was created: segments that existed by then are older than the index."""
    created_micros: int = 0
    paths: tuple[IndexPath, ...] = ()

    @property
    def by_path(self) -> dict[int, IndexPath]:
        """Paths by id."""
        return {path.id: path for path in self.paths}


@dataclass(frozen=True, slots=True)
class Head:
    """The table-wide state at a version.

    The commit that changes it stores it whole; other commits point to that commit.
    """

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
    """Names of the features that readers must know; an unknown one is refused."""
    writer_features: tuple[str, ...] = ()
    created_micros: int = 0
    indexes: tuple[IndexDefinition, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    """Fields that the table once had; with the current schema they make the migration type of all schemas."""
    ordered_since: int = 0
    """Parts of schemas before this id are not in the current clustering order, regardless of ``ordered``."""
    constraints: tuple[Constraint, ...] = ()
    numbered: dict[int, int] = field(default_factory=dict)
    """The next number of each identity column, by column id; it never goes back."""
    sources: tuple[Source, ...] = ()
    """The foreign tables whose files are parts of this one, at any version; none is ever removed."""

    @property
    def schema(self) -> Schema | None:
        """The current schema, or None if the table has none yet."""
        return self.schemas[-1] if self.schemas else None


@dataclass(frozen=True, slots=True)
class ReadSet:
    """What an operation read, for conflict detection: nothing (a blind append), or rows by filter."""

    filter: str | None = None
    """Spark SQL text over current names; None means the whole table."""
    columns: tuple[tuple[int, ...], ...] | None = None
    """Id paths; None means all columns."""
    zone: str = "UTC"
    """The session time zone of ``filter``."""
    ansi: bool = True
    """Whether ``filter`` follows ANSI rules."""
    by_statistics: bool = True
    """Whether statistics may show that no row matches ``filter``. Not stored: it is the committer's own choice."""


MAY_RESTORE = "may_restore"
"""The parameter of a synchronization that may bring back rows of an earlier version."""


class StreamEpoch(NamedTuple):
    """A micro-batch of a streaming query, as the commit that has its rows records it."""

    query: str
    epoch: int
    batch_millis: int | None = None
    """When Spark made the micro-batch, in milliseconds since 1970, if known. A repetition has the same time."""


@dataclass(frozen=True, slots=True)
class Operation:
    """A commit's description of itself, shown by ``history()``."""

    name: str
    """``create | append | overwrite | replace | schema | properties | delete | …``"""
    parameters: dict[str, Any] = field(default_factory=dict)
    metrics: dict[str, int] = field(default_factory=dict)
    stream: StreamEpoch | None = None
    """The micro-batch, of a streaming write."""

    @property
    def may_restore(self) -> bool:
        """Whether it brings back rows of an earlier version, as far as is known."""
        return self.name == "restore" or self.parameters.get(MAY_RESTORE) is True
