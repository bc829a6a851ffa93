"""The registry of data formats; every part is written or opened through this module."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tamis.core.types import Schema
from tamis.core.types.arrow import to_arrow_schema
from tamis.errors import InvalidInput
from tamis.lazy_imports import lazy_module
from tamis.storage.commit_log import Source
from tamis.storage.commit_log.external_sources import source_named
from tamis.storage.files.parquet import ParquetPartWriter, open_parquet
from tamis.storage.files.protocol import PartFile, PartRef, PartWriter, WriteOptions

if TYPE_CHECKING:
    from tamis.storage.files import orc, vortex
    from tamis.storage.files.parquet import foreign_part
else:
    orc = lazy_module("tamis.storage.files.orc")
    vortex = lazy_module("tamis.storage.files.vortex")
    foreign_part = lazy_module("tamis.storage.files.parquet.foreign_part")


@dataclass(frozen=True, slots=True)
class Format:
    """How parts of one format are written and opened, and their file extension."""

    extension: str
    create: Callable[[Any, pa.Schema, WriteOptions], PartWriter]
    """Takes an open file (``store.writer``), the Arrow schema with column ids, and options."""
    open: Callable[[Any, PartRef, Schema], PartFile]
    check: Callable[[pa.Schema], None] = lambda _: None
    """Raises ``InvalidInput`` naming the column whose type the format cannot hold."""
    block_bytes: int = 4 * 2**20
    """The target size of a block, as Arrow data, if rows are narrow."""


def _without_empty_structs(name: str, column: str, data_type: pa.DataType) -> None:
    if pa.types.is_struct(data_type) and not data_type.num_fields:
        raise InvalidInput(
            f"Column {column!r} is or holds a struct without fields, which {name} does not have.",
            code="UNSUPPORTED_TYPE",
            name=column,
            remedy="Give it a field, or choose the format vortex.",
        )
    for at in range(data_type.num_fields):
        _without_empty_structs(name, column, data_type.field(at).type)


def _with_fields(name: str) -> Callable[[pa.Schema], None]:
    """Return the check of a format that has no structs without fields."""

    def check(schema: pa.Schema) -> None:
        for f in schema:
            _without_empty_structs(name, f.name, f.type)

    return check


FORMATS: dict[str, Format] = {
    "parquet": Format("parquet", ParquetPartWriter, open_parquet, _with_fields("Parquet"), 16 * 2**20),
    "vortex": Format(
        "vortex",
        lambda *given: vortex.VortexPartWriter(*given),
        lambda *given: vortex.open_vortex(*given),
        lambda schema: vortex.check_vortex(schema),
    ),
    "orc": Format(
        "orc",
        lambda *given: orc.OrcPartWriter(*given),
        lambda *given: orc.open_orc(*given),
        _with_fields("ORC"),
    ),
}


def format_named(name: str) -> Format:
    """Return the format called ``name``. Raises ``InvalidInput`` (``UNKNOWN_FORMAT``) if it is unknown."""
    if str(name) not in FORMATS:
        raise InvalidInput(
            f"The data format {name!r} is not known.",
            code="UNKNOWN_FORMAT",
            name=str(name),
            remedy=f"Known are: {', '.join(FORMATS)}; a newer version of Tamis may know more.",
        )
    return FORMATS[name]


def check_format(name: str, schema: Schema) -> None:
    """Raise ``InvalidInput`` if parts of this format cannot hold these columns, naming the first.

    Also raised if the format's library is missing.
    """
    format_named(name).check(to_arrow_schema(schema))


def create_part(
    store: Any,
    path: str,
    format: str,  # noqa: A002  # the public name
    arrow_schema: pa.Schema,
    options: WriteOptions | None = None,
) -> PartWriter:
    """Create a writer of a new part; nothing is visible at ``path`` before it is closed."""
    chosen = format_named(format)
    return chosen.create(store.writer(path), arrow_schema, options or WriteOptions())


def open_part(store: Any, ref: PartRef, schema: Schema, sources: Iterable[Source] = ()) -> PartFile:
    """Open a part for reading; ``schema`` is the one it was written under, ``sources`` are those of the table's head.

    Raises ``CorruptData`` naming the part.
    """
    if ref.source is not None:
        return foreign_part.open_foreign_parquet(store, ref, schema, source_named(sources, ref.source, ref.path))
    return format_named(ref.format).open(store, ref, schema)
