"""The marker of the versions removed by vacuum: a small object naming the oldest readable version.

It is written before the first object is removed. It is only a hint: without it, reading a removed version
fails on its first missing object; with it, the read fails at once and names the version.
"""

from __future__ import annotations

from tamis.errors import CorruptData, NotFound
from tamis.storage.commit_log.commit_objects import ROOT
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
    """Record that versions before ``oldest`` can no longer be read.

    Raises ``StoreUnavailable``; then nothing may be removed.
    """
    if oldest > oldest_readable(store, table_id):
        store.put(PATH, seal_json("vacuumed", {"table_id": table_id, "oldest_version": oldest}))


def check_readable(store: Store, table_id: str, version: int) -> None:
    """Raise ``NotFound`` (``VERSION_NOT_FOUND``) for a version that vacuum has removed."""
    oldest = oldest_readable(store, table_id)
    if version < oldest:
        raise let_go(store, version, oldest)


def let_go(store: Store, version: int, oldest: int) -> NotFound:
    """Return the error for a version that vacuum has removed."""
    return NotFound(
        f"Version {version} of the table {store.url} was removed by vacuum.",
        code="VERSION_NOT_FOUND",
        name=str(version),
        remedy=f"The oldest version that can be read is {oldest}. Vacuum with a longer retention to keep more.",
    )
