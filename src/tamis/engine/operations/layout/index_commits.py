"""Commits of index segments: with a load, after it, and when a repair has built them.

Invariant: a problem with an index never fails the load that is committed.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

from tamis.engine.secondary_index import Run, run_here
from tamis.engine.secondary_index.index_damage import damaged_segments, index_sizes
from tamis.engine.secondary_index.index_upkeep import (
    MERGE_FROM,
    Merged,
    catch_up_entries,
    entries_for_load,
    merge_small_segments,
    obsolete_entries,
    small_segments,
)
from tamis.storage.commit_log import Head, IndexDefinition, Operation, Proposal, Snapshot, commit
from tamis.storage.object_store import Store
from tamis.world import new_id


def tidy_indexes(store: Store, snapshot: Snapshot, run: Run = run_here) -> Snapshot:
    """Merge small index segments and remove obsolete entries. Best effort: raises nothing, keeps coverage."""
    try:
        add, remove = [], set(obsolete_entries(snapshot))
        for index in snapshot.head.indexes:
            if (one := _merged_undamaged(store, snapshot, index, run)) is not None:
                add += [one.add] if one.add else []
                remove |= set(one.remove)
        if not add and not remove:
            return snapshot
        return add_entries(store, snapshot, Operation("tidy index"), tuple(add), tuple(sorted(remove)))
    except Exception:  # noqa: BLE001  # best effort: untidied segments only cost speed
        return snapshot


def _merged_undamaged(store: Store, snapshot: Snapshot, index: IndexDefinition, run: Run) -> Merged | None:
    """Merge the small index segments of ``index``, except damaged ones, which ``repair_index`` replaces.

    A failed merge is retried once without the index segments whose objects are damaged; None if that fails, too.
    """
    small = small_segments(snapshot, index)
    try:
        return merge_small_segments(snapshot, index, small, run)
    except Exception:  # noqa: BLE001  # an executor's error may be of any class
        bad = damaged_segments(store, snapshot, small, index_sizes(store), data=True)
    intact = [e for e in small if e.segment_id not in bad]
    with suppress(Exception):  # the other indexes are tidied all the same
        return merge_small_segments(snapshot, index, intact, run) if bad else None
    return None


def with_index_segments(
    store: Store, head: Head, proposal: Proposal, build_mode: str = "", run: Run = run_here
) -> Proposal:
    """Add to ``proposal`` index segments for its added parts, or reasons why there are none.

    Raises nothing.
    """
    if not head.indexes or not proposal.add:
        return proposal
    entries = entries_for_load(store, head, proposal.add, build_mode, run)
    return replace(proposal, add_index=(*proposal.add_index, *entries))


def commit_indexed(
    store: Store,
    head: Head,
    proposal: Proposal,
    build_mode: str = "",
    run: Run = run_here,
    *,
    catch_up: int | None = None,
) -> Snapshot:
    """Commit ``proposal`` with index segments for its added parts; return the new version.

    Every verb that adds parts commits through here. ``build_mode`` and ``catch_up`` are the write's options
    ``tamis.index.build`` and ``tamis.index.catch_up``. Raises like ``state.commit``; a failed build becomes an
    entry with the reason. Another commit adds what earlier loads failed to build. Every sixteenth version tidies.
    """
    made = with_index_segments(store, head, proposal, build_mode, run)
    after = commit(store, made)
    if after.head.indexes and proposal.add and build_mode != "deferred":
        load_bytes = sum(int(size) for one in proposal.add for size in one["bytes"].to_pylist())
        _catch_up(store, after, made, load_bytes if catch_up is None else catch_up, build_mode, run)
    if after.head.indexes and (after.version + 1) % MERGE_FROM == 0:
        tidy_indexes(store, after, run)
    return after


def _catch_up(store: Store, snapshot: Snapshot, load: Proposal, most: int, build_mode: str, run: Run) -> None:
    """Commit index segments that loads before ``load`` failed to build. Best effort: raises nothing."""
    if not most:
        return
    try:
        broken = {entry["index_id"] for entry in load.add_index if entry.get("reason")}
        add, remove = catch_up_entries(store, snapshot, most, broken, build_mode, run)
        if add or remove:
            add_entries(store, snapshot, Operation("catch up index"), tuple(add), tuple(remove))
    except Exception:  # noqa: BLE001  # the load is committed: what is missing stays listed
        return


def add_entries(
    store: Store, snapshot: Snapshot, operation: Operation, add: tuple[dict[str, Any], ...], remove: tuple[str, ...]
) -> Snapshot:
    """Commit index entries. Concurrent commits cannot invalidate them: they reference base parts by id."""
    return commit(store, same_rows(snapshot, operation, add_index=add, remove_index=remove))


def same_rows(snapshot: Snapshot, operation: Operation, **changes: Any) -> Proposal:
    """Build a proposal that changes no rows."""
    return Proposal(
        operation=operation,
        read_version=snapshot.version,
        read_operation_id=snapshot.commit.operation_id,
        table_id=snapshot.head.table_id,
        data_change=False,
        operation_id=new_id(),
        **changes,
    )
