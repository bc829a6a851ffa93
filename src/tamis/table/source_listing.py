"""The metadata table ``sources``: one row per foreign table whose files are parts of a table."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from tamis.bridges.adoption.source_sync import POSITION, SOURCE_VERSION
from tamis.engine.operations.upkeep.analyze import unanalyzed_external
from tamis.storage.commit_log import Snapshot
from tamis.storage.commit_log.following import follows_source

_SCHEMA = pa.schema(
    [
        *[("kind", pa.string()), ("location", pa.string()), ("source_version", pa.string()), ("followed", pa.bool_())],
        *[(name, pa.int64()) for name in ("parts", "rows", "bytes", "parts_not_analyzed")],
    ]
)


def source_rows(snapshot: Snapshot) -> pa.Table:
    """Return kind, place and version of each source, whether it is followed, and how much of it is live here.

    ``parts_not_analyzed`` counts the parts of which only a footer was read: ``analyze`` learns the rest.
    """
    head = snapshot.head
    if not head.sources:
        return _SCHEMA.empty_table()
    parts = snapshot.parts()
    bare = unanalyzed_external(snapshot)["source"]
    rows = []
    for one in head.sources:
        mine = parts.filter(pc.fill_null(pc.equal(parts["source"], one.source_id), False))
        rows.append(
            {
                "kind": one.kind,
                "location": one.root,
                "source_version": one.properties.get(SOURCE_VERSION),
                "followed": follows_source(head) and POSITION in one.properties,
                "parts": len(mine),
                "rows": (pc.sum(mine["rows"]).as_py() or 0) - (pc.sum(mine["deleted"]).as_py() or 0),
                "bytes": pc.sum(mine["bytes"]).as_py() or 0,
                "parts_not_analyzed": pc.sum(pc.equal(bare, one.source_id)).as_py() or 0,
            }
        )
    return pa.Table.from_pylist(rows, schema=_SCHEMA)


def source_lines(snapshot: Snapshot) -> list[str]:
    """Return a sentence for each source."""
    return [_line(**row) for row in source_rows(snapshot).to_pylist()]


def _line(
    kind: str,
    location: str,
    source_version: str | None,
    parts: int,
    parts_not_analyzed: int,
    *,
    followed: bool,
    **_: int,
) -> str:
    version = "" if source_version is None else f", version {source_version}"
    bare = f", {parts_not_analyzed:,} of them not analyzed" if parts_not_analyzed else ""
    return f"{kind}: {location}{version}{', followed' if followed else ''}: {parts:,} parts{bare}"
