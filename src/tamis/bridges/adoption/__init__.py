"""Adoption: makes a table of the files of a foreign one, which stay where they are."""
