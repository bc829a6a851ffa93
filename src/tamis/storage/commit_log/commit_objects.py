"""The log: ordered commits, one object each.

Invariant: a version exists if and only if its object does, and versions have no gaps.
"""

from __future__ import annotations

from collections.abc import Iterable

from tamis.errors import CorruptData, NotFound
from tamis.storage.commit_log.commit_record import Commit, commit_from_json, commit_to_json
from tamis.storage.commit_log.features import check_reader
from tamis.storage.object_store.checked_json import parse_errors, seal_json, unseal_json
from tamis.storage.object_store.object_cache import CACHE
from tamis.storage.object_store.parallel_requests import gather_requests
from tamis.storage.object_store.store import Store

ROOT = "_tamis"
LOG = f"{ROOT}/log"
HINT = f"{ROOT}/latest"


def commit_path(version: int) -> str:
    return f"{LOG}/{version:020}.json"


def commit_bytes(commit: Commit) -> bytes:
    """Encode a commit. Raises ``InvalidInput`` if JSON cannot hold its parameters."""
    return seal_json("commit", commit_to_json(commit))


def read_commit(store: Store, version: int, table_id: str | None = None) -> Commit:
    """Read the commit of ``version``, from the cache if the table's id is known.

    Raises ``NotFound`` if there is no such object, ``CorruptData`` if its content is invalid, and
    ``InvalidInput`` if reading it needs a feature that this version does not know.
    """
    if table_id is not None:
        known: Commit | None = CACHE.get((store.url, table_id, version))
        if known is not None:
            return known
    name = store.name(commit_path(version))
    data = store.get(commit_path(version))
    before = CACHE.get((store.url, "as read", version))
    if before is not None and before[0] == data and table_id in (None, before[1].table_id):
        same: Commit = before[1]
        return same
    body = unseal_json("commit", data, name)
    with parse_errors("commit", name):
        check_reader(body["reader_features"], store.url)
        commit = commit_from_json(body)
        if commit.version != version:
            raise ValueError(f"it says that it is version {commit.version}")
        if (commit.head is not None) != (commit.head_version == version):
            raise ValueError("its head is not where it says")
    if table_id is not None and commit.table_id != table_id:
        raise CorruptData(
            f"The commit {name} belongs to another table ({commit.table_id}) than the version that names it.",
            code="WRONG_TABLE",
            name=name,
            remedy="Open the table again. If the error stays, restore the whole of _tamis/log from one backup.",
        )
    known = CACHE.get((store.url, commit.table_id, version))
    if known is not None and known.operation_id != commit.operation_id:  # the folder is now that of a backup
        CACHE.forget(store.url)
    remember_commit(store, commit, len(data))
    CACHE.put((store.url, "as read", version), (data, commit), len(data))
    return commit


def remember_commit(store: Store, commit: Commit, size: int) -> None:
    """Cache a commit that is known to exist, of about ``size`` bytes encoded."""
    CACHE.put((store.url, commit.table_id, commit.version), commit, 4 * size)


def read_commits(store: Store, versions: Iterable[int], table_id: str | None) -> list[Commit]:
    """Read the commits of ``versions``, which must all exist.

    The cache is bypassed if the table's id is unknown. Raises ``CorruptData`` (``MIXED_HISTORY``) if one does not
    follow that of the version before it.
    """

    def read(version: int, table_id: str | None = table_id) -> Commit:
        try:
            return read_commit(store, version, table_id)
        except NotFound as error:
            raise missing_commit_error(store, version) from error

    wanted = list(versions)
    found = gather_requests(store, read, wanted)
    if _break(found) is not None:  # one of them may be of a lost history that this process has cached
        found = gather_requests(store, lambda version: read(version, None), wanted)
        broken = _break(found)
        if broken is not None:
            raise mixed_history_error(store, *broken)
    return found


def _break(commits: list[Commit]) -> tuple[int, str] | None:
    """Return the first version whose successor names another operation as its parent, and that operation."""
    operations = {commit.version: commit.operation_id for commit in commits}
    for commit in commits:
        if commit.parent is not None and operations.get(commit.version - 1, commit.parent) != commit.parent:
            return commit.version - 1, commit.parent
    return None


def mixed_history_error(store: Store, version: int, expected: str) -> CorruptData:
    """Return the error for a commit that is not the operation ``expected``, the parent that the next version names."""
    name = store.name(commit_path(version))
    return CorruptData(
        f"The commit {name} is not the one that version {version + 1} follows (operation {expected}): "
        "the log mixes two histories of the table.",
        code="MIXED_HISTORY",
        name=name,
        remedy="Open the table again. If the error stays, restore the whole of _tamis/log from one backup.",
    )


def missing_commit_error(store: Store, version: int) -> CorruptData:
    """Return the error for a version without an object."""
    name = store.name(commit_path(version))
    dropped = "" if version else " If the table was dropped while others wrote to it, remove what is left of it."
    return CorruptData(
        f"The commit {name} is missing from the log.",
        code="MISSING_COMMIT",
        name=name,
        remedy=f"Restore it from a backup.{dropped}",
    )


def head_commit(store: Store, commit: Commit) -> Commit:
    """Return the commit that holds the head in force at ``commit``."""
    if commit.head is not None:
        return commit
    return read_commits(store, [commit.head_version], commit.table_id)[0]
