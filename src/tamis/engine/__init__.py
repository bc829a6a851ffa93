"""Reading and writing tables in one process: parts, indexes, scans, operations."""
