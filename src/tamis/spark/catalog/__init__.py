"""Spark's catalog: names, namespaces, tables."""
