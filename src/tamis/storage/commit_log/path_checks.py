"""Checks whether a path holds a table, nothing, or something else that must not be touched."""

from __future__ import annotations

from contextlib import suppress

from tamis.errors import AlreadyExists, InvalidInput, NotFound, StoreUnavailable, TamisError
from tamis.storage.commit_log.commit_objects import ROOT
from tamis.storage.object_store.store import Store
from tamis.world import new_id

OURS = frozenset({ROOT, "data"})
"""Folders that may exist before the first commit: data files are written first."""


def no_table_error(store: Store) -> TamisError:
    """Return the error for a path that should hold a table and does not."""
    other = other_content(store)
    remedy = f"It holds {other}." if other else "Check the path, or create the table."
    return NotFound(f"There is no table at {store.url}.", code="TABLE_NOT_FOUND", name=store.url, remedy=remedy)


def check_free(store: Store) -> None:
    """Raise ``InvalidInput`` (``PATH_NOT_EMPTY``) if the path of a new table holds foreign objects."""
    other = other_content(store)
    if other:
        raise InvalidInput(
            f"{store.url} holds {other}.",
            code="PATH_NOT_EMPTY",
            name=store.url,
            remedy="Choose an empty or a new folder for the table.",
        )


def check_store(store: Store) -> None:
    """Probe that the store honours conditional writes; one that ignores the condition would lose commits.

    Local disk and memory do. Raises ``StoreUnavailable`` (``NOT_SUPPORTED``) if the store does not.
    """
    if not store.remote:
        return
    path = f"{ROOT}/probe-{new_id()}"
    try:
        able = store.put_if_absent(path, b"1") and not store.put_if_absent(path, b"2")
    finally:
        with suppress(TamisError):
            store.delete(path)
    if not able:
        raise StoreUnavailable(
            f"The store of {store.url} overwrites objects that should be written only if they are absent.",
            code="NOT_SUPPORTED",
            name=store.url,
            remedy="Use a store with conditional writes (S3 and compatible ones with If-None-Match, GCS, Azure).",
        )


def already_exists_error(store: Store) -> AlreadyExists:
    """Return the error for creating a table where one exists."""
    return AlreadyExists(
        f"There is a table at {store.url}.",
        code="TABLE_EXISTS",
        name=store.url,
        remedy="Open it, or choose another path.",
    )


def other_content(store: Store) -> str | None:
    """Describe foreign content at the store's root in a few words; None if there is none.

    Hidden names do not count.
    """
    folders, objects = store.list_folder()
    folders = [name for name in folders if not name.startswith(".") and name not in OURS]
    names = [entry.path for entry in objects if not entry.path.startswith(".")]
    if "_delta_log" in folders:
        return "a Delta table"
    if "metadata" in folders and any(e.path.endswith(".metadata.json") for e in store.list_folder("metadata")[1]):
        return "an Iceberg table"
    if any(name.endswith(".parquet") for name in names):
        return "Parquet files"
    if folders or names:
        return "something else: " + ", ".join(sorted((*folders, *names))[:3])
    return None
