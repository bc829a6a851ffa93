"""The versions that vacuum has released, and the marker: a small object naming the oldest readable version.

The log decides: each vacuum commits what it releases before it removes anything. The marker is written between the
two. It is only a hint: with it, reading a removed version fails at once; without it, on its first missing object.
"""

from __future__ import annotations

from tamis.errors import CorruptData, NotFound, TamisError
from tamis.storage.commit_log.commit_objects import ROOT, read_commits
from tamis.storage.commit_log.commit_record import Commit
from tamis.storage.commit_log.newest_commit import find_latest
from tamis.storage.object_store.checked_json import seal_json, unseal_json
from tamis.storage.object_store.store import Store

PATH = f"{ROOT}/vacuumed"


def oldest_readable(store: Store, table_id: str) -> int:
    """Return the oldest version that vacuum has not removed, as far as is known.

    Raises ``StoreUnavailable``, because a failed read does not mean that there is no marker.
    """
    try:
        said = unseal_json("vacuumed", store.get(PATH), PATH)
        return int(said["oldest_version"]) if said["table_id"] == table_id else 0
    except (NotFound, CorruptData, KeyError, ValueError, TypeError):
        return 0


def record_oldest(store: Store, table_id: str, oldest: int) -> None:
    """Record that versions before ``oldest`` can no longer be read, unless a later version is recorded.

    May replace a later version that another vacuum records at the same moment: look into the log afterwards.
    Raises ``StoreUnavailable``; then nothing may be removed.
    """
    if oldest > oldest_readable(store, table_id):
        store.put(PATH, seal_json("vacuumed", {"table_id": table_id, "oldest_version": oldest}))


def first_kept_version(store: Store, version: int, latest: Commit) -> int:
    """Return ``version``, or the first one after it that no vacuum up to ``latest`` has released."""
    # A vacuum that releases a version comes after it.
    commits = read_commits(store, range(version + 1, latest.version + 1), latest.table_id)
    return max([version, *(commit.vacuum[0] for commit in commits if commit.vacuum is not None)])


def check_released(store: Store, table_id: str, version: int, error: CorruptData) -> None:
    """Raise ``NotFound`` (``VERSION_NOT_FOUND``) if the object that ``error`` misses went with its version."""
    if error.code != "MISSING_OBJECT":
        return
    try:
        latest = find_latest(store)
        if latest is None or latest.table_id != table_id:
            return
        oldest = first_kept_version(store, version, latest)
    except TamisError:
        return  # the caller's error tells more
    if version < oldest:
        raise released_version_error(store, version, oldest) from error


def check_readable(store: Store, table_id: str, version: int) -> None:
    """Raise ``NotFound`` (``VERSION_NOT_FOUND``) for a version that vacuum has removed."""
    oldest = oldest_readable(store, table_id)
    if version < oldest:
        raise released_version_error(store, version, oldest)


def released_version_error(store: Store, version: int, oldest: int) -> NotFound:
    """Return the error for a version that vacuum has removed."""
    return NotFound(
        f"Version {version} of the table {store.url} was removed by vacuum.",
        code="VERSION_NOT_FOUND",
        name=str(version),
        remedy=f"The oldest version that can be read is {oldest}. Vacuum with a longer retention to keep more.",
    )
