"""Scan reports and their presentation."""
