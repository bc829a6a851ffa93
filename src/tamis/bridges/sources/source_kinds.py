"""Recognizes what lies at a place: a folder of Parquet files, or a table of another format."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from tamis.errors import InvalidInput, NotFound
from tamis.storage.object_store import Store
from tamis.storage.object_store.store import Entry

DELTA, ICEBERG, PARQUET = "delta", "iceberg", "parquet"
_LOGS = {"_delta_log": "Delta", ".hoodie": "Hudi", "_tamis": "Tamis"}
"""The folder that makes its parent the root of a table, and the table's format."""
_ICEBERG = ".metadata.json"
TABLE_FOLDERS = (*_LOGS, "metadata")
"""The folders by which the root of a table is known."""


def table_format(folders: Collection[str], metadata: Callable[[], Iterable[str]]) -> str | None:
    """Return the format of the table whose root holds these folders; None if it is no table's root.

    ``metadata`` lists the files in the folder ``metadata``, of which there may be one without a table.
    """
    if "_delta_log" in folders:
        return "Delta"
    if "metadata" in folders and any(name.endswith(_ICEBERG) for name in metadata()):
        return "Iceberg"  # also where Tamis exported to it
    return next((_LOGS[name] for name in _LOGS if name in folders), None)


def part_of_table(place: str, kind: str) -> InvalidInput:
    """Return the error for a folder of files that belongs to a table, or holds one."""
    remedy = f"Read its rows through {kind}, and append them: table.append(…), or INSERT INTO … SELECT in Spark."
    if kind in {"Delta", "Iceberg"}:
        remedy = "Adopt that table by its own folder: tamis adopt SOURCE TABLE, or tamis.adopt; mode=copy copies rows."
    return InvalidInput(
        f"{place} is a table of {kind}. Its files also hold rows that are deleted or replaced.",
        code="TABLE_FOLDER",
        name=place,
        remedy=remedy,
    )


def source_kind(store: Store) -> str:
    """Return the kind of source at the root of ``store``: ``delta``, ``iceberg`` or ``parquet``.

    Raises ``NotFound`` (``SOURCE_NOT_FOUND``), ``InvalidInput`` (``UNKNOWN_SOURCE_KIND``) for a table of Hudi or Tamis.
    """
    folders, objects = store.list_folder()
    if not folders and not objects:
        raise NotFound(
            f"There is nothing at {store.url}.",
            code="SOURCE_NOT_FOUND",
            name=store.url,
            remedy="Give the folder or URL of the table to adopt, and the options of its store (source.…).",
        )
    found = table_format(folders, lambda: (e.path for e in store.list_folder("metadata")[1]))
    if found in {"Tamis", "Hudi"}:
        raise _no_source(store.url, found)
    if found is not None:
        return {"Delta": DELTA, "Iceberg": ICEBERG}[found]
    return PARQUET


def _no_source(place: str, kind: str) -> InvalidInput:
    remedy = "Open it by tamis.open." if kind == "Tamis" else f"Read its rows through {kind}, and append them."
    return InvalidInput(
        f"{place} is a table of {kind}, which cannot be adopted.",
        code="UNKNOWN_SOURCE_KIND",
        name=place,
        remedy=remedy,
    )


def data_files(store: Store) -> list[Entry]:
    """Return the files below the root of a folder of Parquet files by path, without hidden ones and Spark's markers.

    As in Spark, a folder ``_k=v`` is a partition and not hidden. Raises ``InvalidInput`` (``TABLE_FOLDER``) if a
    table of another format lies in the folder: only its log says which files hold rows.
    """
    listed = store.list()
    for entry in listed:
        *folders, name = entry.path.split("/")
        at = next((n for n, folder in enumerate(folders) if folder in _LOGS), None)
        if at is not None:
            raise part_of_table("/".join([store.url.rstrip("/"), *folders[:at]]), _LOGS[folders[at]])
        if folders[-1:] == ["metadata"] and name.endswith(_ICEBERG):
            raise part_of_table("/".join([store.url.rstrip("/"), *folders[:-1]]), "Iceberg")
    found = [entry for entry in listed if not any(is_hidden(name) for name in entry.path.split("/"))]
    if not found:
        raise NotFound(
            f"There are no files to adopt at {store.url}.",
            code="SOURCE_NOT_FOUND",
            name=store.url,
            remedy="Give a folder with Parquet files in it.",
        )
    return found


def is_hidden(name: str) -> bool:
    """Return whether a file or folder is no data: its name begins with ``.``, or with ``_`` and has no ``=``."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)
