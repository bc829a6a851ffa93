"""Exports: metadata of Delta and Iceberg beside a table's data, which point to the same files."""
