"""The folder of an ingestion: its files, and the tables that it must not be part of.

Invariant: files of a Delta, Iceberg, Hudi or Tamis table are never taken for plain files. The log of such a table says
which of them hold rows, and which of those rows are deleted.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NoReturn

from tamis.bridges.sources.source_kinds import TABLE_FOLDERS, is_hidden, part_of_table, table_format
from tamis.errors import InvalidInput, NotFound


@dataclass(frozen=True, slots=True)
class File:
    """A file: ``name`` is the path below the folder, with ``/``; ``size`` is in bytes."""

    name: str
    size: int


def list_files(folder: Path) -> list[File]:
    """Return the files below ``folder`` by name, without hidden files and Spark's markers (``_SUCCESS``).

    As in Spark, a folder ``_k=v`` is a partition and not hidden. Raises ``NotFound`` (``FOLDER_NOT_FOUND``), and
    ``InvalidInput``: ``TABLE_FOLDER`` if the folder is in a table of another format, or holds one, ``LINKED_TWICE``.
    """
    if not folder.is_dir():
        raise NotFound(
            f"There is no folder {folder}.",
            code="FOLDER_NOT_FOUND",
            name=str(folder),
            remedy="Give a folder with data files in it.",
        )
    _check_not_in_table(folder)
    return sorted(_walk(folder), key=lambda f: f.name)


def _walk(folder: Path) -> Iterator[File]:
    walked = [folder.resolve()]
    checked: set[Path] = set()
    for root, folders, names in os.walk(folder, onerror=_raise, followlinks=True):
        place = Path(root)
        _check_no_table(place, folders)
        folders[:] = sorted(name for name in folders if not is_hidden(name))
        for name in folders:
            if (place / name).is_symlink():
                _check_link(place / name, walked)
        for name in names:
            path = place / name
            if not is_hidden(name) and path.is_file():
                if path.is_symlink() and (target := path.resolve()).parent not in checked:
                    _check_not_in_table(target)
                    checked.add(target.parent)
                yield File(path.relative_to(folder).as_posix(), path.stat().st_size)


def check_linked_files(folder: Path, files: Iterable[File]) -> None:
    """Raise ``InvalidInput`` (``LINKED_TWICE``) for a symbolic link to a file that is among ``files``, too."""
    real_folder = cache(Path.resolve)
    plain, links = set[Path](), list[Path]()
    for path in (folder / file.name for file in files):
        if path.is_symlink():
            links.append(path)
        else:
            plain.add(real_folder(path.parent) / path.name)
    for link in links:
        target = link.resolve()
        if target in plain:
            raise _linked_twice(link, f"{target}, which is")
        plain.add(target)


def _check_link(link: Path, walked: list[Path]) -> None:
    """Check a link to a folder, and add its target to ``walked``, the folders whose files are taken.

    Raises ``InvalidInput``: ``TABLE_FOLDER`` if the target is in a table, ``LINKED_TWICE`` if its files would be taken
    by two paths.
    """
    target = link.resolve()
    _check_not_in_table(target)
    if any(target == other or target in other.parents or other in target.parents for other in walked):
        raise _linked_twice(link, f"{target}, whose files are")
    walked.append(target)


def _linked_twice(link: Path, what: str) -> InvalidInput:
    return InvalidInput(
        f"The link {link} leads to {what} also found by another path.",
        code="LINKED_TWICE",
        name=str(link),
        remedy="Remove the link: files are known by their paths, and would be taken twice.",
    )


def _check_not_in_table(folder: Path) -> None:
    for parent in folder.parents:
        _check_no_table(parent, [name for name in TABLE_FOLDERS if (parent / name).is_dir()])


def _raise(error: OSError) -> NoReturn:
    raise error


def _check_no_table(place: Path, folders: Sequence[str]) -> None:
    """Raise ``InvalidInput`` (``TABLE_FOLDER``) if ``place``, which holds ``folders``, is the root of a table."""
    kind = table_format(folders, lambda: (file.name for file in (place / "metadata").iterdir()))
    if kind is not None:
        raise part_of_table(str(place), kind)
