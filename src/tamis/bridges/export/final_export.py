"""The last export of a table: afterwards it is a plain table of the other format, and Tamis refuses it.

Invariant: the commit that ends the table lands only if the exported version is still the newest one, so no row is
committed that the export lacks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tamis.bridges.export.export_result import Exported
from tamis.bridges.export.exportable import dropped_columns
from tamis.errors import Conflict
from tamis.storage.commit_log import Operation, Proposal, ReadSet, Snapshot, commit
from tamis.storage.commit_log.features import EXPORTED
from tamis.storage.commit_log.retry_policy import COMMIT_RACES, LostRace
from tamis.storage.object_store import Store


def end_with_export(store: Store, newest: Callable[[], Snapshot], export: Callable[[Snapshot], Exported]) -> Exported:
    """Export the newest version, then end the table; start again if another commit lands in between.

    Raises what ``export`` raises, before the table is ended, and ``Conflict`` if other commits keep landing.
    """

    def attempt(_: int) -> Exported:
        snapshot = newest()
        done = export(snapshot)
        notes = _notes(snapshot, done.format)
        try:
            commit(store, _ending(snapshot, done))
        except Conflict as error:
            if error.code == "CONFLICT_REPLACED":
                raise
            raise LostRace from error
        return replace(done, notes=(*done.notes, *notes))

    try:
        return COMMIT_RACES.run(attempt)
    except LostRace:
        raise Conflict(
            f"Other commits landed on {store.url} while it was exported.",
            code="CONFLICT_FINAL_EXPORT",
            name=store.url,
            remedy="Stop its writers, and export it again.",
        ) from None


def _notes(snapshot: Snapshot, name: str) -> tuple[str, ...]:
    """Return what later writers must know. Iceberg gives new columns new ids, so old files show nothing in them."""
    if name != "delta":
        return ()
    return tuple(
        f"Some files hold the dropped column {column!r}: a new one of that name would show its old values, "
        "unless the Delta table has column mapping."
        for column in dropped_columns(snapshot)
    )


def _ending(snapshot: Snapshot, done: Exported) -> Proposal:
    head = snapshot.head
    return Proposal(
        Operation("final export", {"format": done.format}),
        read_version=snapshot.version,
        read_operation_id=snapshot.commit.operation_id,
        reads=ReadSet(by_statistics=False),
        head=replace(head, writer_features=(*head.writer_features, EXPORTED)),
        data_change=False,
    )
