"""The scan reports that have come since a moment."""

from __future__ import annotations

import tamis
from tamis.engine.scan import Report

_ALL = 1_000


def all_reports() -> list[Report]:
    """Every report that is kept. Hold the list while you compare: Python reuses the id of a dropped report."""
    return tamis.reports(_ALL)


def reports_since(before: list[Report]) -> list[Report]:
    """Return the reports that are not in ``before``, oldest first."""
    return [r for r in reversed(all_reports()) if all(r is not b for b in before)]
