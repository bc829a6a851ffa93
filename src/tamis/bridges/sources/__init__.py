"""Readers of the metadata of foreign tables: what their files are, without a byte of their data."""
