"""The funnel, the plan, the report."""

from tamis.scan.options import Options, check_places, check_properties
from tamis.scan.plan import PartRefs, Plan, plan
from tamis.scan.report import Counts, Report, reports
from tamis.scan.scan import Scan

__all__ = ["Counts", "Options", "PartRefs", "Plan", "Report", "Scan", "check_places", "check_properties", "plan", "reports"]
