"""The features of Delta tables that Tamis reads; every other one is refused by name."""

from __future__ import annotations

from typing import Any

from tamis.errors import InvalidInput

KNOWN = frozenset(
    {
        "columnMapping",
        "deletionVectors",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "variantType",
        "variantType-preview",
    }
)
"""Reader features, by the names that a protocol action has for them."""

NEWEST_READER = 3


def check_protocol(protocol: dict[str, Any], url: str) -> None:
    """Raise ``InvalidInput`` (``DELTA_FEATURE``) naming what a reader of the table would have to know."""
    reader = protocol.get("minReaderVersion", 1)
    unknown = sorted(set(protocol.get("readerFeatures") or ()) - KNOWN)
    if reader > NEWEST_READER:
        unknown = [f"reader version {reader}", *unknown]
    if unknown:
        raise InvalidInput(
            f"The Delta table {url} needs {', '.join(unknown)}, which Tamis does not read.",
            code="DELTA_FEATURE",
            name=unknown[0],
            remedy="Drop the feature there (ALTER TABLE … DROP FEATURE), or copy the rows with Spark.",
        )
