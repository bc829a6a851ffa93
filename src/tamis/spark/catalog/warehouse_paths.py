"""The folders of a warehouse: finds, creates, renames and drops tables and namespaces.

A table is a folder that contains ``_tamis/``, a view one that contains its definition. A namespace is a folder that
contains the marker object or a table. Object stores have no folders, so an empty namespace consists of its marker.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tamis.errors import AlreadyExists, NotFound, TamisError
from tamis.spark.catalog.table_names import can_exist, relative_path
from tamis.spark.jvm_bridge.spark_errors import unsupported_statement
from tamis.storage.commit_log import load
from tamis.storage.commit_log.table_removal import remove_table
from tamis.storage.object_store import Store, open_store
from tamis.world import new_id

MARKER = "_tamis_namespace.json"
LOG = "_tamis"
_DROPPED = ".tamis_dropped_"
VIEW = "_tamis_view.json"

Names = Sequence[str]


class Warehouse:
    """All tables and namespaces under one root. Names are tuples of parts; the root's name is empty."""

    def __init__(self, root: Store) -> None:
        self.root = root

    def store(self, names: Names) -> Store:
        """The store of the table of that name, which need not exist."""
        return open_store(f"{self.root.url.rstrip('/')}/{relative_path(names)}", self.root.options)

    def is_table(self, names: Names) -> bool:
        return can_exist(names) and self._kind(relative_path(names)) == "table"

    def is_view(self, names: Names) -> bool:
        return bool(names) and can_exist(names) and self._kind(relative_path(names)) == "view"

    def is_namespace(self, names: Names) -> bool:
        return not names or (can_exist(names) and self._kind(relative_path(names)) == "namespace")

    def children(self, names: Names, kind: str) -> Iterator[str]:
        """The names of the tables (or views, or namespaces, by ``kind``) directly in a namespace."""
        for path in self.root.list_folder(relative_path(names))[0]:
            name = path.rstrip("/").rpartition("/")[2]
            if can_exist((name,)) and self._kind(path.rstrip("/")) == kind:
                yield name

    def create_namespace(self, names: Names, properties: Mapping[str, str]) -> bool:
        """Create the marker of a namespace and of all above it. Return False if the marker exists."""
        for depth in range(1, len(names)):
            self.root.put_if_absent(f"{relative_path(names[:depth])}/{MARKER}", b"{}")
        return self.root.put_if_absent(f"{relative_path(names)}/{MARKER}", json.dumps(dict(properties)).encode())

    def namespace_properties(self, names: Names) -> dict[str, str]:
        try:
            found: dict[str, str] = json.loads(self.root.get(f"{relative_path(names)}/{MARKER}"))
        except (NotFound, ValueError):
            return {}
        return found

    def set_namespace_properties(self, names: Names, properties: Mapping[str, str]) -> None:
        self.root.put(f"{relative_path(names)}/{MARKER}", json.dumps(dict(properties)).encode())

    def drop_table(self, names: Names) -> bool:
        """Remove a table's folder; return False if another session has dropped or renamed it meanwhile.

        Atomic on local disk; see ``remove_table`` for other stores. Raises ``InvalidInput`` (``TABLE_ENDED``) if the
        folder is a table of another format by now.
        """
        self.check_not_ended(names)
        path = relative_path(names)
        local = self._local(path)
        if local is None:
            remove_table(self.store(names).with_new_counters())
            return True
        try:
            local.rename(local.with_name(f"{_DROPPED}{new_id()}"))
        except FileNotFoundError:
            return False
        _remove_dropped(local.parent)
        return True

    def check_not_ended(self, names: Names) -> None:
        """Raise ``InvalidInput`` (``TABLE_ENDED``) if a table ended with an export; others may have written to it."""
        try:
            load(self.store(names))
        except TamisError as error:  # a damaged table can be dropped
            if error.code == "TABLE_ENDED":
                raise

    def _tables_within(self, names: Names) -> Iterator[Names]:
        yield from ((*names, table) for table in self.children(names, "table"))
        for inner in self.children(names, "namespace"):
            yield from self._tables_within((*names, inner))

    def drop_namespace(self, names: Names) -> None:
        """Remove a namespace with its tables and views. Files that are not ours are kept.

        Raises ``InvalidInput`` (``TABLE_ENDED``) as ``drop_table`` does, before anything is removed.
        """
        for table_names in self._tables_within(names):
            self.check_not_ended(table_names)
        for table in self.children(names, "table"):
            self.drop_table((*names, table))
        for view in self.children(names, "view"):
            self.root.delete(f"{relative_path((*names, view))}/{VIEW}")
            self.remove_empty_folders((*names, view))
        for inner in self.children(names, "namespace"):
            self.drop_namespace((*names, inner))
        self.root.delete(f"{relative_path(names)}/{MARKER}")
        if (local := self._local(relative_path(names))) is not None:
            _remove_dropped(local)
        self.remove_empty_folders(names)

    def remove_empty_folders(self, names: Names) -> None:
        """Remove local folders that a failed creation or a removal left empty."""
        local = self._local(relative_path(names))
        for folder in (local / "data", local) if local is not None else ():
            with contextlib.suppress(OSError):  # not empty, or missing
                folder.rmdir()

    def rename(self, old: Names, new: Names) -> None:
        """Move a table on a local disk, in one step.

        Raises ``InvalidInput`` (``UNSUPPORTED_STATEMENT``) on an object store. There, objects would have to be copied
        one by one, and nothing keeps two renames, or a rename and a drop, from meeting halfway. Raises ``NotFound`` if
        the table is gone.
        """
        source, target = relative_path(old), relative_path(new)
        local, there = self._local(source), self._local(target)
        if local is None or there is None:
            raise unsupported_statement(
                "ALTER TABLE … RENAME TO on an object store",
                f"CREATE TABLE {'.'.join(new)} AS SELECT * FROM {'.'.join(old)}, then DROP TABLE {'.'.join(old)}.",
            )
        there.parent.mkdir(parents=True, exist_ok=True)
        try:
            local.rename(there)
        except FileNotFoundError as error:
            raise NotFound(
                f"There is no table {'.'.join(old)}: it was dropped or renamed meanwhile.",
                code="TABLE_NOT_FOUND",
                name=".".join(old),
                remedy="Look for its new name: SHOW TABLES.",
            ) from error
        except OSError as error:
            raise AlreadyExists(
                f"Path {there} exists and is not a Tamis table.",
                code="PATH_NOT_EMPTY",
                name=str(there),
                remedy="Choose another name.",
            ) from error

    def _kind(self, path: str) -> str | None:
        folders, objects = self.root.list_folder(path)
        below = {f.rstrip("/").rpartition("/")[2] for f in folders}
        if LOG in below:
            return "table"
        if any(o.path.endswith(f"/{VIEW}") for o in objects):
            return "view"
        if any(o.path.endswith(f"/{MARKER}") for o in objects):
            return "namespace"
        return "namespace" if any(LOG in self._folders(f) for f in folders) else None

    def _folders(self, path: str) -> set[str]:
        return {f.rstrip("/").rpartition("/")[2] for f in self.root.list_folder(path.rstrip("/"))[0]}

    def _local(self, path: str) -> Path | None:
        return Path(self.root.location.path, path) if self.root.location.scheme == "file" else None


def _remove_dropped(folder: Path) -> None:
    """Remove the tables that drops have hidden in a local ``folder``, also those that were interrupted."""
    for hidden in folder.glob(f"{_DROPPED}*"):
        shutil.rmtree(hidden, ignore_errors=True)
