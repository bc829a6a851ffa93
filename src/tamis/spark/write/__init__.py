"""Writes and row changes run by Spark."""
