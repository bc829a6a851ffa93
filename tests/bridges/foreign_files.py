"""Folders of Parquet files as other writers leave them, for tests of adoption."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

Tree = Mapping[str, tuple[bytes, int]]


def write_file(path: Path, table: pa.Table, **options: Any) -> Path:
    """Write one file, with its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, **options)
    return path


def contents(folder: Path) -> Tree:
    """Return the bytes and the time of writing of everything below ``folder``."""
    return {
        str(p.relative_to(folder)): (p.read_bytes() if p.is_file() else b"", p.stat().st_mtime_ns)
        for p in sorted(folder.rglob("*"))
    }


def patched(path: Path, old: bytes, new: bytes) -> None:
    """Replace bytes of a file's footer by as many others, padded with spaces."""
    data = path.read_bytes()
    assert data.count(old) == 1
    assert len(new) <= len(old)
    path.write_bytes(data.replace(old, new.ljust(len(old))))


def edit_footer(path: Path, changes: Sequence[tuple[bytes, bytes]], *, times: int = 1) -> None:
    """Replace bytes of a file's footer by as many others; nothing before the footer changes."""
    data = path.read_bytes()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    footer = data[start:]
    for old, new in changes:
        assert footer.count(old) == times, (old, footer.count(old))
        assert len(old) == len(new)
        footer = footer.replace(old, new)
    path.write_bytes(data[:start] + footer)


def writer_of(path: Path) -> bytes:
    """Return what a file names as its writer."""
    return str(pq.read_metadata(path).created_by).encode()


def write_enums(path: Path, table: pa.Table, name: str, *, count: int = 1, **options: Any) -> Path:
    """Write one file whose texts named ``name``, ``count`` columns of them, are annotated as ENUM, as Avro's are."""
    write_file(path, table, store_schema=False, **options)
    length = len(name).to_bytes() + name.encode()
    text, enum = (length + b"\x25" + old + b"\x4c" + new + b"\x00\x00\x00" for old, new in ANNOTATIONS)
    data = path.read_bytes()
    assert data.count(text) == count
    path.write_bytes(data.replace(text, enum))
    assert str(pq.read_metadata(path).schema).count("(Enum)") == count
    return path


ANNOTATIONS = ((b"\x00", b"\x1c"), (b"\x08", b"\x4c"))
"""The old annotation and the field of the new one, of a text and of an ENUM, in a footer."""
