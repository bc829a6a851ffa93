"""Transfers JSON paths from the writer of a part to its committer.

They are packed into the part's manifest row and unpacked into the segment's table ``paths``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from tamis.core.stats.json_paths.path_rows import COLUMNS, STACKED, side_by_side
from tamis.core.stats.json_paths.path_union import union_of
from tamis.core.types.bounded_decoding import read_stream

PACKED = "packed_paths"
"""The column of a manifest row; it is never stored."""

PATHS, UNION = "paths", "path_unions"
"""Tables of a segment: of its parts, and of their union."""


def pack_paths(rows: pa.Table) -> bytes:
    """Encode the paths of one part: rows of ``stacked_paths`` or of ``table_of``."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows)
    return bytes(sink.getvalue())


def _sound(schema: pa.Schema) -> bool:
    """Return whether the schema has all columns of some ids, each with its type, and no other."""
    ids = {field.name.partition("|")[0] for field in schema}
    wanted = {f"{identifier}|{kind}": arrow for identifier in ids for kind, arrow in COLUMNS.items()}
    return (
        all(identifier.isdecimal() for identifier in ids)
        and wanted == {f.name: f.type for f in schema}
        and len(schema) == len(wanted)
    )


def unpack_paths(manifest: pa.Table) -> tuple[pa.Table, dict[str, pa.Table]]:
    """Return the manifest without its packed rows, and the tables unpacked from them.

    Rows name their part by ``part`` and ``part_id``. Unreadable rows are dropped and thereby unknown.
    """
    if manifest.schema.get_field_index(PACKED) < 0:
        return manifest, {}
    column, ids = manifest[PACKED], manifest["part_id"]
    found: list[pa.Table] = []
    for part in np.flatnonzero(np.asarray(column.is_valid())).tolist():
        try:
            rows = read_stream(column[part].as_py())
            rows.validate(full=True)
            stacked = rows.schema == STACKED
            rows, sound = (side_by_side(rows), True) if stacked else (rows, _sound(rows.schema))
        except (pa.ArrowException, OSError, TypeError, ValueError):  # ValueError: names that are not valid text
            continue
        if not sound:
            continue
        found.append(_placed(rows, np.full(len(rows), part, np.int32), pa.repeat(ids[part], len(rows))))
    manifest = manifest.drop_columns([PACKED])
    if not found:
        return manifest, {}
    table = found[0] if len(found) == 1 else pa.concat_tables(found, promote_options="default")
    table = table.combine_chunks()
    tables = {PATHS: table}
    if len(manifest) > 1 and (union := union_of(table, len(manifest))) is not None:
        tables[UNION] = _placed(union, np.zeros(len(union), np.int32), pa.nulls(len(union), pa.string()))
    return manifest, tables


def _placed(rows: pa.Table, part: np.ndarray[Any, np.dtype[np.int32]], part_id: pa.Array) -> pa.Table:
    """Return ``rows`` behind the columns that name their part."""
    return rows.add_column(0, "part_id", part_id).add_column(0, "part", pa.array(part))
