"""Exports a table in a format by its name."""

from __future__ import annotations

from dataclasses import replace

from tamis.bridges.export.delta_export import export_delta
from tamis.bridges.export.export_property import FORMATS
from tamis.bridges.export.export_result import Exported
from tamis.bridges.export.exportable import export_notes
from tamis.bridges.export.iceberg_export import export_iceberg
from tamis.errors import InvalidInput
from tamis.storage.commit_log import Snapshot
from tamis.storage.object_store import Store


def export_table(
    store: Store, snapshot: Snapshot, name: str, *, format_version: int | None = None, by_id: bool = False
) -> Exported:
    """Bring the export in the format ``name`` to ``snapshot``.

    ``format_version`` is that of Iceberg, ``by_id`` an option of Delta. Raises ``InvalidInput`` for an unknown format,
    or an option that it does not have.
    """
    chosen = checked_format(name)
    if chosen == "delta":
        if format_version is not None:
            raise _no_option(chosen, "format_version")
        done = export_delta(store, snapshot, by_id=by_id)
    else:
        if by_id:
            raise _no_option(chosen, "by_id")
        done = export_iceberg(store, snapshot, format_version=format_version)
    return replace(done, notes=(*export_notes(snapshot), *done.notes))


def _no_option(chosen: str, name: str) -> InvalidInput:
    return InvalidInput(
        f"An export to {chosen} has no option {name}.", code="BAD_OPTION", name=name, remedy="Leave it out."
    )


def checked_format(name: object) -> str:
    """Return the name of a format. Raises ``InvalidInput`` (``EXPORT_UNKNOWN_FORMAT``) for any other."""
    found = str(name).strip().lower()
    if found not in FORMATS:
        raise InvalidInput(
            f"There is no export to {name!r}.",
            code="EXPORT_UNKNOWN_FORMAT",
            name=str(name),
            remedy="Formats are: " + ", ".join(FORMATS) + ".",
        )
    return found
