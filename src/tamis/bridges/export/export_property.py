"""The property ``tamis.export``: the formats in which a table is exported after each commit."""

from __future__ import annotations

from collections.abc import Mapping

PROPERTY = "tamis.export"
FORMATS = ("delta", "iceberg")


def kept_formats(properties: Mapping[str, str]) -> tuple[str, ...]:
    """Return the formats that the table's properties keep current."""
    said = next((value for key, value in properties.items() if key.lower() == PROPERTY), "")
    names = [name.strip().lower() for name in said.split(",")]
    return tuple(name for name in FORMATS if name in names)
