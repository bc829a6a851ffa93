"""The folder of an ingestion: its files, its partition columns, and the tables that it must not be part of.

Invariant: files of a Delta, Iceberg, Hudi or Tamis table are never taken for plain files. The log of such a table says
which of them hold rows, and which of those rows are deleted.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn
from urllib.parse import unquote

from tamis.errors import InvalidInput, NotFound

_LOGS = {"_delta_log": "Delta", ".hoodie": "Hudi", "_tamis": "Tamis"}
"""The folder that makes its parent the root of a table, and the table's format."""
_ICEBERG = ".metadata.json"


@dataclass(frozen=True, slots=True)
class File:
    """A file: ``name`` is the path below the folder, with ``/``; ``size`` is in bytes."""

    name: str
    size: int


def list_files(folder: Path) -> list[File]:
    """Return the files below ``folder`` by name, without hidden files and Spark's markers (``_SUCCESS``).

    As in Spark, a folder ``_k=v`` is a partition and not hidden. Raises ``NotFound`` (``FOLDER_NOT_FOUND``), and
    ``InvalidInput`` (``TABLE_FOLDER``) if the folder is in a table of another format, or holds one.
    """
    if not folder.is_dir():
        raise NotFound(
            f"There is no folder {folder}.",
            code="FOLDER_NOT_FOUND",
            name=str(folder),
            remedy="Give a folder with data files in it.",
        )
    for parent in folder.parents:
        _check_no_table(parent, [name for name in (*_LOGS, "metadata") if (parent / name).is_dir()])
    return sorted(_walk(folder), key=lambda f: f.name)


def _walk(folder: Path) -> Iterator[File]:
    for root, folders, names in os.walk(folder, onerror=_raise):
        place = Path(root)
        _check_no_table(place, folders)
        folders[:] = [name for name in folders if not _is_hidden(name)]
        for name in names:
            path = place / name
            if not _is_hidden(name) and path.is_file():
                yield File(path.relative_to(folder).as_posix(), path.stat().st_size)


def _raise(error: OSError) -> NoReturn:
    raise error


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _check_no_table(place: Path, folders: Sequence[str]) -> None:
    """Raise ``InvalidInput`` (``TABLE_FOLDER``) if ``place``, which holds ``folders``, is the root of a table."""
    kind = next((_LOGS[name] for name in folders if name in _LOGS), None)
    if kind is None and "metadata" in folders and any((place / "metadata").glob(f"*{_ICEBERG}")):
        kind = "Iceberg"
    if kind is not None:
        raise InvalidInput(
            f"{place} is a table of {kind}. Its files also hold rows that are deleted or replaced.",
            code="TABLE_FOLDER",
            name=str(place),
            remedy=f"Read its rows through {kind}, and append them: table.append(…), or INSERT INTO … SELECT in Spark.",
        )


def partition_columns(folder: Path, files: Sequence[File]) -> tuple[str, ...]:
    """Return the names of the columns that folders ``k=v`` hold, the outermost first.

    Raises ``InvalidInput``: ``PARTITIONS_DIFFER`` if the files lie below folders of different columns,
    ``PLAIN_FOLDER`` for a folder ``k=v`` below or above one that is none, whose column Spark would not see.
    """
    by_names: dict[tuple[str, ...], str] = {}
    for file in files:
        parts = file.name.split("/")[:-1]
        names = tuple(unquote(p.partition("=")[0]) for p in parts if "=" in p)
        if names and len(names) < len(parts):
            raise InvalidInput(
                f"{file.name} lies below folders of the form k=v and others.",
                code="PLAIN_FOLDER",
                name=file.name,
                remedy="Ingest the folder that holds the partition folders alone, or move the files.",
            )
        by_names.setdefault(names, file.name)
    if len(by_names) > 1:
        (one, first), (other, second) = list(by_names.items())[:2]
        raise InvalidInput(
            f"{first} has the partition columns {_listed(one)}, {second} has {_listed(other)}.",
            code="PARTITIONS_DIFFER",
            name=str(folder),
            remedy="Ingest folders of one layout at a time.",
        )
    return next(iter(by_names), ())


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "(none)"
