"""Report presentation: the funnel as a table, read against total per level, and the reasons below it."""

from __future__ import annotations

import html
import io
from typing import TYPE_CHECKING, Any

from tamis.core.types.printable import printable
from tamis.engine.secondary_index import NO_INDEX

if TYPE_CHECKING:
    from tamis.engine.scan.report.scan_report import Report

_REASONS = {
    "skipped_segment": "in skipped segments",
    "skipped_stats": "by statistics",
    "skipped_index": "by index",
    "skipped_join": "by join keys",
    "skipped_limit": "by the limit",
    "skipped_topk": "by top-k",
    "answered": "answered from metadata",
    "by_stats": "by statistics",
    "by_index": "by index",
    "skipped_filter": "by the filter columns",
}


def counted_noun(count: int, noun: str) -> str:
    """``1 part``, ``2 parts``."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def funnel_lines(report: Report) -> list[tuple[str, str, str, str, str]]:
    """Return the lines of the funnel: level, read, total, share read, how the rest was avoided."""
    segments, parts, blocks, rows, sizes = report.segments, report.parts, report.blocks, report.rows, report.bytes
    read_segments = segments["total"] - segments["skipped"]
    data_read = sizes["leader"] + sizes["follower"]
    ran = bool(data_read or blocks["read"] or rows["matched"])
    lines = [
        _line("segments", read_segments, segments["total"], _avoided(segments, ("by_index", "by_stats"))),
        _line(
            "parts", parts["kept"], parts["total"], _avoided(parts, [k for k in parts if k in _REASONS]) + _kept(parts)
        ),
    ]
    if not ran:
        return [
            *lines,
            _line("bytes", sizes["table"] - sizes["skipped"], sizes["table"], "to read at most", show=size_text),
        ]
    return [
        *lines,
        _line(
            "blocks",
            blocks["read"],
            blocks["total"],
            _avoided(blocks, ("skipped_stats", "skipped_index", "skipped_filter")),
        ),
        _line("rows", rows["leader"], rows["total"], f"{rows['matched']:,} matched"),
        _line(
            "bytes",
            data_read,
            sizes["table"],
            f"{size_text(sizes['leader'])} leaders, {size_text(sizes['follower'])} followers",
            show=size_text,
        ),
    ]


def report_reasons(report: Report) -> list[str]:
    """Return a sentence per conjunct: what it skipped, or why it did not."""
    lines = [
        f"{e['conjunct']}: skipped {counted_noun(e['parts_skipped'], 'part')}"
        + (f" by statistics of {e['statistic']}" if e["statistic"] else "")
        + (f", not the rest because {e['rest']}" if e.get("rest") else "")
        for e in report.because
    ]
    lines += [f"{e['conjunct']}: did not skip because {e['reason']}" for e in report.not_skipped_because]
    lines += [f"indexes: {said}" for said in filter(None, [index_summary(report)])]
    lines += [f"AUDIT: what was proved of part {e['part']} is wrong: {e['problem']}" for e in report.violations]
    return lines if report.error is None else [*lines, f"ended with {report.error}"]


def index_summary(report: Report) -> str | None:
    """Describe which indexes are used, for how many segments, or why none is; None if irrelevant."""
    if report.filter is None or report.index_reason == NO_INDEX:
        return None
    answered = ", ".join(
        f"{e['name']} for {e['segments']:,} of {counted_noun(e['segments'] + e['missing'], 'segment')}"
        for e in report.indexes
    )
    return report.index_reason + (f" ({answered})" if answered else "")


def report_summary(report: Report) -> str:
    """Return funnel and reasons in one line, for Spark's plans."""
    segments, parts, sizes = report.segments, report.parts, report.bytes
    why, avoided = "; ".join(report_reasons(report)), _avoided(parts, [k for k in parts if k in _REASONS])
    return (
        f"segments: {segments['total'] - segments['skipped']} of {segments['total']}, "
        f"parts: {parts['kept']} of {parts['total']}"
        + (f" ({avoided})" if avoided else "")
        + f", bytes: {size_text(sizes['table'] - sizes['skipped'])} of {size_text(sizes['table'])}"
        + (f", because: [{why}]" if why else "")
    )


