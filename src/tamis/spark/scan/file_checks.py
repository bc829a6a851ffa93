"""What is checked of a part before Spark's own Parquet reader opens it: its path, its size, and the checksums of its end.

Spark's reader is a trust boundary. It verifies pages by their checksums, but believes the footer, whose statistics skip row groups, and the
page indexes, which skip pages; and it opens whatever path it is given. The driver checks them while it plans an execution: Spark's reader runs in JVMs without Python, and only
for tables on a local disk (``native.obstacle``), where a footer costs one short read. A file that was checked is looked at again only
when its size, its times or its inode have changed (docs/design/0017).
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
from tamis.storage.files.corrupt_parts import corrupt
from tamis.storage.files.file_source import PartSource
from tamis.storage.files.open_files import Recent
from tamis.storage.files.parquet.copied_arrays import copies_safely
from tamis.storage.files.parquet.footer import check_end, footer_of
from tamis.storage.object_store import Store
from tamis.storage.object_store.relative_paths import OUTSIDE

_MOST = 2**17
"""How many files a process remembers."""

Signature: TypeAlias = tuple[int, int, int, int]
"""Size, times of the last write and the last change, inode."""

_checked = Recent[bool](_MOST)
"""Files whose footers are sound, by what was committed of them and their signature: whether their page indexes are, too."""

_copied = Recent[bool](_MOST)
"""By file and columns: whether Spark can copy the arrays in them."""

_COLUMNS = ("path", "bytes", "checksum", "footer_checksum")


def check_files(parts: PartRefs, store: Store) -> bool:
    """Returns whether the page indexes of all ``parts`` are what was written, so that Spark's reader may skip pages by them.

    Raises ``CorruptData`` naming the first part whose file is not the one that was committed, as far as Spark's reader would not notice:
    ``PATH_OUTSIDE``, ``PART_MISSING``, ``TRUNCATED``, ``PART_CORRUPT``, ``PART_REPLACED``, ``CHECKSUM``.
    """
    strays = np.flatnonzero(pc.match_substring_regex(parts.table["path"], OUTSIDE).to_numpy())
    if len(strays):
        raise corrupt(parts[int(strays[0])], "lies outside of its table's folder", "PATH_OUTSIDE")
    columns = [parts.table[name].to_pylist() for name in _COLUMNS]
    whole = True
    for at, row in enumerate(zip(*columns, strict=True)):
        found = _signature(Path(store.url, row[0]))
        if found is None:
            raise corrupt(parts[at], "is missing", "PART_MISSING")
        key = (store.url, *row, *found)
        sound = _checked.get(key)
        if sound is None:
            sound = _check_file(parts[at], store, found[0])
            _checked.put(key, sound, 1)
        whole = whole and sound
    return whole


def copy_obstacle(parts: PartRefs, selected: Schema, store: Store) -> str | None:
    """Returns why Spark's reader is not to be used for arrays of ``selected``, in a sentence; None where nothing is against it.

    Parts of earlier releases may have dictionaries that Spark cannot copy arrays by (``parquet.copied_arrays``): their footers tell.
    """
    ids = frozenset(f.id for f in selected if has_copied_elements(f.type))
    if not ids:
        return None
    try:
        sound = all(_copies_safely(PartSource(store, ref), ids) for ref in parts)
    except TamisError:
        return "a part cannot be opened"  # our reader says what is wrong when rows are asked for
    return None if sound else "arrays of numbers have dictionaries in older parts"


def _check_file(ref: PartRef, store: Store, size: int) -> bool:
    if size != ref.bytes:
        code = "TRUNCATED" if size < ref.bytes else "PART_CORRUPT"
        raise corrupt(ref, f"has {size} bytes instead of the {ref.bytes} that were committed", code)
    return check_end(PartSource(store, ref))


def _signature(path: Path) -> Signature | None:
    """Returns what changes when a file is written or replaced; None where there is no file."""
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
    """Returns whether values of the type hold arrays, or maps, whose elements may be numbers that are NULL."""
    numbers = isinstance(kind, Array | Map) and any(
        f.nullable and not f.type.children and not isinstance(f.type, String) for f in kind.children
    )
    return numbers or any(has_copied_elements(f.type) for f in kind.children)
