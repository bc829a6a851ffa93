"""Guards that fail a scan over its limits, naming the conjuncts that did not prune."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.engine.scan.report.report_text import counted_noun, report_reasons
from tamis.engine.scan.scan_options import check_bound
from tamis.errors import InvalidInput

if TYPE_CHECKING:
    from tamis.engine.scan.report.scan_report import Report


def unpruned_conjuncts(report: Report) -> str:
    """Describe in one line which conjuncts did not prune, and why."""
    if report.filter is None:
        return "there is no filter"
    return "; ".join(report_reasons(report)) or "the filter's conjuncts left these parts"


def check_pruning(report: Report, max_parts: int | None, max_bytes: int | None) -> None:
    """Raise ``InvalidInput`` (``PRUNING_LOST``) if too many parts or bytes are left."""
    check_bound("max_parts", max_parts, 0)
    check_bound("max_bytes", max_bytes, 0)
    parts, size = report.parts["kept"], report.bytes["table"] - report.bytes["skipped"]
    over = []
    if max_parts is not None and parts > max_parts:
        over.append(f"{counted_noun(parts, 'part')} would be read, allowed: {max_parts:,}")
    if max_bytes is not None and size > max_bytes:
        over.append(f"{counted_noun(size, 'byte')} could be read, allowed: {max_bytes:,}")
    if over:
        raise InvalidInput(
            f"{report.filter or 'A scan without a filter'}: {', '.join(over)} ({unpruned_conjuncts(report)}).",
            code="PRUNING_LOST",
            name=_first(report),
            remedy="Change the filter so that these skip, cluster by their columns, or allow more.",
        )


def check_size(report: Report, wanted: int, limit: int | None) -> None:
    """Raise ``InvalidInput`` (``SCAN_TOO_LARGE``) if the kept parts exceed ``limit`` bytes."""
    if limit is not None and wanted > limit:
        raise InvalidInput(
            f"The scan of {report.table} would read {wanted} bytes, over the limit of {limit} "
            f"({unpruned_conjuncts(report)}).",
            code="SCAN_TOO_LARGE",
            name="tamis.scan.max_bytes",
            remedy="Narrow the filter, or raise tamis.scan.max_bytes.",
        )


def _first(report: Report) -> str:
    """Return the conjunct to investigate first."""
    return str(
        next(
            (entry["conjunct"] for entry in (*report.not_skipped_because, *report.because)),
            report.filter or report.table,
        )
    )
