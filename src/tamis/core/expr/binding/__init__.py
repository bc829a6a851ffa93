"""Binding: converts the syntax of SQL text to a typed tree whose names are bound to columns."""
