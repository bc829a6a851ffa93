"""Exports a table in a format by its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tamis.bridges.export.delta_export import export_delta
from tamis.bridges.export.export_result import Exported
from tamis.errors import InvalidInput
from tamis.storage.commit_log import Snapshot
from tamis.storage.object_store import Store

EXPORTERS: Mapping[str, Callable[[Store, Snapshot], Exported]] = {"delta": export_delta}


def export_table(store: Store, snapshot: Snapshot, name: str) -> Exported:
    """Bring the export in the format ``name`` to ``snapshot``. Raises ``InvalidInput`` for an unknown format."""
    return EXPORTERS[checked_format(name)](store, snapshot)


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
