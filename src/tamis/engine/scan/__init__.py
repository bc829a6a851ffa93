"""Scan planning (the funnel), execution and reports."""

from tamis.engine.scan.report.report_hooks import CommitReport, on_report
from tamis.engine.scan.report.scan_report import Counts, Report, reports
from tamis.engine.scan.scan import Scan
from tamis.engine.scan.scan_options import Options, check_places, check_properties
from tamis.engine.scan.scan_plan import PartRefs, Plan, PlanRequest, plan_scan

__all__ = [
    "CommitReport",
    "Counts",
    "Options",
    "PartRefs",
    "Plan",
    "PlanRequest",
    "Report",
    "Scan",
    "check_places",
    "check_properties",
    "on_report",
    "plan_scan",
    "reports",
]
