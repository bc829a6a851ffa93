"""Recognizes what lies at a place: a folder of Parquet files, or a table of another format."""

from __future__ import annotations

from tamis.errors import InvalidInput, NotFound
from tamis.storage.object_store import Store
from tamis.storage.object_store.store import Entry

DELTA, ICEBERG, PARQUET = "delta", "iceberg", "parquet"
_LOGS = {"_delta_log": "Delta", ".hoodie": "Hudi", "_tamis": "Tamis"}
"""The folder that makes its parent the root of a table, and the table's format."""
_ICEBERG = ".metadata.json"


def source_kind(store: Store) -> str:
    """Return the kind of source at the root of ``store``: ``delta``, ``iceberg`` or ``parquet``.

    Raises ``NotFound`` (``SOURCE_NOT_FOUND``), ``InvalidInput`` (``UNKNOWN_SOURCE_KIND``) for a table of Hudi or Tamis.
    """
    folders, objects = store.folder()
    if not folders and not objects:
        raise NotFound(
            f"There is nothing at {store.url}.",
            code="SOURCE_NOT_FOUND",
            name=store.url,
            remedy="Give the folder or URL of the table to adopt, and the options of its store (source.…).",
        )
    if "_delta_log" in folders:
        return DELTA
    if "metadata" in folders and any(e.path.endswith(_ICEBERG) for e in store.folder("metadata")[1]):
        return ICEBERG
    for name in ("_tamis", ".hoodie"):
        if name in folders:
            raise _no_source(store.url, _LOGS[name])
    return PARQUET


def _no_source(place: str, kind: str) -> InvalidInput:
    remedy = "Open it, or clone it." if kind == "Tamis" else f"Read its rows through {kind}, and append them."
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
        folders = entry.path.split("/")[:-1]
        kind = next((_LOGS[name] for name in folders if name in _LOGS), None)
        if kind is None and folders[-1:] == ["metadata"] and entry.path.endswith(_ICEBERG):
            kind = "Iceberg"
        if kind is not None:
            raise InvalidInput(
                f"{store.url} holds a table of {kind}: {entry.path}.",
                code="TABLE_FOLDER",
                name=entry.path,
                remedy="Adopt that table by its own folder, or move it away.",
            )
    found = [entry for entry in listed if not any(_is_hidden(name) for name in entry.path.split("/"))]
    if not found:
        raise NotFound(
            f"There are no files to adopt at {store.url}.",
            code="SOURCE_NOT_FOUND",
            name=store.url,
            remedy="Give a folder with Parquet files in it.",
        )
    return found


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or (name.startswith("_") and "=" not in name)
