"""The funnel, the plan, the report."""
