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
from tamis.storage.commit_log import commit_objects, load
from tamis.storage.commit_log.commit_objects import HINT, commit_path, find_latest, read_commit
from tamis.storage.commit_log.commit_record import Commit
from tamis.storage.commit_log.path_checks import check_free
from tamis.storage.commit_log.renaming import begin_rename, cancel_rename, rename_target
from tamis.storage.object_store import Store, open_store
from tamis.world import new_id

MARKER = "_tamis_namespace.json"
LOG = "_tamis"
COMMITS = commit_objects.LOG
_DROPPED = ".tamis_dropped_"
_ROUNDS = 10
"""Listings after which a removal leaves what is still written to the folder."""
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
        for path in self.root.folder(relative_path(names))[0]:
            name = path.rstrip("/").rpartition("/")[2]
            if not name.startswith((".", "_")) and self._kind(path.rstrip("/")) == kind:
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

    def drop_table(self, names: Names) -> None:
        """Remove a table's folder.

        Atomic on local disk. Elsewhere the log is removed first, so that nobody opens a partial table. Raises
        ``InvalidInput`` (``TABLE_ENDED``) if the folder is a table of another format by now.
        """
        self.check_not_ended(names)
        path = relative_path(names)
        local = self._local(path)
        if local is None:
            self._remove(path)
            return
        local.rename(local.with_name(f"{_DROPPED}{new_id()}"))
        _remove_dropped(local.parent)

    def _remove(self, path: str) -> None:
        """Remove the objects of a table that is not on a local disk, also those that are written meanwhile.

        Commits go first, in order: a writer takes its own back if the one before is gone (``commit_landing``). The rest
        of the log's folder goes last, so that a removal that was interrupted can be run again.
        """
        log, commits = f"{path}/{LOG}/", f"{path}/{COMMITS}/"
        for _ in range(_ROUNDS):
            entries = self.root.list(path)
            if not entries:
                return
            for entry in sorted(entries, key=lambda e: (not e.path.startswith(commits), e.path.startswith(log))):
                self.root.delete(entry.path)

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
            self.tidy((*names, view))
        for inner in self.children(names, "namespace"):
            self.drop_namespace((*names, inner))
        self.root.delete(f"{relative_path(names)}/{MARKER}")
        if (local := self._local(relative_path(names))) is not None:
            _remove_dropped(local)
        self.tidy(names)

    def tidy(self, names: Names) -> None:
        """Remove local folders that a failed creation or a removal left empty."""
        local = self._local(relative_path(names))
        for folder in (local / "data", local) if local is not None else ():
            with contextlib.suppress(OSError):  # not empty, or missing
                folder.rmdir()

    def rename(self, old: Names, new: Names) -> None:
        """Move a table.

        One step on local disk. Elsewhere writers are kept away, the objects are copied, the newest commits before the
        older ones, so that nobody opens a partial table or an earlier version, and then the old ones are removed. One
        that was interrupted goes on when it is run again; one that fails is undone.
        """
        source, target = relative_path(old), relative_path(new)
        local, there = self._local(source), self._local(target)
        if local is not None and there is not None:
            there.parent.mkdir(parents=True, exist_ok=True)
            try:
                local.rename(there)
            except OSError as error:
                raise AlreadyExists(
                    f"Path {there} exists and is not a Tamis table.",
                    code="PATH_NOT_EMPTY",
                    name=str(there),
                    remedy="Choose another name.",
                ) from error
            return
        store = self.store(old)
        if not self.resumes_rename(old, new):
            check_free(self.store(new))
        begun, copied = begin_rename(store, ".".join(new)), list[str]()
        try:
            self._copy(source, target, begun, copied)
        except BaseException:
            with contextlib.suppress(TamisError):
                for path in reversed(copied):
                    self.root.delete(path)
            cancel_rename(store, begun)
            raise
        self._remove(source)

    def resumes_rename(self, old: Names, new: Names) -> bool:
        """Whether a rename of ``old`` to ``new`` was interrupted, so that ``new`` may be there in part."""
        if self._local(relative_path(old)) is not None:
            return False
        with contextlib.suppress(TamisError):
            begun = find_latest(self.store(old).fresh())
            if begun is None or rename_target(begun) != ".".join(new):
                return False
            try:
                return read_commit(self.store(new).fresh(), 0).table_id == begun.table_id
            except NotFound:
                return True
        return False

    def _copy(self, source: str, target: str, begun: Commit, copied: list[str]) -> None:
        """Copy the objects of a table, but for the commit ``begun``, which refuses others, and the hint.

        Adds their new paths to ``copied``.
        """
        log = f"{source}/{COMMITS}/"
        without = {f"{source}/{HINT}", f"{source}/{commit_path(begun.version)}"}
        entries = [entry for entry in self.root.list(source) if entry.path not in without]
        commits = [entry.path for entry in entries if entry.path.startswith(log)]
        others = [entry.path for entry in entries if not entry.path.startswith(log)]
        for path in (*others, *sorted(commits, reverse=True)):
            self.root.copy(path, target + path.removeprefix(source))
            copied.append(target + path.removeprefix(source))

    def _kind(self, path: str) -> str | None:
        folders, objects = self.root.folder(path)
        below = {f.rstrip("/").rpartition("/")[2] for f in folders}
        if LOG in below:
            return "table"
        if any(o.path.endswith(f"/{VIEW}") for o in objects):
            return "view"
        if any(o.path.endswith(f"/{MARKER}") for o in objects):
            return "namespace"
        return "namespace" if any(LOG in self._folders(f) for f in folders) else None

    def _folders(self, path: str) -> set[str]:
        return {f.rstrip("/").rpartition("/")[2] for f in self.root.folder(path.rstrip("/"))[0]}

    def _local(self, path: str) -> Path | None:
        return Path(self.root.location.path, path) if self.root.location.scheme == "file" else None


def _remove_dropped(folder: Path) -> None:
    """Remove the tables that drops have hidden in a local ``folder``, also those that were interrupted."""
    for hidden in folder.glob(f"{_DROPPED}*"):
        shutil.rmtree(hidden, ignore_errors=True)
