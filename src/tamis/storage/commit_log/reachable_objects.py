"""Which objects a range of versions names: what may not be removed while any of them can be read.

Law: an object that any version of the range needs is in ``reached``. It is found by what the log says, for data files, tables at rest,
deletion vectors and index segments alike: whatever stands in the log under the name ``path``, and in columns of that name in the tables that the log names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from tamis.storage.commit_log.commit_log import ROOT, read_commits
from tamis.storage.commit_log.commit_record import Commit, commit_to_json
from tamis.storage.commit_log.snapshot import Snapshot
from tamis.storage.object_store.parallel_requests import gather
from tamis.storage.object_store.store import Store
from tamis.storage.object_store.table_files import columns_from_json

OURS = re.compile(
    r"(?:data|index)/(?P<part>[0-9a-f]{32})\.[a-z]+"
    rf"|{ROOT}/(?:manifest|deletions|index)/(?P<table>[0-9a-f]{{32}})(?:\.[\w-]+)*\.parquet"
    rf"|{ROOT}/rollup/\d+-\d{{20}}-(?P<rollup>[0-9a-f]{{32}})\.[\w-]+\.parquet"
    rf"|{ROOT}/probe-(?P<probe>[0-9a-f]{{32}})"
)
"""Objects that a writer makes before the one that names them, by the id in their name. Anything else is never removed."""

DELETIONS = f"{ROOT}/deletions"
FOLDERS = ("data", "index", f"{ROOT}/manifest", DELETIONS, f"{ROOT}/index", f"{ROOT}/rollup")
"""Where they stand."""


def reached(store: Store, oldest: Snapshot, latest: Snapshot) -> set[str]:
    """The paths of all objects that versions from ``oldest`` to ``latest`` name, apart from commits."""
    found = set(oldest.parts(None)["path"].to_pylist())
    found |= set(paths_in(store, _entries(oldest)))
    between = read_commits(store, range(oldest.version + 1, latest.version + 1), latest.commit.table_id)
    for of_commit in gather(store, lambda commit: list(commit_paths(store, commit)), between):
        found |= set(of_commit)
    return found


def commit_paths(store: Store, commit: Commit) -> Iterator[str]:
    """The paths of the objects that a commit adds."""
    said = commit_to_json(commit)
    yield from paths_in(store, [said.get("add"), said.get("add_index"), said.get("deletions")])


def deletion_paths(commit: Commit) -> Iterator[str]:
    """The files of deletion vectors that a commit names."""
    said = commit_to_json(commit).get("deletions")
    if isinstance(said, dict) and isinstance(said.get("path"), str):
        yield said["path"]


def rollup_paths(store: Store) -> set[str]:
    """The tables that rollups name; of one that cannot be read nothing is known, and its own tables count as named."""
    found: set[str] = set()
    listed = [entry.path for entry in store.list(f"{ROOT}/rollup")]
    for path in listed:
        if not path.endswith(".json"):
            continue
        try:
            found |= set(paths_in(store, json.loads(store.get(path)), deep=False))
        except (ValueError, LookupError, OSError):
            stem = path.removesuffix(".json")
            found |= {other for other in listed if other.startswith(f"{stem}-")}
    return found


def ids_in(paths: Iterable[str]) -> Iterator[str]:
    """The ids in the names of objects that were made before the one that names them."""
    for path in paths:
        match = OURS.fullmatch(path)
        if match is not None and match.lastgroup is not None:
            yield match[match.lastgroup]


def paths_in(store: Store, value: Any, *, deep: bool = True) -> Iterator[str]:
    """Every text under the name ``path`` in a JSON value; ``deep``: also in the tables at rest that it holds or names."""
    if isinstance(value, list | tuple):
        for item in value:
            yield from paths_in(store, item, deep=deep)
        return
    if not isinstance(value, dict):
        return
    if isinstance(value.get("path"), str):
        yield value["path"]
    if deep and "rows" in value and ("zstd" in value or "crc32" in value):
        table = columns_from_json(value).read(store, lambda names: [n for n in names if n == "path"])
        if table.num_columns:
            yield from (path for path in table["path"].to_pylist() if path)
    for item in value.values():
        yield from paths_in(store, item, deep=deep)


def _entries(snapshot: Snapshot) -> list[Any]:
    """What the log says of the tables of live segments, of deletion vectors in force, and of index segments; the paths of parts come otherwise."""
    tables = [_shallow(json.loads(text)) for text in snapshot.named_tables]
    return [*tables, *(json.loads(text) for text in snapshot.index_segments["detail"].to_pylist() if text)]


def _shallow(value: Any) -> Any:
    """Without the rows of tables of parts: those are asked for together."""
    if isinstance(value, dict):
        return {k: ({"path": v.get("path")} if k == "parts" and isinstance(v, dict) else _shallow(v)) for k, v in value.items()}
    return [_shallow(v) for v in value] if isinstance(value, list) else value
