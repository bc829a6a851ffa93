"""Checks of a part before Spark's own Parquet reader opens it: path, size, checksums of footer and indexes.

Spark's reader is a trust boundary. It verifies page checksums, but trusts the footer, whose statistics skip
row groups, and the page indexes, which skip pages; and it opens any path it is given. The driver does the
checks while it plans an execution, because Spark's reader runs in JVMs without Python. That reader is used
only for tables on a local disk (``native_reader.obstacle``), where reading a footer costs one short read. A
checked file is checked again only when its size, its times or its inode have changed (docs/design/0017).
"""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow.compute as pc

from tamis.core.types import Array, DataType, Map, Schema, String
from tamis.engine.scan import PartRefs
from tamis.errors import TamisError
from tamis.storage.files import PartRef
from tamis.storage.files.corrupt_parts import corrupt_part, missing_part
from tamis.storage.files.file_source import PartSource
from tamis.storage.files.parquet.copied_arrays import copies_safely
from tamis.storage.files.parquet.footer import check_end, footer_of
from tamis.storage.object_store import Store
from tamis.storage.object_store.lru_cache import LruCache
from tamis.storage.object_store.relative_paths import OUTSIDE

_MOST = 2**17
"""Number of files that a process remembers."""

Signature: TypeAlias = tuple[int, int, int, int]
"""Size, modification time, change time, inode."""

_checked = LruCache[bool](_MOST)
"""Files with sound footers, by committed metadata and signature: whether their page indexes are sound too."""

_copied = LruCache[bool](_MOST)
"""Whether Spark can copy the arrays of a file, by file and columns."""

_COLUMNS = ("path", "bytes", "checksum", "footer_checksum")


def check_files(parts: PartRefs, store: Store) -> bool:
    """Whether the page indexes of all ``parts`` are intact, so that Spark's reader may skip pages by them.

    Raises ``CorruptData`` naming the first part whose file differs from the committed one in a way that
    Spark's reader would not notice: ``PATH_OUTSIDE``, ``PART_MISSING``, ``TRUNCATED``, ``PART_CORRUPT``,
    ``PART_REPLACED``, ``CHECKSUM``.
    """
    strays = np.flatnonzero(pc.match_substring_regex(parts.table["path"], OUTSIDE).to_numpy())
    if len(strays):
        raise corrupt_part(parts[int(strays[0])], "lies outside of its table's folder", "PATH_OUTSIDE")
    columns = [parts.table[name].to_pylist() for name in _COLUMNS]
    whole = True
    for at, row in enumerate(zip(*columns, strict=True)):
        found = _signature(Path(store.url, row[0]))
        if found is None:
            raise missing_part(parts[at])
        key = (store.url, *row, *found)
        sound = _checked.get(key)
        if sound is None:
            sound = _check_file(parts[at], store, found[0])
            _checked.put(key, sound, 1)
        whole = whole and sound
    return whole


def checked_already(parts: PartRefs, store: Store) -> tuple[list[Signature], bool] | None:
    """The signatures of the files of ``parts``, and what ``check_files`` returns; None if it has to look at one."""
    found: list[Signature] = []
    whole = True
    for row in zip(*(parts.table[name].to_pylist() for name in _COLUMNS), strict=True):
        signature = _signature(Path(store.url, row[0]))
        sound = _checked.get((store.url, *row, *signature)) if signature is not None else None
        if signature is None or sound is None:
            return None
        found.append(signature)
        whole = whole and sound
    return found, whole


def copy_obstacle(parts: PartRefs, selected: Schema, store: Store) -> str | None:
    """Reason not to use Spark's reader for the arrays of ``selected``, as a sentence, or None.

    Parts of earlier releases may have dictionaries from which Spark cannot copy arrays
    (``parquet.copied_arrays``). Their footers tell.
    """
    ids = frozenset(f.id for f in selected if has_copied_elements(f.type))
    if not ids:
        return None
    try:
        sound = all(_copies_safely(PartSource(store, ref), ids) for ref in parts)
    except TamisError:
        return "a part cannot be opened"  # our reader reports the error when rows are read
    return None if sound else "arrays of numbers have dictionaries in older parts"


def _check_file(ref: PartRef, store: Store, size: int) -> bool:
    if size != ref.bytes:
        code = "TRUNCATED" if size < ref.bytes else "PART_CORRUPT"
        raise corrupt_part(ref, f"has {size} bytes instead of the {ref.bytes} that were committed", code)
    return check_end(PartSource(store, ref))


def _signature(path: Path) -> Signature | None:
    """The file's signature, which changes when it is written or replaced; None if there is no file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino


def _copies_safely(source: PartSource, ids: frozenset[int]) -> bool:
    key = (*source.key, ids)
    found = _copied.get(key)
    if found is None:
        found = copies_safely(footer_of(source), ids)
        _copied.put(key, found, 1)
    return found


def has_copied_elements(kind: DataType) -> bool:
    """Whether the type contains arrays or maps of nullable elements that are neither nested nor text."""
    numbers = isinstance(kind, Array | Map) and any(
        f.nullable and not f.type.children and not isinstance(f.type, String) for f in kind.children
    )
    return numbers or any(has_copied_elements(f.type) for f in kind.children)
