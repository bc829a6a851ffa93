"""Files of an ingestion: their kinds and commits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from tamis.cli.source_folders import File
from tamis.errors import InvalidInput, NotFound

ENDINGS = {"parquet": (".parquet",), "csv": (".csv",), "json": (".json", ".jsonl", ".ndjson")}
"""File name endings by kind; text files may be compressed as well."""

PACKED = (".gz", ".bz2", ".zst", ".lz4", ".snappy", ".deflate")
MOST_FILES = 1_000
"""The maximum number of files per commit."""


def file_kind(folder: Path, files: Sequence[File], wanted: str | None) -> tuple[str, list[File]]:
    """Return the kind of file to ingest, and the files of that kind.

    Raises ``InvalidInput`` for an unknown kind, or if there are several and none was requested; ``NotFound``
    (``NO_FILES``) if there are none.
    """
    if wanted is not None and wanted not in ENDINGS:
        raise InvalidInput(
            f"Files of kind {wanted!r} cannot be ingested.",
            code="UNKNOWN_FORMAT",
            name=wanted,
            remedy=f"Kinds are: {', '.join(ENDINGS)}.",
        )
    by_kind = {k: [f for f in files if _is(f.name, k)] for k in ENDINGS}
    there = [k for k, of_kind in by_kind.items() if of_kind]
    if wanted is None and len(there) > 1:
        raise InvalidInput(
            f"{folder} holds {' and '.join(there)} files.",
            code="SEVERAL_FORMATS",
            name=str(folder),
            remedy="Say which by --format.",
        )
    chosen = wanted or (there[0] if there else "")
    if not by_kind.get(chosen):
        what = f"{chosen} files" if chosen else "files"
        raise NotFound(
            f"There are no {what} in {folder}.",
            code="NO_FILES",
            name=str(folder),
            remedy=f"Files are known by their endings: {_endings(chosen)}.",
        )
    return chosen, by_kind[chosen]


def commit_batches(files: Sequence[File], most_bytes: int) -> Iterator[list[File]]:
    """Split ``files``, in order, by bytes and number of files per commit; at least one file each."""
    batch: list[File] = []
    for f in files:
        if batch and (len(batch) >= MOST_FILES or sum(b.size for b in batch) + f.size > most_bytes):
            yield batch
            batch = []
        batch.append(f)
    if batch:
        yield batch


def _is(name: str, file_kind: str) -> bool:
    lower = name.lower()
    for ending in PACKED if file_kind != "parquet" else ():
        lower = lower.removesuffix(ending)
    return lower.endswith(ENDINGS[file_kind])


def _endings(file_kind: str) -> str:
    return ", ".join(ENDINGS[file_kind] if file_kind else [e for all_of in ENDINGS.values() for e in all_of])
