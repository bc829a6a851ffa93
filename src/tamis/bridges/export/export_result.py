"""What an export did, and who wrote it."""

from __future__ import annotations

import importlib.metadata
from dataclasses import asdict, dataclass
from typing import Any

from tamis.errors import Conflict, NotFound
from tamis.storage.commit_log import Snapshot, load


@dataclass(frozen=True, slots=True)
class Exported:
    """What ``Table.export`` did."""

    format: str
    version: int
    """The table's version that the export is at."""
    exported_version: int
    """Its own version: that of the Delta log, or the number of Iceberg's metadata file."""
    written: bool
    """False if the export was at that version before."""
    files_added: int = 0
    files_removed: int = 0
    notes: tuple[str, ...] = ()
    """What is not part of the export, and what some readers do not read as the table is."""

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "notes": list(self.notes)}


def engine_name() -> str:
    """Return the name under which exports say who wrote them."""
    try:
        return f"Tamis/{importlib.metadata.version('tamis')}"
    except importlib.metadata.PackageNotFoundError:
        return "Tamis"


def check_history(snapshot: Snapshot, version: int, operation_id: str | None, folder: str) -> None:
    """Raise ``Conflict`` (``EXPORT_OF_LOST_HISTORY``) if the table's log does not have the exported version any more.

    ``operation_id`` is that of the commit of ``version`` when it was exported, or None if the export does not say.
    """
    if operation_id in (None, snapshot.commit.operation_id):
        return
    try:
        found: str | None = load(snapshot.store, version, vacuumed=True).commit.operation_id
    except NotFound:
        found = None
    if found != operation_id:
        raise lost_history(snapshot, version, folder)


def lost_history(snapshot: Snapshot, version: int, folder: str) -> Conflict:
    """Return the error for an export of a version that the table's log does not have any more."""
    return Conflict(
        f"The export in {snapshot.store.name(folder)} describes version {version} of a history that the table's "
        "log no longer has: it was restored from a backup.",
        code="EXPORT_OF_LOST_HISTORY",
        name=folder,
        remedy=f"Remove the folder {folder}, and export again.",
    )


def foreign_commit(place: str, folder: str) -> Conflict:
    """Return the error for a commit that another writer has made to an exported table."""
    return Conflict(
        f"{place} was not written by an export of this table: another writer has changed the exported table.",
        code="EXPORT_FOREIGN_COMMIT",
        name=place,
        remedy="Adopt the other writer's table elsewhere if its changes count. To go on exporting, remove "
        f"the folder {folder}, and export again.",
    )


def uuid_text(digits: str) -> str:
    """Return 32 hexadecimal digits in the form of a UUID."""
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
