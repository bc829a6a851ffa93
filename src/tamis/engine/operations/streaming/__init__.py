"""Streaming reads of a growing table."""
