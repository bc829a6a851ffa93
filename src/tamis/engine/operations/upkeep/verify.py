"""Verify: compare stored objects with the log, bypassing all caches. Changes nothing.

Always checked: every commit (complete, in order, of this table), every stored table of the readable versions
(checksums, sums), rollups against the commits they summarize, and the presence and size of each data file and
of each index part of the newest version (an older version does without an index part that is gone); of files of
sources also the time of writing or the ETag.
With ``data``, also every live part (checksum, rows, statistics against values) and every part of an index
(checksum, entries against the rows they describe).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.engine.operations.layout.compact import Work
from tamis.engine.operations.result import Progress
from tamis.engine.operations.upkeep.verify_index import index_problems
from tamis.engine.operations.upkeep.verify_sources import external_problems
from tamis.engine.operations.upkeep.verify_statistics import StatisticsCheck, paths_of_parts
from tamis.engine.part_reader import ReadCounters, read_part
from tamis.engine.scan import Options, PartRefs
from tamis.errors import CorruptData, InvalidInput, NotFound, TamisError
from tamis.storage.commit_log import EXTERNAL_COLUMNS, PART_COLUMNS, Snapshot, load
from tamis.storage.commit_log.commit_objects import commit_path, read_commit, read_commits
from tamis.storage.commit_log.commit_record import Commit
from tamis.storage.commit_log.newest_commit import list_versions
from tamis.storage.commit_log.reachable_objects import own_parts, reachable_paths
from tamis.storage.commit_log.vacuum_marker import first_kept_version, oldest_readable
from tamis.storage.files import PartRef
from tamis.storage.files.file_check import Problem, checksum_problem, size_problem
from tamis.storage.object_store import Store
from tamis.storage.object_store.object_cache import CACHE

PROBLEMS = pa.schema([("code", pa.string()), ("object", pa.string()), ("problem", pa.string())])

PartPaths = Mapping[tuple[int, int], Mapping[int, pa.Table]]
"""Stored rows of JSON paths by (segment, part) and column id."""


@dataclass(frozen=True, slots=True)
class Verification:
    """What was checked, and the ``problems``, one row each; ``ok`` if there are none."""

    version: int
    commits: int
    parts: int
    objects: int
    bytes_read: int
    problems: pa.Table

    @property
    def ok(self) -> bool:
        return not len(self.problems)

    def as_dict(self) -> dict[str, Any]:
        return {
            **{name: getattr(self, name) for name in ("ok", "version", "commits", "parts", "objects", "bytes_read")},
            "problems": self.problems.to_pylist(),
        }


def verify(store: Store, *, data: bool = True, progress: Progress | None = None) -> Verification:
    """Check everything that a reader of any version may need.

    Starts anew if it finds problems and a vacuum has been committed meanwhile, which may have removed what is missing.
    Raises only if there is no table, or the store does not respond.
    """
    while True:
        CACHE.forget(store.url)
        own = store.with_new_counters()
        snapshot = load(own, afresh=True)
        try:
            found = _verify_version(own, snapshot, data, progress)
        except (CorruptData, NotFound):
            if not _vacuumed_since(own, snapshot):
                raise
        else:
            if found.ok or not _vacuumed_since(own, snapshot):
                return found


def _vacuumed_since(store: Store, snapshot: Snapshot) -> bool:
    try:
        later = range(snapshot.version + 1, load(store).version + 1)
        return any(commit.vacuum is not None for commit in read_commits(store, later, snapshot.head.table_id))
    except (CorruptData, InvalidInput):
        return False  # a damaged log, or a table that has ended


def _verify_version(store: Store, snapshot: Snapshot, data: bool, progress: Progress | None) -> Verification:
    """Check the version, the log before it, and what is left of older versions."""
    problems = list(_log(store, snapshot))
    listed: dict[str, int] = {}
    if not problems:
        listed = {entry.path: entry.size for folder in ("data", "index") for entry in store.list(folder)}
        problems += _guarded("state", lambda: _state(store, snapshot, listed))
    parts, indexes = 0, snapshot.head.indexes if not problems else ()
    if data and not problems:
        assert snapshot.head.schema is not None or not len(snapshot.segments)
        every = snapshot.parts(None, frozenset(i for schema in snapshot.head.schemas for i in schema.by_id))
        refs = PartRefs(every, np.zeros(len(every), dtype=np.bool_))
        parts = len(refs)
        paths = paths_of_parts(snapshot)
        for at, ref in enumerate(refs):
            look = partial(_part, store, snapshot, ref, every.slice(at, 1), listed, paths)
            problems += _guarded(ref.path, look)
            if progress is not None:
                progress(ref.bytes, ref.path)
    for index in indexes:
        problems += _guarded(index.name, partial(index_problems, store, snapshot, index, listed, data=data))
    rows = [dict(zip(PROBLEMS.names, problem, strict=True)) for problem in problems]
    table = pa.Table.from_pylist(rows, schema=PROBLEMS)
    return Verification(snapshot.version, snapshot.version + 1, parts, len(listed), store.io.bytes, table)


def _guarded(name: str, look: Callable[[], Iterator[Problem]]) -> list[Problem]:
    """Collect the problems that ``look`` yields; an error it raises is a problem too."""
    found: list[Problem] = []
    try:
        found += look()
    except TamisError as error:
        found.append((error.code, error.name or name, error.message))
    return found


def _log(store: Store, snapshot: Snapshot) -> Iterator[Problem]:
    """Check every commit, and each against its predecessor."""
    before: Commit | None = None
    heads: set[int] = set()
    try:
        list_versions(store)
    except TamisError as error:
        yield error.code, error.name, error.message
    for version in range(snapshot.version + 1):
        try:
            commit = read_commit(store, version)
        except TamisError as error:
            yield error.code, error.name or commit_path(version), error.message
            continue
        name = commit_path(version)
        if commit.head is not None:
            heads.add(version)
        if commit.table_id != snapshot.head.table_id:
            yield "WRONG_TABLE", name, f"It belongs to another table ({commit.table_id})."
        if commit.head_version not in heads:
            yield "NO_HEAD", name, f"The head should be in version {commit.head_version}, which has none."
        if before is not None and commit.timestamp_micros <= before.timestamp_micros:
            yield "TIME_WENT_BACK", name, "It is not younger than the commit before it."
        if before is not None and commit.parent not in (None, before.operation_id):
            yield "MIXED_HISTORY", name, "It does not follow the commit before it: the log mixes two histories."
        before = commit


def _state(store: Store, snapshot: Snapshot, listed: dict[str, int]) -> Iterator[Problem]:
    """Check stored tables, rollups and file sizes of all readable versions."""
    oldest = first_kept_version(store, oldest_readable(store, snapshot.head.table_id), snapshot.commit)
    for path in sorted(reachable_paths(store, load(store, oldest, vacuumed=True), snapshot)):
        if path.startswith("data/") and path not in listed:
            yield "MISSING_OBJECT", path, "The log names it, and it is not there."
    yield from _sums(snapshot)
    yield from external_problems(store, snapshot)
    parts = own_parts(snapshot.parts(None))
    for path, size in zip(parts["path"].to_pylist(), parts["bytes"].to_pylist(), strict=True):
        if listed.get(path, size) != size:
            yield "WRONG_SIZE", path, f"It has {listed[path]} bytes and should have {size}."
    facts = [*PART_COLUMNS, *(EXTERNAL_COLUMNS if snapshot.head.sources else ())]
    reread = Snapshot.at(store, snapshot.commit)
    reread._avoid = _Everything()
    for name, mine, theirs in (
        ("segments", snapshot.segments, reread.segments),
        ("parts", snapshot.parts(None).select(facts), reread.parts(None).select(facts)),
    ):
        if not mine.equals(theirs):
            yield "ROLLUP_DIFFERS", f"_tamis/rollup ({name})", "Rollups and the commits below them do not say the same."


def _sums(snapshot: Snapshot) -> Iterator[Problem]:
    """Check segments against the manifests of their parts."""
    segments, parts = snapshot.segments, snapshot.parts(None)
    place = parts["segment"].to_numpy()
    counts = np.bincount(place, minlength=len(segments))
    size = np.bincount(place, weights=parts["bytes"].to_numpy(), minlength=len(segments)).astype(np.int64)
    wrong = (counts != segments["parts"].to_numpy()) | (size != segments["bytes"].to_numpy())
    for at in np.flatnonzero(wrong).tolist():
        yield "SUMS_DIFFER", str(segments["segment_id"][at]), "The commit says other parts or bytes than its manifest."
    ids = parts["part_id"]
    if pc.count_distinct(ids).as_py() != len(parts):
        yield "PART_TWICE", "parts", "A part is live twice."


def _part(
    store: Store, snapshot: Snapshot, ref: PartRef, manifest: pa.Table, listed: dict[str, int], paths: PartPaths
) -> Iterator[Problem]:
    """Check a data file: its bytes, rows and statistics."""
    damage = None if ref.source is not None else size_problem(ref, listed) or checksum_problem(store, ref)
    if damage:
        yield damage
        return
    schema = next(s for s in snapshot.head.schemas if s.schema_id == ref.schema_id)
    work = Work(store, snapshot, Options())
    known = {s.schema_id: s for s in snapshot.head.schemas}
    check, rows = StatisticsCheck(schema, known, manifest, paths.get((ref.segment, ref.part), {})), 0
    whole = replace(ref, segment=0, part=0, all_match=False, deletion=None)
    for batch in read_part(whole, work.read_spec(schema), ReadCounters()):
        rows += len(batch)
        check.update(batch)
    if rows != ref.rows:
        yield "ROWS_DIFFER", ref.path, f"It has {rows} rows and should have {ref.rows}."
        return
    for code, problem in check.problems():
        yield code, ref.path, problem


class _Everything(set[Any]):
    """A set that contains everything."""

    def __contains__(self, item: object) -> bool:
        return True

    def __bool__(self) -> bool:
        return True
