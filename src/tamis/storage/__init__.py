"""Storage of a table: object stores, the commit log, data files."""
