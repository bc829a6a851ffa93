"""The summary of a table for terminals and notebooks: schema, version, parts, size, clustering."""

from __future__ import annotations

import html

import pyarrow.compute as pc

from tamis.core.types import Field, Schema
from tamis.core.types.printable import printable
from tamis.engine.scan.report.report_text import counted_noun, size_text
from tamis.storage.commit_log import Snapshot
from tamis.table.metadata_tables import clustering_names


def facts(url: str, snapshot: Snapshot) -> list[tuple[str, str]]:
    """Return the label and value pairs shown above the columns."""
    segments, schema = snapshot.segments, snapshot.schema or Schema(())
    parts, rows, total = (int(pc.sum(segments[name]).as_py() or 0) for name in ("parts", "rows", "bytes"))
    return [
        ("table", url),
        ("version", str(snapshot.version)),
        ("rows", f"{rows:,} in {counted_noun(parts, 'part')}, {counted_noun(len(segments), 'segment')}"),
        ("size", f"{size_text(total)} ({snapshot.head.format})"),
        ("clustered by", ", ".join(clustering_names(snapshot)) or "nothing"),
        *(("constraint", f"{one.name}: {one.definition(schema)}") for one in snapshot.head.constraints),
    ]


MOST = 100
"""The maximum number of columns shown."""


def columns(schema: Schema | None) -> list[tuple[str, str]]:
    """Return names and types of the first ``MOST`` columns, and a count of the rest."""
    fields = schema.fields if schema else ()
    more = [("…", f"{len(fields) - MOST:,} more")] if len(fields) > MOST else []
    return [(f.name, _kind(f)) for f in fields[:MOST]] + more


def _kind(f: Field) -> str:
    computed = "" if f.computed_as is None else f" {f.computed_as}"
    return str(f.type) + ("" if f.nullable else " not null") + computed


def text(url: str, snapshot: Snapshot, schema: Schema | None) -> str:
    lines = [(name, printable(value)) for name, value in facts(url, snapshot)]
    width = max(len(name) for name, _ in lines)
    below = [(printable(name), printable(kind)) for name, kind in columns(schema)]
    inner = max((len(name) for name, _ in below), default=0)
    return "\n".join(
        [*(f"{name.ljust(width)}  {value}" for name, value in lines), "columns" if below else "no columns yet"]
        + [f"  {name.ljust(inner)}  {kind}" for name, kind in below]
    )


def markup(url: str, snapshot: Snapshot, schema: Schema | None) -> str:
    """Render the summary as HTML; all text is escaped."""

    def rows(pairs: list[tuple[str, str]]) -> str:
        cells = "<tr><th style='text-align:left'>{}</th><td style='text-align:left'>{}</td></tr>"
        return "".join(cells.format(html.escape(printable(a)), html.escape(printable(b))) for a, b in pairs)

    return f"<table>{rows(facts(url, snapshot))}</table><table>{rows(columns(schema))}</table>"
