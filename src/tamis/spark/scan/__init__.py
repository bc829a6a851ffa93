"""Scans planned by Spark: pushdown, readers, join keys, metrics."""
