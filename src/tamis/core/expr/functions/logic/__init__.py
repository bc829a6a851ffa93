"""Comparisons, boolean logic and conditionals."""
