"""Scans that Spark plans: pushdown, readers, join keys, metrics."""
