"""Exports a table in a format by its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tamis.bridges.export.delta_export import export_delta
from tamis.bridges.export.export_result import Exported
from tamis.bridges.export.iceberg_export import export_iceberg
from tamis.errors import InvalidInput
from tamis.storage.commit_log import Snapshot
from tamis.storage.object_store import Store

EXPORTERS: Mapping[str, Callable[..., Exported]] = {"delta": export_delta, "iceberg": export_iceberg}


def export_table(store: Store, snapshot: Snapshot, name: str, format_version: int | None = None) -> Exported:
    """Bring the export in the format ``name`` to ``snapshot``.

    ``format_version`` is that of Iceberg. Raises ``InvalidInput`` for an unknown format or version.
    """
    chosen = checked_format(name)
    if format_version is None:
        return EXPORTERS[chosen](store, snapshot)
    if chosen != "iceberg":
        raise InvalidInput(
            f"An export to {chosen} takes no format_version.",
            code="BAD_OPTION",
            name="format_version",
            remedy="Leave it out: the log asks for what the table needs.",
        )
    return EXPORTERS[chosen](store, snapshot, format_version=format_version)


def checked_format(name: object) -> str:
    """Return the name of a format. Raises ``InvalidInput`` (``EXPORT_UNKNOWN_FORMAT``) for any other."""
    found = str(name).strip().lower()
    if found not in EXPORTERS:
        raise InvalidInput(
            f"There is no export to {name!r}.",
            code="EXPORT_UNKNOWN_FORMAT",
            name=str(name),
            remedy="Formats are: " + ", ".join(sorted(EXPORTERS)) + ".",
        )
    return found