def report_records(report: Report) -> list[dict[str, Any]]:
    """Return funnel and reasons as records, for CALL: one per level, conjunct, index use and reader."""
    parts, sizes = report.parts, report.bytes
    found = [
        _record("table", report.table, report.version, None, report.filter or "no filter"),
        _record(
            "segments", None, report.segments["total"] - report.segments["skipped"], report.segments["total"],
            _avoided(report.segments, ("by_index", "by_stats")),
        ),
        _record(
            "parts", None, parts["kept"], parts["total"],
            _avoided(parts, [k for k in parts if k in _REASONS]) + _kept(parts),
        ),
        _record("bytes", None, sizes["table"] - sizes["skipped"], sizes["table"], "to read at most"),
    ]  # fmt: skip
    skipped = [(e["conjunct"], e["parts_skipped"]) for e in report.because] + [
        (e["conjunct"], 0) for e in report.not_skipped_because
    ]
    found += [
        _record("conjunct", conjunct, parts["total"] - count, parts["total"], line)
        for (conjunct, count), line in zip(skipped, report_reasons(report), strict=False)
    ]
    if (said := index_summary(report)) is not None:
        found.append(_record("indexes", ", ".join(e["name"] for e in report.indexes) or None, None, None, said))
    return [*found, _record("reader", report.reader, None, None, report.reader_reason)]


def _record(level: str, item: str | None, read: int | None, total: int | None, note: str) -> dict[str, Any]:
    return {"level": level, "item": item, "read": read, "total": total, "note": note}


def title(report: Report) -> str:
    stream = report.stream
    batch = "" if stream is None else f", micro-batch {stream['batch']} of stream {stream['query']}"
    return f"{report.table} at version {report.version}, {report.filter or 'no filter'}{batch}"


def notes(report: Report) -> str:
    """Return the line under the funnel: metadata cost, requests, reader, time."""
    seconds = ", ".join(f"{name} {value * 1000:,.0f} ms" for name, value in report.seconds.items())
    return (
        f"metadata {size_text(report.bytes['metadata'])}, {report.requests:,} requests; "
        f"reader {report.reader} ({report.reader_reason}); {seconds}"
    )


def to_text(report: Report) -> str:
    """Render the funnel as plain text, for logs and terminals without colour."""
    table = [("", "read", "total", "", ""), *funnel_lines(report)]
    widths = [max(len(row[i]) for row in table) for i in range(5)]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *(row[i].rjust(widths[i]) for i in (1, 2, 3)), row[4]]).rstrip()
        for row in table
    ]
    return "\n".join(printable(line) for line in (title(report), *lines, *report_reasons(report), notes(report)))


def to_rich(report: Report) -> Any:
    """Render the funnel for a rich console."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(printable(title(report))), title_justify="left")
    for name in ("level", "read", "total", "share", "avoided"):
        table.add_column(name, justify="right" if name in {"read", "total", "share"} else "left")
    for row in funnel_lines(report):
        table.add_row(*(Text(printable(cell)) for cell in row))
    return Group(
        table, *(Text(printable(line)) for line in report_reasons(report)), Text(printable(notes(report)), style="dim")
    )


def to_html(report: Report) -> str:
    """Render the funnel as HTML for notebooks."""
    out = io.StringIO()
    out.write(f"<table><caption style='text-align:left'>{html.escape(printable(title(report)))}</caption>")
    out.write("<tr><th></th><th>read</th><th>total</th><th></th><th></th></tr>")
    for row in funnel_lines(report):
        out.write(
            "<tr>"
            + "".join(
                f"<td style='text-align:{_ALIGN[i]}'>{html.escape(printable(cell))}</td>" for i, cell in enumerate(row)
            )
            + "</tr>"
        )
    out.write("</table>")
    out.write(
        "".join(f"<div>{html.escape(printable(line))}</div>" for line in (*report_reasons(report), notes(report)))
    )
    return out.getvalue()


_ALIGN = ("left", "right", "right", "right", "left")


def size_text(count: int) -> str:
    """Format bytes for people: ``1.5 MiB``."""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if value < 1024 or unit == "TiB":
            return f"{int(value)} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    raise AssertionError("unreachable: the last unit always fits")


def _line(level: str, read: int, total: int, note: str, show: Any = "{:,}".format) -> tuple[str, str, str, str, str]:
    share = f"{100 * read / total:.1f}%" if total else ""
    return level, show(read), show(total), share, note


def _avoided(counts: dict[str, int], names: Any) -> str:
    return ", ".join(f"{counts[name]:,} {_REASONS[name]}" for name in names if counts.get(name))


def _kept(parts: dict[str, int]) -> str:
    kept = [
        f"{parts[name]:,} {text}"
        for name, text in (("all_match", "match wholly"), ("audited", "audited"))
        if parts[name]
    ]
    return ("; " if kept and _avoided(parts, [k for k in parts if k in _REASONS]) else "") + ", ".join(kept)
