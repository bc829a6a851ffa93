"""The verb that lets other engines read a table: its metadata in their formats, over the same files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from tamis.bridges.export import export_on_commit as _export_on_commit  # noqa: F401  # makes commits export
from tamis.lazy_imports import lazy_module
from tamis.storage.commit_log import Snapshot
from tamis.storage.object_store import Store
from tamis.table.scan_request import checked_flag

if TYPE_CHECKING:
    from tamis.bridges.export import current_exports, exporting, final_export
    from tamis.bridges.export.export_result import Exported
else:
    current_exports = lazy_module("tamis.bridges.export.current_exports")
    exporting = lazy_module("tamis.bridges.export.exporting")
    final_export = lazy_module("tamis.bridges.export.final_export")


class ExportVerbs:
    """The part of ``Table`` that exports it."""

    _store: Store

    if TYPE_CHECKING:

        def _writable(self) -> None: ...
        def _newest(self) -> Snapshot: ...

    def export(
        self,
        format: str,  # noqa: A002  # the public name
        *,
        format_version: int | None = None,
        by_id: bool = False,
        final: bool = False,
    ) -> Exported:
        """Write metadata of ``delta`` or ``iceberg`` beside the table's data, so that their readers read it.

        They read the newest version; no data file is copied or changed. A later call writes what has changed since.
        ``format_version`` is that of Iceberg: 2 (if nothing in the table needs 3) or 3. Delta is refused files that
        have columns under other names, unless ``by_id``: few of its readers find columns by id. ``final`` ends the
        table: from then on the folder is a plain table of that format, which Tamis refuses to read and write.

        Raises ``InvalidInput`` naming what the format cannot express, and ``Conflict`` (``EXPORT_FOREIGN_COMMIT``)
        if another writer has changed the exported table.
        """
        self._writable()
        name = exporting.checked_format(format)
        by_id = checked_flag("by_id", by_id)

        def export(snapshot: Snapshot) -> Exported:
            return exporting.export_table(self._store, snapshot, name, format_version=format_version, by_id=by_id)

        if checked_flag("final", final):
            return final_export.end_with_export(self._store, self._newest, export)
        return export(self._newest())

    def exports(self) -> pa.Table:
        """List the exports: format, the version that each is at, how far it is behind, and what keeps it there."""
        return current_exports.exports(self._store, self._newest())
