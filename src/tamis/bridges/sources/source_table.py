"""One version of a foreign table, as an adoption takes it: its schema, its live files, what is known of each.

Every kind of source (a folder of Parquet files, a Hive-partitioned folder, Delta, Iceberg) is turned into these
values, so that adoption, synchronization and the reader know no kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from tamis.bridges.sources.source_footers import SourceFooter
from tamis.core.types import Schema

FILES = pa.schema(
    [
        ("path", pa.string()),  # below the source's root, with "/"; the URL of a file elsewhere
        ("bytes", pa.int64()),
        ("rows", pa.int64()),  # physical rows; NULL: the footer says
        ("etag", pa.string()),  # as the store gave it; NULL: unknown
        ("modified_micros", pa.int64()),  # NULL: unknown
        # JSON: column id (text) → value of a column that is the same in all rows, whatever the file holds, in the form
        # of ``Field.initial_default`` (core.types.defaults.initial_json); null is NULL
        ("constants", pa.string()),
        ("deletion", pa.binary()),  # roaring bitmap of the deleted row ordinals; NULL: none
    ]
)
"""The columns of ``SourceTable.files``; statistics columns, named as in a manifest, follow."""


@dataclass(frozen=True, slots=True)
class SourceTable:
    """One version of a foreign table.

    ``files`` has one row per live file. A statistic that the source does not vouch for is absent or NULL: unknown.
    """

    kind: str
    """``parquet``, ``delta`` or ``iceberg``."""
    root: str
    """The URL that paths are below."""
    schema: Schema
    """The columns with their Tamis ids. Where the source has ids (Iceberg, Delta's column mapping), they are those."""
    files: pa.Table = field(repr=False)
    version: str | None = None
    """The source's own name of the version (Delta: its number, Iceberg: the snapshot id); None for folders."""
    timestamp_micros: int | None = None
    column_names: Mapping[int, str] = field(default_factory=dict)
    """By column id, nested fields included, the name in the files where it is not the schema's own."""
    name_mapping: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """Of Iceberg, by column id, all names that files without field ids may have for it; empty: there is no mapping."""
    by_field_id: bool = False
    """Whether the files carry the column ids as Parquet field ids; a file without them is read by name."""
    renamed: str | None = None
    """A column whose name meant, or may have meant, another one: by names alone, no file can be read."""
    properties: Mapping[str, Any] = field(default_factory=dict)
    """What a synchronization needs of the source again, such as its catalog; never a credential."""
    footers: tuple[SourceFooter, ...] | None = field(default=None, repr=False)
    """The footers of ``files``, in order, if the reader of the source has read them; None: adoption reads them."""
    highest_column_id: int = 0
    """The highest column id that the source ever gave, so that new columns here get others; 0: that of ``schema``."""
