"""A change that a caller proposes, as a value, so that it can be proposed again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.expr import Expr
from tamis.errors import InvalidInput
from tamis.storage.commit_log.commit_record import RemovedPart
from tamis.storage.commit_log.deletion_vectors import RowRemoval, removal_of
from tamis.storage.commit_log.model import Head, Operation, ReadSet
from tamis.storage.commit_log.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Proposal:
    """A change to a table.

    Invariant: committed twice with the same ``operation_id`` and ``read_version``, it takes effect once.
    ``add`` holds manifests of new parts, which together become one segment. ``replace_all`` removes whatever
    is there when the commit lands, so only the proposal's own ``reads`` (None: nothing was read) can make it
    conflict.
    """

    operation: Operation
    read_version: int
    """The version that the operation started from."""
    reads: ReadSet | None = None
    """What the operation read and relies on; None means nothing."""
    blind_append: bool = False
    """The added rows do not depend on the table's rows, so ``reads`` cannot make it conflict."""
    head: Head | None = None
    """The table's new head, derived from that of ``read_version``; None means unchanged."""
    add: Sequence[pa.Table] = ()
    remove_segments: Sequence[str] = ()
    remove_parts: Sequence[str] = ()
    """Part ids, of any segments."""
    delete_rows: Mapping[str, bytes] = field(default_factory=dict)
    """Rows to delete from parts that stay: part id → serialized bitmap of their ordinals.

    If a concurrent commit deletes other rows of the same part, both sets are deleted.
    """
    exact: bool = False
    """Every row that ``reads`` matched is removed.

    Concurrent removals of rows and parts then conflict only if they are among these.
    """
    replace_all: bool = False
    operation_id: str = ""
    """Generated at the first attempt if empty."""
    data_change: bool = True
    """False if the rows are the same before and after; the change then affects no reader."""
    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    """Further tables of the new segment, by name.

    Their rows name their part by ``part`` (ordinal in ``add``) and ``part_id``.
    """
    conjuncts: Sequence[Expr] | None = None
    """The bound filter of ``reads``, as the operation meant it; None: its text is parsed."""
    add_index: Sequence[dict[str, Any]] = ()
    """Index segments, as JSON with a ``segment_id``."""
    remove_index: Sequence[str] = ()
    add_deletions: Mapping[str, bytes] = field(default_factory=dict)
    """Rows of parts in ``add`` that are deleted from the start: part id → deletion vector."""
    restores: int | None = None
    """The version whose data files are restored; a vacuum must not have released it."""
    vacuum: tuple[int, int] | None = None
    """Of a vacuum: what may vanish from now on, as in ``Commit.vacuum``."""
    follows: bool = False
    """Whether the change is one of the source that the table follows; nobody else changes its rows or columns."""
    read_operation_id: str = ""
    """The ``operation_id`` of the commit of ``read_version``, so that a log restored from a backup is noticed; empty:
    unknown.
    """
    table_id: str = ""
    """The id of the table to change, so that a table created in its place is not; empty: any table."""

    @property
    def cannot_conflict(self) -> bool:
        """Whether no other commit can make it conflict, except by changing the schema."""
        reads = self.reads is not None and not self.blind_append
        return not (
            reads or self.head or self.remove_segments or self.remove_parts or self.delete_rows or self.remove_index
        )


@dataclass(frozen=True, slots=True)
class Removal:
    """What is removed, resolved against the version that was read.

    ``segments`` are removed whole, ``parts`` are single parts, and ``rows`` belong to parts that stay.
    """

    segments: tuple[str, ...] = ()
    parts: tuple[RemovedPart, ...] = ()
    rows: RowRemoval = field(default_factory=RowRemoval)

    def __bool__(self) -> bool:
        return bool(self.segments or self.parts or self.rows.parts)

    @property
    def all_parts(self) -> tuple[RemovedPart, ...]:
        """The single parts, and those that have no rows left."""
        emptied = (
            RemovedPart(part.segment_id, part_id, part.rows, part.bytes)
            for part_id, part in self.rows.emptied_parts().items()
        )
        return (*self.parts, *emptied)


def resolve_proposal(snapshot: Snapshot, proposal: Proposal) -> Removal:
    """Resolve what ``proposal`` removes against ``snapshot``.

    A segment that loses its last part is removed whole. Raises ``InvalidInput`` (``UNKNOWN_SEGMENT``,
    ``UNKNOWN_PART``, ``UNKNOWN_ROW``) for what is not live there.
    """
    removal = _whole(snapshot, proposal.remove_segments, proposal.remove_parts)
    if not proposal.delete_rows:
        return removal
    ids = pa.array(list(proposal.delete_rows), pa.string())
    parts = snapshot.parts()
    segment_ids = snapshot.segments["segment_id"].combine_chunks().take(parts["segment"].combine_chunks())
    parts = parts.append_column("segment_id", segment_ids).select(
        ["part_id", "segment_id", "rows", "bytes", "deletion"]
    )
    return replace(
        removal, rows=removal_of(parts.filter(pc.is_in(parts["part_id"], value_set=ids)), proposal.delete_rows)
    )


def _whole(snapshot: Snapshot, segments: Sequence[str], parts: Sequence[str]) -> Removal:
    ids = snapshot.segments["segment_id"].combine_chunks()
    if strangers := set(segments) - set(ids.to_pylist()):
        raise _unknown("segment", strangers)
    whole = set(segments)
    if not parts:
        return Removal(tuple(whole))
    table = snapshot.table("parts", ("part_id", "rows", "bytes"))
    table = table.filter(pc.is_in(table["part_id"], value_set=pa.array(parts, pa.string())))
    if strangers := set(parts) - set(table["part_id"].to_pylist()):
        raise _unknown("part", strangers)
    table = table.append_column("segment_id", pc.take(ids, table["segment"]))
    counts = table.group_by("segment_id").aggregate([("part_id", "count")])
    live = dict(zip(ids.to_pylist(), snapshot.segments["parts"].to_pylist(), strict=True))
    whole |= {
        s
        for s, n in zip(counts["segment_id"].to_pylist(), counts["part_id_count"].to_pylist(), strict=True)
        if live[s] == n
    }
    single = table.filter(pc.invert(pc.is_in(table["segment_id"], value_set=pa.array(sorted(whole), pa.string()))))
    columns = (single[name].to_pylist() for name in ("segment_id", "part_id", "rows", "bytes"))
    return Removal(tuple(sorted(whole)), tuple(RemovedPart(*values) for values in zip(*columns, strict=True)))


def _unknown(what: str, names: set[str]) -> InvalidInput:
    name = min(names)
    return InvalidInput(
        f"There is no live {what} {name!r} in the version that was read.",
        code=f"UNKNOWN_{what.upper()}",
        name=name,
        remedy="Plan again over the version that is read.",
    )
