"""Moves and removes the objects of a table on an object store, which has no folders.

Invariants: no object of another table is replaced or removed; nobody opens the target before it is complete; the source
is removed only by the attempt whose record is the newest, after all objects were found at the target.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from tamis.errors import Conflict, CorruptData, InvalidInput, NotFound, StoreUnavailable, TamisError
from tamis.storage.commit_log.commit_objects import HINT, LOG, ROOT, commit_path, read_commit
from tamis.storage.commit_log.path_checks import already_exists_error, check_free
from tamis.storage.commit_log.renaming import (
    RenameRecord,
    begin_rename,
    cancel_rename,
    is_copied,
    is_newest,
    newest_record,
)
from tamis.storage.object_store import Entry, Store
from tamis.storage.object_store.parallel_requests import gather_requests

_AT_ONCE = 64
_ROUNDS = 10
"""Listings after which a removal leaves what is still committed to a table that is gone."""


@dataclass(frozen=True, slots=True)
class TableMove:
    """A table to be moved within the store ``root``, from one path to another, where it is called ``name``."""

    root: Store
    source_path: str
    target_path: str
    source: Store
    target: Store
    name: str

    def copy(self, entry: Entry) -> None:
        """Copy an object of the source to the target."""
        old, new = f"{self.source_path}/{entry.path}", f"{self.target_path}/{entry.path}"
        if self.root.location.scheme == "az":  # which may answer before it has copied
            self.root.put(new, self.root.get(old))
        else:
            self.root.copy(old, new)


def move_table(move: TableMove) -> None:
    """Move a table. One that was interrupted goes on when it is called again.

    One that fails leaves what it has copied, which is no table. Raises ``NotFound`` if there is no table,
    ``AlreadyExists`` or ``InvalidInput`` (``PATH_NOT_EMPTY``) if there is something else at the target, and
    ``Conflict`` (``CONFLICT_RENAME``) if another rename is under way.
    """
    begun = newest_record(move.source)
    if begun is None or begun.target != move.name or not is_copied(move.target, begun):
        begun = begin_rename(move.source, move.name)
        try:
            _copy_all_but_first(move, begun)
        except BaseException as error:
            if not _is_finished(move, begun):
                _give_up(move.source, begun, error)
                raise
        _complete(move, begun)
    remove_table(move.source, begun.commit.table_id)


def may_continue(source: Store, target: Store, name: str) -> bool:
    """Whether what is at ``target`` is an unfinished copy of a table, or the result of a rename of ``source``."""
    listed = target.list(LOG)
    if not listed or listed[0].path != commit_path(0):
        return True
    begun = newest_record(source)
    return begun is not None and begun.target == name and is_copied(target, begun)


def _is_finished(move: TableMove, begun: RenameRecord) -> bool:
    """Whether another attempt has finished the copy."""
    with suppress(TamisError):
        return is_copied(move.target, begun)
    return False


def _give_up(source: Store, begun: RenameRecord, error: BaseException) -> None:
    """Let writers commit to ``source`` again, unless another attempt has taken over."""
    try:
        cancel_rename(source, begun)
    except TamisError:
        error.add_note(_blocked(source, begun))


def _blocked(source: Store, begun: RenameRecord) -> str:
    return f"{source.url} takes no commits until the rename to {begun.target} is run again."


def _complete(move: TableMove, begun: RenameRecord) -> None:
    """Copy the first commit, which makes the target a table. From here on, the rename can only go on."""
    try:
        if not is_copied(move.target, begun):
            _check_newest(move.source, begun)
            _put_commit(move.source, move.target, commit_path(0))
    except BaseException as error:
        if _is_finished(move, begun):
            return
        error.add_note(_blocked(move.source, begun))
        raise


def _copy_all_but_first(move: TableMove, begun: RenameRecord) -> None:
    """Copy the objects of the table: data, then what the log names, then its commits, the newest first."""
    _check_first(move.target, begun)
    if begun.commit.version == begun.last_version + 1:  # else an earlier attempt has copied some
        check_free(move.target)
    _, named, data = _kinds([entry for entry in move.source.list() if entry.path != HINT])
    gather_requests(move.root, move.copy, data)
    gather_requests(move.root, move.copy, named)
    there = {entry.path: entry.size for entry in move.target.list()}
    for entry in (*data, *named):
        if there.get(entry.path) != entry.size:
            raise StoreUnavailable(
                f"The copy of {move.source.name(entry.path)} is not complete.",
                code="INCOMPLETE_COPY",
                name=move.target.name(entry.path),
                remedy="Run the rename again.",
            )
    _check_newest(move.source, begun)
    if begun.last_version > 0:
        _put_commit(move.source, move.target, commit_path(begun.last_version))  # nobody can create a table there now
        _check_first(move.target, begun)
    between = [commit_path(version) for version in range(begun.last_version - 1, 0, -1)]
    gather_requests(move.root, lambda path: _put_commit(move.source, move.target, path), between)


def _put_commit(source: Store, target: Store, path: str) -> None:
    """Copy a commit, unless it is there. Raises ``AlreadyExists`` if another one is."""
    data = source.get(path)
    if not target.put_if_absent(path, data) and target.get(path) != data:
        raise already_exists_error(target)


def _check_first(target: Store, begun: RenameRecord) -> None:
    """Raise ``AlreadyExists`` if there is another table at ``target``, and take our commits back from it."""
    try:
        first = read_commit(target, 0)
    except NotFound:
        return
    if first.table_id == begun.commit.table_id:
        return
    _remove_commits(target, [entry.path for entry in target.list(LOG)], begun.commit.table_id)
    raise already_exists_error(target)


def _check_newest(source: Store, begun: RenameRecord) -> None:
    """Raise ``Conflict`` (``CONFLICT_RENAME``) if another attempt has taken over."""
    if not is_newest(source, begun):
        raise Conflict(
            f"Another rename of {source.url} to {begun.target} has taken over.",
            code="CONFLICT_RENAME",
            name=source.url,
            remedy="Look whether the table is there under its new name; if not, run the rename again.",
        )


def table_id_of(store: Store) -> str:
    """Return the id of the table whose newest commit the log lists; empty if it cannot be read."""
    with suppress(TamisError, ValueError, IndexError):
        newest = store.list(LOG)[-1].path
        return read_commit(store, int(newest.removeprefix(f"{LOG}/").removesuffix(".json"))).table_id
    return ""


def remove_table(store: Store, table_id: str) -> None:
    """Remove the objects of a table, also commits that writers make meanwhile; those of other tables stay.

    Without an id, all that is there goes.

    Commits go first, in order: a writer takes its own back if the one before is gone (``commit_landing``). Other
    objects of the log's folder go last, so that a removal that was interrupted can be run again.
    """
    commits, named, data = _kinds(store.list())
    _remove_commits(store, [entry.path for entry in commits], table_id)
    gather_requests(store, lambda entry: store.delete(entry.path), data)
    for _ in range(_ROUNDS):
        if not _remove_commits(store, [entry.path for entry in store.list(LOG)], table_id):
            break
    gather_requests(store, lambda entry: store.delete(entry.path), named)


def _remove_commits(store: Store, paths: Sequence[str], table_id: str) -> int:
    """Remove the commits of the table, and those that cannot be read, in order; return their number."""

    def is_of_another(path: str) -> bool:
        version = path.removeprefix(f"{LOG}/").removesuffix(".json")
        try:
            return bool(table_id) and version.isdigit() and read_commit(store, int(version)).table_id != table_id
        except NotFound:
            return True
        except (CorruptData, InvalidInput):
            return False

    removed = 0
    for at in range(0, len(paths), _AT_ONCE):  # looked at just before: the path may be that of a new table by then
        some = paths[at : at + _AT_ONCE]
        for path, is_other in zip(some, gather_requests(store, is_of_another, some), strict=True):
            if not is_other:
                store.delete(path)
                removed += 1
    return removed


def _kinds(entries: Sequence[Entry]) -> tuple[list[Entry], list[Entry], list[Entry]]:
    """Return the commits in order, the other objects of the log's folder, and all others."""
    commits = sorted(entry for entry in entries if entry.path.startswith(f"{LOG}/"))
    named = [entry for entry in entries if entry.path.startswith(f"{ROOT}/") and not entry.path.startswith(f"{LOG}/")]
    return commits, named, [entry for entry in entries if not entry.path.startswith(f"{ROOT}/")]
