"""Writes and row changes that Spark runs."""
