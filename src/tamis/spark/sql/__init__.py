"""Statements and procedures."""
