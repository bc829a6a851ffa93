"""Finds the objects that a range of versions references and that vacuum must keep.

Invariant: ``reachable_paths`` has each object of the table that any version of the range needs. It leaves out files of
sources.
Data files, stored tables, deletion vectors and index segments are found alike: by every value named ``path`` in the
log, and by columns of that name in the tables that the log names. The one exception: index parts that a damaged list
names are not found, because no reader can find them either.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from tamis.errors import CorruptData
from tamis.storage.commit_log.commit_objects import ROOT, read_commits
from tamis.storage.commit_log.commit_record import Commit, commit_to_json
from tamis.storage.commit_log.snapshot import Snapshot
from tamis.storage.object_store.metadata_files import columns_from_json
from tamis.storage.object_store.parallel_requests import gather_requests
from tamis.storage.object_store.store import Store

OURS = re.compile(
    r"(?:data|index)/(?P<part>[0-9a-f]{32})\.[a-z]+"
    rf"|{ROOT}/(?:manifest|deletions|index)/(?P<table>[0-9a-f]{{32}})(?:\.[\w-]+)*\.parquet"
    rf"|{ROOT}/rollup/\d+-\d{{20}}-(?P<rollup>[0-9a-f]{{32}})\.[\w-]+\.parquet"
    rf"|{ROOT}/probe-(?P<probe>[0-9a-f]{{32}})"
)
"""Paths of objects that a writer makes before the object that names them, with the id in the name.

Any other object is never removed.
"""

DELETIONS = f"{ROOT}/deletions"
FOLDERS = ("data", "index", f"{ROOT}/manifest", DELETIONS, f"{ROOT}/index", f"{ROOT}/rollup")
"""The folders that hold such objects."""


def reachable_paths(store: Store, oldest: Snapshot, latest: Snapshot) -> set[str]:
    """Return the paths of all objects, except commits, named by versions ``oldest`` to ``latest``."""
    found = set(own_parts(oldest.parts(None))["path"].to_pylist())
    found |= set(paths_in(store, _tables(oldest)))
    found |= set(
        _index_paths(store, [json.loads(text) for text in oldest.index_segments["detail"].to_pylist() if text])
    )
    between = read_commits(store, range(oldest.version + 1, latest.version + 1), latest.commit.table_id)
    for of_commit in gather_requests(store, lambda commit: list(commit_paths(store, commit)), between):
        found |= set(of_commit)
    return found


def own_parts(parts: pa.Table) -> pa.Table:
    """Return the parts that are the table's own files, without those that lie in a source."""
    return parts.filter(parts["source"].is_null()) if "source" in parts.column_names else parts


def commit_paths(store: Store, commit: Commit) -> Iterator[str]:
    """Yield the paths of the objects that a commit adds."""
    said = commit_to_json(commit)
    yield from paths_in(store, [said.get("add"), said.get("deletions")])
    yield from _index_paths(store, said.get("add_index") or [])


def deletion_paths(commit: Commit) -> Iterator[str]:
    """Yield the files of deletion vectors that a commit names."""
    said = commit_to_json(commit).get("deletions")
    if isinstance(said, dict) and isinstance(said.get("path"), str):
        yield said["path"]


def rollup_paths(store: Store) -> set[str]:
    """Return the tables that rollups name; all tables of an unreadable rollup count as named."""
    found: set[str] = set()
    listed = [entry.path for entry in store.list(f"{ROOT}/rollup")]
    for path in listed:
        if not path.endswith(".json"):
            continue
        try:
            found |= set(paths_in(store, json.loads(store.get(path)), deep=False))
        except (ValueError, LookupError, OSError, RecursionError):
            stem = path.removesuffix(".json")
            found |= {other for other in listed if other.startswith(f"{stem}-")}
    return found


def ids_in(paths: Iterable[str]) -> Iterator[str]:
    """Yield the ids in the names of objects that were made before the one that names them."""
    for path in paths:
        match = OURS.fullmatch(path)
        if match is not None and match.lastgroup is not None:
            yield match[match.lastgroup]


def paths_in(store: Store, value: Any, *, deep: bool = True) -> Iterator[str]:
    """Yield every string under the key ``path`` in a JSON value.

    With ``deep``, also those in the stored tables that the value holds or names.
    """
    if isinstance(value, list | tuple):
        for item in value:
            yield from paths_in(store, item, deep=deep)
        return
    if not isinstance(value, dict):
        return
    if isinstance(value.get("path"), str):
        yield value["path"]
    if deep and "rows" in value and ("zstd" in value or "crc32" in value):
        table = columns_from_json(value).read(store, lambda names: [n for n in names if n in {"path", "source"}])
        if "path" in table.column_names:
            yield from (path for path in own_parts(table)["path"].to_pylist() if path)
    for item in value.values():
        yield from paths_in(store, item, deep=deep)


def _index_paths(store: Store, entries: Iterable[Any]) -> Iterator[str]:
    """Yield the paths that entries of index segments name; of a damaged list, its own path only."""
    for entry in entries:
        try:
            yield from list(paths_in(store, entry))
        except CorruptData:
            yield from paths_in(store, entry, deep=False)


def _tables(snapshot: Snapshot) -> list[Any]:
    """Return the log's entries for tables of live segments and deletion vectors in force.

    The paths of parts are read separately.
    """
    return [_shallow(json.loads(text)) for text in snapshot.named_tables]


def _shallow(value: Any) -> Any:
    """Drop the rows of part tables, which are read together elsewhere."""
    if isinstance(value, dict):
        return {
            k: ({"path": v.get("path")} if k == "parts" and isinstance(v, dict) else _shallow(v))
            for k, v in value.items()
        }
    return [_shallow(v) for v in value] if isinstance(value, list) else value
