"""Finds and removes what killed or failed writers leave on a local disk: unfinished files and empty folders.

The store writes a file under its name and a suffix such as ``#1``, and renames it when it is complete. It neither lists
nor deletes such files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

_UPLOAD = re.compile(r"(.+)#\d+")


def finished_name(path: str) -> str:
    """Return ``path`` without the suffix of a file that is being written."""
    match = _UPLOAD.fullmatch(path)
    return match[1] if match else path


def find_uploads(folder: str) -> Iterator[tuple[str, int, int]]:
    """Yield name, size and time of writing (µs) of the files in a local ``folder`` that are being written, or were."""
    try:
        entries = os.scandir(folder)
    except OSError:
        return
    with entries:
        for entry in entries:
            if _UPLOAD.fullmatch(entry.name) is None:
                continue
            try:
                found = entry.stat(follow_symlinks=False)
            except OSError:  # finished meanwhile
                continue
            yield entry.name, found.st_size, found.st_mtime_ns // 1_000


def remove_upload(path: str) -> None:
    """Delete the file at a local ``path`` if it exists."""
    Path(path).unlink(missing_ok=True)


def remove_empty_folders(root: str, folder: str) -> None:
    """Remove ``folder`` below ``root``, the folders above it, and ``root``, up to the first that is not empty."""
    for path in (Path(root, folder), *Path(root, folder).parents):
        try:
            path.rmdir()
        except OSError:
            return
        if path == Path(root):
            return
