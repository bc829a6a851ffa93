"""Damage to the stored objects of an index, found by their sizes and checksums.

Invariant: an index segment without damage has all its objects, as they were written. An error of the store is
never taken for damage: it is raised.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tamis.engine.secondary_index.index_segments import FOLDER, IndexSegment, refs_of
from tamis.errors import CorruptData, NotFound, TamisError
from tamis.storage.commit_log import Snapshot
from tamis.storage.files import PartRef
from tamis.storage.files.file_check import Problem, checksum_problem, size_problem
from tamis.storage.object_store import Store
from tamis.storage.object_store.object_cache import CACHE
from tamis.storage.object_store.parallel_requests import gather_requests


def index_sizes(store: Store) -> dict[str, int]:
    """Return the sizes of the stored index parts by path. One listing."""
    return {entry.path: entry.size for entry in store.list(FOLDER)}


def damaged_segments(
    store: Store, snapshot: Snapshot, built: Iterable[IndexSegment], listed: Mapping[str, int], *, data: bool
) -> dict[str, list[Problem]]:
    """Return the problems of the damaged index segments among ``built``, by id.

    ``data``: also read each index part for its checksum, and the lists of index parts anew. Without it, only
    their presence and size are checked. Raises ``StoreUnavailable``.
    """
    if data:
        CACHE.forget(store.url)
    found: dict[str, list[Problem]] = {}
    todo: list[tuple[str, PartRef]] = []
    segments = [entry for entry in built if entry.parts is not None]
    for entry, (refs, problem) in zip(
        segments, gather_requests(store, lambda one: _listed_parts(snapshot, one), segments), strict=True
    ):
        wrong = [problem] if problem else [said for ref in refs if (said := size_problem(ref, listed))]
        if wrong:
            found[entry.segment_id] = wrong
        else:
            todo += [(entry.segment_id, ref) for ref in refs]
    if data:
        for (segment, _), problem in zip(
            todo, gather_requests(store, lambda one: _bytes(store, one[1]), todo), strict=True
        ):
            if problem is not None:
                found.setdefault(segment, []).append(problem)
    return found


def damage_sentences(found: Mapping[str, Sequence[Problem]]) -> dict[str, str]:
    """Return one sentence per damaged index segment, as listings show it."""
    return {
        segment: f"{problems[0][1]} of the index is damaged: {problems[0][2]} Call repair_index."
        for segment, problems in found.items()
    }


def _listed_parts(snapshot: Snapshot, entry: IndexSegment) -> tuple[list[PartRef], Problem | None]:
    """Return the parts of an index segment, or the problem of an object that lists them."""
    try:
        entry.covers(snapshot.store)
        return refs_of(entry.manifest(snapshot.store, frozenset())), None
    except (CorruptData, NotFound) as error:
        return [], _problem(error, entry.segment_id)


def _bytes(store: Store, ref: PartRef) -> Problem | None:
    try:
        return checksum_problem(store, ref)
    except (CorruptData, NotFound) as error:
        return _problem(error, ref.path)


def _problem(error: TamisError, name: str) -> Problem:
    return error.code, error.name or name, error.message
