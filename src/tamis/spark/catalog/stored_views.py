"""The views of a warehouse: ``db.v`` is the object ``db/v/_tamis_view.json``, sealed with a checksum.

Creation is a conditional write, so one of two writers wins; a replacement is one write. A table of the same name,
which another process may create at the same moment, is found first and is never hidden by a view.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tamis.errors import NotFound
from tamis.spark.catalog.table_names import can_exist, relative_path
from tamis.spark.catalog.warehouse_paths import VIEW, Warehouse
from tamis.storage.object_store.checked_json import seal_json, unseal_json

Names = Sequence[str]


class StoredViews:
    """The definitions of views, as mappings of text that JSON can hold."""

    def __init__(self, warehouse: Warehouse) -> None:
        self._warehouse = warehouse
        self._root = warehouse.root

    def load(self, names: Names) -> dict[str, Any] | None:
        """Return a view's definition, or None if there is none. Raises ``CorruptData``."""
        if not can_exist(names):
            return None
        try:
            return unseal_json("view", self._root.get(self._path(names)), self._path(names))
        except NotFound:
            return None

    def create(self, names: Names, definition: dict[str, Any]) -> bool:
        """Store a new view. Return False if the name is taken by a view or a table."""
        if not self._root.put_if_absent(self._path(names), seal_json("view", definition)):
            return False
        if self._warehouse.is_table(names):  # made since the caller looked
            self.drop(names)
            return False
        return True

    def replace(self, names: Names, definition: dict[str, Any]) -> None:
        self._root.put(self._path(names), seal_json("view", definition))

    def drop(self, names: Names) -> None:
        self._root.delete(self._path(names))
        self._warehouse.remove_empty_folders(names)

    def _path(self, names: Names) -> str:
        return f"{relative_path(names)}/{VIEW}"
